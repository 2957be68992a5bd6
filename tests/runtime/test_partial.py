"""Partial runs: one step in several calls."""

import numpy as np
import pytest
from cluster_hosts import hosts_here

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def abc():
    a, b, c = (fs.placeholder(fs.float32, [], name=n) for n in "abc")
    first = fs.add(a, b, name="first")
    second = fs.multiply(first, c, name="second")
    return a, b, c, first, second


def counted(x):
    """`x`, and a variable that counts how often it was computed."""
    count = fs.Variable(0, name="count")
    with fs.control_dependencies([count.assign_add(1)]):
        return fs.identity(x), count


def test_feeds_and_fetches_come_in_several_calls(sess, abc):
    a, b, c, first, second = abc
    handle = sess.partial_run_setup([first, second], [a, b, c])
    assert sess.partial_run(handle, first, {a: 1, b: 2}) == 3
    assert sess.partial_run(handle, second, {c: 10}) == 30


def test_fetches_keep_their_structure(sess, abc):
    a, b, c, first, second = abc
    handle = sess.partial_run_setup({"x": [first, second], "y": a}, [a, b, c])
    assert sess.partial_run(handle, {"x": [a, (first,)]}, {a: 1, "b:0": 2}) == {"x": [1, (3,)]}
    assert sess.partial_run(handle, [second], {c: 2}) == [6]


def test_what_was_computed_is_not_computed_again(sess, abc):
    a, b, c, *_ = abc
    x, count = counted(a)
    y, z = x + b, x + c
    sess.run(count.initializer)
    handle = sess.partial_run_setup([x, y, z], [a, b, c])
    assert sess.partial_run(handle, [], {a: 1}) == []
    assert sess.run(count) == 1
    assert sess.partial_run(handle, [y, x], {b: 10}) == [11, 1]
    assert sess.partial_run(handle, z, {c: 100}) == 101
    assert sess.run(count) == 1


def test_state_is_read_once(sess, abc):
    a, b, *_ = abc
    v = fs.Variable(np.zeros(3, np.float32))
    read = v.value()
    y, z = read + a, read + b
    sess.run(v.initializer)
    handle = sess.partial_run_setup([y, z], [a, b])
    assert sess.partial_run(handle, y, {a: 0}).tolist() == [0, 0, 0]
    sess.run(v.assign_add([1, 1, 1]).op)
    assert sess.partial_run(handle, z, {b: 0}).tolist() == [0, 0, 0]
    assert sess.run(v).tolist() == [1, 1, 1]


def test_all_that_was_named_has_run_by_the_last_call(sess, abc):
    a, b, _, first, _ = abc
    v = fs.Variable(0.0)
    up = v.assign_add(b)
    sess.run(v.initializer)
    handle = sess.partial_run_setup([first, up.op], [a, b])
    assert sess.partial_run(handle, first, {a: 1, b: 2}) == 3
    assert sess.run(v) == 2
    assert sess.partial_run(handle, up.op) is None
    assert sess.run(v) == 2


def test_draws_of_one_partial_run_are_those_of_one_run(graph, abc):
    a, b, *_ = abc
    fs.set_random_seed(7)
    x = fs.random_normal([4])
    y, z = x * a, x * b
    w = fs.random_normal([]) * b

    def draw(sess):
        handle = sess.partial_run_setup([y, z, w], [a, b])
        first = sess.partial_run(handle, y, {a: 1})
        return [first, *sess.partial_run(handle, [z, w], {b: 1})]

    with fs.Session() as one, fs.Session() as two:
        got = [draw(one), draw(one)]
        want = [two.run([y, z, w], {a: 1, b: 1}) for _ in range(2)]
    for g, w in zip(got, want, strict=True):
        for left, right in zip(g, w, strict=True):
            np.testing.assert_array_equal(left, right)
    assert not np.array_equal(got[0][0], got[1][0])


