"""Choosing elements by conditions: where, clip, masks, one-hot, identity matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph import dtypes
from flowscope.graph.constant import Convertible, convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.dtypes import DType, as_dtype
from flowscope.graph.expected import expected, expected_dtype
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import broadcast, compatible, merge_dims, text
from flowscope.graph.string_values import boxed
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import expand_dims, reshape, shape_of, squeeze
from flowscope.ops.core import builder
from flowscope.ops.core.axes import as_axes, positive_axis
from flowscope.ops.core.broadcasting import broadcast_to, unbroadcast
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_same
from flowscope.ops.kernels.select import choose
from flowscope.ops.math.elementwise import greater, greater_equal, less, less_equal, logical_and
from flowscope.ops.math.reductions import reduce_max, reduce_prod

__all__ = [
    "boolean_mask",
    "eye",
    "one_hot",
    "select",
    "sequence_mask",
    "where",
    "where_v2",
]

#: Up to so many elements comparing is the quickest way to one-hot vectors.
_SMALL = 1 << 12


class Select(Op, views=(1, 2), grad_reads=("condition",)):
    """x where the condition is true, y elsewhere.

    Shapes: condition as x, or [], or [n] for an x of [n, ...]; x s, y s -> s
    """

    def infer(self, condition: Spec, x: Spec, y: Spec) -> Spec:
        if condition.dtype is not dtypes.bool_:
            raise expected_dtype("a bool condition", condition.dtype)
        if x.dtype is not y.dtype:
            check_same(x, y)
        if not compatible(x.shape, y.shape):
            raise expected("both of one shape", x.shape, y.shape)
        dims = merge_dims(x.shape, y.shape)
        if condition.shape != ():
            self._check(condition.shape, dims)
        return Spec(x.dtype, dims)

    def _check(self, condition: Any, dims: Any) -> None:
        rows = None if dims is None else dims[:1]
        is_rows = condition is not None and len(condition) == 1 and compatible(condition, rows)
        if not is_rows and not compatible(condition, dims):
            raise expected(f"a condition of shape {text(dims)}, its first axis or []", condition)

    def grad(self, g: Tensor, y: Tensor, condition: Tensor, a: Tensor, b: Tensor) -> Any:
        zero = builder.zeros_like(g)
        return None, apply(_SELECT, condition, g, zero), apply(_SELECT, condition, zero, g)

    def kernel(self, xp: ArrayModule, condition: Array, x: Array, y: Array) -> Array:
        if condition.ndim == 0:
            return x if condition else y
        if x.shape != y.shape:
            raise expected("both of one shape", x.shape, y.shape)
        if condition.shape != x.shape:
            self._check(condition.shape, x.shape)
            condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
            return xp.where(condition, x, y)
        return choose(xp, condition, x, y)


class Where(Op, is_differentiable=False):
    """The positions of the elements that are true (or not 0), row by row.

    Shapes: rank n -> [number of them, n]
    """

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiucb", "bools or numbers")
        return Spec(dtypes.int64, (None, x.rank))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if x.ndim == 0:
            return xp.zeros((int(bool(x)), 0), xp.int64)
        return xp.ascontiguousarray(xp.argwhere(x)).astype(xp.int64)


class ClipByValue(
    Op, template="xp.minimum(xp.maximum({0}, {1}), {2})", grad_reads=("x", "low", "high")
):
    """The input cut to a range.

    Shapes: x s, low and high broadcast to s -> s
    """

    def infer(self, x: Spec, low: Spec, high: Spec) -> Spec:
        check_same(x, low)
        check_same(x, high)
        check_kind(x.dtype, "fiu")
        for s in (low, high):
            whole = broadcast(x.shape, s.shape)
            if not compatible(whole, x.shape):
                raise expected(f"limits that fit {text(x.shape)}", s.shape)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, low: Tensor, high: Tensor) -> Any:
        zero = builder.zeros_like(g)
        return (
            where(logical_and(greater_equal(x, low), less_equal(x, high)), g, zero),
            unbroadcast(where(less(x, low), g, zero), low, x),
            unbroadcast(where(greater(x, high), g, zero), high, x),
        )

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Array:
        return xp.minimum(xp.maximum(x, low), high)


@frozen
class OneHot(Op, is_differentiable=False, memory_order="C"):
    """`on` at the position that each index names along a new axis of length `depth`, else `off`.

    Shapes: indices s, depth [], on [], off [] -> s with `depth` at the new axis
    """

    axis: int = -1

    def infer(self, indices: Spec, depth: Spec, on: Spec, off: Spec) -> Spec:
        for s, what in ((indices, "indices"), (depth, "depth")):
            if s.dtype.kind not in "iu":
                raise expected_dtype(f"integer {what}", s.dtype)
        check_same(on, off)
        for s in (depth, on, off):
            check_rank(s, 0, "scalars behind the indices")
        if depth.constant is not None and np.asarray(depth.constant) < 0:
            raise expected("a depth from 0 on", depth.constant)
        if indices.shape is None:
            return Spec(on.dtype, None)
        axis = positive_axis(self.axis, len(indices.shape) + 1)
        n = depth.shape_value() or (None,)
        return Spec(on.dtype, (*indices.shape[:axis], *n, *indices.shape[axis:]))

    def kernel(self, xp: ArrayModule, indices: Array, depth: Array, on: Array, off: Array) -> Array:
        if depth < 0:
            raise expected("a depth from 0 on", depth)
        axis = positive_axis(self.axis, indices.ndim + 1)
        on, off = boxed(on), boxed(off)
        if indices.size * int(depth) < _SMALL:
            places = xp.arange(int(depth)).reshape((-1,) + (1,) * (indices.ndim - axis))
            return xp.where(xp.expand_dims(indices, axis) == places, on, off)
        out = xp.empty((*indices.shape[:axis], int(depth), *indices.shape[axis:]), on.dtype)
        out[...] = off
        is_inside = (indices >= 0) & (indices < depth)
        values = xp.where(is_inside, on, off)  # what is outside writes an `off` at 0
        places = xp.where(is_inside, indices, 0).astype(xp.int64)
        xp.put_along_axis(out, xp.expand_dims(places, axis), xp.expand_dims(values, axis), axis)
        return out


_SELECT, _WHERE = Select(), Where()


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Returns x where the condition is true and y elsewhere; without both, the true positions.

    Args:
        condition: Bools of x's shape, or of its first axis alone (which chooses rows), or one bool.
        x: A tensor.
        y: A tensor of the same dtype and shape.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if only one of x and y is given.
    """
    if x is None and y is None:
        return apply(_WHERE, convert_to_tensor(condition), name=name)
    if x is None or y is None:
        raise expected("both x and y, or neither", "one")
    condition = convert_to_tensor(
        condition, dtypes.bool_ if not isinstance(condition, Tensor) else None
    )
    if isinstance(y, Tensor | Convertible) and not isinstance(x, Tensor | Convertible):
        y = convert_to_tensor(y)
        x = convert_to_tensor(x, y.dtype)
    x = convert_to_tensor(x)
    y = convert_to_tensor(y, None if isinstance(y, Tensor | Convertible) else x.dtype)
    return apply(_SELECT, condition, x, y, name=name)


