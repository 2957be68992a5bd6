"""Optimizers' updates of large variables count denormal numbers as zeros, and nothing else does."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.ops.kernels.denormals import _functions, denormals_as_zeros

pytestmark = pytest.mark.skipif(
    _functions() is None, reason="this C library and processor have no way to flush denormals"
)
LARGE = np.zeros(4096, np.float32)
TINY = np.finfo(np.float32).tiny


def half_of_tiny():
    return np.full(2, TINY) * np.float32(0.5)


def test_they_are_zeros_inside_and_themselves_outside():
    assert half_of_tiny().all()
    with denormals_as_zeros(np, LARGE):
        assert not half_of_tiny().any()
        with denormals_as_zeros(np, LARGE):
            pass
        assert not half_of_tiny().any(), "an inner one restores what was there"
    assert half_of_tiny().all()


def test_an_error_restores_them():
    with pytest.raises(ZeroDivisionError), denormals_as_zeros(np, LARGE):
        raise ZeroDivisionError
    assert half_of_tiny().all()


def test_small_arrays_and_other_devices_keep_them():
    with denormals_as_zeros(np, LARGE[:8]):
        assert half_of_tiny().all()
    with denormals_as_zeros(object(), LARGE):
        assert half_of_tiny().all()


def means_after(size, mode, steps=8):
    """Returns Adam's mean of gradients after one tiny gradient and steps of zeros."""
    with fs.Graph().as_default():
        v = fs.Variable(np.ones(size, np.float32))
        g = fs.placeholder(fs.float32, [size])
        adam = fs.train.AdamOptimizer(0.1, beta1=0.5)
        step = adam.apply_gradients([(g, v)])
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            sess.run(fs.global_variables_initializer())
            sess.run(step, {g: np.full(size, 4 * TINY)})
            for _ in range(steps):
                sess.run(step, {g: np.zeros(size)})
            return sess.run([adam.get_slot(v, "m"), v])


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_adam_forgets_what_is_too_small(mode):
    mean, v = means_after(4096, mode)
    assert not mean.any()
    np.testing.assert_array_equal(v, means_after(4096, "op")[1])
    mean, _ = means_after(4095, mode)
    assert (mean == TINY * np.float32(2.0**-7)).all()
    assert half_of_tiny().all(), "only the update was changed"
