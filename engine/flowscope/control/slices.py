"""Gradients that are slices, where they leave bodies.

A body returns tensors, so it returns the values and the indices of slices: a branch as two results,
a function as two results, a loop as two lists of what each iteration adds. The slices that come out
have the shape of what was captured. So the gradient of a lookup in a body costs what is looked up,
however large the table is.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.control.blocks import Function
from flowscope.control.lists import element_spec, elements, list_spec, listed
from flowscope.control.specs import value_spec
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, int64, resource
from flowscope.graph.values.shapes import Dims
from flowscope.ops.array.arrays import shape, zeros
from flowscope.ops.array.joining import concat
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast


@frozen
class ConcatOfList(Op, host_inputs=(1,)):
    """The elements of a list along their first axis, the oldest first.

    Shapes: list of [?, ...], tail [n] (what follows the first axis: for a list without elements)
        -> [?, ...]
    """

    dtype: DType

    def infer(self, values: Spec, tail: Spec) -> Spec:
        dims = element_spec(values).shape
        known: Dims = None if dims is None else dims[1:]
        sizes = tail.shape_value()
        rest = known if sizes is None else sizes
        return Spec(self.dtype, None if rest is None else (None, *rest))

    def grad(self, g: Tensor, y: Tensor, values: Tensor, tail: Tensor) -> Any:
        return apply(SplitToList(), g, values, tail), None

    def kernel(self, xp: ArrayModule, values: Any, tail: Array) -> Array:
        found = elements(values)
        if not found:
            return xp.zeros((0, *[int(n) for n in tail]), self.dtype.np_dtype)
        return xp.concatenate(found[::-1])


@frozen
class SplitToList(Op):
    """A list like the one that comes second, of the parts of a tensor along its first axis."""

    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec, like: Spec, tail: Spec) -> Spec:
        return list_spec(element_spec(like))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, like: Tensor, tail: Tensor) -> Any:
        return apply(ConcatOfList(x.dtype), g, tail), None, None

    def kernel(self, xp: ArrayModule, x: Array, like: Any, tail: Array) -> Any:
        parts, at = [], len(x)
        for one in elements(like):
            parts.append(x[at - len(one) : at])
            at -= len(one)
        return listed(parts)


def from_lists(values: Tensor, indices: Tensor, whole: Tensor) -> IndexedSlices:
    """Returns slices of a tensor, from lists of the parts that the iterations of a loop add.

    Args:
        values, indices: The lists.
        whole: The tensor, or the handle of the variable.
    """
    dense_shape = value_shape(whole)
    return IndexedSlices(
        apply(ConcatOfList(element_spec(values.spec).dtype), values, dense_shape[1:]),
        apply(ConcatOfList(element_spec(indices.spec).dtype), indices, dense_shape[:0]),
        dense_shape,
    )


def value_shape(tensor: Tensor) -> Tensor:
    """Returns the shape of a tensor's value as a vector; of a handle: of its variable's value."""
    from flowscope.graph.constant import constant
    from flowscope.ops.state.variable_ops import ReadVariableOp

    spec = value_spec(tensor.spec)
    if spec.is_static:
        return constant(list(spec.shape or ()), "int32")
    if tensor.spec.dtype is resource:
        tensor = tensor.graph.add(ReadVariableOp(), (tensor,), "read").outputs[0]
    return shape(tensor)


def parts_of(body: Function, slices: IndexedSlices) -> list[Tensor]:
    """Returns the values and indices of slices as tensors of a body."""
    return [body.own(slices.values), body.own(slices.indices)]


def no_parts(whole: Tensor, indices: DType) -> list[Tensor]:
    """Returns the values and indices of no slices of a tensor, in the block that is built."""
    spec = value_spec(whole.spec)
    if spec.shape is not None and None not in spec.shape[1:]:
        values = zeros((0, *spec.shape[1:]), spec.dtype)
    else:
        values = zeros(concat([[0], value_shape(whole)[1:]], 0), spec.dtype)
    return [values, zeros((0,), indices)]


def with_indices(slices: IndexedSlices, dtype: DType) -> IndexedSlices:
    """Returns slices with indices of a dtype."""
    if slices.indices.dtype is dtype:
        return slices
    return IndexedSlices(slices.values, cast(slices.indices, dtype), slices.dense_shape)


def common_dtype(found: list[IndexedSlices]) -> DType:
    """Returns the dtype of the indices of several slices, int64 where they differ."""
    dtypes = {s.indices.dtype for s in found}
    return dtypes.pop() if len(dtypes) == 1 else int64


__all__ = [
    "ConcatOfList",
    "SplitToList",
    "common_dtype",
    "from_lists",
    "no_parts",
    "parts_of",
    "value_shape",
    "with_indices",
]
