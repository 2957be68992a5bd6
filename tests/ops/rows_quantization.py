# ruff: noqa: E501  (a table: one line per row)
# fmt: off
"""Rows of the ops' table: quantised numbers. The expected ones come from TensorFlow 2.21."""

from __future__ import annotations

import numpy as np
from row_tools import In, Table

import flowscope as fs
from flowscope.ops.quantized import quantization

ROWS = Table()
row = ROWS.row

_ONE = ("float32",)
_X = In(value=[-1.0, -0.3, 0.0, 0.26, 0.5, 1.7, 3.0])
_f = np.float32


def fake(x, low, high, bits=8, narrow=False):  # type: ignore[no-untyped-def]
    least, most = int(narrow), 2**bits - 1
    scale = (high - low) / (most - least)
    zero = np.clip(np.floor(least - low / scale + 0.5), least, most)
    first, last = (least - zero) * scale, (most - zero) * scale
    return (np.floor((np.clip(x, first, last) - first) / scale + 0.5) * scale + first).astype("f4")


row("fake_quant", fs.fake_quant_with_min_max_args, lambda x: fake(x, -6, 6), _X, dtypes=_ONE, order=0)
row("fake_quant_bits", lambda x: fs.fake_quant_with_min_max_args(x, -1, 2, 4, True), lambda x: fake(x, -1, 2, 4, True), _X, dtypes=_ONE, order=0)
row("fake_quant_vars", fs.fake_quant_with_min_max_vars, lambda x, a, b: fake(x, a, b), _X, In(value=-0.5), In(value=2.0), dtypes=_ONE, order=0)
row("fake_quant_none", fs.fake_quant_with_min_max_vars, lambda x, a, b: 0 * x, _X, In(value=0.0), In(value=0.0), dtypes=_ONE, order=0)
row("fake_quant_channels", fs.fake_quant_with_min_max_vars_per_channel, lambda x, a, b: fake(x, a, b), In((2, 3)), In(value=[-1.0, -0.5, -2.0]), In(value=[1.0, 2.0, 0.5]), dtypes=_ONE, order=0)
row("fake_quant_gradient", lambda g, x: list(fs.fake_quant_with_min_max_vars_gradient(g, x, -0.5, 2.0)),
    lambda g, x: [g * ((x >= -0.5) & (x <= 2)), g[x < -0.5].sum(), g[x > 2.01].sum()], In((7,)), _X, dtypes=_ONE, order=0, rtol=1e-5)
row("fake_quant_gradient_args", lambda g, x: fs.fake_quant_with_min_max_args_gradient(g, x, -0.5, 2.0), lambda g, x: g * ((x >= -0.5) & (x <= 2)), In((7,)), _X, dtypes=_ONE, order=0)
row("fake_quant_gradient_channels", lambda g, x: list(fs.fake_quant_with_min_max_vars_per_channel_gradient(g, x, [-1.0, -1.0], [1.0, 1.0])),
    lambda g, x: [g * (np.abs(x) < 1), (g * (x < -1)).sum(0), (g * (x > 1)).sum(0)], In((3, 2)), In((3, 2)), dtypes=_ONE, order=0)


def q(mode, dtype, **options):  # type: ignore[no-untyped-def]
    return lambda x: list(fs.quantize_v2(x, -0.5, 2.0, dtype, mode, **options))


for _name, _call, _want, _low, _high in (
    ("combined", q("MIN_COMBINED", "quint8"), np.array([0, 20, 51, 78, 102, 224, 255], "u1"), -0.5, 2.0),
    ("combined_signed", q("MIN_COMBINED", "qint8"), np.array([-128, -108, -77, -50, -26, 96, 127], "i1"), -0.5, 2.0),
    ("first", q("MIN_FIRST", "quint8"), np.array([0, 20, 51, 78, 102, 224, 255], "u1"), -0.5, 2.0),
    ("scaled", q("SCALED", "qint8"), np.array([-64, -19, 0, 17, 32, 108, 127], "i1"), -2.015748, 2.0),
    ("scaled_narrow", q("SCALED", "qint8", narrow_range=True, round_mode="HALF_TO_EVEN"), np.array([-64, -19, 0, 17, 32, 108, 127], "i1"), -2.0, 2.0),
):
    row(f"quantize_{_name}", _call, lambda x, w=_want, a=_low, b=_high: [w, _f(a), _f(b)], _X, dtypes=_ONE, order=0)
