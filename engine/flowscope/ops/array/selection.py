"""Choosing elements by conditions: where, and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import broadcast, compatible, merge_dims, text
from flowscope.graph.values.string_values import boxed
from flowscope.graph.values.work import per_element
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import expand_dims, reshape, squeeze
from flowscope.ops.core import builder
from flowscope.ops.core.axes import as_axes, positive_axis
from flowscope.ops.core.broadcasting import unbroadcast
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.select import choose
from flowscope.ops.math.elementwise import less
from flowscope.ops.math.reductions import reduce_max, reduce_prod

__all__ = [
    "boolean_mask",
    "select",
    "sequence_mask",
    "where",
    "where_v2",
]

#: From so many elements on, `choose` does without branches.
_SMALL = 1 << 12


class Select(Op, views=(1, 2), grad_reads=("condition",), keeps_finite=True, native="select"):
    """x where the condition is true, y elsewhere.

    Shapes: condition as x, or [], or [n] for an x of [n, ...]; x s, y s -> s
    """

    def infer(self, condition: Spec, x: Spec, y: Spec) -> Spec:
        check_kind(condition.dtype, "b", "a bool condition")
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
        if condition.ndim == 0 and xp is np:
            return x if condition else y
        if x.shape != y.shape:
            raise expected("both of one shape", x.shape, y.shape)
        if condition.shape != x.shape:
            if condition.ndim:
                self._check(condition.shape, x.shape)
                condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
            return xp.where(condition, x, y)
        return choose(xp, condition, x, y)


class Where(Op, is_differentiable=False, work=per_element(10e-9), keeps_finite=True):
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

    Example:
        >>> fs.Session().run(fs.where([True, False], [1, 2], [3, 4]))
        array([1, 4], dtype=int32)
    """
    if x is None and y is None:
        return apply(_WHERE, convert_to_tensor(condition), name=name)
    if x is None or y is None:
        raise expected("both x and y, or neither", "one")
    condition = convert_to_tensor(
        condition, dtypes.bool_ if not isinstance(condition, Tensor) else None
    )
    return apply(_SELECT, condition, *_alike(x, y), name=name)


def _alike(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Returns both as tensors; a Python value takes the other's dtype."""
    if isinstance(y, Tensor | Convertible) and not isinstance(x, Tensor | Convertible):
        y = convert_to_tensor(y)
        return convert_to_tensor(x, y.dtype), y
    x = convert_to_tensor(x)
    return x, convert_to_tensor(y, None if isinstance(y, Tensor | Convertible) else x.dtype)


select = where


class SelectBroadcast(Op, grad_reads=("condition",), native="select"):
    """x where the condition is true, y elsewhere; all three are broadcast together."""

    def infer(self, condition: Spec, x: Spec, y: Spec) -> Spec:
        check_kind(condition.dtype, "b", "a bool condition")
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
    return apply(_SELECT_BROADCAST, condition, *_alike(x, y), name=name or "SelectV2")


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """Returns the elements (or rows) of `tensor` where `mask` is true.

    Args:
        tensor: A tensor.
        mask: Bools of known rank, at least 1; their shape is that of tensor's axes from `axis` on.
        name: Name scope of the operations.
        axis: First of the masked axes, 0 by default.

    Example:
        >>> fs.Session().run(fs.boolean_mask([1, 2, 3], [True, False, True]))
        array([1, 3], dtype=int32)
    """
    x, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    check_kind(mask.dtype, "b", "a bool mask")
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

    Example:
        >>> fs.Session().run(fs.sequence_mask([1, 3], 3))
        array([[ True, False, False],
               [ True,  True,  True]])
    """
    if maxlen is None:
        maxlen = reduce_max(lengths)
    places = builder.range(convert_to_tensor(maxlen, lengths.dtype), dtype=lengths.dtype)
    return cast(less(places, expand_dims(lengths, -1)), dtype)
