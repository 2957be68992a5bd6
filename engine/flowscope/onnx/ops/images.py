"""Operators on images and boxes that NumPy computes."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.onnx.kernels.operator import operator
from flowscope.onnx.node import OnnxNode, dims_of, full_like
from flowscope.onnx.ops.convolution import numbers, padding, spatial
from flowscope.onnx.table import converts


@converts("GridSample")
def _grid_sample(n: OnnxNode) -> Any:
    x, grid = n.x(0), n.x(1)
    dims = (*dims_of(x)[:2], *dims_of(grid)[1:-1])
    mode = n.attr("mode", "linear")
    return operator(
        "GridSample",
        [x, grid],
        [(x.dtype, dims)],
        mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
        outside=n.attr("padding_mode", "zeros"),
        align=bool(n.attr("align_corners", 0)),
    )


@converts("RoiAlign")
def _roi_align(n: OnnxNode) -> Any:
    x, rois = n.x(0), n.x(1)
    size = (n.attr("output_height", 1), n.attr("output_width", 1))
    half = n.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return operator(
        "RoiAlign",
        [x, rois, n.x(2)],
        [(x.dtype, (dims_of(rois)[0], dims_of(x)[1], *size))],
        mode=n.attr("mode", "avg"),
        size=size,
        ratio=n.attr("sampling_ratio", 0),
        scale=n.attr("spatial_scale", 1.0),
        is_half_pixel=half and n.opset >= 16,
    )


@converts("MaxRoiPool")
def _max_roi_pool(n: OnnxNode) -> Any:
    x, rois = n.x(0), n.x(1)
    size = tuple(n.needed("pooled_shape"))
    return operator(
        "MaxRoiPool",
        [x, rois],
        [(x.dtype, (dims_of(rois)[0], dims_of(x)[1], *size))],
        size=size,
        scale=n.attr("spatial_scale", 1.0),
    )


@converts("NonMaxSuppression")
def _non_max_suppression(n: OnnxNode) -> Any:
    given = [
        n.x(i) if n.has(i) else fs.constant(np.zeros(1, dtype))
        for i, dtype in ((2, np.int64), (3, np.float32), (4, np.float32))
    ]
    return operator(
        "NonMaxSuppression",
        [n.x(0), n.x(1), *given],
        [(fs.int64, (None, 3))],
        is_centred=bool(n.attr("center_point_box", 0)),
        has_threshold=n.has(4),
    )


@converts("Col2Im")
def _col2im(n: OnnxNode) -> Any:
    x = n.x(0)
    image, block = n.known(1), n.known(2)
    count = dims_of(n.x(1))[0] or 0
    dims: list[int | None] = [dims_of(x)[0], None, *[None] * count]
    if image is not None:
        dims[2:] = [int(v) for v in image]
    if block is not None and dims_of(x)[1] is not None:
        dims[1] = int(dims_of(x)[1] or 0) // max(1, int(np.prod(block)))
    return operator(
        "Col2Im",
        [x, n.x(1), n.x(2)],
        [(x.dtype, tuple(dims))],
        dilations=numbers(n, "dilations", count),
        pads=numbers(n, "pads", 2 * count, 0),
        strides=numbers(n, "strides", count),
    )


@converts("DeformConv")
def _deform_conv(n: OnnxNode) -> Any:
    x, w, offset = n.x(0), n.x(1), n.x(2)
    count = spatial(n)
    strides, dilations = numbers(n, "strides", count), numbers(n, "dilations", count)
    kernel = [int(d or 0) for d in dims_of(w)[2:]]
    pads = padding(n, dims_of(x)[2:], kernel, strides, dilations)
    zeros = fs.zeros([1], x.dtype)
    return operator(
        "DeformConv",
        [x, w, offset, n.x(3) if n.has(3) else zeros, n.x(4) if n.has(4) else zeros],
        [(x.dtype, (dims_of(x)[0], dims_of(w)[0], *dims_of(offset)[2:]))],
        strides=strides,
        dilations=dilations,
        pads=pads,
        group=n.attr("group", 1),
        offset_group=n.attr("offset_group", 1),
        has_bias=n.has(3),
        has_mask=n.has(4),
    )


@converts("AffineGrid")
def _affine_grid(n: OnnxNode) -> Any:
    theta, size = n.x(0), fs.cast(n.x(1), fs.int64)
    rank = dims_of(theta)[1] or 0
    one = full_like(1, theta)
    counts = [size[2 + i] for i in range(rank)]
    shape = fs.stack(counts)
    lines = []
    for i, count in enumerate(counts):
        at, total = fs.cast(fs.range(count), theta.dtype), fs.cast(count, theta.dtype)
        if n.attr("align_corners", 0):
            line = (at + at) / fs.maximum(total - one, one) - one
        else:
            line = (at + at + one) / total - one
        beside = [-1 if j == i else 1 for j in range(rank)]
        lines.append(fs.broadcast_to(fs.reshape(line, beside), shape))
    points = fs.stack([*lines[::-1], fs.ones_like(lines[0])], 0)
    found = fs.matmul(theta, fs.reshape(points, [1, rank + 1, -1]))
    target = fs.concat([size[:1], shape, fs.constant([rank], fs.int64)], 0)
    return fs.reshape(fs.transpose(found, [0, 2, 1]), target)
