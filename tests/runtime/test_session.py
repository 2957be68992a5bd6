"""Sessions: fetches, feeds, pruning, caching, errors while running."""

import collections
import inspect
import pickle
import threading

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def test_fetches_keep_their_structure(sess):
    a, b = fs.constant(1.0, name="a"), fs.constant([2, 3])
    Pair = collections.namedtuple("Pair", "first second")
    out = sess.run({"x": [a, (b, "a:0")], "y": Pair(a, fs.no_op()), "z": {}})
    assert out["x"][0] == 1.0 and isinstance(out["x"], list) and isinstance(out["x"][1], tuple)
    np.testing.assert_array_equal(out["x"][1][0], [2, 3])
    assert isinstance(out["y"], Pair) and out["y"] == Pair(1.0, None)
    assert out["z"] == {}
    ordered = sess.run(collections.OrderedDict([("b", b), ("a", a)]))
    assert type(ordered) is collections.OrderedDict and list(ordered) == ["b", "a"]
    assert sess.run([]) == []


def test_rank_0_is_a_numpy_scalar_and_an_operation_gives_none(sess):
    value = sess.run(fs.constant(2.5))
    assert type(value) is np.float32
    assert sess.run(fs.no_op()) is None


@pytest.mark.parametrize("bad", [None, 1.0, [None], {"a": 3}])
def test_what_cannot_be_fetched_is_refused(sess, bad):
    fs.constant(1.0)
    with pytest.raises(TypeError, match="to fetch|expected a tensor"):
        sess.run(bad)


def test_only_what_the_fetch_needs_runs(sess):
    counter = fs.Variable(0)
    up = counter.assign_add(1)
    sess.run(fs.global_variables_initializer())
    x = fs.constant(1.0)
    sess.run(x + 1.0)
    assert sess.run(counter) == 0
    sess.run(up)
    assert sess.run(counter) == 1


def test_any_tensor_can_be_fed_and_cuts_the_graph(sess):
    x = fs.placeholder(fs.float32, [])
    y = x * 2.0
    z = y + 1.0
    assert sess.run(z, {y: 10.0}) == 11.0
    assert sess.run([y, z], {y: 3.0}) == [3.0, 4.0]
    assert sess.run(z, {y.name: 3.0}) == 4.0


def test_a_placeholder_without_a_feed_is_one_clear_error(sess):
    x = fs.placeholder(fs.float32, [None], name="x")
    with pytest.raises(
        fs.errors.InvalidArgumentError, match=r'(?s)feed.*node "x".*made in test_session'
    ):
        sess.run(x + 1.0)


def test_feeds_are_checked(sess):
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    i = fs.placeholder(fs.int32, [], name="i")
    with pytest.raises(ValueError, match=r'cannot feed "x:0": expected shape \[\?,2\], got \[3\]'):
        sess.run(x, {x: [1, 2, 3]})
    with pytest.raises(TypeError, match='cannot feed "i:0": expected int32, got inf'):
        sess.run(i, {i: float("inf")})
    with pytest.raises(TypeError, match="is a tensor: run it first"):
        sess.run(x, {x: fs.ones([1, 2])})
    with pytest.raises(TypeError, match="expected feed_dict to be a dict"):
        sess.run(x, [1])
    assert sess.run(i, {i: np.float64(3.0)}) == 3


def test_a_fed_array_is_not_copied_and_never_handed_back(sess):
    x = fs.placeholder(fs.float32, [2])
    mine = np.array([1, 2], np.float32)
    out = sess.run(fs.identity(x), {x: mine})
    assert not np.shares_memory(out, mine)


def test_a_repeated_run_makes_no_new_plan(sess, graph):
    x = fs.placeholder(fs.float32, [])
    y = x + 1.0
    first = sess.plan(y, [x])
    fs.constant(1.0)
    sess.run(y, {x: 1.0})
    assert sess.plan(y, [x]) is first
    meta = fs.RunMetadata()
    sess.run(y, {x: 1.0}, run_metadata=meta)
    assert meta.plan is first
    assert "add" in first.text()


def test_operations_added_later_can_be_run(sess):
    x = fs.constant(1.0)
    assert sess.run(x) == 1.0
    assert sess.run(x + 1.0) == 2.0


