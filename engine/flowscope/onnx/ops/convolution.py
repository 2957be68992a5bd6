"""Convolutions and their transposes, of 1 to 3 spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.onnx.node import OnnxNode, dims_of, rank_of
from flowscope.onnx.table import converts


def spatial(n: OnnxNode, i: int = 0) -> int:
    """How many spatial axes input `i` has."""
    rank = rank_of(n.x(i)) - 2
    if not 1 <= rank <= 3:
        raise UnimplementedError(f"expected 1 to 3 spatial axes, got {rank}")
    return rank


def numbers(n: OnnxNode, name: str, count: int, default: int = 1) -> list[int]:
    """An attribute with a number per spatial axis."""
    found = [int(v) for v in n.attr(name) or [default] * count]
    if len(found) != count:
        raise InvalidArgumentError(f"expected {count} numbers as {name}, got {found}")
    return found


def padding(
    n: OnnxNode,
    sizes: Sequence[int | None],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[tuple[int, int]]:
    """The pads before and behind each spatial axis."""
    mode, count = n.attr("auto_pad", "NOTSET"), len(kernel)
    if mode in ("NOTSET", ""):
        flat = numbers(n, "pads", 2 * count, 0)
        return list(zip(flat[:count], flat[count:], strict=True))
    if mode == "VALID":
        return [(0, 0)] * count
    found = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        if size is None and s != 1:
            raise UnimplementedError(f"auto_pad {mode} needs spatial axes of known sizes")
        total = (
            (k - 1) * d
            if size is None
            else max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        )
        half = total // 2
        found.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
    return found


def convolve(
    x: fs.Tensor,
    w: fs.Tensor,
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilations: Sequence[int],
    group: int = 1,
) -> Any:
    """Cross-correlation of x [n, c, ...] with w [m, c / group, ...]."""
    rank = rank_of(x) - 2
    if rank == 1:
        x, w = fs.expand_dims(x, 2), fs.expand_dims(w, 2)
        found = convolve(x, w, [1, *strides], [(0, 0), *pads], [1, *dilations], group)
        return fs.squeeze(found, [2])
    filters = fs.transpose(w, [*range(2, rank + 2), 1, 0])
    if rank == 2:
        if x.dtype.is_floating:
            return fs.nn.conv2d(
                x,
                filters,
                strides=[1, 1, *strides],
                padding=[[0, 0], [0, 0], *[list(p) for p in pads]],
                data_format="NCHW",
                dilations=[1, 1, *dilations],
            )
    if any(any(p) for p in pads):
        x = fs.pad(x, [[0, 0], [0, 0], *[list(p) for p in pads]])
    if group == 1 and rank == 3:
        return _conv3d(x, filters, strides, dilations)
    parts = zip(fs.split(x, group, 1), fs.split(filters, group, rank + 1), strict=True)
    return fs.concat([_conv3d(a, b, strides, dilations) for a, b in parts], 1)


def _conv3d(x: Any, filters: Any, strides: Sequence[int], dilations: Sequence[int]) -> Any:
    return fs.nn.conv3d(
        x,
        filters,
        strides=[1, 1, *strides],
        padding="VALID",
        data_format="NCDHW",
        dilations=[1, 1, *dilations],
    )


@converts("Conv")
def _conv(n: OnnxNode) -> Any:
    x, w = n.x(0), n.x(1)
    count = spatial(n)
    kernel = [int(d or 0) for d in dims_of(w)[2:]]
    strides, dilations = numbers(n, "strides", count), numbers(n, "dilations", count)
    pads = padding(n, dims_of(x)[2:], kernel, strides, dilations)
    found = convolve(x, w, strides, pads, dilations, n.attr("group", 1))
    return _biased(found, n.x(2)) if n.has(2) else found


def _biased(x: fs.Tensor, b: fs.Tensor) -> Any:
    return x + fs.reshape(b, [1, -1, *[1] * (rank_of(x) - 2)])


@converts("ConvTranspose")
def _conv_transpose(n: OnnxNode) -> Any:
    x, w = n.x(0), n.x(1)
    count, group = spatial(n), n.attr("group", 1)
    kernel = [int(d or 0) for d in dims_of(w)[2:]]
    strides, dilations = numbers(n, "strides", count), numbers(n, "dilations", count)
    extra = numbers(n, "output_padding", count, 0)
    sizes = dims_of(x)[2:]
    if any(s is None for s in sizes):
        raise UnimplementedError("expected an input of known spatial sizes")
    full = [
        (int(s or 0) - 1) * t + (k - 1) * d + 1
        for s, t, k, d in zip(sizes, strides, kernel, dilations, strict=True)
    ]
    pads = _transposed_pads(n, [int(s or 0) for s in sizes], full, strides, extra)
    parts = zip(fs.split(x, group, 1), fs.split(w, group, 0), strict=True)
    made = [_transposed(a, b, full, strides, dilations) for a, b in parts]
    found = made[0] if group == 1 else fs.concat(made, 1)
    # Positions behind the product's end, which the output padding asks for, are 0.
    ends = [f + e - b for f, e, (_, b) in zip(full, extra, pads, strict=True)]
    more = [max(0, end - f) for end, f in zip(ends, full, strict=True)]
    if any(more):
        found = fs.pad(found, [[0, 0], [0, 0], *[[0, m] for m in more]])
    if any(a < 0 for a, _ in pads):
        found = fs.pad(found, [[0, 0], [0, 0], *[[max(0, -a), 0] for a, _ in pads]])
    cut = [slice(max(a, 0), end + max(0, -a)) for (a, _), end in zip(pads, ends, strict=True)]
    found = found[(slice(None), slice(None), *cut)]
    return _biased(found, n.x(2)) if n.has(2) else found


def _transposed_pads(
    n: OnnxNode, sizes: list[int], full: list[int], strides: list[int], extra: list[int]
) -> list[tuple[int, int]]:
    mode, count = n.attr("auto_pad", "NOTSET"), len(sizes)
    wanted = n.attr("output_shape")
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [s * t for s, t in zip(sizes, strides, strict=True)]
    if wanted is None:
        if mode == "VALID":
            return [(0, 0)] * count
        flat = numbers(n, "pads", 2 * count, 0)
        return list(zip(flat[:count], flat[count:], strict=True))
    found = []
    for f, e, w in zip(full, extra, wanted[-count:], strict=True):
        total = f + e - w
        half = total // 2
        found.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
    return found


def _transposed(x: Any, w: Any, full: list[int], strides: list[int], dilations: list[int]) -> Any:
    count = len(full)
    if count == 1:
        found = _transposed(
            fs.expand_dims(x, 2), fs.expand_dims(w, 2), [1, *full], [1, *strides], [1, *dilations]
        )
        return fs.squeeze(found, [2])
    filters = fs.transpose(w, [*range(2, count + 2), 1, 0])
    batch = dims_of(x)[0]
    channels = dims_of(w)[1]
    if batch is None:
        shape: Any = fs.stack([fs.shape(x)[0], *[int(v or 0) for v in (channels, *full)]])
    else:
        shape = np.array([batch, channels, *full], np.int32)
    function = fs.nn.conv2d_transpose if count == 2 else fs.nn.conv3d_transpose
    return function(
        x,
        filters,
        shape,
        strides=[1, 1, *strides],
        padding="VALID",
        data_format="NCHW" if count == 2 else "NCDHW",
        dilations=[1, 1, *dilations],
    )


__all__ = ["convolve", "numbers", "padding", "spatial"]
