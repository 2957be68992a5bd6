"""Operators that change shapes and join or cut arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.onnx.node import OnnxNode, dims_of, normalized, rank_of, shape_from, sizes_of
from flowscope.onnx.table import converts, single


@converts("Reshape")
def _reshape(n: OnnxNode) -> Any:
    x = n.x(0)
    wanted = n.known(1)
    if wanted is None:
        target = n.x(1)
        if not n.attr("allowzero", 0):
            count = target.shape.as_list()[0] if target.ndim else None
            if count is not None:
                # A zero takes the size that the input has in the same place.
                old = fs.shape(x, out_type=fs.int64)
                rank = rank_of(x)
                old = fs.pad(old, [[0, max(0, count - rank)]])[:count]
                target = fs.where_v2(fs.equal(target, fs.zeros_like(target)), old, target)
        return fs.reshape(x, target)
    if wanted.dtype.kind not in "iu":
        raise InvalidArgumentError(f"expected a shape of integers, got {n.x(1).dtype}")
    sizes: list[Any] = [int(d) for d in wanted.reshape(-1)]
    if not n.attr("allowzero", 0) and 0 in sizes:
        given = sizes_of(x)
        for i, size in enumerate(sizes):
            if size == 0:
                if i >= len(given):
                    raise InvalidArgumentError(f"expected a shape for rank {len(given)}: {sizes}")
                sizes[i] = given[i]
    return fs.reshape(x, shape_from(sizes))


@converts("Flatten")
def _flatten(n: OnnxNode) -> Any:
    x = n.x(0)
    rank = rank_of(x)
    axis = n.attr("axis", 1)
    if not -rank <= axis <= rank:
        raise InvalidArgumentError(f"expected axes in [{-rank}, {rank}], got {axis}")
    axis = axis + rank if axis < 0 else axis
    dims = dims_of(x)
    sides = [_product(x, dims[:axis], 0, axis), _product(x, dims[axis:], axis, rank)]
    if not isinstance(sides[0], int) and isinstance(sides[1], int) and sides[1] > 0:
        sides[0] = -1
    return fs.reshape(x, shape_from(sides))


def _product(x: fs.Tensor, dims: list[int | None], start: int, end: int) -> Any:
    known = [d for d in dims if d is not None]
    if len(known) == len(dims):
        return int(np.prod(known, dtype=np.int64))
    return fs.reduce_prod(fs.shape(x, out_type=fs.int64)[start:end])


def _transpose(n: OnnxNode) -> Any:
    x = n.x(0)
    perm = n.attr("perm")
    if perm is None:
        perm = list(range(rank_of(x)))[::-1]
    return fs.transpose(x, perm, name=n.name)


single("Transpose", _transpose)


@converts("Squeeze")
def _squeeze(n: OnnxNode) -> Any:
    x = n.x(0)
    if n.has(1) and n.known(1) is None:
        sizes, rank = fs.shape(x, out_type=fs.int64), rank_of(x)
        places = fs.expand_dims(fs.range(fs.constant(rank, fs.int64)), 1)
        given = fs.math.floormod(n.x(1), fs.constant(rank, fs.int64))
        is_axis = fs.reduce_any(fs.equal(places, given), 1)
        found = fs.reshape(x, fs.boolean_mask(sizes, fs.logical_not(is_axis)))
        count = n.x(1).shape.as_list()[0]
        if count is not None:
            found.set_shape([None] * (rank - count))
        return found
    axes = n.axes()
    if axes is None:
        return fs.squeeze(x)
    return fs.squeeze(x, normalized(axes, rank_of(x))) if axes else fs.identity(x)


@converts("Unsqueeze")
def _unsqueeze(n: OnnxNode) -> Any:
    x = n.x(0)
    if n.has(1) and n.known(1) is None:
        count, rank = n.x(1).shape.as_list()[0], rank_of(x)
        if count is None:
            raise InvalidArgumentError("expected axes of a known number")
        total = fs.constant(rank + count, fs.int64)
        given = fs.math.floormod(n.x(1), total)
        is_new = fs.reduce_any(fs.equal(fs.expand_dims(fs.range(total), 1), given), 1)
        at = fs.cumsum(fs.cast(fs.logical_not(is_new), fs.int32), exclusive=True)
        sizes = fs.pad(fs.shape(x, out_type=fs.int64), [[0, count]], constant_values=1)
        target = fs.where_v2(is_new, fs.ones_like(given[:1]), fs.gather(sizes, at))
        found = fs.reshape(x, target)
        found.set_shape([None] * (rank + count))
        return found
    axes = n.axes() or []
    for axis in sorted(normalized(axes, rank_of(x) + len(axes))):
        x = fs.expand_dims(x, axis)
    return fs.identity(x) if x is n.x(0) else x


@converts("Expand")
def _expand(n: OnnxNode) -> Any:
    x = n.x(0)
    wanted = n.known(1)
    old = x.spec.shape
    if wanted is not None and old is not None and None not in old:
        full = np.broadcast_shapes(old, tuple(wanted.tolist()))  # type: ignore[arg-type]
        return fs.broadcast_to(x, np.array(full, np.int64))
    target = fs.broadcast_dynamic_shape(fs.shape(x, out_type=fs.int64), n.x(1))
    found = fs.broadcast_to(x, target)
    count = n.x(1).shape.as_list()[0]
    if count is not None and x.ndim is not None and found.ndim is None:
        found.set_shape([None] * max(count, x.ndim))
    return found


def _concat(n: OnnxNode) -> Any:
    if len(n.inputs) == 1:
        return fs.identity(n.x(0), name=n.name)
    return fs.concat(n.tensors(), n.axis(1 if n.opset < 4 else 0), name=n.name)


single("Concat", _concat)


@converts("Tile")
def _tile(n: OnnxNode) -> Any:
    return fs.tile(n.x(0), n.x(1))


@converts("Split")
def _split(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.axis(0)
    sizes: Any = n.attr("split")
    if n.has(1):
        sizes = n.known(1)
        sizes = n.x(1) if sizes is None else sizes
    if sizes is None:
        count, total = n.attr("num_outputs", n.outputs), dims_of(x)[axis]
        if total is None:
            raise InvalidArgumentError("expected an axis of known size to be split")
        part = -(-total // count)
        sizes = [max(0, min(part, total - i * part)) for i in range(count)]
    if isinstance(sizes, fs.Tensor):
        return tuple(fs.split(x, sizes, axis, num=n.outputs))
    return tuple(fs.split(x, [int(s) for s in sizes], axis))


@converts("Slice")
def _slice(n: OnnxNode) -> Any:
    x, rank = n.x(0), rank_of(n.x(0))
    steps: Any = None
    if n.opset < 10:
        starts, ends = n.needed("starts"), n.needed("ends")
        axes = n.attr("axes")
    else:
        if any(n.has(i) and n.known(i) is None for i in range(1, 5)):
            return _slice_computed(n, rank)
        starts, ends = n.constant(1, "starts"), n.constant(2, "ends")
        axes = n.axes(3)
        steps = n.constant(4, "steps") if n.has(4) else None
    axes = range(len(starts)) if axes is None else axes
    parts: list[Any] = [slice(None)] * rank
    steps = [1] * len(starts) if steps is None else steps
    dims = dims_of(x)
    for axis, start, end, step in zip(normalized(axes, rank), starts, ends, steps, strict=True):
        parts[axis] = _part(int(start), int(end), int(step), dims[axis])
    return x[tuple(parts)]


def _part(start: int, end: int, step: int, size: int | None) -> Any:
    if step == 0:
        raise InvalidArgumentError("expected steps other than 0")
    if size is not None:
        first, last, step = slice(start, end, step).indices(size)
        return slice(first, None if last < 0 else last, step)
    most = 1 << 30
    final = None if (end > most and step > 0) or (end < -most and step < 0) else end
    return slice(max(-most, min(most, start)), final, step)


def _slice_computed(n: OnnxNode, rank: int) -> Any:
    """A slice whose bounds the step computes: per axis, as positions that are gathered."""
    x = n.x(0)
    count = n.x(1).shape.as_list()[0]
    if count is None:
        raise InvalidArgumentError("expected a known number of axes")
    size = fs.shape(x, out_type=fs.int64)
    axes = n.axes(3) if not n.has(3) or n.known(3) is not None else None
    if axes is None and n.has(3):
        return _slice_axes_computed(n, rank, count)
    found = x
    for i, axis in enumerate(normalized(range(count) if axes is None else axes, rank)):
        step = n.x(4)[i] if n.has(4) else fs.constant(1, n.x(1).dtype)
        at = _positions(n.x(1)[i], n.x(2)[i], step, size[axis])
        found = fs.gather(found, at, axis=axis)
    return found


def _positions(start: Any, end: Any, step: Any, size: Any) -> Any:
    """The positions that a slice takes of an axis."""
    start, end, step = [fs.cast(v, fs.int64) for v in (start, end, step)]
    zero, one = fs.constant(0, fs.int64), fs.constant(1, fs.int64)
    back = fs.less(step, zero)
    low = fs.where_v2(back, -one, zero)
    high = fs.where_v2(back, size - one, size)

    def bounded(v: Any) -> Any:
        v = fs.where_v2(fs.less(v, zero), v + size, v)
        return fs.minimum(fs.maximum(v, low), high)

    return fs.range(bounded(start), bounded(end), step)


def _slice_axes_computed(n: OnnxNode, rank: int, count: int) -> Any:
    x = n.x(0)
    size = fs.shape(x, out_type=fs.int64)
    axes = fs.math.floormod(fs.cast(n.x(3), fs.int64), fs.constant(rank, fs.int64))
    one = fs.constant(1, fs.int64)
    found = x
    for axis in range(rank):
        start, end, step = fs.constant(0, fs.int64), size[axis], one
        for i in range(count):
            here = fs.equal(axes[i], fs.constant(axis, fs.int64))
            start = fs.where_v2(here, fs.cast(n.x(1)[i], fs.int64), start)
            end = fs.where_v2(here, fs.cast(n.x(2)[i], fs.int64), end)
            if n.has(4):
                step = fs.where_v2(here, fs.cast(n.x(4)[i], fs.int64), step)
        found = fs.gather(found, _positions(start, end, step, size[axis]), axis=axis)
    return found


@converts("DepthToSpace")
def _depth_to_space(n: OnnxNode) -> Any:
    x, block = n.x(0), n.needed("blocksize")
    b, c, h, w = _sizes(x)
    if n.attr("mode", "DCR") == "DCR":
        split = fs.reshape(x, shape_from([b, block, block, c // block**2, h, w]))
        moved = fs.transpose(split, [0, 3, 4, 1, 5, 2])
    else:
        split = fs.reshape(x, shape_from([b, c // block**2, block, block, h, w]))
        moved = fs.transpose(split, [0, 1, 4, 2, 5, 3])
    return fs.reshape(moved, shape_from([b, c // block**2, h * block, w * block]))


@converts("SpaceToDepth")
def _space_to_depth(n: OnnxNode) -> Any:
    x, block = n.x(0), n.needed("blocksize")
    b, c, h, w = _sizes(x)
    split = fs.reshape(x, shape_from([b, c, h // block, block, w // block, block]))
    order = [0, 3, 5, 1, 2, 4] if n.attr("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = fs.transpose(split, order)
    return fs.reshape(moved, shape_from([b, c * block**2, h // block, w // block]))


def _sizes(x: fs.Tensor) -> list[Any]:
    if rank_of(x) != 4:
        raise InvalidArgumentError(f"expected rank 4, got {rank_of(x)}")
    return sizes_of(x)


@converts("Pad")
def _pad(n: OnnxNode) -> Any:
    x, rank = n.x(0), rank_of(n.x(0))
    mode = n.attr("mode", "constant")
    value: Any = n.get(2) if n.opset >= 11 else n.attr("value", 0.0)
    if n.opset >= 11 and n.known(1) is None:
        pads = n.x(1)
        axes = n.axes(3) if not n.has(3) or n.known(3) is not None else None
        if n.has(3) and axes is None:
            return _pad_axes_computed(n, mode, value)
        places = range(rank) if axes is None else normalized(axes, rank)
        pairs = fs.transpose(fs.reshape(pads, [2, len(places)]), [1, 0])
        if list(places) != list(range(rank)):
            pairs = fs.scatter_nd([[p] for p in places], pairs, np.array([rank, 2], np.int64))
        return _padded(n, x, pairs, mode, value)
    flat = n.needed("pads") if n.opset < 11 else n.constant(1, "pads").reshape(-1)
    axes = n.axes(3)
    places = list(range(rank)) if axes is None else normalized(axes, rank)
    if len(flat) != 2 * len(places):
        raise InvalidArgumentError(f"expected two pads per axis of {places}, got {len(flat)}")
    widths = np.zeros((rank, 2), np.int64)
    widths[places] = np.reshape(np.asarray(flat, np.int64), (2, -1)).T
    if (widths < 0).any():
        dims = dims_of(x)
        cut = [
            slice(max(0, -int(a)), None if b >= 0 else (int(b) if d is None else d + int(b)))
            for (a, b), d in zip(widths, dims)
        ]
        x = x[tuple(cut)]
        widths = np.maximum(widths, 0)
    return _padded(n, x, widths, mode, value)


def _pad_axes_computed(n: OnnxNode, mode: str, value: Any) -> Any:
    x, rank = n.x(0), rank_of(n.x(0))
    axes = fs.math.floormod(fs.cast(n.x(3), fs.int64), fs.constant(rank, fs.int64))
    pairs = fs.transpose(fs.reshape(n.x(1), [2, -1]), [1, 0])
    pairs = fs.scatter_nd(fs.expand_dims(axes, 1), pairs, np.array([rank, 2], np.int64))
    return _padded(n, x, pairs, mode, value)


def _padded(n: OnnxNode, x: fs.Tensor, pairs: Any, mode: str, value: Any) -> Any:
    if mode == "reflect":
        return fs.pad(x, pairs, "REFLECT")
    if mode == "constant":
        if value is None:
            value = b"" if x.dtype is fs.string else 0
        if isinstance(value, fs.Tensor):
            value = fs.reshape(value, [])
        return fs.pad(x, pairs, constant_values=value)
    if mode not in ("edge", "wrap"):
        raise InvalidArgumentError(
            f"expected the mode constant, reflect, edge or wrap, got {mode!r}"
        )
    sizes = fs.shape(x, out_type=fs.int64)
    for axis in range(rank_of(x)):
        if isinstance(pairs, np.ndarray) and not pairs[axis].any():
            continue
        before, after = pairs[axis, 0], pairs[axis, 1]
        size = sizes[axis]
        at = fs.range(-fs.cast(before, fs.int64), size + fs.cast(after, fs.int64))
        if mode == "edge":
            zero, one = fs.constant(0, fs.int64), fs.constant(1, fs.int64)
            at = fs.minimum(fs.maximum(at, zero), size - one)
        else:
            at = fs.math.floormod(at, size)
        x = fs.gather(x, at, axis=axis)
    return x


@converts("CenterCropPad")
def _center_crop_pad(n: OnnxNode) -> Any:
    x, rank = n.x(0), rank_of(n.x(0))
    axes = normalized(n.attr("axes", range(rank)), rank)
    wanted = n.known(1)
    size = fs.shape(x, out_type=fs.int64)
    dims = dims_of(x)
    for i, axis in enumerate(axes):
        if wanted is not None and dims[axis] is not None:
            x = _fitted(x, axis, int(dims[axis]), int(wanted[i]))  # type: ignore[arg-type]
            continue
        target = fs.cast(n.x(1)[i], fs.int64)
        zero, two = fs.constant(0, fs.int64), fs.constant(2, fs.int64)
        less = fs.maximum(size[axis] - target, zero)
        more = fs.maximum(target - size[axis], zero)
        first = less // two
        x = fs.gather(x, fs.range(first, first + size[axis] - less), axis=axis)
        pairs = fs.scatter_nd(
            [[axis]],
            fs.expand_dims(fs.stack([more // two, more - more // two]), 0),
            np.array([rank, 2], np.int64),
        )
        x = fs.pad(x, pairs)
    return fs.identity(x) if x is n.x(0) else x


def _fitted(x: fs.Tensor, axis: int, old: int, new: int) -> Any:
    rank = rank_of(x)
    if new < old:
        start = (old - new) // 2
        return x[(*[slice(None)] * axis, slice(start, start + new))]
    pairs = np.zeros((rank, 2), np.int64)
    pairs[axis] = (new - old) // 2, new - old - (new - old) // 2
    return fs.pad(x, pairs)