def test_an_error_while_running_names_the_operation_its_inputs_and_the_line(sess):
    x = fs.placeholder(fs.int32, [None], name="x")
    y = fs.floordiv(x, 0, name="y")
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        sess.run(y, {x: [1, 2]})
    assert "division by zero" in str(e.value)
    assert e.value.op is e.value.node_def is y.op
    assert e.value.op_name == "y" and e.value.origin == f"test_session.py, line {line}"
    again = pickle.loads(pickle.dumps(e.value))
    assert (again.op, again.op_name, str(again)) == (None, "y", str(e.value))
    assert any("int32[2]" in i for i in e.value.inputs)
    assert sess.run(x, {x: [1]}) == [1]


def test_shape_errors_only_known_while_running_are_located(sess):
    a, b = fs.placeholder(fs.float32), fs.placeholder(fs.float32)
    c = fs.matmul(a, b, name="c")
    with pytest.raises(fs.errors.InvalidArgumentError, match='node "c"') as e:
        sess.run(c, {a: np.ones((2, 3)), b: np.ones((2, 3))})
    assert e.value.__cause__ is None or isinstance(e.value.__cause__, ValueError)
    assert e.value.__suppress_context__, "nobody needs to see how the mode calls kernels"


def test_default_session_and_eval():
    x = fs.constant(3.0)
    with pytest.raises(RuntimeError, match="no default session"):
        x.eval()
    with fs.Session().as_default() as sess:
        assert x.eval() == 3.0
        assert fs.get_default_session() is sess
    interactive = fs.InteractiveSession()
    try:
        assert x.eval() == 3.0
        fs.no_op().run()
    finally:
        interactive.close()
    assert fs.get_default_session() is None


def test_a_closed_session_says_so(graph):
    x = fs.constant(1.0)
    sess = fs.Session()
    sess.run(x)
    sess.close()
    with pytest.raises(RuntimeError, match="closed"):
        sess.run(x)


def test_make_callable(sess):
    x, y = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    call = sess.make_callable([x + y, x], [x, y])
    assert call(1.0, 2.0) == [3.0, 1.0]
    with pytest.raises(ValueError, match="expected 2 values, got 1"):
        call(1.0)


def test_device_wishes(graph):
    with fs.device("/cpu:1"):
        x = fs.constant(1.0) + 1.0
    with (
        fs.Session() as sess,
        pytest.raises(ValueError, match=r"no device fits '/device:CPU:1'.*soft_placement"),
    ):
        sess.run(x)
    with fs.Session(config=fs.ConfigProto(allow_soft_placement=True)) as sess:
        assert sess.run(x) == 2.0
        assert "moved" in sess.plan(x).program.notes[0]
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as sess:
        assert sess.run(x) == 2.0
        assert [d.name[-5:] for d in sess.list_devices()] == ["CPU:0", "CPU:1"]
        assert sess.placements[x.op.id].endswith("CPU:1")


def test_runs_from_several_threads_at_once():
    v = fs.Variable(0, name="v")
    up = v.assign_add(1)
    with fs.Session() as sess:
        sess.run(v.initializer)

        def work():
            for _ in range(500):
                sess.run(up.op)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sess.run(v) == 2000
        assert sess.steps == 2002


def test_random_numbers_come_from_counters(graph):
    fs.set_random_seed(1)
    x = fs.random_normal([3], seed=2)
    y = fs.random_normal([3])
    with fs.Session() as one, fs.Session(config=fs.ConfigProto(mode="op")) as two:
        a, b = one.run([x, y])
        assert not np.array_equal(a, b)
        np.testing.assert_array_equal(two.run(x), a)
        np.testing.assert_array_equal(two.run(y), one.run(y))
        assert not np.array_equal(one.run(x), a)


def test_overflow_is_not_warned_about(sess):
    x = fs.placeholder(fs.float32, [])
    assert np.isinf(sess.run(x * x, {x: 1e30}))


def test_an_unknown_mode_is_refused():
    with fs.Session(config=fs.ConfigProto(mode="fast")) as sess:
        with pytest.raises(ValueError, match=r"expected mode to be one of .*compiled.*'fast'"):
            sess.run(fs.constant(1.0))


def test_a_control_input_added_later_is_obeyed_by_runs_that_were_planned_before(sess):
    v = fs.Variable(0)
    up = v.assign_add(1)
    x = fs.identity(fs.constant(1.0))
    sess.run(v.initializer)
    sess.run(x)
    before = sess.plan(x)
    x.op._add_control_input(up.op)
    sess.run(x)
    assert sess.run(v) == 1
    assert sess.plan(x) is not before
