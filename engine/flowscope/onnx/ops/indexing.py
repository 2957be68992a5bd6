"""Operators that gather, scatter, select and sort."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.onnx.kernels.operator import operator
from flowscope.onnx.node import OnnxNode, dims_of, normalized, rank_of
from flowscope.onnx.table import converts


def _wrapped(index: fs.Tensor, size: Any) -> Any:
    """Indices with those below 0 counted from the end."""
    known = fs.get_static_value(index)
    if known is not None and np.all(np.asarray(known) >= 0):
        return index
    size = fs.cast(size, index.dtype)
    return fs.where_v2(fs.less(index, fs.zeros_like(index)), index + size, index)


def _integers(x: fs.Tensor) -> fs.Tensor:
    return x if x.dtype in (fs.int32, fs.int64) else fs.cast(x, fs.int64)


@converts("Gather")
def _gather(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.axis(0)
    index = _integers(n.x(1))
    return fs.gather(x, _wrapped(index, fs.shape(x, out_type=fs.int64)[axis]), axis=axis)


@converts("GatherND")
def _gather_nd(n: OnnxNode) -> Any:
    x, index = n.x(0), _integers(n.x(1))
    batch = n.attr("batch_dims", 0)
    depth = dims_of(index)[-1]
    if depth is None:
        raise InvalidArgumentError("expected indices whose last axis has a known size")
    sizes = fs.shape(x, out_type=fs.int64)[batch : batch + depth]
    index = _wrapped(index, sizes)
    return fs.gather_nd(x, index, batch_dims=batch) if batch else fs.gather_nd(x, index)


def _coordinates(index: fs.Tensor, axis: int) -> Any:
    """Per element of `index`, its place with `index` for one axis: [..., rank]."""
    rank, sizes = rank_of(index), fs.shape(index, out_type=fs.int64)
    parts = []
    for i in range(rank):
        if i == axis:
            parts.append(fs.cast(index, fs.int64))
        else:
            line = fs.range(sizes[i])
            shape = [-1 if j == i else 1 for j in range(rank)]
            parts.append(fs.broadcast_to(fs.reshape(line, shape), sizes))
    return fs.stack(parts, -1)


@converts("GatherElements")
def _gather_elements(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.axis(0)
    index = _wrapped(_integers(n.x(1)), fs.shape(x, out_type=fs.int64)[axis])
    found = fs.gather_nd(x, _coordinates(index, axis))
    found.set_shape(index.shape)
    return found


@converts("ScatterElements", "Scatter")
def _scatter_elements(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.axis(0)
    index = _wrapped(_integers(n.x(1)), fs.shape(x, out_type=fs.int64)[axis])
    return _scattered(x, _coordinates(index, axis), n.x(2), n.attr("reduction", "none"))


@converts("ScatterND")
def _scatter_nd(n: OnnxNode) -> Any:
    x, index = n.x(0), _integers(n.x(1))
    depth = dims_of(index)[-1]
    if depth is None:
        raise InvalidArgumentError("expected indices whose last axis has a known size")
    index = _wrapped(index, fs.shape(x, out_type=fs.int64)[:depth])
    return _scattered(x, index, n.x(2), n.attr("reduction", "none"))


def _scattered(x: fs.Tensor, index: Any, updates: fs.Tensor, reduction: str) -> Any:
    if reduction == "mul":
        index, updates = fs.cast(index, fs.int64), updates
        (found,) = operator("ScatterMul", [x, index, updates], [(x.dtype, x.spec.shape)])
        return found
    functions = {
        "none": fs.tensor_scatter_nd_update,
        "add": fs.tensor_scatter_nd_add,
        "max": fs.tensor_scatter_nd_max,
        "min": fs.tensor_scatter_nd_min,
    }
    if reduction not in functions:
        raise InvalidArgumentError(f"expected none, add, mul, max or min, got {reduction!r}")
    return functions[reduction](x, index, updates)


@converts("TensorScatter")
def _tensor_scatter(n: OnnxNode) -> Any:
    past, update, axis = n.x(0), n.x(1), n.axis(-2)
    dims, length = dims_of(past), dims_of(update)[axis]
    if length is None or None in dims:
        raise InvalidArgumentError("expected inputs of known shapes")
    batch, size = int(dims[0] or 0), int(dims[axis] or 0)
    start = fs.cast(n.x(2), fs.int64) if n.has(2) else fs.zeros([batch], fs.int64)
    at = fs.expand_dims(start, 1) + fs.range(fs.constant(length, fs.int64))
    if n.attr("mode", "linear") == "circular":
        at = fs.math.floormod(at, fs.constant(size, fs.int64))
    rank = rank_of(past)
    order = [0, axis, *[i for i in range(1, rank) if i != axis]]
    rows = fs.tile(fs.reshape(fs.range(fs.constant(batch, fs.int64)), [-1, 1]), [1, length])
    found = fs.tensor_scatter_nd_update(
        fs.transpose(past, order), fs.stack([rows, at], -1), fs.transpose(update, order)
    )
    return fs.transpose(found, [int(i) for i in np.argsort(order)])


@converts("Compress")
def _compress(n: OnnxNode) -> Any:
    x, kept = n.x(0), n.x(1)
    axis = n.attr("axis")
    if axis is None:
        x, axis = fs.reshape(x, [-1]), 0
    axis = normalized([axis], rank_of(x))[0]
    at = fs.reshape(fs.where(kept), [-1])
    return fs.gather(x, at, axis=axis)


@converts("ReverseSequence")
def _reverse_sequence(n: OnnxNode) -> Any:
    return fs.reverse_sequence(
        n.x(0), n.x(1), seq_axis=n.attr("time_axis", 0), batch_axis=n.attr("batch_axis", 1)
    )


@converts("TopK")
def _top_k(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.axis(-1)
    largest, is_sorted = bool(n.attr("largest", 1)), bool(n.attr("sorted", 1))
    if n.opset < 10:
        k: Any = n.needed("k")
    else:
        k = n.known(1)
        k = None if k is None else int(k.reshape(-1)[0])
    dims: list[int | None] = dims_of(x)
    dims[axis] = k
    if k is not None and largest and x.dtype.is_floating:
        order = [*[i for i in range(len(dims)) if i != axis], axis]
        back = [int(i) for i in np.argsort(order)]
        moved = x if order == back and axis == len(dims) - 1 else fs.transpose(x, order)
        values, index = fs.math.top_k(moved, k, sorted=is_sorted)
        return tuple(fs.transpose(v, back) for v in (values, fs.cast(index, fs.int64)))
    size = n.x(1) if n.opset >= 10 else fs.constant([k], fs.int64)
    return operator(
        "TopK",
        [x, size],
        [(x.dtype, tuple(dims)), (fs.int64, tuple(dims))],
        axis=axis,
        largest=largest,
    )


@converts("Unique")
def _unique(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.attr("axis")
    dims: Any = (None,)
    if axis is not None:
        axis = normalized([axis], rank_of(x))[0]
        dims = tuple(None if i == axis else d for i, d in enumerate(dims_of(x)))
    one = (fs.int64, (None,))
    return operator(
        "Unique",
        [x],
        [(x.dtype, dims), one, one, one],
        axis=axis,
        is_sorted=bool(n.attr("sorted", 1)),
    )
