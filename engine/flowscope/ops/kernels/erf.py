"""The error function of many float32 numbers, by functions that NumPy runs eight at a time.

SciPy computes in float64, number by number: 12 ns each. But erf(x) = tanh(x P(x * x)), where P is
so smooth that a polynomial of degree 7 on [0, 16] gives erf to 2.4e-7 of itself, two units of the
last place; beyond 4, erf is 1 to more digits than float32 has. NumPy's tanh is vectorised. The
coefficients are a weighted least-squares fit of atanh(erf(x)) / x, its weights adapted until the
largest error was as small as it gets (Lawson 1961).
"""

from __future__ import annotations

import numpy as np

from flowscope.graph.op import Array

__all__ = ["erf32"]

_P = tuple(
    np.float32(c)
    for c in (
        1.128379225730896,
        0.1027698665857315,
        -0.0001952880556927994,
        -0.0006148383254185319,
        8.459662058157846e-05,
        -4.794611868419452e-06,
        2.7576696481901308e-08,
        5.421582294218297e-09,
    )
)
#: So many numbers are worked on together: they stay in the cache.
_STRETCH = 1 << 14


def erf32(x: Array) -> Array:
    """Returns erf of a contiguous float32 array, in a new one."""
    flat = x.reshape(-1)
    out = np.empty_like(flat)
    size = min(_STRETCH, flat.size)
    near, square = np.empty(size, x.dtype), np.empty(size, x.dtype)
    for first in range(0, flat.size, _STRETCH):
        y = out[first : first + _STRETCH]
        a, t = near[: y.size], square[: y.size]
        np.clip(flat[first : first + _STRETCH], -4, 4, out=a)
        np.multiply(a, a, out=t)
        np.multiply(t, _P[-1], out=y)
        for c in _P[-2:0:-1]:
            np.add(y, c, out=y)
            np.multiply(y, t, out=y)
        np.add(y, _P[0], out=y)
        np.multiply(y, a, out=y)
        np.tanh(y, out=y)
    return out.reshape(x.shape)
