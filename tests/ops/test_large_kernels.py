"""Kernels that go another way for large arrays: the way makes no difference to what comes out."""

import numpy as np
import pytest

import flowscope as fs

RNG = np.random.default_rng(0)


def soft(x):
    powers = np.exp(x.astype("f8") - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", [(3000, 5), (500, 100), (4, 30, 60), (2, 9000), (9000,)])
@pytest.mark.parametrize("scale", [1, 50])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_softmax(graph, sess, shape, scale, dtype):
    x = (RNG.standard_normal(shape) * scale).astype(dtype)
    x[0] += 100  # a row far above the others
    y, logs = sess.run([fs.nn.softmax(fs.constant(x)), fs.nn.log_softmax(fs.constant(x))])
    tolerance = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}[dtype]
    tiny = 1e-6 if dtype == "float16" else tolerance / 1e6
    np.testing.assert_allclose(y, soft(x), rtol=tolerance, atol=tiny)
    with np.errstate(divide="ignore"):
        want = np.log(soft(x))
    known = want > -600
    np.testing.assert_allclose(logs[known], want[known], rtol=tolerance, atol=tolerance)


def test_softmax_of_nan_and_infinity(graph, sess):
    x = RNG.standard_normal((1000, 40)).astype("f4")
    x[3, 1], x[4], x[5, 2] = np.nan, -np.inf, -np.inf
    y = sess.run(fs.nn.softmax(fs.constant(x)))
    assert np.isnan(y[3]).all() and np.isnan(y[4]).all()
    others = [i for i in range(1000) if i not in (3, 4)]
    np.testing.assert_allclose(y[others], soft(x[others]), rtol=2e-5, atol=1e-30)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "complex64"])
def test_where(graph, sess, dtype):
    x, y = (RNG.uniform(-9, 9, (300, 301)).astype(dtype) for _ in range(2))
    if dtype.startswith("float"):
        x[0], y[1] = np.nan, np.inf
    mask = RNG.random((300, 301)) < 0.5
    got = sess.run(fs.where(mask, fs.constant(x), fs.constant(y)))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.where(mask, x, y))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(graph, sess, axis):
    classes = RNG.integers(-2, 12, (40, 30))
    got = sess.run(fs.one_hot(classes, 10, 2.0, -1.0, axis))
    want = np.where(classes[..., None] == np.arange(10), 2.0, -1.0).astype("f4")
    np.testing.assert_array_equal(got, np.moveaxis(want, -1, axis))


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0, 3.0, -1.0])
def test_leaky_relu_and_its_gradient(graph, sess, alpha):
    x = RNG.standard_normal((100, 100)).astype("f4")
    given = fs.constant(x)
    y = fs.nn.leaky_relu(given, alpha)
    got, slope = sess.run([y, fs.gradients(y, given)[0]])
    np.testing.assert_array_equal(got, np.where(x > 0, x, x * np.float32(alpha)))
    np.testing.assert_array_equal(slope, np.where(x > 0, 1, np.float32(alpha)))


def test_l2_loss(graph, sess):
    x = RNG.standard_normal(100_001).astype("f4")
    want = np.square(x.astype("f8")).sum() / 2
    assert sess.run(fs.nn.l2_loss(fs.constant(x))) == pytest.approx(want, rel=1e-6)


def test_batch_normalisation_of_a_large_batch(graph, sess):
    x = (RNG.standard_normal((64, 14, 14, 6)) * 3 + 100).astype("f4")
    scale, offset = RNG.uniform(0.5, 2, (2, 6)).astype("f4")
    given = fs.constant(x)
    y, mean, variance = fs.nn.fused_batch_norm(given, scale, offset)
    slope = RNG.standard_normal(x.shape).astype("f4")
    (back,) = fs.gradients(y, given, fs.constant(slope))
    got, means, variances, dx = sess.run([y, mean, variance, back])
    wide = x.astype("f8")
    unit = (wide - wide.mean((0, 1, 2))) / np.sqrt(wide.var((0, 1, 2)) + 0.001)
    # Around 100 a mean of float32 is exact to 1e-4 with oneDNN, which rounds as it adds up.
    np.testing.assert_allclose(got, unit * scale + offset, atol=3e-4)
    np.testing.assert_allclose(means, wide.mean((0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(variances, wide.var((0, 1, 2), ddof=1), rtol=1e-5)
    along = (slope * unit).mean((0, 1, 2))
    want = scale * (slope - slope.mean((0, 1, 2)) - unit * along)
    want /= np.sqrt(wide.var((0, 1, 2)) + 0.001)
    np.testing.assert_allclose(dx, want, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_pool_gradients_of_many_images(graph, sess, dtype):
    x = RNG.integers(-3, 3, (200, 8, 8, 12)).astype(dtype)
    g = RNG.integers(-5, 5, (200, 4, 4, 12)).astype(dtype)
    given = fs.constant(x)
    op = fs.nn.max_pool(given, 2, 2, "SAME")
    assert sess.run(op).dtype == dtype
    if dtype == "int32":
        return
    got = sess.run(fs.gradients(op, given, fs.constant(g))[0])
    corners = x.reshape(200, 4, 2, 4, 2, 12).transpose(0, 1, 3, 5, 2, 4).reshape(200, 4, 4, 12, 4)
    want = np.zeros_like(corners)
    np.put_along_axis(want, corners.argmax(-1)[..., None], g[..., None], -1)
    want = want.reshape(200, 4, 4, 12, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(x.shape)
    np.testing.assert_array_equal(got, want)