select = where


class SelectBroadcast(Op, grad_reads=("condition",)):
    """x where the condition is true, y elsewhere; all three are broadcast together."""

    def infer(self, condition: Spec, x: Spec, y: Spec) -> Spec:
        if condition.dtype is not dtypes.bool_:
            raise expected_dtype("a bool condition", condition.dtype)
        check_same(x, y)
        return Spec(x.dtype, broadcast(condition.shape, broadcast(x.shape, y.shape)))

    def grad(self, g: Tensor, y: Tensor, condition: Tensor, a: Tensor, b: Tensor) -> Any:
        zero = builder.zeros_like(g)
        first = apply(_SELECT_BROADCAST, condition, g, zero)
        second = apply(_SELECT_BROADCAST, condition, zero, g)
        return None, unbroadcast(first, a, y), unbroadcast(second, b, y)

    def kernel(self, xp: ArrayModule, condition: Array, x: Array, y: Array) -> Array:
        x, y = boxed(x), boxed(y)
        try:
            if xp is np and max(condition.size, x.size, y.size) >= _SMALL:
                # Whole arrays let `choose` do without branches, which pays for the copies.
                whole = np.broadcast_shapes(condition.shape, x.shape, y.shape)
                given = [np.broadcast_to(v, whole) for v in (condition, x, y)]
                return choose(xp, *[np.ascontiguousarray(v) for v in given])
            return choose(xp, condition, x, y)[()]
        except ValueError:
            shapes = ", ".join(text(v.shape) for v in (condition, x, y))
            raise expected("shapes that can be broadcast together", shapes) from None


