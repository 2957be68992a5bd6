"""How much memory loops and their gradients take, measured and told before."""

import resource
import tracemalloc

import numpy as np
import pytest

import flowscope as fs
from flowscope.runtime.session import engine

MODES = ["compiled", "op"]


def session(mode):
    return fs.Session(config=fs.ConfigProto(mode=mode))


def peak(s, fetch, feeds):
    """Returns the most bytes that a run has had at a time."""
    s.run(fetch, feeds)
    tracemalloc.start()
    s.run(fetch, feeds)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def recurrent(rows=16, units=128):
    """Returns the number of steps, x, w and a loss."""
    n = fs.placeholder(fs.int32, [])
    x, w = fs.placeholder(fs.float32, [rows, units]), fs.placeholder(fs.float32, [units, units])

    def body(t, h):
        return t + 1, fs.sigmoid(fs.matmul(h, w)) * fs.tanh(h)

    h = fs.while_loop(lambda t, h: t < n, body, [0, x])[1]
    return n, x, w, fs.reduce_sum(h)


def given(n, x, w, steps):
    rng = np.random.default_rng(0)
    return {n: steps, x: rng.normal(size=x.shape.as_list()), w: rng.normal(size=w.shape.as_list())}


@pytest.mark.memory
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_takes_what_the_plan_says(graph, mode):
    n, x, w, loss = recurrent()
    g = fs.gradients(loss, [x, w])
    with session(mode) as s:
        told = [s.plan(g, [n, x, w]).kept(iterations=k).nbytes for k in (150, 300)]
        seen = [peak(s, g, given(n, x, w, k)) for k in (150, 300)]
    assert told[1] - told[0] == 150 * 3 * 16 * 128 * 4, "h, its sigmoid, its hyperbolic tangent"
    assert abs((seen[1] - seen[0]) - (told[1] - told[0])) < 0.1 * (told[1] - told[0])


@pytest.mark.memory
@pytest.mark.parametrize("mode", MODES)
def test_a_loop_without_a_gradient_takes_constant_memory(graph, mode):
    n, x, w, loss = recurrent()
    fs.gradients(loss, w)
    with session(mode) as s:
        few, many = (peak(s, loss, given(n, x, w, k)) for k in (10, 100))
    assert many < few + 10_000


@pytest.mark.memory
@pytest.mark.slow
def test_ten_million_iterations_take_constant_memory(graph):
    n = fs.placeholder(fs.int32, [])
    i = fs.while_loop(lambda i: i < n, lambda i: i + 1, [0])
    with fs.Session() as s:
        while "Python, " in s.plan(i, [n]).text("native"):  # until what compiles it is loaded
            s.run(i, {n: 100_000})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert s.run(i, {n: 10_000_000}) == 10_000_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1000, "KiB"


