"""Breakpoints: where steps are held, on which conditions, in all modes."""

import threading

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30
FEED = np.array([0.5, 1.0, 2.0], "f")


@pytest.fixture(params=["compiled", "op", "tokens"])
def sess(request):
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as made:
        yield made


def nest():
    """A loop in a loop behind two operations; a sum of what comes out."""
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.sin(x, name="a")
    b = fs.multiply(a, 2.0, name="b")

    def inner(j, v):
        return j + 1, fs.add(v, b, name="sum")

    def outer(i, v):
        return i + 1, fs.while_loop(lambda j, v: j < 2, inner, [0, v], name="inner")[1]

    _, c = fs.while_loop(lambda i, v: i < 3, outer, [0, a], name="outer")
    return x, a, b, fs.reduce_sum(c, name="y")


def told(sess, fetch, feed):
    """Runs a step that goes on at every stop; returns its value and what was told at the stops."""
    stops = []
    sess.debug.on_stop(stops.append)
    value = sess.run(fetch, feed)
    sess.debug.on_stop(None)
    assert not any(s.is_there for s in stops)
    return value, stops


SUM = "outer/body/inner/body/sum"


def test_a_step_is_held_before_an_operation_in_every_iteration(sess):
    x, _, _, y = nest()
    plain = sess.run(y, {x: FEED})
    point = sess.debug.break_before(SUM)
    value, stops = told(sess, y, {x: FEED})
    assert value == plain
    assert [s.iterations for s in stops] == [(i, j) for i in range(3) for j in range(2)]
    assert {s.op.name for s in stops} == {SUM} and stops[3].frame.endswith(":1")
    assert point.hits == 6 and {s.breakpoint for s in stops} == {point}
    point.remove()
    assert told(sess, y, {x: FEED}) == (plain, [])


@pytest.mark.parametrize(
    ("conditions", "at"),
    [
        ({"iteration": 1}, [(0, 1), (1, 1), (2, 1)]),
        ({"iteration": (2, 0)}, [(2, 0)]),
        ({"hits": 5}, [(2, 0), (2, 1)]),
        ({"step": 1}, []),
        ({"when": "max > 6 and iteration == 1"}, [(1, 1), (2, 1)]),
        ({"when": lambda v: v[2] > 6}, [(1, 1), (2, 0), (2, 1)]),
        ({"when": "max > 6", "iteration": 0, "step": 2}, [(2, 0)]),
    ],
)
def test_conditions_say_when(sess, conditions, at):
    x, _, _, y = nest()
    sess.run(y, {x: FEED})
    sess.run(y, {x: FEED})
    sess.debug.break_before(SUM, **conditions)
    assert [s.iterations for s in told(sess, y, {x: FEED})[1]] == at
    assert told(sess, y, {x: FEED})[1] == [] or "step" not in conditions


def test_a_condition_after_an_operation_is_asked_of_its_value(sess):
    x, _, b, y = nest()
    sess.debug.break_after(b, when="max > 1.5")
    assert told(sess, y, {x: FEED * 0})[1] == []
    (stop,) = told(sess, y, {x: FEED})[1]
    assert stop.iterations == () and stop.step == 1


def test_a_condition_that_raises_is_told_and_does_not_hold_the_step(sess):
    x, _, b, y = nest()
    plain = sess.run(y, {x: FEED})
    point = sess.debug.break_after(b, when=lambda v: v.no_such_thing)
    with pytest.warns(RuntimeWarning, match="no_such_thing.*does not hold the step") as warned:
        found = [told(sess, y, {x: FEED}) for _ in range(2)]
    assert found == [(plain, [])] * 2
    assert len(warned) == 1 and warned[0].filename == __file__
    assert isinstance(point.error, AttributeError) and point.hits == 0


def test_a_condition_is_asked_of_a_value_that_is_no_variable(sess):
    v = fs.get_variable("v", initializer=fs.constant([1.0, 5.0]))
    add = fs.assign_add(v, fs.constant([2.0, 3.0]) * v, name="add")
    sess.run(fs.global_variables_initializer())
    point = sess.debug.break_before("add", when="max > 14 and step > 1")
    _, stops = told(sess, add, None)
    assert stops == [] and point.error is None
    assert len(told(sess, add, None)[1]) == 1


def test_a_condition_of_the_place_alone_needs_no_value(sess):
    nothing = fs.no_op(name="nothing")
    sess.debug.break_before(nothing, when="step > 0")
    assert told(sess, nothing, None)[1] == []
    assert len(told(sess, nothing, None)[1]) == 1
    sess.debug.clear()
    point = sess.debug.break_after(nothing, when="max > 0")
    with pytest.warns(RuntimeWarning, match="no value to ask of"):
        assert told(sess, nothing, None)[1] == []
    assert point.hits == 0


@pytest.mark.parametrize(
    "text", ["__import__('os')", "value.shape", "max >", "f(3) > 1", "value[0] > 1", "x > 1"]
)
def test_what_is_no_comparison_is_refused(text):
    with fs.Session() as sess:
        op = fs.constant(1.0, name="c") + 1.0
        with pytest.raises(fs.errors.InvalidArgumentError, match="a condition: expected"):
            sess.debug.break_before(op, when=text)
        assert sess.debug.breakpoints == ()


