"""The ops of tensor arrays: each takes and returns values, so gradients of any order lead through.

The cotangent of an array is an array in which what is not there counts as zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from flowscope.control.items import Items
from flowscope.control.lists import element_spec
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.dtypes import DType, int32, int64, variant
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.shapes import Dims, compatible, text
from flowscope.ops.arrays import shape
from flowscope.ops.build import apply


def array_spec(element: Spec) -> Spec:
    """Returns the Spec of an array of elements of this Spec."""
    return Spec(variant, (), variable=Spec(element.dtype, element.shape))


def _index(spec: Spec) -> None:
    if not spec.dtype.is_integer or spec.shape not in (None, ()):
        raise DTypeError(f"expected an integer scalar as index, got {spec}")


def _fits(array: Spec, value: Spec, dims: Dims) -> Spec:
    element = element_spec(array)
    if value.dtype is not element.dtype:
        raise DTypeError(f"expected a value of {element.dtype}, the array's, got {value.dtype}")
    if not compatible(dims, element.shape):
        raise InvalidArgumentError(
            f"expected elements of shape {text(element.shape)}, got {text(dims)}"
        )
    return array_spec(Spec(element.dtype, dims if element.shape is None else element.shape))


def _tail(dims: Dims) -> Dims:
    if dims is None:
        return None
    if not dims:
        raise InvalidArgumentError("expected a tensor of rank 1 at least, got a scalar")
    return dims[1:]


@dataclass(frozen=True)
class NewArray(Op):
    """A tensor array without values, of a size."""

    dtype: DType
    element_shape: Dims
    can_grow: bool

    def infer(self, size: Spec) -> Spec:
        _index(size)
        return array_spec(Spec(self.dtype, self.element_shape))

    is_differentiable: ClassVar[bool] = False

    def kernel(self, xp: ArrayModule, size: Array) -> Any:
        if int(size) < 0:
            raise InvalidArgumentError(f"expected a size of 0 or more, got {int(size)}")
        return Items(int(size), self.can_grow)


@dataclass(frozen=True)
class EmptyArray(Op):
    """What stands for zeros of an array: one of the same size without values."""

    is_differentiable: ClassVar[bool] = False

    def infer(self, array: Spec) -> Spec:
        return array_spec(element_spec(array))

    def kernel(self, xp: ArrayModule, array: Items) -> Any:
        return array.zeros()


@dataclass(frozen=True)
class WriteArray(Op):
    """The array with a value at an index; an error where there is one, unless it is to be added."""

    adds: bool
    views: ClassVar[Any] = (0, 2)

    def infer(self, array: Spec, index: Spec, value: Spec) -> Spec:
        _index(index)
        return _fits(array, value, value.shape)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor, value: Tensor) -> Any:
        return g, None, apply(ReadOrZeros(value.dtype), g, index, shape(value))

    def kernel(self, xp: ArrayModule, array: Items, index: Array, value: Array) -> Any:
        return _written(array, int(index), value, self.adds)


def _written(array: Items, at: int, value: Array, adds: bool) -> Items:
    if adds:
        return array.add(at, value)
    if array.get(at) is not None:
        raise InvalidArgumentError(f"index {at} was written before: each may be written once")
    return array.put(at, value)


def _read(array: Items, at: int) -> Array:
    found = array.get(at)
    if found is None:
        raise InvalidArgumentError(
            f"index {at} has no value: {len(array.indices())} of {array.size} are written"
        )
    return found


@dataclass(frozen=True)
class ReadArray(Op):
    """The value at an index; an error where there is none."""

    views: ClassVar[Any] = (0,)

    def infer(self, array: Spec, index: Spec) -> Spec:
        _index(index)
        element = element_spec(array)
        return Spec(element.dtype, element.shape)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor) -> Any:
        return apply(WriteArray(True), apply(EmptyArray(), array), index, g), None

    def kernel(self, xp: ArrayModule, array: Items, index: Array) -> Array:
        return _read(array, int(index))


@dataclass(frozen=True)
class ReadOrZeros(Op):
    """The value at an index, or zeros of the shape that comes third."""

    dtype: DType
    views: ClassVar[Any] = (0,)

    def infer(self, array: Spec, index: Spec, dims: Spec) -> Spec:
        return Spec(self.dtype, dims.shape_value())

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor, dims: Tensor) -> Any:
        return apply(WriteArray(True), apply(EmptyArray(), array), index, g), None, None

    def kernel(self, xp: ArrayModule, array: Items, index: Array, dims: Array) -> Array:
        found = array.get(int(index))
        return _zeros(xp, dims, self.dtype) if found is None else found


def _zeros(xp: ArrayModule, dims: Any, dtype: DType) -> Any:
    return xp.zeros(tuple(int(d) for d in dims), dtype.np_dtype)[()]


@dataclass(frozen=True)
class GatherArray(Op):
    """The values at several indices, one behind the other along a new first axis.

    Raises: InvalidArgumentError if one is not there, or the shapes differ.
    """

    element_shape: Dims

    def infer(self, array: Spec, indices: Spec) -> Spec:
        element = element_spec(array)
        known = element.shape if self.element_shape is None else self.element_shape
        count = None if indices.shape is None else indices.shape[0]
        return Spec(element.dtype, None if known is None else (count, *known))

    def grad(self, g: Tensor, y: Tensor, array: Tensor, indices: Tensor) -> Any:
        return apply(ScatterArray(True), apply(EmptyArray(), array), indices, g), None

    def kernel(self, xp: ArrayModule, array: Items, indices: Array) -> Array:
        values = [_read(array, int(i)) for i in indices]
        if not values:
            raise InvalidArgumentError("expected one value at least to stack, got none")
        if any(v.shape != values[0].shape for v in values):
            shapes = ", ".join(text(v.shape) for v in values[:6])
            raise InvalidArgumentError(f"expected values of one shape to stack, got {shapes}")
        return xp.stack([xp.asarray(v) for v in values])


@dataclass(frozen=True)
class GatherOrZeros(Op):
    """The values at several indices, zeros of the shape that comes third for those not there."""

    dtype: DType

    def infer(self, array: Spec, indices: Spec, dims: Spec) -> Spec:
        return Spec(self.dtype, dims.shape_value())

    def grad(self, g: Tensor, y: Tensor, array: Tensor, indices: Tensor, dims: Tensor) -> Any:
        return apply(ScatterArray(True), apply(EmptyArray(), array), indices, g), None, None

    def kernel(self, xp: ArrayModule, array: Items, indices: Array, dims: Array) -> Array:
        out = xp.zeros(tuple(int(d) for d in dims), self.dtype.np_dtype)
        for k, i in enumerate(indices):
            found = array.get(int(i))
            if found is not None:
                out[k] = found
        return out


@dataclass(frozen=True)
class ScatterArray(Op):
    """The array with the parts of a tensor along its first axis at several indices."""

    adds: bool
    views: ClassVar[Any] = (0, 2)

    def infer(self, array: Spec, indices: Spec, value: Spec) -> Spec:
        return _fits(array, value, _tail(value.shape))

    def grad(self, g: Tensor, y: Tensor, array: Tensor, indices: Tensor, value: Tensor) -> Any:
        return g, None, apply(GatherOrZeros(value.dtype), g, indices, shape(value))

    def kernel(self, xp: ArrayModule, array: Items, indices: Array, value: Array) -> Any:
        if len(indices) != len(value):
            raise InvalidArgumentError(
                f"expected as many indices as values, got {len(indices)} for {len(value)}"
            )
        for k, i in enumerate(indices):
            array = _written(array, int(i), value[k], self.adds)
        return array


@dataclass(frozen=True)
class ConcatArray(Op):
    """All values one behind the other along their first axis, and how long each is."""

    def infer(self, array: Spec) -> Any:
        element = element_spec(array)
        known = None if element.shape is None else (None, *(_tail(element.shape) or ()))
        return Spec(element.dtype, known), Spec(int64, (None,))

    def grad(self, g: Any, y: Any, array: Tensor) -> Any:
        if g[0] is None:
            return (None,)
        return (apply(SplitArray(True), apply(EmptyArray(), array), g[0], y[1]),)

    def kernel(self, xp: ArrayModule, array: Items) -> Any:
        values = [_read(array, i) for i in range(array.size)]
        if not values:
            raise InvalidArgumentError("expected one value at least to concatenate, got none")
        return xp.concatenate(values), xp.asarray([len(v) for v in values], np.int64)


@dataclass(frozen=True)
class SplitArray(Op):
    """The array with parts of a tensor, of given lengths along its first axis, from index 0 on."""

    adds: bool
    views: ClassVar[Any] = (0, 1)

    def infer(self, array: Spec, value: Spec, lengths: Spec) -> Spec:
        tail = _tail(value.shape)
        return _fits(array, value, None if tail is None else (None, *tail))

    def grad(self, g: Tensor, y: Tensor, array: Tensor, value: Tensor, lengths: Tensor) -> Any:
        return g, apply(UnsplitArray(value.dtype), g, lengths, shape(value)), None

    def kernel(self, xp: ArrayModule, array: Items, value: Array, lengths: Array) -> Any:
        if int(sum(lengths)) != len(value):
            raise InvalidArgumentError(
                f"expected lengths with the sum {len(value)}, got {int(sum(lengths))}"
            )
        at = 0
        for i, n in enumerate(lengths):
            array = _written(array, i, value[at : at + int(n)], self.adds)
            at += int(n)
        return array


@dataclass(frozen=True)
class UnsplitArray(Op):
    """What `SplitArray` split, zeros where the array has no value: its gradient."""

    dtype: DType

    def infer(self, array: Spec, lengths: Spec, dims: Spec) -> Spec:
        return Spec(self.dtype, dims.shape_value())

    def grad(self, g: Tensor, y: Tensor, array: Tensor, lengths: Tensor, dims: Tensor) -> Any:
        return apply(SplitArray(True), apply(EmptyArray(), array), g, lengths), None, None

    def kernel(self, xp: ArrayModule, array: Items, lengths: Array, dims: Array) -> Array:
        out = xp.zeros(tuple(int(d) for d in dims), self.dtype.np_dtype)
        at = 0
        for i, n in enumerate(lengths):
            found = array.get(i)
            if found is not None:
                out[at : at + int(n)] = found
            at += int(n)
        return out


@dataclass(frozen=True)
class SizeOfArray(Op):
    """The number of indices of an array."""

    is_differentiable: ClassVar[bool] = False

    def infer(self, array: Spec) -> Spec:
        element_spec(array)
        return Spec(int32, ())

    def kernel(self, xp: ArrayModule, array: Items) -> Array:
        return xp.asarray(array.size, np.int32)[()]
