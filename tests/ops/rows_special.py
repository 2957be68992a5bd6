# ruff: noqa: E501
# fmt: off
"""Rows of special functions, arithmetic beside the common, and bits."""

from __future__ import annotations

import numpy as np
from row_tools import C, F, H, I, In, Table, like, vec
from scipy import special as sp

import flowscope as fs
from flowscope.ops.math import special

ROWS = Table()
row, unary, binary = ROWS.row, ROWS.unary, ROWS.binary
U = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

# -- special functions ----------------------------------------------------------------------------

for _name, _ref, _low, _high in (
    ("erf", sp.erf, -2, 2), ("erfc", sp.erfc, -2, 2), ("erfinv", sp.erfinv, -0.9, 0.9), ("ndtri", sp.ndtri, 0.05, 0.95),
    ("lgamma", sp.gammaln, 0.5, 4), ("digamma", sp.psi, 0.5, 4), ("erfcinv", sp.erfcinv, 0.1, 1.9),
    ("bessel_i0", sp.i0, -2, 2), ("bessel_i0e", sp.i0e, 0.5, 2), ("bessel_i1", sp.i1, -2, 2), ("bessel_i1e", sp.i1e, 0.5, 2),
):
    unary(_name, getattr(fs.math, _name), like(_ref), _low, _high, dtypes=H)
for _name, _ref, _low, _high in (
    ("bessel_j0", sp.j0, -2, 2), ("bessel_j1", sp.j1, 0.5, 2), ("bessel_y0", sp.y0, 0.5, 2), ("bessel_y1", sp.y1, 0.5, 2),
    ("bessel_k0", sp.k0, 0.5, 2), ("bessel_k0e", sp.k0e, 0.5, 2), ("bessel_k1", sp.k1, 0.5, 2), ("bessel_k1e", sp.k1e, 0.5, 2),
    ("dawsn", sp.dawsn, -2, 2), ("expint", sp.expi, 0.5, 2), ("fresnel_cos", lambda x: sp.fresnel(x)[1], -1, 1),
    ("fresnel_sin", lambda x: sp.fresnel(x)[0], -1, 1), ("spence", sp.spence, 0.2, 0.9),
):
    unary(_name, getattr(fs.math.special, _name), like(_ref), _low, _high)
for _name, _y in (("bessel_i1", 0.5), ("bessel_i1e", 0.5), ("bessel_j1", 0.5)):
    row(f"{_name}_zero", getattr(special, _name), lambda x: np.zeros_like(x), In(value=[0.0, 0.0]), order=1)
row("spence_one", special.spence, lambda x: np.zeros_like(x), In(value=[1.0]), order=1)
row("erf_many_odd", fs.erf, lambda x: np.tile(np.array([np.nan, 1, -1, 0], x.dtype), 500), In(value=[np.nan, np.inf, -np.inf, 0] * 500), order=0)
row("lgamma_far", fs.lgamma, lambda x: np.append(sp.gammaln(x[:-1]), np.inf).astype(x.dtype), In(value=[-2, -0.5, 0, 1, 100, np.inf, -np.inf]), order=0)
row("digamma_poles", fs.digamma, lambda x: np.array([np.nan, sp.psi(-0.5), np.inf], x.dtype), In(value=[-2, -0.5, np.inf]), order=0)
row("erfinv_ends", fs.math.erfinv, lambda x: np.array([-np.inf, np.inf, np.nan], x.dtype), In(value=[-1, 1, 2]), order=0)
binary("zeta", fs.zeta, like(sp.zeta), 1.5, 4, order=0)
row("zeta_grad", lambda q: fs.zeta(fs.constant([2.0, 3.0, 1.5], q.dtype), q), lambda q: sp.zeta([2.0, 3.0, 1.5], q).astype(q.dtype), In((3,), 0.5, 3))
row("polygamma", lambda x: fs.polygamma(fs.constant([0, 1, 2, 3], x.dtype), x), lambda x: sp.polygamma([0, 1, 2, 3], x).astype(x.dtype), In((4,), 0.5, 3))
row("polygamma_odd", fs.polygamma, lambda n, x: np.full(2, np.nan, x.dtype), In(value=[0.5, -1]), In(value=[1, 1]), order=0)
binary("igamma", fs.igamma, like(sp.gammainc), 0.5, 4, order=1)
binary("igammac", fs.igammac, like(sp.gammaincc), 0.5, 4, order=1)
row("igamma_large", fs.igamma, like(sp.gammainc), In(value=[0.1, 3, 30, 30, 200]), In(value=[1e-3, 20, 20, 50, 210]), order=1)
row("igamma_grad_a", special.igamma_grad_a, lambda a, x: (sp.gammainc(a + 1e-5, x) - sp.gammainc(a - 1e-5, x)) / 2e-5, In(low=0.5, high=4), In(low=0.5, high=4), dtypes=("float64",), order=0, rtol=1e-7)
row("igamma_grad_edges", special.igamma_grad_a, lambda a, x: np.array([0, 0, np.nan, np.nan], a.dtype),
    In(value=[1, 2, 0, 1]), In(value=[0, np.inf, 1, -1]), order=0)
