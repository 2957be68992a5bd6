"""Ops of lists of tensors: arrays whose values may be replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.control.arrays.array_ops import ReadOrZeros, array_spec
from flowscope.control.lists import element_spec
from flowscope.control.tensor_array_value import Items
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.array.arrays import shape
from flowscope.ops.core.build import apply


def _check_index(index: Spec) -> None:
    if not index.dtype.is_integer or index.shape not in (None, ()):
        raise DTypeError(f"expected an integer scalar as index, got {index}")


@frozen
class SetItem(Op, host_inputs=(1,), views=(0, 2)):
    """The array with a value at an index, in place of what is there.

    Raises: InvalidArgumentError if there is no such index and the array does not grow, or the
        value's shape is not that of the elements.
    """

    grows: bool = False

    def infer(self, array: Spec, index: Spec, value: Spec) -> Spec:
        _check_index(index)
        element = element_spec(array)
        if value.dtype is not element.dtype:
            raise DTypeError(f"expected a value of {element.dtype}, the array's, got {value.dtype}")
        if not compatible(value.shape, element.shape):
            raise InvalidArgumentError(
                f"expected elements of shape {text(element.shape)}, got {text(value.shape)}"
            )
        return array_spec(element)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor, value: Tensor) -> Any:
        before = apply(DropItem(), g, index)
        return before, None, apply(ReadOrZeros(value.dtype), g, index, shape(value))

    def kernel(self, xp: ArrayModule, array: Items, index: Array, value: Array) -> Any:
        at = int(index)
        if at < 0 or (at >= array.size and not self.grows):
            raise InvalidArgumentError(
                f'array "{array.form.name}" of size {array.size}: expected an index from 0 below '
                f"the size, got {at}"
            )
        if not compatible(np.shape(value), array.dims):
            raise InvalidArgumentError(
                f'array "{array.form.name}": expected values of shape {text(array.dims)}, got '
                f"{text(np.shape(value))} at index {at}"
            )
        return array.put(at, value)


@frozen
class DropItem(Op, host_inputs=(1,), views=(0,)):
    """The array without what is at an index."""

    def infer(self, array: Spec, index: Spec) -> Spec:
        _check_index(index)
        return array_spec(element_spec(array))

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor) -> Any:
        return apply(DropItem(), g, index), None

    def kernel(self, xp: ArrayModule, array: Items, index: Array) -> Any:
        return array.drop(int(index))


__all__ = ["DropItem", "SetItem"]
