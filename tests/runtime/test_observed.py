"""Runs with options: timeouts, metadata, how feeds come in."""

import threading

import numpy as np
import pytest
from late_steps import late

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


def slow():
    """A product that takes a few hundred milliseconds, with many safepoints."""
    x = fs.ones([400, 400])
    for _ in range(60):
        x = fs.matmul(x, x) * 1e-3
    return fs.reduce_sum(x)


# -- timeouts -------------------------------------------------------------------------------------


def test_a_step_that_takes_too_long_ends_at_a_safepoint(sess):
    v = fs.Variable(0)
    y = slow()
    with fs.control_dependencies([y]):
        late = v.assign_add(1)
    sess.run(v.initializer)
    with pytest.raises(fs.errors.DeadlineExceededError, match="longer than its 1 ms"):
        sess.run(late.op, options=fs.RunOptions(timeout_in_ms=1))
    assert sess.run(v) == 0
    assert not sess.gate.raised, "later steps pay nothing"


def test_a_session_may_have_a_timeout_for_all_its_steps(graph):
    y, x = slow(), fs.constant(1.0)
    with fs.Session(config=fs.ConfigProto(operation_timeout_in_ms=1)) as sess:
        for run in (lambda: sess.run(y), sess.make_callable(y)):
            with pytest.raises(fs.errors.DeadlineExceededError):
                run()
        handle = sess.partial_run_setup(y)
        with pytest.raises(fs.errors.DeadlineExceededError):
            sess.partial_run(handle, y)
        assert sess.run(x, options=fs.RunOptions(timeout_in_ms=60_000)) == 1


def test_a_step_in_time_is_not_disturbed(sess):
    x = fs.constant(2.0)
    assert sess.run(x, options=fs.RunOptions(timeout_in_ms=60_000)) == 2
    call = sess.make_callable(x, accept_options=True)
    assert call(options=fs.RunOptions(timeout_in_ms=60_000)) == 2


def test_a_deadline_holds_while_the_session_is_paused(sess):
    x = fs.constant(1.0)
    sess.pause()
    late(sess, x, match="the session is paused")
    sess.resume()
    assert sess.run(x) == 1


def test_the_deadline_of_one_thread_is_none_of_anothers(sess):
    y = slow()
    box = {}

    def other():
        box["value"] = sess.run(y)

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(fs.errors.DeadlineExceededError):
        sess.run(y, options=fs.RunOptions(timeout_in_ms=1))
    thread.join(PATIENCE_S)
    assert box["value"] == sess.run(y)


@pytest.mark.parametrize(
    "wrong", [{"options": {"timeout_in_ms": 3}}, {"run_metadata": {}}, {"options": 3}]
)
def test_wrong_options_are_refused(sess, wrong):
    x = fs.constant(1.0)
    with pytest.raises(TypeError, match=r"expected (options|run_metadata) to be fs\.Run"):
        sess.run(x, **wrong)
    with pytest.raises(TypeError, match=r"expected (options|run_metadata) to be fs\.Run"):
        sess.make_callable(x, accept_options=True)(**wrong)


# -- metadata -------------------------------------------------------------------------------------


def test_metadata_tell_about_the_run(sess):
    x = fs.placeholder(fs.float32, [None], name="x")
    y = fs.identity(x * 2.0, name="y")
    meta = fs.RunMetadata()
    value = np.ones(10, np.float32)
    sess.run([y, x], {x: value}, run_metadata=meta)
    stats = meta.step_stats
    assert not stats.plan_was_cached
    assert 0 < stats.step_ns <= stats.total_ns
    assert stats.fed_bytes == 40 and stats.fetched_bytes == 80
    assert meta.plan is sess.plan([y, x], [x])
    assert meta.partition_graphs == []
    sess.run([y, x], {x: value}, fs.RunOptions(output_partition_graphs=True), meta)
    assert meta.step_stats.plan_was_cached
    assert meta.partition_graphs == [meta.plan.program.text()]


def test_a_callable_tells_about_its_runs_where_it_takes_options(sess):
    x = fs.placeholder(fs.float32, [])
    meta = fs.RunMetadata()
    call = sess.make_callable(x + 1.0, [x], accept_options=True)
    assert call(1.0, run_metadata=meta) == 2
    assert meta.step_stats.plan_was_cached and meta.plan is not None
    with pytest.raises(TypeError):
        sess.make_callable(x + 1.0, [x])(1.0, run_metadata=meta)


class Shown:
    """Shows an array as data frames and tensors of other libraries do."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class Lent:
    """Shows an array through DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def read_only(array):
    array.setflags(write=False)
    return array