@pytest.mark.memory
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_memory_is_free_after_a_step_that_fails(graph, mode):
    """The lists of a step go with it (SPEC C37)."""
    n, x, w, loss = recurrent()
    g = fs.gradients(loss, w)[0]
    bad = fs.reduce_sum(g) / fs.cast(fs.constant(1) // (n - n), fs.float32)
    with session(mode) as s:
        with pytest.raises(fs.errors.OpError):
            s.run(bad, given(n, x, w, 10))
        tracemalloc.start()
        for _ in range(2):
            with pytest.raises(fs.errors.OpError):
                s.run([bad, g], given(n, x, w, 100))
        engine.current().pool.products.stop()  # a helper may be in the middle of a block
        left, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most > 100 * 2 * 16 * 128 * 4
    assert left < 100 * 16 * 128 * 4


SIZES = {
    "shape": lambda y: fs.shape(y)[0],
    "size": fs.size,
    "rank": fs.rank,
}


@pytest.mark.memory
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", sorted(SIZES))
def test_what_only_needs_sizes_keeps_no_values(graph, mode, kind):
    """SPEC C35: the forward loop keeps the size, not the tensor that has it."""
    n, x = fs.placeholder(fs.int32, []), fs.placeholder(fs.float32, [None, 1000])

    def body(i, y, total):
        count = fs.cast(SIZES[kind](y), fs.float32)
        return i + 1, fs.concat([y, y[:1]], 0), total + fs.sin(count * fs.reduce_mean(y))

    invariants = [fs.TensorShape([]), fs.TensorShape([None, 1000]), fs.TensorShape([])]
    y = fs.while_loop(lambda i, y, t: i < n, body, [0, x, 0.0], invariants)[2]
    g = fs.gradients(y, x)[0]
    with session(mode) as s:
        value = np.ones((50, 1000), np.float32)
        seen = [peak(s, g, {n: k, x: value}) for k in (5, 25)]
    assert seen[1] - seen[0] < 20 * 50 * 1000 * 4 / 4, "less than a quarter of the values"


@pytest.mark.memory
def test_broadcasting_keeps_shapes(graph):
    n = fs.placeholder(fs.int32, [])
    x, b = fs.placeholder(fs.float32, [None, 2000]), fs.placeholder(fs.float32, [None, 1])
    y = fs.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + b), [0, x])[1]
    g = fs.gradients(y, b)[0]
    with fs.Session() as s:
        feeds = {x: np.ones((4, 2000)), b: np.ones((4, 1))}
        few, many = (peak(s, g, {n: k, **feeds}) for k in (10, 410))
        (loop,) = s.plan(g, [n, x, b]).kept(dimension=4)
    assert many - few < 400 * 1000
    assert loop.bytes_per_iteration == 8, "two int32"


def test_the_estimate_knows_counters_and_nested_loops(graph):
    w = fs.placeholder(fs.float32, [10])

    def outer(i, y):
        inner = fs.while_loop(lambda j, z: j < 5, lambda j, z: (j + 1, z * w), [0, y])
        return i + 2, inner[1]

    y = fs.while_loop(lambda i, y: i <= 7, outer, [1, fs.ones([10])])[1]
    g = fs.gradients(y, w)[0]
    with fs.Session() as s:
        kept = s.plan(g, [w]).kept()
        assert [(k.iterations, k.bytes_per_iteration) for k in kept][:2] == [
            (4, 5 * 40 + 8), (5, 40)
        ]  # fmt: skip
        assert kept.nbytes == kept[0].nbytes == 4 * 208
        assert "4 iterations of 208 bytes = 832 bytes" in repr(kept)


def test_the_estimate_says_what_it_does_not_know(graph):
    n, w = fs.placeholder(fs.int32, []), fs.placeholder(fs.float32, [None, 3])
    y = fs.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * w), [0, w])[1]
    with fs.Session() as s:
        assert repr(s.plan(y, [n, w]).kept()) == "no loop keeps anything"
        plan = s.plan(fs.gradients(y, w)[0], [n, w])
        assert plan.kept().nbytes is None
        assert "? iterations of ? bytes = ? bytes" in repr(plan.kept())
        assert plan.kept(iterations=7, dimension=2).nbytes == 7 * (24 + 8)


def test_parts_of_what_is_kept_count_once(graph):
    x, w = fs.placeholder(fs.float32, [5, 2, 4]), fs.placeholder(fs.float32, [4, 8])

    def body(i, h):
        a, b = fs.split(fs.sigmoid(fs.matmul(h + x[i], w)), 2, axis=1)
        return i + 1, a * b

    y = fs.while_loop(lambda i, h: i < 5, body, [0, fs.zeros([2, 4])])[1]
    with fs.Session() as s:
        (first, *_) = s.plan(fs.gradients(y, w)[0], [x, w]).kept()
    sigmoid, product = 2 * 8 * 4, 2 * 4 * 4
    assert first.bytes_per_iteration == sigmoid + product
    assert first.iterations == 5
