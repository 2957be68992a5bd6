"""Loops that run their bodies again for the gradient, in place of keeping what it reads."""

import numpy as np
import pytest

import flowscope as fs

MODES = ["compiled", "op", "tokens"]


def deep(h, w, layers=3):
    for _ in range(layers):
        h = fs.tanh(fs.matmul(h, w)) * fs.sigmoid(h)
    return h


def loop(body, recompute, n, start):
    return fs.while_loop(
        lambda i, h: i < n, lambda i, h: (i + 1, body(h)), [0, start], recompute=recompute
    )[1]


def inputs(rows=3, units=4):
    rng = np.random.default_rng(0)
    n = fs.placeholder(fs.int32, [])
    x, w = fs.placeholder(fs.float64, [rows, units]), fs.placeholder(fs.float64, [units, units])
    feeds = {n: 5, x: rng.normal(size=(rows, units)), w: rng.normal(size=(units, units)) * 0.5}
    return n, x, w, feeds


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_the_same(graph, mode):
    n, x, w, feeds = inputs()
    found = []
    for recompute in (False, True):
        y = loop(lambda h: deep(h, w), recompute, n, x)
        g = fs.gradients(fs.reduce_sum(y * y), [x, w])
        h = fs.gradients(fs.reduce_sum(fs.sin(g[0])), [x, w])
        found.append([*g, *h])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        kept, again = s.run(found, feeds)
    for a, b in zip(kept, again, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10)


def test_only_variables_are_kept(graph):
    n, x, w, feeds = inputs(16, 32)
    kept = {}
    with fs.Session() as s:
        for recompute in (False, True):
            y = loop(lambda h: deep(h, w), recompute, n, x)
            g = fs.gradients(fs.reduce_sum(y), [x, w])
            kept[recompute] = s.plan(g, list(feeds)).kept(iterations=100)
    assert kept[True][0].bytes_per_iteration == 16 * 32 * 8
    assert kept[False][0].bytes_per_iteration == 9 * 16 * 32 * 8
    assert kept[True].nbytes * 9 == kept[False].nbytes


@pytest.mark.parametrize("mode", MODES)
def test_nested_loops_and_branches_run_again(graph, mode):
    n, x, w, feeds = inputs()

    def body(h):
        inner = loop(lambda z: fs.tanh(fs.matmul(z, w)) + h, False, 2, h)
        return fs.cond(fs.reduce_sum(inner) > 0.0, lambda: fs.sin(inner) * h, lambda: inner * 0.5)

    found = []
    for recompute in (False, True):
        y = loop(body, recompute, n, x)
        found.append(fs.gradients(fs.reduce_sum(y * y), [x, w]))
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        kept, again = s.run(found, feeds)
        for a, b in zip(kept, again, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10)
        (first, *_) = s.plan(found[1], list(feeds)).kept(iterations=9)
        assert first.bytes_per_iteration == 3 * 4 * 8


@pytest.mark.parametrize("mode", MODES)
def test_random_numbers_and_variables_are_what_they_were(graph, mode):
    n = fs.placeholder(fs.int32, [])
    v = fs.get_variable("v", initializer=np.full(8, 1.5), use_resource=True)
    x = fs.constant(np.ones(8))

    def body(h):
        mask = fs.cast(fs.random_uniform([8], seed=1) < 0.5, fs.float64)
        return h * (1.0 + mask) * v * 0.5

    y = loop(body, True, n, x)
    with fs.control_dependencies([y]):
        changed = v.assign(np.full(8, 100.0))
    gx, gv = fs.gradients(y, [x, v])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(v.initializer)
        value, at_x, at_v, _ = s.run([y, gx, gv, changed], {n: 6})
    np.testing.assert_allclose(at_x, value)
    np.testing.assert_allclose(at_v, 6 * value / 1.5)


def test_arrays_are_read_once(graph):
    rng = np.random.default_rng(0)
    w = fs.placeholder(fs.float64, [4, 4])
    values = rng.normal(size=(5, 2, 4))
    found = []
    for recompute in (False, True):
        array = fs.TensorArray(fs.float64, 5).unstack(values)
        y = fs.while_loop(
            lambda i, h: i < 5,
            lambda i, h: (i + 1, fs.tanh(fs.matmul(h + array.read(i), w))),  # noqa: B023
            [0, fs.zeros([2, 4], fs.float64)],
            recompute=recompute,
        )[1]
        found.append(fs.gradients(y, w)[0])
    with fs.Session() as s:
        kept, again = s.run(found, {w: rng.normal(size=(4, 4))})
    np.testing.assert_allclose(again, kept, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_a_recomputed_function_in_a_body_draws_the_same(graph, mode):
    n = fs.placeholder(fs.int32, [])
    x = fs.constant(np.ones(8))

    @fs.recompute_grad
    def body(h):
        return h * (1.0 + fs.cast(fs.random_uniform([8], seed=1) < 0.5, fs.float64))

    y = loop(body, False, n, x)
    g = fs.gradients(y, x)[0]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        value, at_x = s.run([y, g], {n: 6})
    np.testing.assert_allclose(at_x, value)
