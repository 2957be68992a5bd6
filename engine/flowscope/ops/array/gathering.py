"""Parts of tensors by lists of positions: gather and scatter."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices, densifier
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.graph.values.work import per_element
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import reshape, shape_of
from flowscope.ops.core import builder
from flowscope.ops.core.axes import as_axes, length_at, positive_axis, with_axis
from flowscope.ops.core.broadcasting import as_shape, as_sizes, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.kernels.bounds import bounds
from flowscope.ops.kernels.scatter_rows import add_rows
from flowscope.ops.math.dynamic_axes import Lines, dynamic_axes
from flowscope.ops.math.elementwise import add

__all__ = [
    "gather",
    "gather_nd",
    "scatter_nd",
]


@frozen
class Gather(
    Op, grad_reads=("indices",), memory_order="C", work=per_element(3e-9), keeps_finite=True
):
    """The slices of x along an axis that the indices name.

    Shapes: x [..., n, ...], indices s -> [..., s, ...]
    Raises: InvalidArgumentError if an index is not in [0, n).
    """

    axis: int = 0

    def infer(self, x: Spec, indices: Spec) -> Spec:
        check_kind(indices.dtype, "iu", "integer indices")
        n = length_at(x, self.axis)
        if x.shape is None or indices.shape is None:
            return Spec(x.dtype, None)
        spec = with_axis(x, self.axis, *indices.shape)
        if len(x.shape) != 1 or x.dtype.kind != "i" or indices.constant is None:
            return spec
        chosen = np.asarray(indices.constant)
        if n is None or chosen.ndim > 1 or (chosen < 0).any() or (chosen >= n).any():
            return spec
        if x.constant is not None:
            return Spec(x.dtype, spec.shape, np.asarray(x.constant)[chosen][()])
        values = x.shape_value()
        if values is None:
            return spec
        places = chosen.reshape(-1).tolist()
        picked = tuple([values[i] for i in places])
        if None in picked:
            return Spec(x.dtype, spec.shape, None, picked)
        constant = np.array(picked, x.dtype.np_dtype).reshape(spec.shape)[()]  # type: ignore[arg-type]
        return Spec(x.dtype, spec.shape, constant, picked)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, indices: Tensor) -> Any:
        if self.axis == 0:
            return _slices(g, shape_of(x), indices), None
        return apply(GatherGrad(self.axis), g, shape_of(x), indices), None

    def kernel(self, xp: ArrayModule, x: Array, indices: Array) -> Array:
        axis = positive_axis(self.axis, x.ndim)
        check_range(indices, x.shape[axis])
        return xp.take(x, indices, axis=axis)


def _slices(g: Tensor, shape: Tensor, indices: Tensor) -> IndexedSlices:
    """Returns slices of g, one per index, as parts of a tensor of a shape."""
    if indices.spec.rank == 1:
        return IndexedSlices(g, indices, shape)
    flat = concat([[-1], shape[1:]], 0)
    return IndexedSlices(reshape(g, flat), reshape(indices, [-1]), shape)


def check_range(indices: Array, n: int) -> None:
    """Raises InvalidArgumentError unless all indices are in [0, n)."""
    if not indices.size:
        return
    low, high = bounds(indices)
    if low < 0 or high >= n:
        raise expected(f"indices in [0, {n})", low if low < 0 else high)


@frozen
class GatherGrad(
    Op, grad_reads=("indices",), accumulates=True, host_inputs=(1,), calls=5, work=per_element(3e-9)
):
    """Zeros of a shape, to which the slices of g are added where the indices say; repeats add up.

    Shapes: g [..., s, ...], shape [n], indices s -> shape
    Raises: InvalidArgumentError if g's shape is another, or an index is out of range.
    """

    axis: int

    def infer(self, g: Spec, shape: Spec, indices: Spec) -> Spec:
        sizes = shape.shape_value()
        self._check(g.shape, sizes, indices.shape)
        return Spec(g.dtype, sizes)

    def _check(self, g: Dims, sizes: Dims, indices: Dims) -> None:
        if sizes is None or indices is None:
            return
        axis = positive_axis(self.axis, len(sizes))
        wanted = (*sizes[:axis], *indices, *sizes[axis + 1 :])
        if not compatible(g, wanted):
            raise expected(f"slices of shape {text(wanted)} for a whole of shape {text(sizes)}", g)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor, indices: Tensor) -> Any:
        return apply(Gather(self.axis), g, indices), None, None

    def kernel(self, xp: ArrayModule, g: Array, shape: Array, indices: Array) -> Array:
        sizes = as_sizes(shape)
        self._check(g.shape, sizes, indices.shape)
        axis = positive_axis(self.axis, len(sizes))
        check_range(indices, sizes[axis])
        if axis == 0:
            rows = g.reshape(indices.size, *sizes[1:])
            return add_rows(xp, sizes[0], indices.reshape(-1), rows)
        if xp is np:
            out = np.zeros(sizes, g.dtype)
            where: Any = (builtins.slice(None),) * axis + (indices,)
            np.add.at(out, where, g)
            return out
        front, ends = range(indices.ndim), range(axis, axis + indices.ndim)
        rows = xp.moveaxis(g, tuple(ends), tuple(front)).reshape(
            indices.size, *sizes[:axis], *sizes[axis + 1 :]
        )
        sums = add_rows(xp, sizes[axis], indices.reshape(-1), rows)
        return xp.ascontiguousarray(xp.moveaxis(sums, 0, axis))


class GatherNd(Op, grad_reads=("indices",), work=per_element(3e-9), keeps_finite=True):
    """The elements (or slices) of x at positions that the last axis of the indices spells out.

    Shapes: x of rank n, indices [..., k] -> [...] + x.shape[k:]
    """

    def infer(self, x: Spec, indices: Spec) -> Spec:
        check_kind(indices.dtype, "iu", "integer indices")
        if indices.shape == ():
            raise expected("indices of rank 1 at least", "[]")
        if x.shape is None or indices.shape is None or indices.shape[-1] is None:
            return Spec(x.dtype, None)
        k = indices.shape[-1]
        if k > len(x.shape):
            raise expected(f"at most {len(x.shape)} numbers per position", k)
        return Spec(x.dtype, (*indices.shape[:-1], *x.shape[k:]))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, indices: Tensor) -> Any:
        if indices.spec.rank == 2 and indices.spec.shape[-1] == 1:  # type: ignore[index]
            return _slices(g, shape_of(x), indices[:, 0]), None
        return scatter_nd(indices, g, shape_of(x)), None

    def kernel(self, xp: ArrayModule, x: Array, indices: Array) -> Array:
        if not indices.shape[-1]:
            # No number means all of x.
            return xp.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()
        return x[positions(indices, x.shape)]


def positions(indices: Array, shape: Any) -> tuple[Array, ...]:
    """Returns the index arrays, one per axis, that the last axis of `indices` spells out."""
    k = indices.shape[-1]
    if k > len(shape):
        raise expected(f"at most {len(shape)} numbers per position", k)
    for i in range(k):
        check_range(indices[..., i], shape[i])
    return tuple([indices[..., i] for i in range(k)])


def flat_rows(xp: ArrayModule, indices: Array, shape: Any) -> Array:
    """Returns positions as numbers of rows, where the axes that they name are flattened to one."""
    k, step = indices.shape[-1], 1
    where = positions(indices, shape)
    total = xp.zeros(indices.shape[:-1], xp.int64)
    for i in reversed(range(k)):
        total = total + where[i] * step
        step *= shape[i]
    return total.reshape(-1)


class ScatterNd(
    Op, grad_reads=("indices",), accumulates=True, host_inputs=(2,), work=per_element(3e-9)
):
    """Zeros of a shape, to which updates are added at positions; repeats add up.

    Shapes: indices [..., k], updates [...] + shape[k:], shape [n] -> shape
    """

    def infer(self, indices: Spec, updates: Spec, shape: Spec) -> Spec:
        check_kind(indices.dtype, "iu", "integer indices")
        check_kind(updates.dtype, "fiucbs", "updates that can be added")
        if indices.rank == 0:
            raise expected("indices of rank 1 at least", "a scalar")
        check_shape_vector(shape)
        dims = shape.shape_value()
        if dims is not None and any(d is None for d in dims) and shape.constant is not None:
            raise expected("no negative sizes", shape.constant.tolist())
        wanted: Dims = None
        if indices.shape and indices.shape[-1] is not None and dims is not None:
            wanted = (*indices.shape[:-1], *dims[indices.shape[-1] :])
        if not compatible(wanted, updates.shape):
            raise expected(f"updates of shape {text(wanted)}", updates.shape)
        return Spec(updates.dtype, dims)

    def grad(self, g: Tensor, y: Tensor, indices: Tensor, updates: Tensor, shape: Tensor) -> Any:
        return None, apply(GatherNd(), g, indices), None

    def kernel(self, xp: ArrayModule, indices: Array, updates: Array, shape: Array) -> Array:
        sizes = as_sizes(shape)
        k = indices.shape[-1]
        wanted = (*indices.shape[:-1], *sizes[k:])
        if updates.shape != wanted:
            raise expected(f"updates of shape {text(wanted)}", updates.shape)
        places = flat_rows(xp, indices, sizes)
        rows = updates.reshape(places.size, *sizes[k:])
        return add_rows(xp, math.prod(sizes[:k]), places, rows).reshape(sizes)


def _dense(values: Tensor, indices: Tensor, dense_shape: Tensor) -> Tensor:
    return apply(GatherGrad(0), values, dense_shape, indices, name="IndexedSlicesToTensor")


densifier.append(_dense)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Returns the slices of `params` along an axis that the indices name.

    Args:
        params: A tensor.
        indices: Integers in [0, length of the axis).
        validate_indices: True or False: they are always checked.
        name: Name of the operation.
        axis: The axis; by default the one behind the batch.
        batch_dims: How many leading axes are a batch, with indices of its own for each element.

    Example:
        >>> fs.Session().run(fs.gather([10, 20, 30], [2, 0]))
        array([30, 10], dtype=int32)
    """
    x = convert_to_tensor(params)
    places = convert_to_tensor(indices, None, None, dtypes.int32)
    dynamic = dynamic_axes(axis)
    if dynamic is not None:
        return _gather_dynamic(x, places, dynamic, batch_dims, name or "GatherV2")
    first = (as_axes(axis) or (batch_dims,))[0]
    if not batch_dims:
        return apply(Gather(first), x, places, name=name or "GatherV2")
    if batch_dims < 0 and places.spec.rank is not None:
        batch_dims = positive_axis(batch_dims, places.spec.rank)
    return apply(builder.BatchGather(first, int(batch_dims)), x, places, name=name or "GatherV2")