ONES = np.ones((2, 3), np.float32)
#: What is fed, and what the metadata say of copying it.
FEEDS = {
    "array": (ONES, ""),
    "read-only": (read_only(ONES.copy()), ""),
    "transposed": (np.ones((3, 2), np.float32).T, ""),
    "strided": (np.ones((2, 6), np.float32)[:, ::2], ""),
    "shown": (Shown(ONES), ""),
    "lent": (Lent(ONES.copy()), ""),
    "subclass": (ONES.view(np.matrix), ""),
    "list": (ONES.tolist(), "list made an array"),
    "float64": (ONES.astype(np.float64), "float64 converted to float32"),
    "shown float64": (Shown(ONES.astype(np.float64)), "float64 converted to float32"),
    "int": (ONES.astype(np.int8), "int8 converted to float32"),
    "bool": (ONES.astype(bool), "bool converted to float32"),
    "big endian": (ONES.astype(">f4"), ">f4 converted to float32"),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("shape", [[2, 3], [None, 3], None], ids=str)
@pytest.mark.parametrize(("value", "copied"), FEEDS.values(), ids=FEEDS)
def test_feeds_that_fit_are_not_copied_and_others_say_why(sess, shape, value, copied):
    x = fs.placeholder(fs.float32, shape, name="x")
    meta = fs.RunMetadata()
    got = sess.run(x * 2.0, {x: value}, run_metadata=meta)
    np.testing.assert_array_equal(got, 2 * ONES)
    assert type(got) is np.ndarray
    (feed,) = meta.step_stats.feeds
    assert (feed.name, feed.nbytes, feed.copied) == ("x:0", 24, copied)


def test_numbers_are_not_called_copied(sess):
    x = fs.placeholder(fs.float32, [])
    meta = fs.RunMetadata()
    sess.run(x + 1.0, {x: 1.0}, run_metadata=meta)
    assert meta.step_stats.feeds[0].copied == ""


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("it is on a device")


def test_an_object_that_shows_no_array_is_refused_with_its_reason(sess):
    x = fs.placeholder(fs.float32, [None])
    with pytest.raises(TypeError, match=r'cannot feed ".*Broken shows no array: it is on a device'):
        sess.run(x, {x: Broken()})
    with pytest.raises(TypeError, match=r'cannot feed ".*expected numbers'):
        sess.run(x, {x: object()})


# -- feeds that change nothing --------------------------------------------------------------------


def test_a_fed_array_is_never_written(sess):
    x = fs.placeholder(fs.float32, [None])
    v = fs.Variable([0.0, 0.0])
    y = fs.exp(-x * 2.0 + 1.0)
    sess.run(v.initializer)
    value = read_only(np.ones(2, np.float32))
    sess.run([y, v.assign(x), v.assign_add(x)], {x: value})
    assert sess.run(v).tolist() == [2, 2]
    assert value.tolist() == [1, 1]


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_cost_graph_of_every_second_run(graph, mode):
    x = fs.placeholder(fs.float32, [None, 200], name="x")
    w = fs.get_variable("w", [200, 200], initializer=fs.ones_initializer())
    y = fs.matmul(x, w, name="y")
    with fs.control_dependencies([y]):
        z = fs.reduce_sum(y, name="z")
    last = fs.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, z])[1]
    options = fs.GraphOptions(build_cost_model=2, build_cost_model_after=1)
    with fs.Session(config=fs.ConfigProto(mode=mode, graph_options=options)) as s:
        s.run(fs.global_variables_initializer())
        found = []
        for _ in range(5):
            metadata = fs.RunMetadata()
            s.run(last, {x: np.ones([3, 200])}, run_metadata=metadata)
            found.append(metadata.cost_graph)
        assert s.run(last, {x: np.ones([3, 200])}) == 3 * 200 * 200 * 8  # without metadata
    assert [g is not None for g in found] == [False, False, True, False, True]
    nodes = {n.name: n for n in found[2].node}
    assert [n.id for n in found[2].node] == list(range(len(found[2].node)))
    by_id = [n.name for n in found[2].node]
    product = nodes["y"]
    assert [by_id[i.preceding_node] for i in product.input_info] == ["w/read"]  # x is fed
    assert product.output_info[0].size == -1 and product.output_info[0].dtype == 1
    assert nodes["w/read"].output_info[0].size == 200 * 200 * 4
    assert [d.size for d in nodes["w/read"].output_info[0].shape.dim] == [200, 200]
    assert product.compute_cost > 0 and not product.inaccurate
    assert "y" in [by_id[i] for i in nodes["z"].control_input] or "y" in [
        by_id[i.preceding_node] for i in nodes["z"].input_info
    ]
    assert [n.name for n in found[2].node if n.is_final] == [last.op.name]


def test_no_cost_graph_unless_it_is_asked_for(sess):
    metadata = fs.RunMetadata()
    options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)
    sess.run(fs.constant(1.0) + fs.random_uniform([]), options=options, run_metadata=metadata)
    assert metadata.cost_graph is None and not metadata.HasField("cost_graph")


def test_a_finalized_graph_grows_again(graph):
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        fs.constant(1.0)
    graph._unsafe_unfinalize()
    assert fs.constant(1.0).graph is graph
