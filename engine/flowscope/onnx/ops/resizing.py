"""Resizing: per axis a gather of the nearest or a product with a matrix of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import UnimplementedError
from flowscope.onnx.kernels.operator import operator
from flowscope.onnx.kernels.resizing import Resizing, out_sizes
from flowscope.onnx.node import OnnxNode, dims_of, known, normalized, rank_of
from flowscope.onnx.table import converts


@converts("Upsample")
def _upsample(n: OnnxNode) -> Any:
    x = n.x(0)
    mode = n.attr("mode", "nearest")
    how = Resizing(
        mode="linear" if mode == "bilinear" else mode,
        transform="asymmetric",
        nearest="floor",
    )
    scales = n.x(1) if n.opset >= 9 else fs.constant(n.needed("scales"), fs.float32)
    return _by(x, how, list(range(rank_of(x))), scales, False, None)


@converts("Resize")
def _resize(n: OnnxNode) -> Any:
    x, rank = n.x(0), rank_of(n.x(0))
    axes = normalized(n.attr("axes", range(rank)), rank)
    how = Resizing(
        mode=n.attr("mode", "nearest"),
        transform=n.attr(
            "coordinate_transformation_mode", "half_pixel" if n.opset > 10 else "asymmetric"
        ),
        nearest=n.attr("nearest_mode", "round_prefer_floor" if n.opset > 10 else "floor"),
        a=n.attr("cubic_coeff_a", -0.75),
        excludes=bool(n.attr("exclude_outside", 0)),
        antialias=bool(n.attr("antialias", 0)),
        extrapolation=n.attr("extrapolation_value", 0.0),
        policy=n.attr("keep_aspect_ratio_policy", "stretch"),
    )
    roi, scales, sizes = (n.get(1), n.get(2), n.get(3)) if n.opset > 10 else (None, n.x(1), None)
    if how.transform != "tf_crop_and_resize":
        roi = None
    if scales is not None and dims_of(scales) == [0]:
        scales = None
    given = scales if sizes is None else sizes
    if given is None:
        raise UnimplementedError("expected scales or sizes")
    return _by(x, how, axes, given, sizes is not None, roi)


def _by(
    x: fs.Tensor, how: Resizing, axes: list[int], given: fs.Tensor, is_size: bool, roi: Any
) -> Any:
    """Resizes axes to sizes or by scales."""
    values, dims = known(given), dims_of(x)
    region = None if roi is None else known(roi)
    if values is None or None in dims or (roi is not None and region is None):
        return _resized_later(x, how, axes, given, is_size, roi)
    new, factors = out_sizes(how, [int(dims[a] or 0) for a in axes], values, is_size)
    return _resized(x, how, axes, new, factors, region)


def _resized_later(
    x: fs.Tensor, how: Resizing, axes: list[int], given: fs.Tensor, is_size: bool, roi: Any
) -> Any:
    dims = [None if i in axes else d for i, d in enumerate(dims_of(x))]
    inputs = [x, given, *([] if roi is None else [roi])]
    return operator(
        "Resize", inputs, [(x.dtype, tuple(dims))], how=how.settings(), axes=axes, is_size=is_size
    )


def _resized(
    x: fs.Tensor,
    how: Resizing,
    axes: list[int],
    sizes: list[int],
    scales: list[float],
    roi: Any,
) -> Any:
    found, dims = x, dims_of(x)
    for i, (axis, size, scale) in enumerate(zip(axes, sizes, scales, strict=True)):
        old = int(dims[axis] or 0)
        if size == old and scale == 1 and roi is None:
            continue
        region = None if roi is None else (float(roi[i]), float(roi[i + len(axes)]))
        if how.mode == "nearest":
            found = fs.gather(found, how.places(old, size, scale, region), axis=axis)
            continue
        weights, bias = how.matrix(old, size, scale, region)
        found = _along(found, axis, weights, bias)
    return fs.cast(found, x.dtype) if found is not x else fs.identity(x)


def _along(x: fs.Tensor, axis: int, weights: Any, bias: Any) -> Any:
    dtype = x.dtype if x.dtype.is_floating else fs.float32
    x = fs.cast(x, dtype)
    order = [*[i for i in range(rank_of(x)) if i != axis], axis]
    back = [int(i) for i in np.argsort(order)]
    moved = fs.transpose(x, order)
    rows = fs.reshape(moved, [-1, weights.shape[1]])
    found = fs.matmul(rows, fs.constant(weights.T.astype(dtype.np_dtype), dtype=dtype))
    if bias is not None:
        found = found + fs.constant(bias.astype(dtype.np_dtype), dtype=dtype)
    shape = fs.concat([fs.shape(moved)[:-1], [weights.shape[0]]], 0)
    return fs.transpose(fs.reshape(found, shape), back)