row("quantize_small_range", lambda x: fs.quantize(x, 0.0, 0.0, fs.quint8)[2], lambda x: _f(0.01), _X, dtypes=_ONE, order=0)
_Y = In(value=[[-0.9, 0.5, 2.7], [0.3, -3, 1.1]])
_ENDS = In(value=[-1, -2, -2.5]), In(value=[1, 2, 3])
for _mode, _dtype, _whole, _first, _back in (
    ("MIN_COMBINED", "qint8", [[-115, 31, 113], [38, -128, 39]], [-1, -2, -2.5], [[-0.898039222, 0.494117737, 2.698039532], [0.301960826, -2, 1.101960897]]),
    ("SCALED", "quint8", [[0, 64, 230], [77, 0, 94]], [0, 0, 0], [[0, 0.501960814, 2.705882311], [0.301960796, 0, 1.105882406]]),
):
    row(f"quantize_axis_{_mode}", lambda y, a, b, m=_mode, d=_dtype: list(fs.quantize(y, a, b, d, m, axis=-1)),
        lambda y, a, b, d=_dtype, w=_whole, f=_first: [np.array(w, fs.as_dtype(d).np_dtype), _f(f), b], _Y, *_ENDS, dtypes=_ONE, order=0)
    row(f"dequantize_axis_{_mode}", lambda y, a, b, m=_mode, d=_dtype: fs.dequantize(*fs.quantize_v2(y, a, b, d, m, axis=1), m, axis=-1),
        lambda y, a, b, w=_back: _f(w), _Y, *_ENDS, dtypes=_ONE, order=0)
row("quantize_axis_none", lambda y, a, b: list(fs.quantize_v2(y, a, b, "qint8", axis=0)), lambda y, a, b: [np.zeros((0, 3), "i1"), a, b],
    In((0, 3)), In((0,)), In((0,)), dtypes=_ONE, order=0)
for _mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
    for _dtype, _tolerance in (("qint8", 0.02), ("quint16", 1e-4)):
        row(f"dequantize_{_mode}_{_dtype}", lambda x, m=_mode, d=_dtype: fs.dequantize(*fs.quantize_v2(x, -1.0, 3.0, d, m), m), lambda x, s=_mode, d=_dtype: x if s != "SCALED" or d == "qint8" else np.maximum(x, 0),
            _X, dtypes=_ONE, order=0, rtol=_tolerance)


def _product(a, b):  # type: ignore[no-untyped-def]
    x = fs.quantize_v2(a, -2.0, 2.0, "quint8")
    y = fs.quantize_v2(b, -2.0, 2.0, "quint8")
    found, _, high = quantization.quantized_matmul(x[0], y[0], x[1], x[2], y[1], y[2])
    return fs.cast(fs.bitcast(found, "int32"), "float32") * (high / 2**31)


row("quantized_matmul", _product, np.matmul, In((2, 3), -1, 1), In((3, 4), -1, 1), dtypes=_ONE, order=0, rtol=0.05)


_flat_indices = fs.dequantize


def _convolved(a, b):  # type: ignore[no-untyped-def]
    x, y = fs.quantize_v2(a, -2.0, 2.0, "quint8"), fs.quantize_v2(b, -2.0, 2.0, "quint8")
    found, _, high = fs.nn.quantized_conv2d(x[0], y[0], x[1], x[2], y[1], y[2], [1, 1, 1, 1], "VALID")
    return fs.cast(fs.bitcast(found, "int32"), "float32") * (high / 2**31)


def _valid(a, b):  # type: ignore[no-untyped-def]
    parts = np.lib.stride_tricks.sliding_window_view(a, (2, 2), (1, 2))
    return np.einsum("nijchw,hwck->nijk", parts, b).astype("f4")


