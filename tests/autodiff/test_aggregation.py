"""How the cotangents of one tensor are summed: `fs.AggregationMethod`."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import flowscope as fs

METHODS = fs.AggregationMethod
EARLY = [METHODS.EXPERIMENTAL_TREE, METHODS.EXPERIMENTAL_ACCUMULATE_N]
TERMS = 16


def sums(graph: fs.Graph) -> list[int]:
    """The number of terms of each sum, bodies included."""
    blocks, found = [graph.block], []
    while blocks:
        for op in blocks.pop().operations:
            blocks += [f.block for f in getattr(op.definition, "functions", ())]
            blocks += [op.definition.function.block] if hasattr(op.definition, "function") else []
            found += [len(op.inputs)] if op.type == "AddN" else []
    return found


def value_and_peak(method, mode):
    """The gradient of many products with one x, and the peak of a step in sizes of x."""
    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        x = fs.placeholder(fs.float64, [1 << 13])
        others = [fs.placeholder(fs.float64, [1 << 13]) for _ in range(TERMS)]
        y = fs.add_n([fs.reduce_sum(x * other) for other in others])
        (g,) = fs.gradients(y, x, aggregation_method=method)
        draws = np.random.default_rng(1).normal(size=(TERMS + 1, 1 << 13))
        feeds = dict(zip([x, *others], draws, strict=True))
        sess.run(g, feeds)
        tracemalloc.start()
        try:
            found = sess.run(g, feeds)
            return found, tracemalloc.get_traced_memory()[1] / found.nbytes
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("method", EARLY)
def test_the_machine_of_tokens_has_the_same_bits(method):
    found, default = value_and_peak(method, "tokens")[0], value_and_peak(None, "compiled")[0]
    assert found.tobytes() == default.tobytes()


@pytest.mark.memory
@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize("method", EARLY)
def test_early_sums_have_the_same_bits_and_keep_two_cotangents(method, mode):
    default, all_kept = value_and_peak(None, mode)
    found, peak = value_and_peak(method, mode)
    assert found.tobytes() == default.tobytes()
    assert all_kept >= TERMS and peak <= 5


@pytest.mark.parametrize("method", [None, METHODS.ADD_N, METHODS.DEFAULT])
def test_all_are_summed_at_once_by_default(graph, method):
    x = fs.placeholder(fs.float64, [])
    (g,) = fs.gradients(x * x + fs.exp(x) + x, x, aggregation_method=method)
    assert sums(graph) == [4]
    with fs.Session() as sess:
        assert sess.run(g, {x: 2.0}) == pytest.approx(5.0 + np.exp(2.0))


@pytest.mark.parametrize("method", EARLY)
@pytest.mark.parametrize("where", ["function", "loop", "branch"])
def test_bodies_are_summed_by_the_same_method(graph, method, where):
    def body(a):
        return a * a + fs.exp(a) + a

    x = fs.placeholder(fs.float64, [])
    if where == "function":
        y = fs.function(body)(x)
    elif where == "loop":
        y = fs.while_loop(lambda i, _: i < 1, lambda i, a: (i + 1, body(a)), [0, x])[1]
    else:
        y = fs.cond(x > 0.0, lambda: body(x), lambda: x)
    (g,) = fs.gradients(y, x, aggregation_method=method)
    assert len(sums(graph)) >= 3 and set(sums(graph)) == {2}
    with fs.Session() as sess:
        assert sess.run(g, {x: 2.0}) == pytest.approx(5.0 + np.exp(2.0))
    (again,) = fs.gradients(y, x)  # a call without a method has the default again
    assert max(sums(graph)) > 2 and again is not None


@pytest.mark.parametrize("method", EARLY)
def test_slices_are_joined_and_added_to_dense_cotangents_at_the_end(method):
    with fs.Graph().as_default(), fs.Session() as sess:
        v = fs.get_variable("v", initializer=np.ones((4, 2)))
        rows = fs.gather(v, [1, 1]), fs.gather(v, [0])
        (slices,) = fs.gradients([r * 2.0 for r in rows], v, aggregation_method=method)
        assert isinstance(slices, fs.IndexedSlices)
        (mixed,) = fs.gradients([*rows, v * v, v * 3.0], v, aggregation_method=method)
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(fs.convert_to_tensor(slices))[:, 0], [2, 4, 0, 0])
        np.testing.assert_array_equal(sess.run(mixed)[:, 0], [6, 7, 5, 5])


@pytest.mark.parametrize("method", EARLY)
def test_optimizers_hand_the_method_on(graph, method):
    v = fs.Variable(2.0)
    fs.train.GradientDescentOptimizer(0.1).minimize(
        v * v + fs.exp(v) + v, aggregation_method=method
    )
    assert set(sums(graph)) == {2}