_SELECT_BROADCAST = SelectBroadcast()


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Returns x where the condition is true and y elsewhere; as `where`, but all are broadcast."""
    if x is None or y is None:
        return where(condition, x, y, name)
    condition = convert_to_tensor(condition)
    if isinstance(y, Tensor | Convertible) and not isinstance(x, Tensor | Convertible):
        y = convert_to_tensor(y)
        x = convert_to_tensor(x, y.dtype)
    x = convert_to_tensor(x)
    y = convert_to_tensor(y, None if isinstance(y, Tensor | Convertible) else x.dtype)
    return apply(_SELECT_BROADCAST, condition, x, y, name=name or "SelectV2")


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns vectors that are `on_value` at one position and `off_value` elsewhere.

    Args:
        indices: The positions; one out of range gives a vector that is `off_value` everywhere.
        depth: Length of the vectors.
        on_value: 1 by default.
        off_value: 0 by default.
        axis: Where the new axis stands in the result; last by default.
        dtype: Element type; that of the values, else float32.
        name: Name of the operation.
    """
    if dtype is None:
        given = [convert_to_tensor(v).dtype for v in (on_value, off_value) if v is not None]
        dtype = given[0] if given else dtypes.float32
    dtype = as_dtype(dtype)
    on = convert_to_tensor(_default(on_value, True, dtype), dtype, "one_hot/on_value")
    off = convert_to_tensor(_default(off_value, False, dtype), dtype, "one_hot/off_value")
    length = convert_to_tensor(depth, None, "one_hot/depth", dtypes.int32)
    op = OneHot(-1 if axis is None else axis)
    return apply(op, convert_to_tensor(indices), length, on, off, name=name or "one_hot")


def _default(value: Any, default: bool, dtype: DType) -> Any:
    if value is not None:
        return value
    return default if dtype.is_bool else int(default)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Returns an identity matrix, or a batch of them.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns; as many as rows by default.
        batch_shape: Shape of the batch in front.
        dtype: Element type.
        name: Name of the operation.
    """
    from flowscope.graph.constant import constant

    rows = get_static_value(num_rows)
    columns = rows if num_columns is None else get_static_value(num_columns)
    dtype, name = as_dtype(dtype), name or "eye"
    if rows is None or columns is None:
        width = num_rows if num_columns is None else num_columns
        if batch_shape is None:
            return _eye_later(num_rows, width, dtype, name)
        with get_default_graph().name_scope(name):
            square = _eye_later(num_rows, width, dtype, "eye")
            return broadcast_to(square, concat([batch_shape, shape_of(square)], 0))
    matrix = np.eye(int(rows), int(columns), dtype=dtype.np_dtype)
    if batch_shape is None:
        return constant(matrix, dtype, name=name)
    with get_default_graph().name_scope(name):
        sizes = convert_to_tensor(batch_shape, None, "batch_shape", dtypes.int32)
        whole = concat([sizes, convert_to_tensor(matrix.shape, sizes.dtype)], 0)
        return broadcast_to(constant(matrix, dtype, name="matrix"), whole)


def _eye_later(rows: Any, columns: Any, dtype: Any, name: str) -> Tensor:
    """Returns an identity matrix whose size is known only when the step runs."""
    return one_hot(builder.range(convert_to_tensor(rows)), columns, dtype=dtype, name=name)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """Returns the elements (or rows) of `tensor` where `mask` is true.

    Args:
        tensor: A tensor.
        mask: Bools of known rank, at least 1; their shape is that of tensor's axes from `axis` on.
        name: Name scope of the operations.
        axis: First of the masked axes, 0 by default.
    """
    x, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    if mask.dtype is not dtypes.bool_:
        raise expected_dtype("a bool mask", mask.dtype)
    rank = mask.spec.rank
    if not rank:
        raise expected("a mask of known rank, 1 at least", mask.spec)
    first = (as_axes(axis) or (0,))[0]
    if x.spec.shape is not None:
        first = positive_axis(first, len(x.spec.shape))
        masked = x.spec.shape[first : first + rank]
        if not compatible(masked, mask.spec.shape):
            raise expected(f"a mask of shape {text(masked)}", mask.spec.shape)
    with x.graph.name_scope(name or "boolean_mask"):
        if rank > 1:
            sizes = builder.shape(x)
            inner = reduce_prod(sizes[first : first + rank], keepdims=True)
            x = reshape(x, concat([sizes[:first], inner, sizes[first + rank :]], 0))
        places = squeeze(where(reshape(mask, [-1])), axis=[1])
        return gather(x, places, axis=first)


@op_function("lengths", scope="SequenceMask")
def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None
) -> Tensor:
    """Returns bools that are true at the first `lengths[i]` positions of row i.

    Args:
        lengths: Integers.
        maxlen: Length of the rows; the largest of `lengths` by default.
        dtype: Element type of the result.
    """
    if maxlen is None:
        maxlen = reduce_max(lengths)
    places = builder.range(convert_to_tensor(maxlen, lengths.dtype), dtype=lengths.dtype)
    return cast(less(places, expand_dims(lengths, -1)), dtype)