_IMAGE = In((1, 3, 4, 2), -1, 1)
_pools = np.lib.stride_tricks.sliding_window_view
row("quantized_conv2d", _convolved, _valid, _IMAGE, In((2, 2, 2, 3), -1, 1), dtypes=_ONE, order=0, rtol=0.05)
row("quantized_max_pool", lambda a: _flat_indices(*fs.nn.quantized_max_pool(fs.quantize_v2(a, -2.0, 2.0, "quint8")[0], -2.0, 2.0, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")),
    lambda a: _pools(a, (2, 2), (1, 2)).max((-1, -2)), _IMAGE, dtypes=_ONE, order=0, rtol=0.02)
row("quantized_avg_pool", lambda a: _flat_indices(*fs.nn.quantized_avg_pool(fs.quantize_v2(a, -2.0, 2.0, "quint8")[0], -2.0, 2.0, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")),
    lambda a: _pools(a, (2, 2), (1, 2)).mean((-1, -2)), _IMAGE, dtypes=_ONE, order=0, rtol=0.02)
row("quantized_relu_x", lambda a: _flat_indices(*fs.nn.quantized_relu_x(fs.quantize_v2(a, -2.0, 2.0, "quint8")[0], 0.6, -2.0, 2.0)), lambda a: np.clip(a, 0, np.float32(0.6)), _IMAGE, dtypes=_ONE, order=0, rtol=0.02)
row("quantized_concat", lambda a: _flat_indices(*fs.quantized_concat(2, [fs.quantize_v2(a, *r, "quint8")[0] for r in ((-2.0, 2.0), (-1.0, 3.0))], [-2.0, -1.0], [2.0, 3.0])),
    lambda a: np.concatenate([a, a], 2), _IMAGE, dtypes=_ONE, order=0, rtol=0.03)


def _rounded(x, low, high, bits, signed=True, narrow=False, half_up=False, clip=True):  # type: ignore[no-untyped-def]
    """By the larger of the two steps that the ends ask for."""
    least, most = (-(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    step = np.maximum(low / least if least else 0, high / most)
    whole = (np.clip(x, least * step, most * step) if clip else x) / step
    return ((np.floor(whole + 0.5) if half_up else np.rint(whole)) * step).astype(x.dtype)


_rounding = fs.quantization.quantize_and_dequantize
_F = ("float16", "float32", "float64")
row("quantize_and_dequantize", lambda x: _rounding(x, 0.0, 0.0, num_bits=4), lambda x: _rounded(x.astype("f8"), x.min(), x.max(), 4, clip=False).astype(x.dtype), _X, dtypes=_F, order=0)
row("quantize_and_dequantize_range", lambda x: _rounding(x, -1.0, 2.0, num_bits=5, range_given=True, narrow_range=True), lambda x: _rounded(x.astype("f8"), -1, 2, 5, narrow=True).astype(x.dtype), _X, dtypes=_F, order=0)
row("quantize_and_dequantize_unsigned", lambda x: _rounding(x, 0.0, 2.0, False, 3, True, "HALF_UP"), lambda x: _rounded(x.astype("f8"), 0, 2, 3, False, half_up=True).astype(x.dtype), _X, dtypes=_F, order=0)
row("quantize_and_dequantize_axis", lambda x, a, b: _rounding(x, a, b, num_bits=6, range_given=True, axis=1),
    lambda x, a, b: _rounded(x, a, b, 6), In((2, 3)), In(value=[-1, -2, -0.5]), In(value=[1, 1, 2]), order=0)
row("quantize_and_dequantize_passes", lambda x: fs.gradients(_rounding(x, -1.0, 1.0, range_given=True), x)[0], np.ones_like, _X, order=0)
row("quantize_and_dequantize_v2_grad", lambda x: fs.gradients(fs.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, range_given=True, narrow_range=True), x)[0],
    lambda x: (np.abs(x) <= 1).astype(x.dtype), _X, order=0)