def test_an_update_group_stays_together(sess, abc):
    """Variables of one optimizer's update change in the same call."""
    a, b, *_ = abc
    v, w = fs.Variable(1.0), fs.Variable(1.0)
    train = fs.train.GradientDescentOptimizer(1.0).minimize(v * a + w * b)
    sess.run(fs.global_variables_initializer())
    handle = sess.partial_run_setup(train, [a, b])
    sess.partial_run(handle, [], {a: 1})
    assert sess.run([v, w]) == [1, 1]
    sess.partial_run(handle, train, {b: 2})
    assert sess.run([v, w]) == [0, -1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, h, t: s.partial_run(h, t[4], {t[0]: 1}), r'"second:0" needs.*"b:0", "c:0"'),
        (lambda s, h, t: s.partial_run(h, t[1], {t[0]: 1}), '"b:0" was not named as a fetch'),
        (lambda s, h, t: s.partial_run(h, [], {t[3]: 1}), '"first:0" was not named as a feed'),
        (lambda s, h, t: s.partial_run(h, [], {t[0]: 1, "a:0": 2}), '"a:0" was fed already'),
        (lambda s, h, t: s.partial_run(h, [], {t[0]: [1, 2]}), r"expected shape \[\], got \[2\]"),
        (lambda s, h, t: s.partial_run("handle", t[3]), "partial_run_setup returned"),
        (lambda s, h, t: fs.Session().partial_run(h, t[3]), "another session"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(sess, abc, call, message):
    a, b, c, first, second = abc
    handle = sess.partial_run_setup([first, second], [a, b, c])
    with pytest.raises(fs.errors.InvalidArgumentError, match=message):
        call(sess, handle, abc)
    assert sess.partial_run(handle, first, {a: 1, b: 2}) == 3
    with pytest.raises(fs.errors.InvalidArgumentError, match='"first:0" was fetched already'):
        sess.partial_run(handle, first)
    with pytest.raises(fs.errors.InvalidArgumentError, match='"a:0" was fed already'):
        sess.partial_run(handle, second, {a: 1, c: 1})
    assert sess.partial_run(handle, second, {c: 10}) == 30


def test_a_setup_needs_something_to_fetch(sess, abc):
    with pytest.raises(fs.errors.InvalidArgumentError, match="something to fetch"):
        sess.partial_run_setup([], [abc[0]])
    with pytest.raises(TypeError, match="to fetch"):
        sess.partial_run_setup(None)


def test_calls_that_contradict_program_order_are_refused_before_anything_runs(sess, abc):
    a, b, *_ = abc
    v = fs.Variable(1.0, name="v")
    read = fs.multiply(v.value(), b, name="read")
    with fs.control_dependencies([read]):
        pass
    early = v.assign_add(b, name="early")
    late = v.assign_add(a, name="late")
    sess.run(v.initializer)
    handle = sess.partial_run_setup([early, late, read], [a, b])
    with pytest.raises(
        fs.errors.InvalidArgumentError, match='"late[^"]*" cannot be computed yet.*"early.*"b:0"'
    ):
        sess.partial_run(handle, late, {a: 10})
    assert sess.run(v) == 1
    assert sess.partial_run(handle, [], {a: 10}) == []
    assert sess.run(v) == 1
    assert sess.partial_run(handle, [read, early, late], {b: 5}) == [5, 6, 16]


def test_variables_without_a_value_are_all_named_before_anything_runs(sess, abc):
    a, b, *_ = abc
    v, w = fs.Variable(1.0, name="v"), fs.Variable(1.0, name="w")
    count = fs.Variable(0)
    sess.run(count.initializer)
    handle = sess.partial_run_setup([count.assign_add(1), v + a, w + b], [a, b])
    with pytest.raises(fs.errors.FailedPreconditionError, match=r'"v", "w"'):
        sess.partial_run(handle, [], {a: 1})
    assert sess.run(count) == 0


def test_a_step_that_fails_ends_the_partial_run(sess, abc):
    a, b, *_ = abc
    x = fs.placeholder(fs.int32, [None], name="x")
    y = fs.gather([1.0, 2.0], x, name="gathered")
    handle = sess.partial_run_setup([y, a + b], [x, a, b])
    with pytest.raises(fs.errors.InvalidArgumentError, match='node "gathered"'):
        sess.partial_run(handle, y, {x: [5]})
    with pytest.raises(fs.errors.AbortedError, match="has ended: InvalidArgumentError"):
        sess.partial_run(handle, [], {a: 1})
    sess.stop()
    handle = sess.partial_run_setup([y, a + b], [x, a, b])
    with pytest.raises(fs.errors.CancelledError):
        sess.partial_run(handle, y, {x: [0]})


def test_fetched_arrays_are_the_callers_own(sess, abc):
    a, b, *_ = abc
    x = fs.placeholder(fs.float32, [2])
    c = fs.constant([1.0, 2.0])
    y, z = x * a, (x * a) + b
    mine = np.ones(2, np.float32)
    handle = sess.partial_run_setup([x, y, z, c], [x, a, b])
    got = sess.partial_run(handle, [x, y, c], {x: mine, a: 2})
    for array in got:
        array[:] = 100
    assert mine.tolist() == [1, 1]
    assert sess.partial_run(handle, z, {b: 1}).tolist() == [3, 3]
    assert sess.run(c).tolist() == [1, 2]


def test_a_repeated_pattern_plans_once(sess, abc, monkeypatch):
    from flowscope.plan import partial_run as stages

    made = []
    compiled = stages.compiled
    monkeypatch.setattr(stages, "compiled", lambda *a, **k: made.append(1) or compiled(*a, **k))
    a, b, c, first, second = abc
    for i in range(3):
        handle = sess.partial_run_setup([first, second], [a, b, c])
        assert sess.partial_run(handle, first, {b: i, a: 1}) == 1 + i
        assert sess.partial_run(handle, second, {c: 2}) == 2 + 2 * i
    assert len(made) == 2


def test_an_edit_makes_a_pattern_stale_but_not_a_partial_run_on_its_way(sess, abc):
    a, b, c, first, second = abc
    v = fs.Variable(0)
    up = v.assign_add(1)
    sess.run(v.initializer)
    old = sess.partial_run_setup([first, second], [a, b, c])
    sess.partial_run(old, first, {a: 1, b: 1})
    second.op._add_control_input(up.op)
    assert sess.partial_run(old, second, {c: 1}) == 2
    assert sess.run(v) == 0
    new = sess.partial_run_setup([first, second], [a, b, c])
    assert sess.partial_run(new, second, {a: 1, b: 1, c: 1}) == 2
    assert sess.run(v) == 1


def test_values_that_nobody_needs_any_more_are_released(sess, abc):
    a, b, c, first, second = abc
    handle = sess.partial_run_setup([first, second], [a, b, c])
    sess.partial_run(handle, first, {a: 1, b: 1})
    assert len(handle._values) == 1
    sess.partial_run(handle, second, {c: 1})
    assert not handle._values
    assert '"a:0", "b:0", "c:0"' in repr(handle)


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_later_call_takes_what_an_earlier_one_has_made_on_a_worker(is_taken):
    with hosts_here(2) as (cluster, _), fs.Graph().as_default():
        a, b = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
        with fs.device("/job:worker/task:1"):
            v = fs.get_variable("v", [], initializer=fs.ones_initializer())
            y = fs.square(a) + v
        with fs.control_dependencies([y]):
            z = fs.cond(b > 0, lambda: y * b, lambda: fs.identity(b))
        with fs.Session(cluster) as sess:
            sess.run(fs.global_variables_initializer())
            handle = sess.partial_run_setup([y, z], [a, b])
            assert sess.partial_run(handle, y, {a: 3.0}) == 10.0
            number = 2.0 if is_taken else -2.0
            assert sess.partial_run(handle, z, {b: number}) == (20.0 if is_taken else -2.0)
