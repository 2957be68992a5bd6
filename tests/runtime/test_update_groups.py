"""Groups of writes are done as a whole or not at all, whatever one of them fails of."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

MODES = ("compiled", "op", "tokens")


@pytest.fixture(params=MODES)
def session(request, graph):
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=request.param)) as s:
        yield s


def variable(name, dims=(4,)):
    return fs.Variable(np.ones(dims, np.float32), name=name)


def values(session, variables):
    return [np.array(session.run(v)) for v in variables]


def unchanged(before, after):
    return all(a.shape == b.shape and (a == b).all() for a, b in zip(before, after, strict=True))


def fails(session, fetch, feed=None, error=fs.errors.InvalidArgumentError):
    with pytest.raises(error) as caught:
        session.run(fetch, feed)
    return caught.value


OPTIMIZERS = {
    "sgd": lambda: fs.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: fs.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: fs.train.AdamOptimizer(0.1),
    "ftrl": lambda: fs.train.FtrlOptimizer(0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_gradient_of_another_shape_changes_no_variable(session, name):
    a, b = variable("a"), variable("b")
    g = fs.placeholder(fs.float32, None)
    train = OPTIMIZERS[name]().apply_gradients([(fs.ones([4]), a), (g, b)])
    session.run(fs.global_variables_initializer())
    everything = fs.global_variables()
    before = values(session, everything)
    error = fails(session, train, {g: np.ones(3, np.float32)})
    assert "update_b" in str(error)
    assert unchanged(before, values(session, everything))
    session.run(train, {g: np.ones(4, np.float32)})
    assert not any(unchanged([x], [y]) for x, y in zip(before[:2], values(session, [a, b])))


def test_a_row_that_is_not_there_changes_no_variable(session):
    a, b = variable("a"), variable("b")
    rows = fs.placeholder(fs.int32, [None])
    slices = fs.IndexedSlices(fs.ones([1]), rows, fs.constant([4]))
    train = fs.train.AdamOptimizer(0.1).apply_gradients([(fs.ones([4]), a), (slices, b)])
    session.run(fs.global_variables_initializer())
    before = values(session, fs.global_variables())
    assert "expected indices in [0, 4), got 7" in str(fails(session, train, {rows: [7]}))
    assert unchanged(before, values(session, fs.global_variables()))


def test_a_variable_without_a_value_changes_no_other(session):
    a, b = variable("a"), variable("b")
    both = fs.group(fs.assign_add(a, fs.ones([4])), fs.assign_add(b, fs.ones([4])))
    session.run(a.initializer)
    fails(session, both, error=fs.errors.FailedPreconditionError)
    assert (session.run(a) == 1).all()


def test_no_memory_for_one_value_changes_no_variable(session):
    a = variable("a")
    b = fs.Variable(np.ones(4, np.float32), name="b", validate_shape=False)
    huge = fs.placeholder(fs.float32, None)
    writes = [fs.assign(a, fs.zeros([4])), fs.assign(b, huge)]
    session.run(fs.global_variables_initializer())
    state = session.variable_state(b.handle)
    with pytest.raises(MemoryError):
        state.check_assign(np.broadcast_to(np.float32(0), (1 << 45,)))
    fails(session, fs.group(*writes[:1], fs.assign_add(b, huge)), {huge: np.ones(3, np.float32)})
    assert (session.run(a) == 1).all()


def test_an_error_of_what_stands_between_two_writes_changes_nothing(session):
    """Both need only what was there before; the failing function was made between them."""
    a, b = variable("a"), variable("b")

    def fail():
        raise ValueError("not today")

    first = fs.assign(a, fs.zeros([4]))
    bad = fs.py_func(fail, [], fs.float32)
    second = fs.assign(b, fs.zeros([4]))
    both = fs.group(first, second)
    session.run(fs.global_variables_initializer())
    fails(session, [both, bad])
    found = values(session, [a, b])
    assert (found[0] == found[1]).all()


def test_a_write_that_needs_another_takes_it_back(session):
    a, b = variable("a"), variable("b")
    size = fs.placeholder(fs.int32, [])
    first = fs.assign(a, fs.zeros([4]))
    with fs.control_dependencies([first]):
        second = fs.assign(b, fs.placeholder_with_default(a.read_value(), None)[:size])
    both = fs.group(first, second)
    session.run(fs.global_variables_initializer())
    fails(session, both, {size: 3})
    assert unchanged(values(session, [a, b]), [np.ones(4)] * 2)
    session.run(both, {size: 4})
    assert unchanged(values(session, [a, b]), [np.zeros(4)] * 2)


@pytest.mark.parametrize("taken", [True, False])
def test_branches_belong_to_the_group(session, taken):
    a, b, c = abc = [variable(n) for n in "abc"]
    p = fs.placeholder(fs.bool, [])
    g = fs.placeholder(fs.float32, None)
    branch = fs.cond(p, lambda: fs.assign(b, fs.zeros([4])), lambda: fs.assign_add(b, fs.ones([4])))
    both = fs.group(fs.assign(a, fs.zeros([4])), branch, fs.assign_add(c, g))
    session.run(fs.global_variables_initializer())
    fails(session, both, {p: taken, g: np.ones(3, np.float32)})
    assert unchanged(values(session, abc), [np.ones(4)] * 3)
    session.run(both, {p: taken, g: np.ones(4, np.float32)})
    wanted = [np.zeros(4), np.zeros(4) if taken else np.full(4, 2.0), np.full(4, 2.0)]
    assert unchanged(values(session, abc), wanted)


def test_an_update_in_a_branch_and_in_a_loop_is_whole(session):
    a, b = ab = [variable(n) for n in "ab"]
    g = fs.placeholder(fs.float32, None)

    def both(i):
        made = fs.group(fs.assign_add(a, fs.ones([4])), fs.assign_add(b, g[: 4 - fs.maximum(i, 2)]))
        with fs.control_dependencies([made]):
            return i + 1

    session.run(fs.global_variables_initializer())
    branch = fs.cond(fs.constant(True), lambda: both(fs.constant(3)), lambda: fs.constant(0))
    fails(session, branch, {g: np.ones(4, np.float32)})
    assert unchanged(values(session, ab), [np.ones(4)] * 2)
    loop = fs.while_loop(lambda i: i < 5, both, [fs.constant(1)])
    error = fails(session, loop, {g: np.ones(6, np.float32)})
    assert error.iterations and error.iterations[0][1] == 0
    assert unchanged(values(session, ab), [np.ones(4)] * 2)


def test_the_error_names_the_write_and_its_line(session):
    a, b = variable("a"), variable("b")
    g = fs.placeholder(fs.float32, None)
    both = fs.group(fs.assign(a, fs.zeros([4])), fs.assign_add(b, g, name="bad"))
    session.run(fs.global_variables_initializer())
    error = fails(session, both, {g: np.ones(3, np.float32)})
    assert str(error).startswith("AssignAddVariableOp: expected a value of shape [4]")
    assert 'node "bad"' in str(error) and "test_update_groups.py" in str(error)


def test_a_value_that_would_be_broadcast_is_refused(session):
    a = variable("a")
    g = fs.placeholder(fs.float32, None)
    session.run(a.initializer)
    for write in (fs.assign_add(a, g), fs.assign_sub(a, g)):
        fails(session, write, {g: np.ones(1, np.float32)})
    assert (session.run(a) == 1).all()


def test_other_steps_see_a_kept_group_before_or_after(session):
    """Two threads run a group whose values are kept: no update is lost."""
    a, b = variable("a"), variable("b")
    first = fs.assign_add(a, fs.ones([4]))
    with fs.control_dependencies([first]):
        both = fs.group(first, fs.assign_add(b, a.read_value() * 0.0 + 1.0))
    session.run(fs.global_variables_initializer())
    session.run(both)
    errors = []

    def work():
        try:
            for _ in range(50):
                session.run(both)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors
    assert unchanged(values(session, [a, b]), [np.full(4, 152.0)] * 2)


# -- random groups ------------------------------------------------------------------------------

KINDS = ("assign", "add", "sub", "scatter", "part", "branch")
FAILURES = ("shape", "index", "shape in a branch")


def write(kind, v, value, index, p):
    match kind:
        case "assign":
            return fs.assign(v, value)
        case "add":
            return fs.assign_add(v, value)
        case "sub":
            return fs.assign_sub(v, value)
        case "scatter":
            return fs.scatter_add(v, index, value[:1])
        case "part":
            return v[1:3].assign(value[:2])
        case _:
            return fs.cond(p, lambda: fs.assign_add(v, value), lambda: fs.assign(v, value))


@st.composite
def groups(draw):
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=5))
    at = draw(st.integers(0, len(kinds) - 1))
    kinds[at] = draw(st.sampled_from(("add", "sub", "scatter", "branch")))
    return kinds, at, draw(st.sampled_from(MODES)), draw(st.booleans()), draw(st.booleans())


@pytest.mark.slow
@settings(max_examples=120)
@given(groups())
def test_random_groups_with_one_that_fails_leave_all_as_it_was(drawn):
    kinds, at, mode, taken, is_known = drawn
    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        variables = [variable(f"v{i}") for i in range(len(kinds))]
        p = fs.placeholder(fs.bool, [])
        index = [fs.placeholder(fs.int32, [None]) for _ in kinds]
        given_ = [fs.placeholder(fs.float32, None) for _ in kinds]
        known = [fs.fill([4], 3.0) if is_known and i != at else g for i, g in enumerate(given_)]
        rows = zip(kinds, variables, known, index, strict=True)
        both = fs.group(*[write(k, v, g, i, p) for k, v, g, i in rows])
        s.run(fs.global_variables_initializer())
        feed = {p: taken, **{g: np.full(4, 3.0, np.float32) for g in given_}}
        feed.update({i: np.array([1], np.int32) for i in index})
        good = dict(feed)
        if kinds[at] == "scatter":
            feed[index[at]] = np.array([9], np.int32)
        else:
            feed[given_[at]] = np.ones(3, np.float32)
        held = [s.run(v) for v in variables[::2]]  # leases on some
        before = values(s, variables)
        fails(s, both, feed)
        assert unchanged(before, values(s, variables))
        s.run(both, good)
        after = values(s, variables)
        assert not any(unchanged([x], [y]) for x, y in zip(before, after, strict=True))
        assert unchanged(held, before[::2])
