"""Live bytes over a step: what planning knows of lifetimes is what is allocated."""

import contextlib
import gc
import threading
import tracemalloc

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
ROWS = 4096


def mlp(x):
    h, ws = x, [fs.Variable(np.full((128, 128), 0.01, "f")) for _ in range(3)]
    for w in ws:
        h = fs.nn.relu(fs.matmul(h, w) + 1.0)
    loss = fs.reduce_mean(fs.square(h))
    return [loss, *fs.gradients(loss, ws)]


def loop(x):
    w = fs.Variable(np.full((128, 128), 0.01, "f"))

    def body(i, v):
        return i + 1, fs.tanh(fs.matmul(v, w)) + x

    y = fs.while_loop(lambda i, v: i < 20, body, [0, x], name="loop")[1]
    return [fs.reduce_mean(fs.square(y))], w


def kept(x):
    (loss,), w = loop(x)
    return [loss, *fs.gradients(loss, [w])]


def branch(x):
    big = fs.cond(fs.reduce_sum(x) > 0, lambda: fs.exp(fs.sin(x)), lambda: x * 2.0)
    return [fs.reduce_sum(fs.sqrt(fs.abs(big) + 1.0))]


def traced(sess, fetches, feed):
    with fs.profile() as p:
        sess.run(fetches, feed)
    return p.recording


def array_bytes():
    """The bytes of the arrays that were made since `tracemalloc` began, on any thread.

    What other threads of the process allocate besides - of clusters, of Dask - does not count.
    """
    if not tracemalloc.is_tracing():
        return 0
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    found = tracemalloc.take_snapshot().filter_traces([arrays])
    return sum(trace.size for trace in found.traces)


@contextlib.contextmanager
def busy_thread():
    """Something else that the process does meanwhile: it comes to keep 26 MB."""
    is_over, begun = threading.Event(), threading.Event()
    kept = []

    def work():
        while not is_over.is_set():
            kept.append(bytes(1 << 16))
            del kept[:-400]
            begun.set()
            is_over.wait(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(30.0)
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.memory
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize("program", [mlp, lambda x: loop(x)[0], kept, branch])
def test_the_curve_is_what_is_allocated_behind_each_operation(program, mode):
    x = fs.placeholder(fs.float32, [None, 128], name="x")
    fetches = program(x)
    feed = {x: np.random.default_rng(0).random((ROWS, 128)).astype("f")}
    config = fs.ConfigProto(mode=mode)
    with fs.Session(config=config) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(fetches, feed)
        told = traced(sess, fetches, feed).memory
        for kind in {op.type for op in sess.graph.get_operations()}:
            sess.debug.break_before(op_type=kind)
        seen = []
        sess.debug.on_stop(lambda _: seen.append(array_bytes()))
        sess.run(fetches, feed)
        seen.clear()
        gc.collect()
        with busy_thread():
            tracemalloc.start()
            try:
                before = array_bytes()
                sess.run(fetches, feed)
            finally:
                tracemalloc.stop()
    real = max(seen) - before
    assert told.nbytes.max() == pytest.approx(real, rel=0.05)
    assert (np.diff(told.time) >= 0).all() and told.nbytes.min() >= 0


def test_views_and_variables_and_feeds_take_nothing_of_their_own():
    x = fs.placeholder(fs.float32, [None, 8], name="x")
    v = fs.Variable(np.zeros((8, 8), "f"))
    shown = fs.transpose(fs.reshape(x, [-1, 4]))
    y = fs.reduce_sum(shown) + fs.reduce_sum(v)
    with fs.Session() as sess:
        sess.run(v.initializer)
        assert traced(sess, y, {x: np.ones((100, 8))}).memory.nbytes.max() < 100


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_what_a_loop_keeps_grows_with_its_iterations_and_is_taken_again(mode):
    x = fs.placeholder(fs.float32, [None, 128], name="x")
    fetches = kept(x)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        memory = traced(sess, fetches, {x: np.ones((64, 128))}).memory
    if mode == "compiled":
        assert memory.nbytes.max() > 19 * 2 * 64 * 128 * 4
        assert memory.nbytes[-1] < memory.nbytes.max() / 10
    assert len(memory.time) == len(memory.nbytes) > 100


def test_a_recording_keeps_the_curve(tmp_path):
    x = fs.placeholder(fs.float32, [None, 128], name="x")
    with fs.Session() as sess:
        fetches = mlp(x)
        sess.run(fs.global_variables_initializer())
        with fs.profile() as p:
            sess.run(fetches, {x: np.ones((64, 128))})
    p.save(tmp_path / "one")
    again = fs.tracing.load(tmp_path / "one")
    np.testing.assert_array_equal(again.memory.nbytes, p.recording.memory.nbytes)