def test_targets_are_operations_scopes_types_and_lines(sess):
    x, a, b, y = nest()
    line = b.op.origin.place.line
    by_type = sess.debug.break_before(op_type="Sin")
    by_scope = sess.debug.break_before(scope="outer/body/inner/body", iteration=(0, 0))
    by_line = sess.debug.break_after(line=line, file="test_breakpoints.py")
    stops = told(sess, y, {x: FEED})[1]
    assert {s.breakpoint.number for s in stops} == {1, 2, 3}
    assert by_type.where() == ('"a"',)
    assert any('"b"' in w for w in by_line.where()) and len(by_scope.where()) >= 2
    for wrong in (
        {},
        {"op": a, "line": 3},
        {"cell": 3},
        {"op": a, "hits": -1},
        {"op": a, "when": 3},
    ):
        with pytest.raises(fs.errors.InvalidArgumentError, match="a breakpoint: expected"):
            sess.debug.break_before(**wrong)
    with pytest.raises((KeyError, ValueError)):
        sess.debug.break_before("nothing")


def test_a_merged_or_folded_operation_says_where_it_stands():
    x = fs.placeholder(fs.float32, [3], name="x")
    a, b = fs.sin(x, name="a"), fs.sin(x, name="b")
    two = fs.add(fs.constant(1.0), fs.constant(1.0), name="two")
    y = a * two + b
    with fs.Session() as sess:
        sess.run(y, {x: FEED})
        merged, folded = sess.debug.break_before(b), sess.debug.break_before(two)
        assert merged.where() == ('"b" stands at "a": it is the same as "a"',)
        assert folded.where() == ('"two" stands nowhere: it is known before the step',)
        (stop,) = told(sess, y, {x: FEED})[1]
        assert stop.op.name == "a" and stop.breakpoint is merged


def test_breakpoints_are_listed_switched_off_and_on_and_taken_away(sess):
    x, a, _, y = nest()
    one, two = sess.debug.break_before(a), sess.debug.break_after(a)
    assert sess.debug.breakpoints == (one, two)
    assert "before" in repr(one) and "2 breakpoints" in repr(sess.debug)
    one.is_enabled = False
    assert [s.breakpoint for s in told(sess, y, {x: FEED})[1]] == [two]
    one.is_enabled = True
    assert [s.breakpoint for s in told(sess, y, {x: FEED})[1]] == [one, two]
    sess.debug.clear()
    assert told(sess, y, {x: FEED})[1] == [] and sess.debug.breakpoints == ()


def test_code_without_breakpoints_is_the_plain_code_again():
    x, a, _, y = nest()
    with fs.Session() as sess:
        plain = sess.plan(y, [x]).executable.function
        call = sess.planner.calls.all()[0]
        assert call.function is plain
        point = sess.debug.break_before(a, when="max > 100")
        assert call.function is not plain
        sess.run(y, {x: FEED})
        point.remove()
        assert call.function is plain


def test_operations_that_are_added_later_are_meant_too(sess):
    x, _, _, y = nest()
    sess.debug.break_before(op_type="Cos")
    assert told(sess, y, {x: FEED})[1] == []
    late = fs.cos(x, name="late")
    assert [s.op.name for s in told(sess, late, {x: FEED})[1]] == ["late"]


def test_inside_of_an_update_group_nobody_is_held(sess):
    v, w = fs.Variable([1.0, 2.0], name="v"), fs.Variable([3.0], name="w")
    loss = fs.reduce_sum(v * v) + fs.reduce_sum(w)
    train = fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    sess.run(fs.global_variables_initializer())
    held = []
    sess.debug.break_before(op_type="ApplyMomentum")
    sess.debug.on_stop(
        lambda stop: held.append([sess.variable_state(x.handle).read()[0] for x in (v, w)])
    )
    sess.run(train)
    assert held and all(pair in ([1.0, 3.0], [np.float32(0.8), np.float32(2.9)]) for pair in held)
    sess.debug.clear()
    np.testing.assert_allclose(sess.run(v), [0.8, 1.6], rtol=1e-6)


def in_thread(work):
    box = {}

    def run():
        try:
            box["value"] = work()
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=run)
    thread.start()
    return thread, box


@pytest.mark.slow
def test_a_breakpoint_that_is_set_while_a_step_runs_is_met(sess):
    n = fs.placeholder(fs.int64, [], name="n")
    start = [fs.constant(0, fs.int64), 1.0]
    is_code = sess.config.mode == "compiled"
    loop = fs.while_loop(
        lambda i, t: i < n, lambda i, t: (i + 1, fs.sin(t, name="sin") + 1.0), start, name="loop"
    )
    count = 400_000 if is_code else 8_000
    sess.run(loop, {n: 1})
    thread, box = in_thread(lambda: sess.run(loop, {n: count}))
    while not sess.running:
        pass
    sess.debug.break_before("loop/body/sin")
    stop = sess.debug.wait(PATIENCE_S)
    first = stop.iterations[0]
    assert stop.op.name == "loop/body/sin" and 0 <= first < count
    stop.resume()
    again = sess.debug.wait(PATIENCE_S)
    assert again.iterations[0] == first + 1
    sess.debug.clear()
    again.resume()
    thread.join(PATIENCE_S)
    assert [v.tobytes() for v in box["value"]] == [v.tobytes() for v in sess.run(loop, {n: count})]


def test_programs_with_queues_meet_breakpoints_too(sess):
    q = fs.FIFOQueue(4, [fs.float32], [[]])
    put = q.enqueue(fs.constant(2.0))
    got = fs.square(q.dequeue(), name="got")
    sess.run(put)
    sess.debug.break_before("got")
    value, stops = told(sess, got, {})
    assert value == 4.0 and [s.op.name for s in stops] == ["got"]


def test_an_error_in_code_with_breakpoints_names_its_operation(sess):
    x = fs.placeholder(fs.int32, [], name="x")
    bad = fs.floordiv(10, x, name="bad")
    sess.debug.break_before(bad, when=lambda v: False)
    with pytest.raises(fs.errors.InvalidArgumentError, match='"bad"'):
        sess.run(bad, {x: 0})
