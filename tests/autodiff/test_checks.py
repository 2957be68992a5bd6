"""fs.test.compute_gradient and compute_gradient_error."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def default(sess):
    with sess.as_default(), sess.graph.as_default():
        yield sess


def test_both_jacobians(default):
    x = fs.placeholder(fs.float64, [2])
    w = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = fs.matmul(fs.expand_dims(x, 0), w)
    exact, rough = fs.test.compute_gradient(x, [2], y, [1, 3])
    np.testing.assert_array_equal(exact, w)
    np.testing.assert_allclose(rough, w, rtol=1e-9)
    assert fs.test.compute_gradient_error(x, [2], y, [1, 3]) < 1e-9


def test_where_it_is_taken_and_how_far_x_is_moved(default):
    x = fs.placeholder(fs.float64, [2])
    exact, rough = fs.test.compute_gradient(
        x, [2], x**3.0, [2], x_init_value=np.array([1.0, 2.0]), delta=0.5
    )
    np.testing.assert_allclose(exact, np.diag([3.0, 12.0]))
    np.testing.assert_allclose(rough, np.diag([3.25, 12.25]))


def test_complex_numbers_count_twice(default):
    x = fs.placeholder(fs.complex128, [2])
    start = np.array([1 + 1j, 2.0])
    exact, rough = fs.test.compute_gradient(x, [2], fs.exp(x), [2], x_init_value=start)
    e = np.exp(1 + 1j)
    block = [[e.real, e.imag], [-e.imag, e.real]]
    np.testing.assert_allclose(exact[:2, :2], block)
    np.testing.assert_allclose(exact[2:, 2:], np.exp(2.0) * np.eye(2), atol=1e-12)
    np.testing.assert_allclose(rough, exact, atol=1e-5)
    real = fs.test.compute_gradient_error(x, [2], fs.real(x * fs.conj(x)), [2], start)
    assert real < 1e-9


def test_a_list_of_xs_and_other_feeds(default):
    a, b = fs.placeholder(fs.float64, [2]), fs.placeholder(fs.float64, [])
    c = fs.placeholder(fs.float64, [])
    pairs = fs.test.compute_gradient(
        [a, b], [[2], []], a * b * c, [2], [np.array([1.0, 2.0]), 3.0], extra_feed_dict={c: 10.0}
    )
    np.testing.assert_allclose(pairs[0][0], 30 * np.eye(2))
    np.testing.assert_allclose(pairs[1][0], [[10.0, 20.0]])
    error = fs.test.compute_gradient_error([a, b], [[2], []], a * b, [2])
    assert error == max(np.abs(p - q).max() for p, q in pairs) or error < 1e-9


def test_targets_that_run_before(default):
    v = fs.Variable(2.0, dtype=fs.float64)
    x = fs.placeholder(fs.float64, [])
    targets = [fs.global_variables_initializer()]
    exact, _ = fs.test.compute_gradient(x, [], x * v, [], init_targets=targets)
    np.testing.assert_array_equal(exact, [[2.0]])


def test_slices(default):
    x = fs.placeholder(fs.float64, [3, 2])
    error = fs.test.compute_gradient_error(x, [3, 2], fs.gather(x, [0, 2, 0]) ** 2.0, [3, 2])
    assert error < 1e-9


def test_a_wrong_gradient_is_found(default):
    x = fs.placeholder(fs.float64, [2])
    wrong = fs.custom_gradient(lambda x: (x * x, lambda dy: dy * x))(x)
    start = np.array([1.0, 3.0])
    assert fs.test.compute_gradient_error(x, [2], wrong, [2], start) == pytest.approx(3.0)


def test_not_a_number_is_no_small_error(default):
    x = fs.placeholder(fs.float64, [])
    error = fs.test.compute_gradient_error(x, [], fs.log(x), [], x_init_value=-1.0)
    assert np.isnan(error)


def test_empty_ys(default):
    x = fs.placeholder(fs.float64, [2])
    exact, rough = fs.test.compute_gradient(x, [2], x[:0], [0])
    assert exact.shape == rough.shape == (2, 0)
    assert fs.test.compute_gradient_error(x, [2], x[:0], [0]) == 0.0
    wrong = fs.custom_gradient(lambda x: (x[:0], lambda dy: fs.ones([2], fs.float64)))(x)
    with pytest.raises(ValueError, match="which is empty, is not 0"):
        fs.test.compute_gradient(x, [2], wrong, [0])


OPS = {
    "matmul": (lambda x: fs.matmul(x, fs.transpose(x)), [2, 2]),
    "softmax": (lambda x: fs.nn.softmax(x) ** 2.0, [2, 3]),
    "tanh": (fs.tanh, [2, 3]),
    "reduce": (lambda x: fs.reduce_max(x, 1), [2]),
    "concat": (lambda x: fs.concat([x, x * x], 0), [4, 3]),
}


@pytest.mark.parametrize("name", OPS)
def test_real_ops(default, name):
    function, shape = OPS[name]
    x = fs.placeholder(fs.float64, [2, 3])
    start = np.random.default_rng(1).random((2, 3))  # with no two maxima that are near each other
    assert fs.test.compute_gradient_error(x, [2, 3], function(x), shape, start) < 1e-5


def test_what_does_not_fit(default):
    x, z = fs.placeholder(fs.float64, [2], name="x"), fs.placeholder(fs.float64, [2])
    y = fs.exp(x, name="y")
    with pytest.raises(ValueError, match='"x:0" has no influence on "Exp'):
        fs.test.compute_gradient(x, [2], fs.exp(z), [2])
    with pytest.raises(ValueError, match=r'of shape \[2\] for "x:0", got \[3\]'):
        fs.test.compute_gradient(x, [2], y, [2], x_init_value=np.ones(3))
    with pytest.raises(ValueError, match="got 1 xs, 2 shapes and 1 values"):
        fs.test.compute_gradient([x], [[2], [2]], y, [2])


def test_a_session_is_needed():
    x = fs.placeholder(fs.float64, [2])
    with pytest.raises(RuntimeError, match="no default session"):
        fs.test.compute_gradient(x, [2], x * x, [2])
