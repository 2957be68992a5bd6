# ruff: noqa: E501
# fmt: off
"""Normalisation: batches, moments, neighbours, lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import C, F, In, Table

import flowscope as fs
from flowscope.ops.core.build import apply
from flowscope.ops.nn import normalization_ops

ROWS = Table()
row = ROWS.row


def wide(x: Any) -> Any:
    return x.astype("f8")


def batch_norm(x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None, factor: float = 1.0, training: bool = True) -> list[Any]:
    """What fused_batch_norm gives, channels last, from the definition."""
    axes = tuple(range(x.ndim - 1))
    n = x[..., 0].size
    own_mean, own_variance = wide(x).mean(axes), wide(x).var(axes)
    used_mean, used_variance = (own_mean, own_variance) if training else (mean, variance)
    y = (wide(x) - used_mean) / np.sqrt(used_variance + 0.001) * scale + offset
    if not training:
        return [y.astype(x.dtype), mean, variance]
    unbiased = own_variance * n / max(n - 1, 1)
    if factor == 1.0:
        averages = [own_mean, unbiased]
    else:
        averages = [mean * (1 - factor) + own_mean * factor, variance * (1 - factor) + unbiased * factor]
    return [y.astype(x.dtype), *[a.astype(scale.dtype) for a in averages]]


def first(x: Any) -> Any:
    return np.moveaxis(x, -1, 1)


def last(x: Any) -> Any:
    return np.moveaxis(x, 1, -1)


_X, _S, _O, _V = In((2, 3, 2, 3)), In((3,), 0.5), In((3,)), In((3,), 0.5)
row("fused_batch_norm", fs.nn.fused_batch_norm, batch_norm, _X, _S, _O, rtol=1e-4, order=0)
# The moving averages count as constants: only the images have gradients.
row("fused_batch_norm_images", lambda x, s, o: fs.nn.fused_batch_norm(x, s, o)[0], lambda x, s, o: batch_norm(x, s, o)[0], _X, _S, _O, rtol=1e-4)
row("fused_batch_norm_short", lambda x, s, o: fs.nn.fused_batch_norm(x, s, o), batch_norm, In((2, 3, 2, 3), dtype="float16"),
    In((3,), 0.5, dtype="float32"), In((3,), dtype="float32"), rtol=2e-3, order=0)
row("fused_batch_norm_nchw", lambda x, s, o: fs.nn.fused_batch_norm(x, s, o, data_format="NCHW")[0],
    lambda x, s, o: first(batch_norm(last(x), s, o)[0]), In((2, 3, 2, 2)), _S, _O, rtol=1e-4)
row("fused_batch_norm_volumes", lambda x, s, o: fs.nn.fused_batch_norm(x, s, o, data_format="NDHWC")[0], lambda x, s, o: batch_norm(x, s, o)[0], In((1, 2, 2, 2, 3)), _S, _O, rtol=1e-4)
row("fused_batch_norm_averages", lambda x, s, o, m, v: fs.nn.fused_batch_norm(x, s, o, m, v, exponential_avg_factor=0.9),
    lambda x, s, o, m, v: batch_norm(x, s, o, m, v, 0.9), _X, _S, _O, _O, _V, rtol=1e-4, order=0)
for _form in ("NHWC", "NCHW"):
    row(f"fused_batch_norm_inference_{_form}",
        lambda x, s, o, m, v, f=_form: fs.nn.fused_batch_norm(x, s, o, fs.stop_gradient(m), fs.stop_gradient(v), data_format=f, is_training=False)[0],
        lambda x, s, o, m, v, f=_form: batch_norm(x, s, o, m, v, training=False)[0] if f == "NHWC" else first(batch_norm(last(x), s, o, m, v, training=False)[0]),
        _X if _form == "NHWC" else In((2, 3, 2, 2)), _S, _O, In((3,), dtype="float64", value=[0.1, 0.2, -0.3]), In((3,), dtype="float64", value=[1, 2, 0.5]),
        dtypes=("float64",), order=0)
    row(f"fused_batch_norm_grads_{_form}",
        lambda x, s, o, g, f=_form: fs.gradients(fs.nn.fused_batch_norm(x, s, o, [0.1, 0.2, -0.3], [1.0, 2.0, 0.5], data_format=f, is_training=False)[0], [x, s, o], g),
        lambda x, s, o, g, f=_form: _inference_grads(x, s, g) if f == "NHWC" else [first((r := _inference_grads(last(x), s, last(g)))[0]), *r[1:]],
        *([In((2, 3, 2, 3)) if _form == "NHWC" else In((2, 3, 2, 2)), _S, _O, In((2, 3, 2, 3)) if _form == "NHWC" else In((2, 3, 2, 2))]))


def _inference_grads(x: Any, s: Any, g: Any) -> list[Any]:
    m, v = np.array([0.1, 0.2, -0.3], s.dtype), np.array([1.0, 2.0, 0.5], s.dtype)
    r = 1 / np.sqrt(v + s.dtype.type(0.001))
    axes = tuple(range(x.ndim - 1))
    return [g * (s * r), (g * (x - m) * r).sum(axes), g.sum(axes)]


row("batch_norm_global", lambda x, m, v, b, g: fs.nn.batch_norm_with_global_normalization(x, m, v, b, g, 1e-3, True),
    lambda x, m, v, b, g: ((x - m) / np.sqrt(v + 1e-3) * g + b).astype(x.dtype), In(), In((3,)), In((3,), 0.5), In((3,)), In((3,)), rtol=1e-4)
row("batch_norm_global_unscaled", lambda x, m, v, b, g: fs.nn.batch_norm_with_global_normalization(input=x, mean=m, variance=v, beta=b, gamma=g, variance_epsilon=1e-3, scale_after_normalization=False),
    lambda x, m, v, b, g: ((x - m) / np.sqrt(v + 1e-3) + b).astype(x.dtype), In(), In((3,)), In((3,), 0.5), In((3,)), In((3,)), rtol=1e-4)
row("moments_kept", lambda x: fs.nn.moments(x, [0, -1], keep_dims=True), lambda x: [x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)], In((2, 3, 2)))
row("moments_short", lambda x: fs.nn.moments(x, [0]), lambda x: [wide(x).mean(0).astype(x.dtype), wide(x).var(0).astype(x.dtype)], In(), dtypes=("float16",), order=0)
row("weighted_moments", lambda x, w: fs.nn.weighted_moments(x, [0], w), lambda x, w: _weighted(x, w, False), In((3, 2)), In((3, 2), 0.5))
row("weighted_moments_kept", lambda x, w: fs.nn.weighted_moments(x, [0], w, keepdims=True), lambda x, w: _weighted(x, w, True), In((3, 2)), In((2,), 0.5))
row("sufficient_statistics", lambda x: [t for t in fs.nn.sufficient_statistics(x, [0]) if t is not None], lambda x: [x.dtype.type(2), x.sum(0), (x * x).sum(0)], In(), rank=True)
row("sufficient_statistics_shift", lambda x: list(fs.nn.sufficient_statistics(x, [1], shift=0.5, keep_dims=True)),
    lambda x: [x.dtype.type(3), (x - x.dtype.type(0.5)).sum(1, keepdims=True), ((x - x.dtype.type(0.5)) ** 2).sum(1, keepdims=True), x.dtype.type(0.5)], In(), rank=True)
row("normalize_moments", lambda m, v: fs.nn.normalize_moments(4.0, m, v, None), lambda m, v: [m / 4, v / 4 - (m / 4) ** 2], In(), In())
row("normalize_moments_shift", lambda m, v: fs.nn.normalize_moments(4.0, m, v, 1.5), lambda m, v: [m / 4 + m.dtype.type(1.5), v / 4 - (m / 4) ** 2], In(), In())


def _weighted(x: Any, w: Any, keep: bool) -> list[Any]:
    w = np.broadcast_to(w, x.shape)
    mean = (x * w).sum(0, keepdims=True) / w.sum(0, keepdims=True)
    variance = (w * (x - mean) ** 2).sum(0, keepdims=True) / w.sum(0, keepdims=True)
    return [mean, variance] if keep else [mean[0], variance[0]]


def _neighbours(x: Any, radius: int) -> Any:
    c = x.shape[-1]
    return np.stack([x[..., max(i - radius, 0):i + radius + 1].sum(-1) for i in range(c)], -1)


row("lrn", lambda x: fs.nn.local_response_normalization(x, 1, 2.0, 0.5, 0.75), lambda x: (x / (2 + 0.5 * _neighbours(x * x, 1)) ** 0.75).astype(x.dtype), In((1, 2, 2, 5)))
row("lrn_wide", fs.nn.lrn, lambda x: (x / (1 + _neighbours(x * x, 5)) ** 0.5).astype(x.dtype), In((1, 1, 2, 3)), dtypes=("float16", *F), rtol=4e-3)
row("neighbour_sum", lambda x: apply(normalization_ops.NeighbourSum(2), x), lambda x: _neighbours(x, 2), In((2, 6)))
row("l2_normalize_axes", lambda x: fs.nn.l2_normalize(x, [0, 2]), lambda x: x / np.sqrt((x * x).sum((0, 2), keepdims=True)), In((2, 3, 2), 0.5))

# -- complex numbers, as in TensorFlow ------------------------------------------------------------


def _spread(x: Any, axis: int) -> Any:
    return (np.abs(x - x.mean(axis, keepdims=True)) ** 2).mean(axis)


row("variance_complex", lambda x: fs.math.reduce_variance(x, 1), lambda x: _spread(x, 1), In((2, 3)), dtypes=C, order=1)
row("std_complex", lambda x: fs.math.reduce_std(x, 0), lambda x: np.sqrt(_spread(x, 0)), In((3, 2)), dtypes=C, order=0)
row("moments_complex", lambda x: fs.nn.moments(x, [0]), lambda x: [x.mean(0), _spread(x, 0).astype(x.dtype)], In((3, 2)), dtypes=C, order=0)
row("squared_difference_complex", lambda x: fs.squared_difference(x, 1j), lambda x: (np.abs(x - 1j) ** 2).astype(x.dtype), In(), dtypes=C, order=1)
row("l2_normalize_complex", lambda x: fs.nn.l2_normalize(x, 1), lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), In(low=0.5), dtypes=C, order=1)
row("normalize_complex", lambda x: list(fs.linalg.normalize(x, axis=1)), lambda x: [x / np.linalg.norm(x, axis=1, keepdims=True), np.linalg.norm(x, axis=1, keepdims=True).astype(x.dtype)], In(low=0.5), dtypes=C, order=0)
row("argmax_bool", lambda x: [fs.argmax(x, 1), fs.argmin(x)], lambda x: [x.argmax(1), x.argmin(0)], In(), dtypes=("bool",), order=0)
