# ruff: noqa: E501  (a table: one line per row)
# fmt: off
"""The table: one row per way to call an op function, with its NumPy reference.

The tests in test_rows.py drive every row. A row says what differs from the usual. Files beside this
one named `rows_<topic>.py` hold the rows of a topic each, as `ROWS`; they are joined at the end.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from row_tools import B, C, F, H, I, In, Row, Table, like, vec

import flowscope as fs
from flowscope.ops.array import padding
from flowscope.ops.core import broadcasting
from flowscope.ops.core.build import apply
from flowscope.ops.math import elementwise
from flowscope.ops.nn import activations

__all__ = ["ROWS", "Row"]

ROWS = Table()
row, unary, binary = ROWS.row, ROWS.unary, ROWS.binary

# -- elementwise ----------------------------------------------------------------------------------

binary("add", fs.add, np.add, dtypes=(*H, *I, *C))
binary("subtract", fs.subtract, np.subtract, dtypes=(*F, *I, *C))
binary("multiply", fs.multiply, np.multiply, dtypes=(*F, *I, *C))
binary("realdiv", fs.realdiv, np.divide, 0.5, 2, dtypes=(*F, *C))
binary("truediv", fs.truediv, np.divide, 0.5, 2)
binary("truediv_int", fs.truediv, lambda a, b: (a / b).astype("f4" if a.itemsize < 4 else "f8"), 1, 9,
       dtypes=("int8", "int32", "uint8", "int64"), order=0)
binary("div", fs.div, lambda a, b: a // b, 1, 9, dtypes=("int32",), order=0)
binary("div_float", fs.div, np.divide, 1, 9)
binary("floordiv", fs.floordiv, lambda a, b: a // b, 1, 9, dtypes=(*I, *F), order=0)
row("floordiv_signs", fs.floordiv, lambda a, b: a // b, vec(7, -7, 7, -7), vec(2, 2, -2, -2), order=0)
row("mod_signs", fs.mod, np.mod, vec(7, -7, 7, -7), vec(2, 2, -2, -2), order=0)
binary("mod", fs.mod, np.mod, 1, 9, dtypes=(*I, *F), order=0)
row("mod_grad", fs.mod, np.mod, In(value=[7.3, -2.2, 5.1], dtype="float64"),
    In(value=[2.0, 1.7, -3.0], dtype="float64"), order=1)
binary("pow", fs.pow, np.power, 0.5, 2, dtypes=(*F, "complex128"))
binary("pow_int", fs.pow, np.power, 0, 4, dtypes=("int32", "int64"), order=0)
unary("pow_constant", lambda x: x**3.0, lambda x: x**3, dtypes=("float64",))
binary("maximum", fs.maximum, np.maximum, dtypes=(*F, *I), order=1)
binary("minimum", fs.minimum, np.minimum, dtypes=(*F, *I), order=1)
binary("squared_difference", fs.squared_difference, lambda a, b: np.square(a - b), dtypes=(*F, "int32"))
binary("atan2", fs.atan2, like(np.arctan2), 0.5, 2)
binary("div_no_nan", fs.div_no_nan, np.divide, 0.5, 2)
row("div_no_nan_zero", fs.div_no_nan, lambda a, b: np.array([0, 0.5, 0], a.dtype),
    In(value=[1, 1, 0]), In(value=[0, 2, 0]), order=0)
binary("xlogy", elementwise.xlogy, like(lambda a, b: a * np.log(b)), 0.5, 2)
row("xlogy_zero", elementwise.xlogy, lambda a, b: np.zeros(2, a.dtype), In(value=[0, 0]), In(value=[0, 2]), order=0)
binary("xdivy", elementwise.xdivy, np.divide, 0.5, 2)

unary("negative", fs.negative, np.negative, dtypes=(*F, "int32", "int8", *C))
unary("abs", fs.abs, np.abs, 0.5, 2, dtypes=(*F, "int32", "int8"))
unary("sign", fs.sign, np.sign, 0.5, 2, dtypes=(*F, "int32"), order=1)
unary("sign_complex", fs.sign, np.sign, 0.5, 2, dtypes=C, order=0)
unary("square", fs.square, np.square, dtypes=(*H, *I, *C))
unary("sqrt", fs.sqrt, like(np.sqrt), 0.5, 2, dtypes=(*H, *C))
unary("rsqrt", fs.rsqrt, like(lambda x: 1 / np.sqrt(x)), 0.5, 2, dtypes=(*F, *C))
unary("reciprocal", fs.reciprocal, like(lambda x: 1 / x), 0.5, 2, dtypes=(*F, *C))
unary("floor", fs.floor, np.floor, order=0)
unary("ceil", fs.ceil, np.ceil, order=0)
unary("round", fs.round, np.rint, order=0)
unary("round_int", fs.round, lambda x: x, order=0, dtypes=("int32",))
row("round_half", fs.round, np.rint, In(value=[0.5, 1.5, 2.5, -0.5]), order=0)
unary("exp", fs.exp, like(np.exp), dtypes=(*H, *C))
unary("expm1", fs.expm1, like(np.expm1), dtypes=(*F, *C))
unary("log", fs.log, like(np.log), 0.5, 2, dtypes=(*H, *C))
unary("log1p", fs.log1p, like(np.log1p), -0.5, 2, dtypes=(*F, *C))
unary("sin", fs.sin, like(np.sin), dtypes=(*F, *C))
unary("cos", fs.cos, like(np.cos), dtypes=(*F, *C))
unary("tan", fs.tan, like(np.tan), -1, 1, dtypes=(*F, *C))
unary("asin", fs.asin, like(np.arcsin), -0.8, 0.8, dtypes=(*F, *C))
unary("acos", fs.acos, like(np.arccos), -0.8, 0.8, dtypes=(*F, *C))
unary("atan", fs.atan, like(np.arctan), dtypes=(*F, *C))
unary("sinh", fs.sinh, like(np.sinh), dtypes=(*F, *C))
unary("cosh", fs.cosh, like(np.cosh), dtypes=(*F, *C))
unary("tanh", fs.tanh, like(np.tanh), -1, 1, dtypes=(*H, *C))
unary("asinh", fs.asinh, like(np.arcsinh), dtypes=(*F, *C))
unary("acosh", fs.acosh, like(np.arccosh), 1.2, 3, dtypes=(*F, *C))
unary("atanh", fs.atanh, like(np.arctanh), -0.8, 0.8, dtypes=(*F, *C))
unary("sigmoid", fs.sigmoid, like(lambda x: 1 / (1 + np.exp(-x))), -1, 1, dtypes=(*H, *C))
row("sigmoid_far", fs.sigmoid, lambda x: np.array([0, 1], x.dtype), In(value=[-1000, 1000]), order=0)
unary("softplus", fs.nn.softplus, like(lambda x: np.log1p(np.exp(x))))
row("softplus_far", fs.nn.softplus, lambda x: np.array([0, 1000], x.dtype), In(value=[-1000, 1000]), order=0)
unary("log_sigmoid", fs.log_sigmoid, like(lambda x: -np.log1p(np.exp(-x))))
unary("scalar_mul", lambda x: fs.scalar_mul(3, x), lambda x: 3 * x, dtypes=(*F, "int32"))
binary("sqrt_grad", elementwise.sqrt_grad, lambda y, dy: dy / 2 / y, 0.5, 2, dtypes=(*F, *C))
binary("rsqrt_grad", elementwise.rsqrt_grad, lambda y, dy: -dy / 2 * y**3, 0.5, 2, dtypes=(*F, *C))
binary("reciprocal_grad", elementwise.reciprocal_grad, lambda y, dy: -dy * y * y, 0.5, 2, dtypes=(*F, *C))
row("sqrt_grad_zero", elementwise.sqrt_grad, lambda y, dy: np.array([0, 0, 0.5], y.dtype), In(value=[0, np.nan, 4]), In(value=[0, 0, 4]), order=0)
row("rsqrt_grad_zero", elementwise.rsqrt_grad, lambda y, dy: np.array([0, 0, -4], y.dtype), In(value=[np.inf, np.nan, 2]), In(value=[0, 0, 1]), order=0)
row("reciprocal_grad_zero", elementwise.reciprocal_grad, lambda y, dy: np.array([0, 0, -4], y.dtype), In(value=[np.inf, np.nan, 2]), In(value=[0, 0, 1]), order=0)
binary("tanh_grad", elementwise.tanh_grad, lambda y, dy: dy * (1 - y * y))
binary("sigmoid_grad", elementwise.sigmoid_grad, lambda y, dy: dy * y * (1 - y))

for _name, _ref in (("equal", np.equal), ("not_equal", np.not_equal)):
    binary(_name, getattr(fs, _name), _ref, dtypes=(*F, *I, *C, *B), order=0)
for _name, _ref in (("less", np.less), ("less_equal", np.less_equal), ("greater", np.greater),
                    ("greater_equal", np.greater_equal)):
    binary(_name, getattr(fs, _name), _ref, dtypes=(*F, *I), order=0)
for _name, _ref in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
    binary(f"logical_{_name}", getattr(fs, f"logical_{_name}"), _ref, dtypes=B, order=0)
unary("logical_not", fs.logical_not, np.logical_not, dtypes=B, order=0)
_ODD = In(value=[np.nan, np.inf, -np.inf, 0, 1])
row("is_nan", fs.is_nan, np.isnan, _ODD, order=0)
row("is_inf", fs.is_inf, np.isinf, _ODD, order=0)
row("is_finite", fs.is_finite, np.isfinite, _ODD, order=0)
row("maximum_nan", lambda x: fs.maximum(x, 0.5), lambda x: np.maximum(x, x.dtype.type(0.5)), _ODD, order=0)

# -- casts and complex numbers --------------------------------------------------------------------

for _to in ("float32", "int32", "complex128", "bool"):
    unary(f"cast_{_to}", lambda x, to=_to: fs.cast(x, to), lambda x, to=_to: x.astype(to),
          dtypes=(*F, "int32", "uint8", "bool"), order=0)
unary("cast_grad", lambda x: fs.cast(fs.cast(x, "complex128"), "float64"), lambda x: x, dtypes=("float64",))
unary("cast_complex", lambda x: fs.cast(x, "float64"), lambda x: x.real.astype("f8"), dtypes=C, order=1)
unary("saturate_cast", lambda x: fs.saturate_cast(x, "uint8"), lambda x: np.clip(x, 0, 255).astype("u1"),
      -300, 300, dtypes=("int32", "float32"), order=0)
unary("conj", fs.conj, np.conj, dtypes=C)
unary("real", fs.real, np.real, dtypes=C, order=1)
unary("imag", fs.imag, np.imag, dtypes=C, order=1)
binary("complex", fs.complex, lambda a, b: (a + 1j * b).astype("c8" if a.itemsize == 4 else "c16"), order=0)
binary("complex_grad", lambda a, b: fs.real(fs.square(fs.complex(a, b))), lambda a, b: a * a - b * b,
       dtypes=("float64",))
unary("complex_abs", fs.abs, np.abs, 0.5, 2, dtypes=C, order=1)
row("bitcast", lambda x: fs.bitcast(x, "int32"), lambda x: x.view("i4"), In(), dtypes=("float32",), order=0)
row("bitcast_down", lambda x: fs.bitcast(x, "uint8"), lambda x: x.view("u1").reshape(2, 3, 4), In(),
    dtypes=("float32",), order=0)
row("bitcast_up", lambda x: fs.bitcast(x, "int64"), lambda x: x.view("i8").reshape(2), In((2, 2)),
    dtypes=("int32",), order=0)

# -- selection ------------------------------------------------------------------------------------

_COND = In(value=[[True, False, True], [False, False, True]], dtype="bool")
row("where", fs.where, np.where, _COND, In(), In(), dtypes=(*F, "int32"))
row("where_rows", fs.where, lambda c, x, y: np.where(c[:, None], x, y), In(value=[True, False], dtype="bool"), In(), In())
row("where_scalar", fs.where, np.where, In(value=False, dtype="bool"), In(), In())
row("where_positions", fs.where, np.argwhere, _COND, order=0, dynamic=True)
row("where_number", fs.where, np.argwhere, In(value=[0, 1, 2], dtype="int32"), order=0, dynamic=True)
row("clip_by_value", lambda x: fs.clip_by_value(x, -1.0, 1.0), lambda x: np.clip(x, -1, 1), In(), order=1)
row("clip_by_tensors", fs.clip_by_value, lambda x, a, b: np.clip(x, a, b), In(), In((3,), -1.5, -0.5), In((), 0.5, 1.5), order=1)
row("clip_by_norm", lambda x: fs.clip_by_norm(x, 1.0), lambda x: x * min(1, 1 / np.linalg.norm(x)), In(low=1))
row("clip_by_global_norm", lambda x, y: fs.clip_by_global_norm([x, y], 1.0)[0],
    lambda x, y: [v / np.sqrt((x * x).sum() + (y * y).sum()) for v in (x, y)], In(low=1), In((3,), 1))
row("one_hot", lambda i: fs.one_hot(i, 3), lambda i: np.eye(4, 3, dtype="f4")[i], vec(0, 2, 3), order=0)
row("one_hot_axis", lambda i: fs.one_hot(i, 3, 5, 2, axis=0, dtype="int32"),
    lambda i: np.where(np.eye(3, dtype="i4")[i], 5, 2).T.astype("i4"), vec(0, 2), order=0)
row("one_hot_depth", lambda i, n: fs.one_hot(i, n), lambda i, n: np.eye(4, 3, dtype="f4")[i], vec(0, 2), In(value=3, dtype="int32"), order=0,
    dynamic=True)
row("eye_fed", lambda n: fs.eye(n), lambda n: np.eye(3, dtype="f4"), In(value=3, dtype="int32"), order=0, dynamic=True)
row("boolean_mask", fs.boolean_mask, lambda x, m: x[m], In(), _COND, dynamic=True, rank=True)
row("boolean_mask_axis", lambda x, m: fs.boolean_mask(x, m, axis=1), lambda x, m: x[:, m], In(),
    In(value=[True, False, True], dtype="bool"), dynamic=True, rank=True)
row("sequence_mask", lambda n: fs.sequence_mask(n, 4), lambda n: np.arange(4) < n[:, None], vec(1, 3), order=0)
row("eye", lambda x: x + fs.eye(2, 3, dtype=x.dtype), lambda x: x + np.eye(2, 3, dtype=x.dtype), In())

# -- reductions -----------------------------------------------------------------------------------

for _axis, _keep in ((None, False), (None, True), (0, False), (-1, True), ([0, 2], False), ([-1, 1], True), ([], False)):
    _np = tuple(_axis) if isinstance(_axis, list) else _axis
    _id = f"{_axis}{'_keep' if _keep else ''}"
    _o = {"axis": _axis, "keepdims": _keep}
    _r = {"axis": _np, "keepdims": _keep}
    _x = In((2, 3, 2))
    row(f"sum_{_id}", lambda x, o=_o: fs.reduce_sum(x, **o), lambda x, r=_r: x.sum(dtype=x.dtype, **r), _x, dtypes=(*H, *I, *C))
    row(f"mean_{_id}", lambda x, o=_o: fs.reduce_mean(x, **o), lambda x, r=_r: x.mean(**r).astype(x.dtype), _x, dtypes=(*H, *C))
    row(f"prod_{_id}", lambda x, o=_o: fs.reduce_prod(x, **o), lambda x, r=_r: x.prod(dtype=x.dtype, **r), _x, dtypes=(*F, "int32"),
        order=1, rank=True)
    row(f"max_{_id}", lambda x, o=_o: fs.reduce_max(x, **o), lambda x, r=_r: x.max(**r), _x, dtypes=(*F, *I), order=1)
    row(f"min_{_id}", lambda x, o=_o: fs.reduce_min(x, **o), lambda x, r=_r: x.min(**r), _x, dtypes=(*F, *I), order=1)
    row(f"all_{_id}", lambda x, o=_o: fs.reduce_all(x, **o), lambda x, r=_r: x.all(**r), _x, dtypes=B, order=0)
    row(f"any_{_id}", lambda x, o=_o: fs.reduce_any(x, **o), lambda x, r=_r: x.any(**r), _x, dtypes=B, order=0)
    if _id != "[]":
        row(f"logsumexp_{_id}", lambda x, o=_o: fs.reduce_logsumexp(x, **o),
            lambda x, r=_r: np.log(np.exp(x).sum(**r)), _x)
        row(f"norm_{_id}", lambda x, o=_o: fs.norm(x, **o), lambda x, r=_r: np.sqrt((x * x).sum(**r)), _x)
row("mean_int", fs.reduce_mean, lambda x: np.int32(-2), vec(-3, -4, -1), order=0)
row("mean_int_large", fs.reduce_mean, lambda x: x.dtype.type(100), In(value=[100, 101, 99, 102]), dtypes=("int8", "uint8", "int32"), order=0)
for _m in (2**62 + 5, -(2**62) - 5):
    row(f"mean_int64_{_m}", fs.reduce_mean, lambda x: np.int64(sum(map(int, x)) // 4 + (x[0] < 0)), In(value=[_m, _m, _m - 1, _m + 2], dtype="int64"), order=0)
row("mean_uint64", fs.reduce_mean, lambda x: np.uint64(2**63 + 3), In(value=[2**63 + 2, 2**63 + 5], dtype="uint64"), order=0)
row("mean_int_empty", lambda x: fs.reduce_mean(x, 0), lambda x: np.zeros(3, x.dtype), In((0, 3)), dtypes=("int32", "int64"), order=0)
row("unsorted_mean_int", lambda x: fs.unsorted_segment_mean(x, [0, 0, 1], 2), lambda x: np.array([100.5, 7], "f4" if x.itemsize < 4 else "f8"),
    In(value=[100, 101, 7]), dtypes=("int8", "int32"), order=0)
row("norm_int", fs.math.reduce_euclidean_norm, lambda x: x.dtype.type(7), In(value=[3, 4, 5]), dtypes=("int8", "int32"), order=0)
row("prod_zeros", lambda x: fs.reduce_prod(x, 1), lambda x: x.prod(1),
    In(value=[[0, 2, 3], [0, 0, 5], [1, 2, 4]]), order=1, rank=True)
row("prod_all_zero", fs.reduce_prod, np.prod, In(value=[0.0, 2.0]), order=1)
_EMPTY = In((0, 3))
row("sum_empty", lambda x: fs.reduce_sum(x, 0), lambda x: np.zeros(3, x.dtype), _EMPTY)
row("mean_empty", lambda x: fs.reduce_mean(x, 0), lambda x: np.full(3, np.nan, x.dtype), _EMPTY, order=0)
row("max_empty", lambda x: fs.reduce_max(x, 0), lambda x: np.full(3, -np.inf, x.dtype), _EMPTY, order=0)
row("min_empty_int", lambda x: fs.reduce_min(x, 0), lambda x: np.full(3, 2**31 - 1, x.dtype), _EMPTY, dtypes=("int32",), order=0)
row("prod_empty", lambda x: fs.reduce_prod(x, 0), lambda x: np.ones(3, x.dtype), _EMPTY, order=1, rank=True)
row("sum_scalar", fs.reduce_sum, lambda x: x, In(()))
row("variance", lambda x: fs.math.reduce_variance(x, 0), lambda x: x.var(0), In())
row("std", lambda x: fs.math.reduce_std(x, 0), lambda x: x.std(0), In())
row("count_nonzero", fs.count_nonzero, np.count_nonzero, In(), dtypes=("int32", "float32", "bool"), order=0)
row("norm_1", lambda x: fs.norm(x, 1, 0), lambda x: np.abs(x).sum(0), In(), order=1)
row("norm_3", lambda x: fs.norm(x, 3), lambda x: (np.abs(x) ** 3).sum() ** (1 / 3), In(low=0.5))
row("norm_inf", lambda x: fs.norm(x, np.inf), lambda x: np.abs(x).max(), In(), order=1)
row("argmax", fs.argmax, lambda x: x.argmax(0), In(), dtypes=(*F, *I), order=0)
row("argmax_last", lambda x: fs.argmax(x, -1, output_type="int32"), lambda x: x.argmax(-1).astype("i4"), In(), order=0)
row("argmin", lambda x: fs.argmin(x, 1), lambda x: x.argmin(1), In(), dtypes=(*F, *I), order=0)
row("argmax_vector", fs.argmax, np.argmax, In((4,)), order=0)
row("cumsum", fs.cumsum, lambda x: x.cumsum(0, x.dtype), In(), dtypes=(*F, *I, *C))
row("cumsum_all", lambda x: fs.cumsum(x, -1, True, True), lambda x: x.sum(1, keepdims=True) - x.cumsum(1), In())
row("cumsum_reverse", lambda x: fs.cumsum(x, 1, reverse=True), lambda x: x[:, ::-1].cumsum(1)[:, ::-1], In())
row("cumprod", lambda x: fs.cumprod(x, 1), lambda x: x.cumprod(1), In(low=0.5), dtypes=(*F, "complex128"))
row("cumprod_all", lambda x: fs.cumprod(x, 1, True, True), lambda x: x.prod(1, keepdims=True) / x[:, ::-1].cumprod(1)[:, ::-1] * 0
    + np.stack([x[:, 1] * x[:, 2], x[:, 2], np.ones(2, x.dtype)], 1), In(low=0.5))

# -- matrices -------------------------------------------------------------------------------------


def _mat(ta: bool, tb: bool) -> None:
    a, b = (3, 2) if ta else (2, 3), (4, 3) if tb else (3, 4)
    row(f"matmul_{ta:d}{tb:d}", lambda x, y: fs.matmul(x, y, ta, tb),
        lambda x, y: (x.T if ta else x) @ (y.T if tb else y), In(a), In(b), dtypes=(*F, "int32", "complex128"))
    row(f"matmul_batch_{ta:d}{tb:d}", lambda x, y: fs.matmul(x, y, ta, tb),
        lambda x, y: (x.swapaxes(-1, -2) if ta else x) @ (y.swapaxes(-1, -2) if tb else y), In((2, *a)), In((2, *b)))
    row(f"matmul_broadcast_{ta:d}{tb:d}", lambda x, y: fs.matmul(x, y, ta, tb),
        lambda x, y: (x.swapaxes(-1, -2) if ta else x) @ (y.swapaxes(-1, -2) if tb else y),
        In((2, 1, *a)), In((3, *b)), order=1)


for _ta in (False, True):
    for _tb in (False, True):
        _mat(_ta, _tb)
row("matmul_adjoint", lambda x, y: fs.matmul(x, y, adjoint_a=True), lambda x, y: x.conj().T @ y, In((3, 2)), In((3, 2)), dtypes=(*F, *C))
row("matmul_empty", fs.matmul, np.matmul, In((2, 0)), In((0, 3)))
row("matmul_batch_vector", lambda x, y: fs.matmul(x, y), np.matmul, In((2, 2, 3)), In((3, 1)))
row("matrix_transpose", fs.matrix_transpose, lambda x: x.swapaxes(-1, -2), In((2, 3, 4)), rank=True)
row("tensordot", lambda x, y: fs.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 1), In((2, 3)), In((3, 2)), rank=True)
row("tensordot_axes", lambda x, y: fs.tensordot(x, y, [[0, 2], [1, 0]]), lambda x, y: np.tensordot(x, y, [[0, 2], [1, 0]]),
    In((2, 3, 4)), In((4, 2)), rank=True)
row("trace", fs.trace, np.trace, In((3, 3)), static=True)

# -- shapes ---------------------------------------------------------------------------------------

row("reshape", lambda x: fs.reshape(x, [3, 2]), lambda x: x.reshape(3, 2), In(), dtypes=(*F, "int32", "bool"))
row("reshape_free", lambda x: fs.reshape(x, [-1]), lambda x: x.reshape(-1), In())
row("reshape_scalar", lambda x: fs.reshape(x, []), lambda x: x[0, 0], In((1, 1)))
row("reshape_up", lambda x: fs.reshape(x, [1, 1]), lambda x: np.reshape(x, (1, 1)), In(()))
row("reshape_fed", fs.reshape, lambda x, s: x.reshape(s), In(), vec(3, 2), dynamic=True)
row("reshape_shape", lambda x: fs.reshape(x, [fs.shape(x)[1], -1]), lambda x: x.reshape(3, 2), In(), rank=True)
row("reshape_empty", lambda x: fs.reshape(x, [0, 5]), lambda x: x.reshape(0, 5), In((2, 0)))
row("transpose", fs.transpose, np.transpose, In((2, 3, 4)), dtypes=(*F, "int32"))
row("transpose_perm", lambda x: fs.transpose(x, [1, 2, 0]), lambda x: x.transpose(1, 2, 0), In((2, 3, 4)))
row("transpose_scalar", fs.transpose, lambda x: x, In(()))
row("transpose_conj", lambda x: fs.transpose(x, conjugate=True), lambda x: x.conj().T, In(), dtypes=C, order=1)
for _a in (0, 1, -1):
    row(f"expand_dims_{_a}", lambda x, a=_a: fs.expand_dims(x, a), lambda x, a=_a: np.expand_dims(x, a), In())
row("expand_dims_scalar", lambda x: fs.expand_dims(x, 0), lambda x: np.array([x]), In(()))
row("squeeze", fs.squeeze, np.squeeze, In((1, 3, 1)))
row("squeeze_axis", lambda x: fs.squeeze(x, [-1]), lambda x: x[..., 0], In((1, 3, 1)))
row("squeeze_scalar", fs.squeeze, lambda x: x[0, 0], In((1, 1)))
row("concat", lambda x, y: fs.concat([x, y], 0), lambda x, y: np.concatenate([x, y]), In(), In((1, 3)), dtypes=(*F, "int32"))
row("concat_last", lambda x, y: fs.concat([x, y], -1), lambda x, y: np.concatenate([x, y], -1), In(), In((2, 0)))
row("concat_one", lambda x: fs.concat([x], 0), lambda x: x, In())
row("stack", lambda x, y: fs.stack([x, y]), lambda x, y: np.stack([x, y]), In(), In(), dtypes=(*F, "int32"))
row("stack_last", lambda x, y: fs.stack([x, y], -1), lambda x, y: np.stack([x, y], -1), In(), In())
row("stack_scalars", lambda x, y: fs.stack([x, y, 1.0]), lambda x, y: np.array([x, y, 1], x.dtype), In(()), In(()))
row("packed_list", lambda x: fs.add(x, [[1.0, x[0, 1], 2.0]]), lambda x: x + np.array([[1, x[0, 1], 2]], x.dtype), In())
row("unstack_into_one", lambda x: fs.unstack(x, 1), lambda x: [x[0]], In((1, 3)))
row("split_into_one", lambda x: fs.split(x, 1), lambda x: [x], In())
row("split_sizes_into_one", lambda x: fs.split(x, [2]), lambda x: [x], In(), static=True)
row("unstack", lambda x: fs.unstack(x, 2), lambda x: list(x), In())
row("unstack_axis", lambda x: fs.unstack(x, 3, axis=-1), lambda x: [x[:, i] for i in range(3)], In())
row("unstack_scalars", lambda x: fs.unstack(x, 3), lambda x: list(x), In((3,)))
row("unstack_one", lambda x: fs.unstack(x, 2)[1], lambda x: x[1], In())
row("split", lambda x: fs.split(x, 3, 1), lambda x: np.split(x, 3, 1), In())
row("split_one", lambda x: fs.split(x, 3, 1)[1], lambda x: x[:, 1:2], In())
row("split_sizes", lambda x: fs.split(x, [1, -1], -1), lambda x: [x[:, :1], x[:, 1:]], In())
row("tile", lambda x: fs.tile(x, [2, 3]), lambda x: np.tile(x, (2, 3)), In(), dtypes=(*F, "int32"), rank=True)
row("tile_none", lambda x: fs.tile(x, [0, 1]), lambda x: np.tile(x, (0, 1)), In(), rank=True)
row("repeat", lambda x: padding.repeat(x, 2, 1), lambda x: x.repeat(2, 1), In(), rank=True)
row("pad", lambda x: fs.pad(x, [[1, 0], [2, 1]]), lambda x: np.pad(x, [[1, 0], [2, 1]]), In(), dtypes=(*F, "int32"))
row("pad_value", lambda x: fs.pad(x, [[1, 0], [0, 0]], constant_values=7), lambda x: np.pad(x, [[1, 0], [0, 0]], constant_values=7), In())
row("pad_reflect", lambda x: fs.pad(x, [[1, 0], [2, 1]], "REFLECT"), lambda x: np.pad(x, [[1, 0], [2, 1]], "reflect"), In())
row("pad_symmetric", lambda x: fs.pad(x, [[1, 2], [0, 3]], "SYMMETRIC"), lambda x: np.pad(x, [[1, 2], [0, 3]], "symmetric"), In())
row("broadcast_to", lambda x: fs.broadcast_to(x, [2, 4, 3]), lambda x: np.broadcast_to(x, (2, 4, 3)), In((4, 1)))
row("broadcast_to_scalar", lambda x: fs.broadcast_to(x, [2, 2]), lambda x: np.broadcast_to(x, (2, 2)), In(()))
row("sum_to", lambda x: broadcasting.sum_to(x, fs.constant([3, 1])), lambda x: x.sum((0, 2), x.dtype).reshape(3, 1), In((2, 3, 4)))
row("sum_to_scalar", lambda x: broadcasting.sum_to(x, fs.constant([], "int32")), lambda x: x.sum(dtype=x.dtype), In())
row("broadcast_shape", fs.broadcast_dynamic_shape, lambda a, b: np.array([2, 4, 3], "i4"), vec(4, 1), vec(2, 1, 3), order=0, dynamic=True)
row("invert_permutation", fs.invert_permutation, np.argsort, vec(2, 0, 1), order=0)
row("shape", lambda x: fs.shape(x, optimize=False), lambda x: np.array([2, 3], "i4"), In(), order=0)
row("size", lambda x: fs.size(x, optimize=False, out_type="int64"), lambda x: np.int64(6), In(), order=0)
row("rank", fs.rank, lambda x: np.int32(2), In(), order=0)
row("fill", lambda v: fs.fill([2, 3], v), lambda v: np.full((2, 3), v), In(()))
row("fill_shape", lambda x: fs.fill(fs.shape(x), 2.0), lambda x: np.full(x.shape, 2, "f4"), In(), order=0)
row("zeros_like", fs.zeros_like, np.zeros_like, In(), dtypes=(*F, "int32", "bool"), order=0)
row("ones_like", lambda x: fs.ones_like(x, "int32"), lambda x: np.ones(x.shape, "i4"), In(), dtypes=(*F, "bool"), order=0)
row("ones_like_same", fs.ones_like, np.ones_like, In(), dtypes=(*F, "bool"), order=0)
row("zeros", lambda x: x + fs.zeros([2, 1], x.dtype), lambda x: x, In())
row("ones_large", lambda x: x + fs.ones([40, 40], x.dtype), lambda x: x + np.ones((40, 40), x.dtype), In(()))
row("range", lambda n: fs.range(n), lambda n: np.arange(n, dtype="i4"), In(value=5, dtype="int32"), order=0, dynamic=True)
row("range_float", lambda n: fs.range(1.0, n, 0.5), lambda n: np.arange(1, n, 0.5, "f4"), In(value=3, dtype="float32"), order=0, dynamic=True)
row("range_down", lambda x: x + fs.range(3, 0, -1), lambda x: x + np.arange(3, 0, -1, "i4"), In(), dtypes=("int32",), order=0)
row("linspace", lambda a: fs.linspace(a, 2.0, 5), lambda a: np.linspace(a, 2, 5, dtype=a.dtype), In(()), order=0)

# -- slices ---------------------------------------------------------------------------------------

_KEYS: dict[str, Any] = {
    "int": 1, "negative": -1, "slice": slice(1, None), "step": slice(None, None, 2), "back": slice(None, None, -1),
    "two": (0, slice(1, 3)), "rest": (Ellipsis, 0), "new": (slice(None), None, 1), "scalar": (1, 2, 3),
    "far": slice(5, 9), "empty": slice(2, 1), "inside": (slice(None), slice(-2, None), slice(3, 0, -2)),
}
for _name, _key in _KEYS.items():
    row(f"getitem_{_name}", lambda x, k=_key: x[k], lambda x, k=_key: x[k], In((2, 3, 4)), dtypes=("float64", "int32"))
row("getitem_ellipsis_of_rank_0", lambda x: x[0, ..., 1], lambda x: x[0, 1], In())
row("getitem_tensor", lambda x, i: x[i, i - 1 :], lambda x, i: x[i, i - 1 :], In((2, 3)), In(value=1, dtype="int32"), dynamic=True)
row("getitem_shape", lambda x: x[: fs.shape(x)[0] - 1], lambda x: x[:1], In(), rank=True)
row("strided_slice", lambda x: fs.strided_slice(x, [0, 1], [1, 9], [1, 2], end_mask=2, shrink_axis_mask=1), lambda x: x[0, 1::2], In())
row("slice", lambda x: fs.slice(x, [1, 0], [1, -1]), lambda x: x[1:2], In(), dtypes=(*F, "int32"))
row("slice_fed", fs.slice, lambda x, b, s: x[0:2, 1:3], In(), vec(0, 1), vec(2, 2), dynamic=True)
row("gather", fs.gather, lambda x, i: x[i], In((4, 2)), In(value=[[0, 3], [3, 3]], dtype="int32"), dtypes=(*F, "int32"))
row("gather_axis", lambda x, i: fs.gather(x, i, axis=-1), lambda x, i: x[:, i], In(), In(value=[2, 2, 0, 1], dtype="int64"))
row("gather_scalar", fs.gather, lambda x, i: x[i], In((4,)), In(value=2, dtype="int32"))
row("gather_none", fs.gather, lambda x, i: x[i], In((4, 2)), In((0,), dtype="int32"))
row("dynamic_partition", lambda x, p: fs.dynamic_partition(x, p, 4), lambda x, p: [x[p == i] for i in range(4)], In((4, 2)), In(value=[2, 0, 2, 1], dtype="int32"), dynamic=True)
row("dynamic_partition_matrix", lambda x, p: fs.dynamic_partition(x, p, 2), lambda x, p: [x[p == i] for i in range(2)], In((2, 3)), In(value=[[1, 0, 1], [0, 0, 1]], dtype="int32"), dtypes=(*F, "int32", "bool"), dynamic=True)
row("dynamic_stitch", lambda a, b: fs.dynamic_stitch([[0, 3], [[2], [1]]], [a, b]), lambda a, b: np.stack([a[0], b[1, 0], b[0, 0], a[1]]), In((2, 2)), In((2, 1, 2)), rank=True)
row("dynamic_stitch_fed", lambda a, i: fs.dynamic_stitch([i], [a]), lambda a, i: np.stack([0 * a[0], a[1], 0 * a[0], a[0]]), In((2, 2)), In(value=[3, 1], dtype="int32"), dynamic=True)
row("gather_nd", fs.gather_nd, lambda x, i: x[i[:, 0], i[:, 1]], In((2, 3, 2)), In(value=[[0, 1], [1, 2], [0, 1]], dtype="int32"))
row("gather_nd_one", fs.gather_nd, lambda x, i: x[1, 2], In((2, 3)), In(value=[1, 2], dtype="int32"))
row("scatter_nd", lambda i, u: fs.scatter_nd(i, u, [4]), lambda i, u: np.array([0, u[0] + u[2], 0, u[1]], u.dtype),
    In(value=[[1], [3], [1]], dtype="int32"), In((3,)))
row("reverse", lambda x: fs.reverse(x, [0, -1]), lambda x: x[::-1, ::-1], In(), dtypes=(*F, "int32"))

# -- neural networks ------------------------------------------------------------------------------


def _soft(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


unary("relu", fs.nn.relu, lambda x: np.maximum(x, 0), dtypes=(*F, "int32", "uint8"), order=1)
unary("relu6", fs.nn.relu6, lambda x: np.clip(x, 0, 6), -5, 10, order=1)
unary("elu", fs.nn.elu, lambda x: np.where(x > 0, x, np.expm1(x)))
unary("selu", fs.nn.selu, lambda x: (1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))).astype(x.dtype))
unary("leaky_relu", fs.nn.leaky_relu, lambda x: np.where(x > 0, x, (x * 0.2).astype(x.dtype)), order=1)
unary("softsign", fs.nn.softsign, lambda x: x / (np.abs(x) + 1))
unary("swish", fs.nn.swish, lambda x: x / (1 + np.exp(-x)))
binary("relu_grad", activations.relu_grad, lambda g, y: g * (y > 0), order=1)
binary("relu6_grad", activations.relu6_grad, lambda g, y: g * ((y > 0) & (y < 6)), order=1)
binary("elu_grad", activations.elu_grad, lambda g, y: g * (np.minimum(y, 0) + 1), -0.9, 2)
row("leaky_relu_grad", lambda g, x: apply(activations.LeakyReluGrad(0.25), g, x), lambda g, x: np.where(x > 0, g, g / 4), In(), In(), order=1)
row("selu_far", fs.nn.selu, lambda x: np.array([np.inf, -1.7580993408473766, np.nan, 1e30 * 1.0507009873554805], x.dtype), In(value=[np.inf, -np.inf, np.nan, 1e30]), order=0)
binary("selu_grad", activations.selu_grad, lambda g, y: g * np.where(y < 0, y + 1.7580993408473766, 1.0507009873554805).astype(y.dtype), -1.5, 2)
row("softmax", fs.nn.softmax, _soft, In())
row("softmax_axis", lambda x: fs.nn.softmax(x, 0), lambda x: _soft(x, 0), In((2, 3, 2)))
row("softmax_far", fs.nn.softmax, _soft, In(value=[1000, 0, -1000]), order=0)
row("log_softmax", fs.nn.log_softmax, lambda x: np.log(_soft(x)), In())
row("log_softmax_axis", lambda x: fs.nn.log_softmax(x, 0), lambda x: np.log(_soft(x, 0)), In())
row("softmax_loss", lambda z, x: fs.nn.softmax_cross_entropy_with_logits_v2(z, x), lambda z, x: -(z * np.log(_soft(x))).sum(-1),
    In(low=0.1), In(), rank=True)
row("softmax_loss_3d", lambda z, x: fs.nn.softmax_cross_entropy_with_logits_v2(z, x, axis=1),
    lambda z, x: -(z * np.log(_soft(x, 1))).sum(1), In((2, 3, 2), 0.1), In((2, 3, 2)), rank=True)
row("softmax_loss_v1", lambda x: fs.nn.softmax_cross_entropy_with_logits(labels=[[0, 1, 0], [1, 0, 0]], logits=x),
    lambda x: -np.log(_soft(x))[[0, 1], [1, 0]], In(), rank=True)
row("sparse_loss", lambda i, x: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x),
    lambda i, x: -np.log(_soft(x))[[0, 1], i], vec(2, 0), In())
row("sparse_loss_3d", lambda i, x: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=i, logits=x),
    lambda i, x: -np.log(_soft(x))[[[0], [1]], [[0, 1], [0, 1]], i], In(value=[[0, 1], [2, 2]], dtype="int64"), In((2, 2, 3)), rank=True)
row("sigmoid_loss", lambda z, x: fs.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
    lambda z, x: np.log1p(np.exp(x)) - x * z, In(low=0, high=1), In())
row("weighted_loss", lambda z, x: fs.nn.weighted_cross_entropy_with_logits(z, x, 3.0),
    lambda z, x: 3 * z * np.log1p(np.exp(-x)) + (1 - z) * np.log1p(np.exp(x)), In(low=0, high=1), In())
row("poisson_loss", lambda z, x: fs.nn.log_poisson_loss(z, x), lambda z, x: np.exp(x) - x * z, In(), In())
row("bias_add", fs.nn.bias_add, np.add, In(), In((3,)), dtypes=(*F, "int32"))
row("bias_add_nchw", lambda x, b: fs.nn.bias_add(x, b, "NCHW"), lambda x, b: x + b[:, None, None], In((2, 3, 2, 2)), In((3,)))
row("xw_plus_b", fs.nn.xw_plus_b, lambda x, w, b: x @ w + b, In(), In((3, 4)), In((4,)))
row("relu_layer", fs.nn.relu_layer, lambda x, w, b: np.maximum(x @ w + b, 0), In(), In((3, 4)), In((4,)), order=1)
row("l2_loss", fs.nn.l2_loss, lambda x: (x * x).sum() / 2, In())
row("moments", lambda x: fs.nn.moments(x, [0]), lambda x: [x.mean(0), x.var(0)], In())
row("batch_normalization", lambda x, m, v: fs.nn.batch_normalization(x, m, v, 0.5, 2.0, 1e-3),
    lambda x, m, v: (x - m) / np.sqrt(v + 1e-3) * 2 + 0.5, In(), In((3,)), In((3,), 0.5, 2))
row("l2_normalize", lambda x: fs.nn.l2_normalize(x, 1), lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), In(low=0.5))
row("zero_fraction", fs.nn.zero_fraction, lambda x: np.float32(0.5), In(value=[0, 1, 0, 2]), order=0)
row("embedding_lookup", fs.nn.embedding_lookup, lambda x, i: x[i], In((4, 2)), vec(3, 3, 0))
row("in_top_k", lambda p, t: fs.nn.in_top_k(p, t, 2), lambda p, t: np.array([True, False, False]),
    In(value=[[1, 2, 3], [1, 2, 3], [3, 2, 1]]), vec(1, 0, 7), order=0)
row("top_k", lambda x: fs.nn.top_k(x, 2), lambda x: [np.array([[5, 3]], x.dtype), np.array([[1, 0]], "i4")],
    In(value=[[3, 5, 3, 1]]), order=0)
row("top_k_grad", lambda x: fs.nn.top_k(x, 2)[0], lambda x: -np.sort(-x)[:, :2], In(), order=1)

# -- flow -----------------------------------------------------------------------------------------

row("identity", fs.identity, lambda x: x, In(), dtypes=(*F, "int32", "bool"))
row("identity_n", lambda x, y: fs.identity_n([x, y]), lambda x, y: [x, y], In(), In((3,)))
row("stop_gradient", lambda x: x * fs.stop_gradient(x), lambda x: x * x, In(), order=0)
row("prevent_gradient", fs.prevent_gradient, lambda x: x, In(), order=0)
row("placeholder_with_default", lambda x: fs.placeholder_with_default(x, None), lambda x: x, In(), dynamic=True)
row("tuple", lambda x, y: fs.tuple([x, y]), lambda x, y: [x, y], In(), In((3,)))
row("add_n", lambda x, y, z: fs.add_n([x, y, z]), lambda x, y, z: x + y + z, In(), In(), In(), dtypes=(*F, "int32"))
row("add_n_scalars", lambda x, y, z: fs.add_n([x, y, z]), lambda x, y, z: x + y + z, In(()), In(()), In(()))
row("operators", lambda x, y: -(x + 1.0) * y / 2.0 - abs(3.0 - y) ** 2.0, lambda x, y: -(x + 1) * y / 2 - (3 - y) ** 2, In(), In())
row("operators_int", lambda x, y: (x // y) + (x % y) + 7 // y, lambda x, y: x // y + x % y + 7 // y, In(low=1, high=9), In(low=1, high=9),
    dtypes=("int32",), order=0)
row("operators_bool", lambda x, y: (x & y) | ~x ^ y, lambda x, y: (x & y) | ~x ^ y, In(), In(), dtypes=B, order=0)
row("operators_order", lambda x, y: (x < y) & (x <= y) | (x > y) & (y >= 0), lambda x, y: (x < y) | (x > y) & (y >= 0), In(), In(), order=0)
row("matmul_operator", lambda x, y: x @ y, np.matmul, In(), In((3, 2)))

for _topic in sorted(Path(__file__).parent.glob("rows_*.py")):
    ROWS += import_module(_topic.stem).ROWS
