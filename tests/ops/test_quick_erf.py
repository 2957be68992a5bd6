"""The error function of many float32 numbers, which has a kernel of its own."""

from __future__ import annotations

import numpy as np
from scipy import special

import flowscope as fs
from flowscope.ops.kernels.erf import erf32


def test_it_is_exact_to_two_units_of_the_last_place():
    x = np.concatenate([np.linspace(-6, 6, 100_001), np.logspace(-30, 0, 1001)]).astype("f4")
    want = special.erf(x.astype("f8"))
    got = erf32(x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=2.5e-7)
    assert (np.abs(got) <= 1).all()


def test_what_is_not_finite_and_zeros():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], "f4")
    got = erf32(x)
    np.testing.assert_array_equal(got, [np.nan, 1, -1, 0, 0])
    assert np.signbit(got[4])


def test_large_tensors_have_it(sess):
    x = np.linspace(-3, 3, 30_000, dtype="f4").reshape(100, 300)
    np.testing.assert_array_equal(sess.run(fs.erf(x)), erf32(x))
    np.testing.assert_allclose(sess.run(fs.erf(x.T)), special.erf(x.T), rtol=2e-6)
