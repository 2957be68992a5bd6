"""Random graphs of differentiable ops: gradients of two orders against differences."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flowscope as fs

#: All take and give [2, 3]; z is a [3] that is broadcast.
UNARY = {
    "tanh": fs.tanh,
    "sin": fs.sin,
    "sigmoid": fs.sigmoid,
    "softplus": fs.nn.softplus,
    "square": fs.square,
    "negative": fs.negative,
    "half": lambda a: a * 0.5,
    "softmax": fs.nn.softmax,
    "rows": lambda a: fs.gather(a, [1, 1]),
    "columns": lambda a: fs.gather(a, [2, 0, 2], axis=1),
    "turned": lambda a: fs.reshape(fs.transpose(a), [2, 3]),
    "flipped": lambda a: fs.reverse(a, [1]),
    "sums": lambda a: a - fs.reduce_sum(a, axis=1, keepdims=True),
    "means": lambda a: a * fs.reduce_mean(a, axis=0),
    "pieces": lambda a: fs.concat(fs.split(a, 3, axis=1)[::-1], axis=1),
    "cumulated": lambda a: fs.cumsum(a, axis=1),
    "identity": fs.identity,
    "custom": fs.custom_gradient(lambda a: (fs.sin(a), lambda dy: dy * fs.cos(a))),
    "again": fs.recompute_grad(lambda a: fs.tanh(fs.sin(a) * a)),
    "called": lambda a: fs.function(lambda b: fs.sigmoid(b) * b)(a),
}
BINARY = {
    "add": fs.add,
    "subtract": fs.subtract,
    "multiply": fs.multiply,
    "divide": lambda a, b: a / (b * b + 2.0),
    "power": lambda a, b: (a * a + 1.0) ** fs.tanh(b),
    "matmul": lambda a, b: fs.matmul(fs.matmul(a, b, transpose_b=True), b),
    "joined": lambda a, b: fs.concat([a, b], 0)[1:3],
    "stacked": lambda a, b: fs.reduce_sum(fs.stack([a, b, a]), 0),
    "summed": lambda a, b: fs.add_n([a, b, a]),
}
STEPS = st.lists(
    st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=6,
)


def build(steps, x, z):
    """Returns a scalar in which each step uses what came before it."""
    values = [x, x * z]
    for name, i, j in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        values.append(UNARY[name](a) if name in UNARY else BINARY[name](a, b))
    return fs.reduce_sum(values[-1] * [[1.0, -2.0, 3.0], [0.5, 1.5, -1.0]]) + fs.reduce_sum(z * z)


def check(y, feeds):
    """Asserts that y's slopes along the feeds that have influence are its gradients."""
    xs = [t for t, g in zip(feeds, fs.gradients(y, list(feeds)), strict=True) if g is not None]
    starts = [feeds[t] for t in xs]
    shapes = [v.shape for v in starts]
    pairs = fs.test.compute_gradient(xs, shapes, y, [], starts, 1e-5, None, feeds)
    for exact, rough in pairs:
        scale = max(1.0, float(np.abs(exact).max()))
        np.testing.assert_allclose(exact, rough, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.slow
@settings(max_examples=40)
@given(steps=STEPS, seed=st.integers(0, 1000), mode=st.sampled_from(["compiled", "op"]))
def test_gradients_are_slopes(steps, seed, mode):
    rng = np.random.default_rng(seed)
    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(mode=mode)):
        x, z = fs.placeholder(fs.float64, [2, 3]), fs.placeholder(fs.float64, [3])
        feeds = {x: rng.uniform(-1, 1, (2, 3)), z: rng.uniform(-1, 1, 3)}
        y = build(steps, x, z)
        check(y, feeds)
        first = [g for g in fs.gradients(y, [x, z]) if g is not None]
        check(fs.add_n([fs.reduce_sum(fs.sin(g)) for g in first]), feeds)