def _gather_dynamic(x: Tensor, places: Tensor, axis: Tensor, batch_dims: int, name: str) -> Tensor:
    if batch_dims:
        raise InvalidArgumentError("expected an axis known while the graph is built with a batch")
    with x.graph.name_scope(name):
        lines = Lines(x, axis)
        return lines.without(apply(Gather(1), lines.tensor, places), shape_of(places))


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """Returns the elements (or slices) of `params` at positions: the last axis spells one out.

    Args:
        params: A tensor.
        indices: Integers; the last axis is a position in the axes behind the batch.
        name: Name of the operation.
        batch_dims: How many leading axes are a batch, with indices of its own for each element.

    Example:
        >>> fs.Session().run(fs.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]))
        array([2, 3], dtype=int32)
    """
    places = convert_to_tensor(indices, None, None, dtypes.int32)
    if batch_dims:
        places = _with_batch(places, int(batch_dims))
    return apply(GatherNd(), convert_to_tensor(params), places, name=name)


def _with_batch(places: Tensor, count: int) -> Tensor:
    """Returns positions with those of the batch elements that they belong to in front."""
    rank = places.spec.rank
    if rank is None or not 0 < count < rank:
        raise expected(f"batch_dims below the known rank of indices {places.spec}", count)
    sizes, ground = shape_of(places), builder.zeros_like(places[..., :1])
    fronts = []
    for i in builtins.range(count):
        line = reshape(builder.range(sizes[i]), [-1 if j == i else 1 for j in builtins.range(rank)])
        fronts.append(add(ground, cast(line, places.dtype)))
    return concat([*fronts, places], -1)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns zeros of `shape` with `updates` added at positions; repeats add up.

    Example:
        >>> fs.Session().run(fs.scatter_nd([[1], [3]], [9, 8], [5]))
        array([0, 9, 0, 8, 0], dtype=int32)
    """
    places = convert_to_tensor(indices, None, None, dtypes.int32)
    sizes = as_shape(shape, name or "ScatterNd")
    return apply(ScatterNd(), places, convert_to_tensor(updates), sizes, name=name)