row("betainc", fs.betainc, like(sp.betainc), In((2, 3), 0.5, 3), In((3,), 0.5, 3), In((2, 3), 0.1, 0.9), order=0)
row("betainc_grad", lambda x: fs.betainc(fs.constant(1.5, x.dtype), fs.constant([2.0, 0.7], x.dtype), x), lambda x: sp.betainc(1.5, [2, 0.7], x).astype(x.dtype), In((3, 2), 0.1, 0.9))
row("lbeta", fs.lbeta, like(lambda x: sp.gammaln(x).sum(-1) - sp.gammaln(x.sum(-1))), In(low=0.5, high=3))
row("lbeta_none", fs.lbeta, lambda x: np.full(2, -np.inf, x.dtype), In((2, 0)), order=0)
binary("xlog1py", fs.math.xlog1py, like(lambda a, b: a * np.log1p(b)), 0.5, 2)
row("xlog1py_zero", fs.math.xlog1py, lambda a, b: np.zeros(2, a.dtype), In(value=[0, 0]), In(value=[-1, -2]), order=0)

# -- arithmetic -----------------------------------------------------------------------------------

binary("truncatediv", fs.truncatediv, lambda a, b: np.trunc(a / b.astype("f8")).astype(a.dtype), 1, 9, dtypes=(*I, *F), order=0)
row("truncatediv_signs", fs.truncatediv, lambda a, b: np.array([3, -3, -3, 3], "i4"), vec(7, -7, 7, -7), vec(2, 2, -2, -2), order=0)
row("truncatemod_signs", fs.truncatemod, np.fmod, vec(7, -7, 7, -7), vec(2, 2, -2, -2), order=0)
binary("truncatemod", fs.truncatemod, np.fmod, 1, 9, dtypes=(*I, *F), order=0)
row("truncatemod_grad", fs.truncatemod, np.fmod, In(value=[7.3, -2.2, 5.1], dtype="float64"), In(value=[2.0, 1.7, -3.0], dtype="float64"), order=1)
row("truncatediv_known", lambda x: x + fs.truncatediv(-7, 2), lambda x: x - np.int32(3), In(), dtypes=("int32",), order=0)
binary("floor_div", fs.floor_div, np.floor_divide, 1, 9, dtypes=("int32",), order=0)
binary("multiply_no_nan", fs.math.multiply_no_nan, np.multiply, dtypes=(*F, *C))
row("multiply_no_nan_zero", fs.math.multiply_no_nan, lambda a, b: np.array([0, 6, 0], a.dtype), In(value=[np.inf, 2, np.nan]), In(value=[0, 3, 0]), order=0)
binary("divide_no_nan", fs.math.divide_no_nan, np.divide, 0.5, 2)
row("reciprocal_no_nan", fs.math.reciprocal_no_nan, lambda x: np.array([0.5, 0], x.dtype), In(value=[2, 0]), order=0)
binary("nextafter", fs.math.nextafter, np.nextafter, order=0)
row("nextafter_grad", lambda x: fs.math.nextafter(x, x + 1.0), lambda x: np.nextafter(x, x + 1), In(), order=1)
unary("angle", fs.angle, np.angle, 0.5, 2, dtypes=C, order=1)
row("angle_real", fs.angle, lambda x: np.array([0, np.pi, 0], x.dtype), In(value=[1, -1, 0]), order=0)
row("approximate_equal", fs.approximate_equal, lambda a, b: np.array([True, False]), In(value=[1, 2]), In(value=[1.000001, 3]), order=0)
row("polyval", lambda c, x: fs.math.polyval([c, 2.0, 3.0], x), lambda c, x: c * x * x + 2 * x + 3, In(()), In())
row("polyval_none", lambda x: fs.math.polyval([], x), np.zeros_like, In(), order=0)
row("accumulate_n", lambda x, y: fs.accumulate_n([x, y], shape=[2, 3]), np.add, In(), In())
row("is_non_decreasing", fs.is_non_decreasing, lambda x: np.True_, vec(1, 2, 2), order=0)
row("is_non_decreasing_rows", fs.is_non_decreasing, lambda x: np.False_, In(value=[[1, 3], [2, 4]]), order=0)
row("is_strictly_increasing", fs.is_strictly_increasing, lambda x: np.False_, vec(1, 2, 2), order=0)
row("is_strictly_increasing_one", fs.is_strictly_increasing, lambda x: np.True_, vec(1), order=0)

# -- bits -----------------------------------------------------------------------------------------

binary("bitwise_and", fs.bitwise.bitwise_and, np.bitwise_and, -9, 9, dtypes=U, order=0)
binary("bitwise_or", fs.bitwise.bitwise_or, np.bitwise_or, -9, 9, dtypes=U, order=0)
binary("bitwise_xor", fs.bitwise.bitwise_xor, np.bitwise_xor, -9, 9, dtypes=U, order=0)
unary("invert", fs.bitwise.invert, np.invert, -9, 9, dtypes=U, order=0)
binary("left_shift", fs.bitwise.left_shift, np.left_shift, 0, 5, dtypes=U, order=0)
binary("right_shift", fs.bitwise.right_shift, np.right_shift, 0, 5, dtypes=U, order=0)
row("shifts_far", lambda a, b: [fs.bitwise.left_shift(a, b), fs.bitwise.right_shift(a, b)],
    lambda a, b: [np.array([2, -128, -128, -1], "i1"), np.array([0, 0, 0, -1], "i1")], vec(1, 1, 1, -1, dtype="int8"), vec(1, 7, 9, -1, dtype="int8"), order=0)
