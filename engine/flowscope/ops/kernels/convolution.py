"""Convolutions of arrays as products of matrices: forward, and for both gradients.

Idea: the window under each output element becomes a row of a matrix ("im2col"); times the filter
as a matrix that is the convolution, and its transpose times the output's gradient is the filter's
gradient. The matrix has as many times the input's size as a window has elements, so it is never
made as a whole: blocks of images, or of rows of one large image, that fit into the second- to
third-level cache are copied out and multiplied one after the other. That bounds the memory and
spares the way through it; a product of a few hundred rows is as quick per element as a large one.

The input's gradient is again a convolution where the strides are 1: of the output's gradient, with
the margins complemented and the filter turned by half and its channels swapped. With strides it is
the product with the transposed filter, whose columns are then added up where the windows were.

Where the channels are few, rows of windows lie in memory as runs of a handful of elements, and
copying takes longer than multiplying. Then the transposed matrix is made, whose runs are as long
as a row of the output; BLAS takes either.

Source: Chellapilla, Puri & Simard 2006, "High performance convolutional neural networks for
document processing".

Measured and rejected, for 64 images of 14 x 14 x 32 and filters of 5 x 5 x 32 x 64 on two cores:
- one matrix for all images: takes 1.3 times as long, page faults included;
- windows copied in one direction only, the others found by strides (Cho & Brandt 2017, "MEC"): a
  fifth of the copy, but rows overlap, so five products of every fifth row each, which go over the
  margins as well: a tenth slower forward, a tenth quicker backwards;
- images innermost, so that every window is a matrix in place: many small products, which BLAS does
  not share among cores: 1.4 times as long forward, twice for the filter's gradient;
- for the input's gradient with strides of 1, windows that are added up: 1.1 to 1.3 times as long.
Reckoned and rejected: Winograd's transforms save two thirds of the multiplications, but are passes
over memory that take as long as what they save, and rounding errors grow.

Where oneDNN is installed large convolutions of float32 go there, see
`flowscope.ops.kernels.onednn`.

Limits: float16 and bfloat16 are computed in float32. Kernels of `flowscope.ops.nn.depthwise`
multiply
and add without a matrix, for there each channel has a filter of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule
from flowscope.ops.kernels.onednn import Calls, flops_of, library, recipe, run, run_blocks
from flowscope.ops.kernels.sharing import FLOPS, batch_blocks
from flowscope.ops.kernels.windows import Axis

#: Bytes of one block of windows (measured: from 1 to 4 MB makes no difference).
BLOCK_BYTES = 1 << 21
#: The same on devices without such caches, where it bounds the memory only.
DEVICE_BLOCK_BYTES = 1 << 28

Block = tuple[slice, slice]


def by_library(
    xp: ArrayModule,
    kind: str,
    axes: Sequence[Axis],
    groups: int,
    given: tuple[Array, Array],
    out: Any,
) -> Array | None:
    """Returns a convolution or one of its gradients from oneDNN; None where NumPy should do it.

    Args:
        xp: The array module.
        kind: "forward", "backward_data" or "backward_weights".
        axes: The images' spatial axes.
        groups: Into how many equal groups the channels fall.
        given: The two arrays that are known of images, filters and outputs, in that order.
        out: The shape of the third.
    """
    if xp is not np:
        return None
    x, k = {
        "forward": (given[0].shape, given[1].shape),
        "backward_data": (out, given[0].shape),
        "backward_weights": (given[0].shape, out),
    }[kind]
    outs = math.prod(a.out for a in axes)
    moved = math.prod(x) + x[0] * outs * k[-1]
    blocks = batch_blocks(xp, x[0], flops_of(x[0], k, axes) + FLOPS * moved)
    lengths = {len(range(x[0])[some]) for some in blocks}
    found = {n: recipe(kind, given[0].dtype, x, k, axes, groups, n) for n in lengths}
    loaded = library()
    if not found or None in found.values() or loaded is None:
        return None
    arrays = [np.ascontiguousarray(a) for a in given]
    place = ("backward_data", "backward_weights", "forward").index(kind)
    is_sum = place == 1
    results = [np.empty(out, np.float32) for _ in (blocks if is_sum else blocks[:1])]

    def calls(i: int) -> Calls:
        made = [*arrays[:place], results[i if is_sum else 0], *arrays[place:]]
        parts = [a if j == 1 else a[blocks[i]] for j, a in enumerate(made)]
        recipe_of_length = found[len(parts[0])]
        assert recipe_of_length is not None
        return recipe_of_length.calls(*parts)

    late = run_blocks(loaded, len(blocks), calls)
    if late and not is_sum:
        results = [results[0].copy()]
    for i in late:
        if is_sum:
            results[i] = np.empty(out, np.float32)
        run(calls(i))
    return reduce(np.add, results[1:], results[0])


def correlate(xp: ArrayModule, x: Array, k: Array, axes: Sequence[Axis]) -> Array:
    """Returns the convolution of images with filters, channels last.

    Shapes: x [n, *sizes, c], k [*windows, c, o] -> [n, *outs, o]
    """
    dims = (x.shape[0], *[a.out for a in axes], k.shape[-1])
    if 0 in dims or 0 in k.shape:
        return xp.zeros(dims, x.dtype)
    found = by_library(xp, "forward", axes, 1, (x, k), dims)
    return _correlate(xp, x, k, axes) if found is None else found


def _correlate(xp: ArrayModule, x: Array, k: Array, axes: Sequence[Axis]) -> Array:
    channels, outputs = k.shape[-2:]
    dims = (x.shape[0], *[a.out for a in axes], outputs)
    matrix = k.reshape(-1, outputs)
    if all(a.is_plain for a in axes):
        return xp.matmul(x.reshape(-1, channels), matrix).reshape(dims)
    y = xp.empty(dims, x.dtype)
    for block, rows in columns(xp, x, axes):
        xp.matmul(rows, matrix, out=y[block].reshape(-1, outputs))
    return y


def correlate_filter(xp: ArrayModule, x: Array, g: Array, axes: Sequence[Axis]) -> Array:
    """Returns the gradient of `correlate` for the filters.

    Shapes: x [n, *sizes, c], g [n, *outs, o] -> [*windows, c, o]
    """
    channels, outputs = x.shape[-1], g.shape[-1]
    dims = (*[a.window for a in axes], channels, outputs)
    if 0 in g.shape or 0 in dims:
        return xp.zeros(dims, x.dtype)
    found = by_library(xp, "backward_weights", axes, 1, (x, g), dims)
    if found is not None:
        return found
    if all(a.is_plain for a in axes):
        flat = x.reshape(-1, channels)
        return xp.matmul(flat.T, g.reshape(-1, outputs)).reshape(dims)
    total = part = None
    for block, rows in columns(xp, x, axes):
        part = xp.matmul(rows.T, g[block].reshape(-1, outputs), out=part)
        if total is None:
            total, part = part, None
        else:
            total += part
    assert total is not None
    return total.reshape(dims)


def correlate_input(
    xp: ArrayModule, g: Array, k: Array, channels: int, axes: Sequence[Axis]
) -> Array:
    """Returns the gradient of `correlate` for the images.

    Shapes: g [n, *outs, o], k [*windows, channels, o] -> [n, *sizes, channels]
    """
    dims = (g.shape[0], *[a.size for a in axes], channels)
    if 0 in g.shape or 0 in dims or 0 in k.shape:
        return xp.zeros(dims, g.dtype)
    found = by_library(xp, "backward_data", axes, 1, (k, g), dims)
    if found is not None:
        return found
    if all(a.stride == 1 and 0 <= a.low < a.extent for a in axes):
        turned = k[(slice(None, None, -1),) * len(axes)].swapaxes(-1, -2)
        back = [Axis(a.out, a.window, 1, a.dilation, a.extent - 1 - a.low, a.size) for a in axes]
        return _correlate(xp, g, turned, back)
    return _spread(xp, g, k.reshape(-1, k.shape[-1]), dims, axes)


def _spread(
    xp: ArrayModule, g: Array, matrix: Array, dims: tuple[int, ...], axes: Sequence[Axis]
) -> Array:
    """Returns images to which the windows are added that g times the transposed filter gives."""
    channels = dims[-1]
    out = xp.zeros(dims, g.dtype)
    images, rows = _block(xp, dims[0], matrix.shape[0] * g.dtype.itemsize, axes)
    spans = tuple([a.span for a in axes])
    inside, kept = zip(*[a.inside() for a in axes], strict=True)
    space = xp.empty((images, *spans, channels), g.dtype)
    for first in range(0, dims[0], images):
        some = slice(first, first + images)
        whole = space[: len(g[some])]
        whole.fill(0)
        for row in range(0, axes[0].out, rows):
            piece = g[some, row : row + rows]
            windows = xp.matmul(piece.reshape(-1, piece.shape[-1]), matrix.T)
            start = row * axes[0].stride
            _add_windows(xp, whole[:, start:], windows, piece.shape[1:-1], axes)
        out[(some, *kept)] = whole[(slice(None), *inside)]
    return out


def _add_windows(
    xp: ArrayModule, whole: Array, windows: Array, outs: tuple[int, ...], axes: Sequence[Axis]
) -> None:
    """Adds windows, one per row of a matrix, to the images where they lie."""
    sizes = [a.window for a in axes]
    parts = windows.reshape(len(whole), *outs, *sizes, whole.shape[-1])
    every = (slice(None),) * (1 + len(outs))
    first = Axis(0, sizes[0], axes[0].stride, axes[0].dilation, 0, outs[0])
    for tap in np.ndindex(*sizes):
        places = [a.tap(i) for a, i in zip((first, *axes[1:]), tap, strict=True)]
        whole[(slice(None), *places)] += parts[(*every, *tap)]


def columns(xp: ArrayModule, x: Array, axes: Sequence[Axis]) -> Iterator[tuple[Block, Array]]:
    """Yields blocks of windows: which images and rows of the output, and the windows as a matrix.

    The matrices share memory: one is gone when the next comes.

    Shapes: x [n, *sizes, c] -> matrices [images * rows * ..., taps * c]
    """
    channels = x.shape[-1]
    sizes = tuple([a.window for a in axes])
    taps = int(np.prod(sizes))
    per_window = taps * channels * x.dtype.itemsize
    images, rows = _block(xp, x.shape[0], per_window, axes)
    last = axes[-1]
    run = channels * (last.window if last.dilation == 1 else 1)
    by_tap = run < last.out and taps > 1
    space, margins = None, _Margins()
    for first in range(0, x.shape[0], images):
        some = slice(first, first + images)
        for row in range(0, axes[0].out, rows):
            stop = min(row + rows, axes[0].out)
            top, lines = axes[0].part(row, stop)
            piece, parts = x[some, lines], (top, *axes[1:])
            windows = _windows(xp, margins.around(xp, piece, parts), parts)
            shape = windows.shape
            count = windows.size // (taps * channels)
            if space is None:
                space = xp.empty(windows.size, x.dtype)
            flat = space[: windows.size]
            if by_tap:
                n = len(axes) + 1
                order = (*range(n, 2 * n), *range(n))
                flat.reshape([shape[i] for i in order])[...] = windows.transpose(order)
                matrix = flat.reshape(-1, count).T
            else:
                flat.reshape(shape)[...] = windows
                matrix = flat.reshape(count, -1)
            yield (some, slice(row, stop)), matrix


def _block(xp: ArrayModule, images: int, per_window: int, axes: Sequence[Axis]) -> tuple[int, int]:
    """Returns how many images, and how many rows of their outputs, make a block."""
    limit = BLOCK_BYTES if xp is np else DEVICE_BLOCK_BYTES
    rows = axes[0].out
    per_row = per_window * int(np.prod([a.out for a in axes[1:]]))
    if per_row * rows > limit:
        return 1, max(1, limit // per_row)
    return min(images, max(1, limit // (per_row * rows))), rows


class _Margins:
    """Memory for images with margins of zeros, used for one block after the other."""

    def __init__(self) -> None:
        self.space: Array | None = None
        self.axes: tuple[Axis, ...] = ()

    def around(self, xp: ArrayModule, x: Array, axes: tuple[Axis, ...]) -> Array:
        """Returns the images with their margins, as far as windows reach."""
        inside, kept = zip(*[a.inside() for a in axes], strict=True)
        if not any(a.has_margin for a in axes):
            return x[(slice(None), *kept)]
        shape = (x.shape[0], *[a.span for a in axes], x.shape[-1])
        if self.space is None or self.axes != axes or len(self.space) < len(x):
            self.space, self.axes = xp.zeros(shape, x.dtype), axes
        whole = self.space[: len(x)]
        whole[(slice(None), *inside)] = x[(slice(None), *kept)]
        return whole


def _windows(xp: ArrayModule, x: Array, axes: Sequence[Axis]) -> Array:
    """Returns a view of all windows.

    Shapes: x [n, *spans, c] -> [n, *outs, *windows, c]
    """
    n, *spatial, c = x.strides
    outs, sizes = [a.out for a in axes], [a.window for a in axes]
    steps = [s * a.stride for s, a in zip(spatial, axes, strict=True)]
    inner = [s * a.dilation for s, a in zip(spatial, axes, strict=True)]
    shape = (x.shape[0], *outs, *sizes, x.shape[-1])
    return xp.lib.stride_tricks.as_strided(x, shape, (n, *steps, *inner, c))
