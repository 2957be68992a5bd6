"""The ops of tensor arrays: each takes and returns values, so gradients of any order lead through.

The cotangent of an array is an array in which what is not there counts as zeros, and in which what
is written to one index adds up.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from flowscope.control.lists import element_spec
from flowscope.control.tensor_array_value import Form, Items
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, int32, int64, variant
from flowscope.graph.values.shapes import Dims, compatible, is_known, text
from flowscope.graph.values.string_values import zeros
from flowscope.ops.array.arrays import shape
from flowscope.ops.core.build import apply


def array_spec(element: Spec) -> Spec:
    """Returns the Spec of an array of elements of this Spec."""
    return Spec(variant, (), variable=Spec(element.dtype, element.shape))


def _index(spec: Spec) -> None:
    if not spec.dtype.is_integer or spec.shape not in (None, ()):
        raise DTypeError(f"expected an integer scalar as index, got {spec}")


def _fits(array: Spec, value: Spec, dims: Dims, is_uniform: bool) -> Spec:
    element = element_spec(array)
    if value.dtype is not element.dtype:
        raise DTypeError(f"expected a value of {element.dtype}, the array's, got {value.dtype}")
    if not compatible(dims, element.shape):
        raise InvalidArgumentError(
            f"expected elements of shape {text(element.shape)}, got {text(dims)}"
        )
    if element.shape is None and is_uniform:
        return array_spec(Spec(element.dtype, dims))
    return array_spec(element)


def _tail(dims: Dims) -> Dims:
    if dims is None:
        return None
    if not dims:
        raise InvalidArgumentError("expected a tensor of rank 1 at least, got a scalar")
    return dims[1:]


class _Cleared(Op, abstract=True):
    """Base of ops on arrays whose values may be read once: these are not to be merged or folded."""

    #: Whether a value is gone once it was read.
    clear_after_read: bool

    @property
    def is_stateful(self) -> bool:  # type: ignore[override]
        """Whether it must run as often as it was written down."""
        return self.clear_after_read

    @property
    def has_effect(self) -> bool:
        """False: it need not run where nothing uses its output."""
        return False


@frozen
class NewArray(_Cleared, host_inputs=(0,)):
    """A tensor array without values, of a size."""

    dtype: DType
    element_shape: Dims
    dynamic_size: bool
    infer_shape: bool = True
    clear_after_read: bool = False
    tensor_array_name: str = ""
    is_differentiable: ClassVar[bool] = False

    def infer(self, size: Spec) -> Spec:
        _index(size)
        return array_spec(Spec(self.dtype, self.element_shape))

    def kernel(self, xp: ArrayModule, size: Array) -> Any:
        if int(size) < 0:
            raise InvalidArgumentError(f"expected a size of 0 or more, got {int(size)}")
        form = Form(
            self.tensor_array_name,
            self.dtype.np_dtype,
            self.element_shape,
            self.dynamic_size,
            self.infer_shape,
            self.clear_after_read,
        )
        return Items.empty(int(size), form)


@frozen
class EmptyArray(Op):
    """What stands for zeros of an array: one of the same size without values."""

    is_differentiable: ClassVar[bool] = False

    def infer(self, array: Spec) -> Spec:
        return array_spec(element_spec(array))

    def kernel(self, xp: ArrayModule, array: Items) -> Any:
        return array.zeros()


@frozen
class WriteArray(Op, host_inputs=(1,)):
    """The array with a value at an index; an error where there is one, unless it is to be added."""

    adds: bool
    is_uniform: bool = True
    views: ClassVar[Any] = (0, 2)

    def infer(self, array: Spec, index: Spec, value: Spec) -> Spec:
        _index(index)
        return _fits(array, value, value.shape, self.is_uniform)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor, value: Tensor) -> Any:
        return g, None, apply(ReadOrZeros(value.dtype), g, index, shape(value))

    def kernel(self, xp: ArrayModule, array: Items, index: Array, value: Array) -> Any:
        return _written(array, int(index), value, self.adds)


def _written(array: Items, at: int, value: Array, adds: bool) -> Items:
    return array.add(at, value) if adds else array.write(at, value)


@frozen
class ReadArray(_Cleared, host_inputs=(1,)):
    """The value at an index; zeros where none was written and their shape is known.

    Raises: InvalidArgumentError if there is no such index, or nothing that can be read there.
    """

    clear_after_read: bool = False
    views: ClassVar[Any] = (0,)

    def infer(self, array: Spec, index: Spec) -> Spec:
        _index(index)
        element = element_spec(array)
        return Spec(element.dtype, element.shape)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor) -> Any:
        return apply(WriteArray(True), apply(EmptyArray(), array), index, g), None

    def kernel(self, xp: ArrayModule, array: Items, index: Array) -> Array:
        return array.read(xp, int(index))


@frozen
class ReadOrZeros(Op, host_inputs=(1, 2)):
    """The value at an index, or zeros of the shape that comes third."""

    dtype: DType
    views: ClassVar[Any] = (0,)

    def infer(self, array: Spec, index: Spec, dims: Spec) -> Spec:
        return Spec(self.dtype, dims.shape_value())

    def grad(self, g: Tensor, y: Tensor, array: Tensor, index: Tensor, dims: Tensor) -> Any:
        return apply(WriteArray(True), apply(EmptyArray(), array), index, g), None, None

    def kernel(self, xp: ArrayModule, array: Items, index: Array, dims: Array) -> Array:
        found = array.get(int(index))
        return zeros(xp, dims.tolist(), self.dtype.np_dtype)[()] if found is None else found


@frozen
class ReadCotangent(Op, host_inputs=(2,)):
    """The value at an index of an array of cotangents, or zeros like the source's value there.

    Raises: InvalidArgumentError if there is neither, and the shape is not known.
    """

    dtype: DType
    views: ClassVar[Any] = (0,)

    def infer(self, array: Spec, source: Spec, index: Spec) -> Spec:
        _index(index)
        return Spec(self.dtype, element_spec(source).shape)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, source: Tensor, index: Tensor) -> Any:
        return apply(WriteArray(True), apply(EmptyArray(), array), index, g), None, None

    def kernel(self, xp: ArrayModule, array: Items, source: Items, index: Array) -> Array:
        found = array.get(int(index))
        return source.zeros_at(xp, int(index)) if found is None else found


@frozen
class GatherArray(_Cleared, host_inputs=(1,), keeps_finite=True):
    """The values at several indices, one behind the other along a new first axis.

    Values that were not written are zeros, if their shape is known.

    Raises: InvalidArgumentError if one cannot be read, the shapes differ, or there is none and the
        elements' shape is not known.
    """

    element_shape: Dims
    clear_after_read: bool = False

    def infer(self, array: Spec, indices: Spec) -> Spec:
        element = element_spec(array)
        if not indices.dtype.is_integer or indices.rank not in (None, 1):
            raise DTypeError(f"expected a vector of integers as indices, got {indices}")
        known = element.shape if self.element_shape is None else self.element_shape
        count = None if indices.shape is None else indices.shape[0]
        return Spec(element.dtype, None if known is None else (count, *known))

    def grad(self, g: Tensor, y: Tensor, array: Tensor, indices: Tensor) -> Any:
        return apply(ScatterArray(True), apply(EmptyArray(), array), indices, g), None

    def kernel(self, xp: ArrayModule, array: Items, indices: Array) -> Array:
        values = array.read_many(xp, indices.tolist())
        if not values:
            return zeros(xp, (0, *self._known(array)), array.form.dtype)
        shapes = dict.fromkeys(getattr(v, "shape", ()) for v in values)
        if len(shapes) > 1:
            got = ", ".join(text(dims) for dims in list(shapes)[:6])
            raise InvalidArgumentError(f"expected values of one shape to stack, got {got}")
        if xp is np:
            return np.array(values, array.form.dtype)
        return xp.stack([xp.asarray(v, array.form.dtype) for v in values])

    def _known(self, array: Items) -> Any:
        dims = self.element_shape if is_known(self.element_shape) else array.dims
        return _known(array, dims)


def _known(array: Items, dims: Dims) -> Any:
    """Returns the shape of elements of which there are none, but for what is known."""
    if not is_known(dims):
        raise InvalidArgumentError(
            f'there is no element of the array "{array.form.name}", and what is known of their '
            f"shape is {text(dims)}: say element_shape=... where it is made"
        )
    return dims


@frozen
class GatherCotangents(Op, host_inputs=(2,)):
    """What `ReadCotangent` gives for several indices, along a new first axis."""

    dtype: DType

    def infer(self, array: Spec, source: Spec, indices: Spec) -> Spec:
        return GatherArray(None).infer(source, indices)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, source: Tensor, indices: Tensor) -> Any:
        return apply(ScatterArray(True), apply(EmptyArray(), array), indices, g), None, None

    def kernel(self, xp: ArrayModule, array: Items, source: Items, indices: Array) -> Array:
        read = ReadCotangent(self.dtype)
        return xp.stack([read.kernel(xp, array, source, i) for i in indices])


@frozen
class GatherOrZeros(Op, host_inputs=(1, 2)):
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


@frozen
class ScatterArray(Op, host_inputs=(1,)):
    """The array with the parts of a tensor along its first axis at several indices."""

    adds: bool
    is_uniform: bool = True
    views: ClassVar[Any] = (0, 2)

    def infer(self, array: Spec, indices: Spec, value: Spec) -> Spec:
        if not indices.dtype.is_integer or indices.rank not in (None, 1):
            raise DTypeError(f"expected a vector of integers as indices, got {indices}")
        return _fits(array, value, _tail(value.shape), self.is_uniform)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, indices: Tensor, value: Tensor) -> Any:
        return g, None, apply(GatherOrZeros(value.dtype), g, indices, shape(value))

    def kernel(self, xp: ArrayModule, array: Items, indices: Array, value: Array) -> Any:
        if len(indices) != len(value):
            raise InvalidArgumentError(
                f"expected as many indices as values, got {len(indices)} for {len(value)}"
            )
        places, parts = indices.tolist(), [value[k] for k in range(len(value))]
        if not self.adds:
            return array.write_many(places, parts)
        for i, part in zip(places, parts, strict=True):
            array = array.add(i, part)
        return array


@frozen
class ConcatArray(_Cleared, host_outputs=(1,)):
    """All values one behind the other along their first axis, and how long each is.

    Values that were not written are zeros, if their shape is known.

    Raises: InvalidArgumentError if one cannot be read or is a scalar, or there is none and the
        elements' shape is not known.
    """

    element_shape: Dims
    clear_after_read: bool = False

    def infer(self, array: Spec) -> Any:
        element = element_spec(array)
        dims = element.shape if self.element_shape is None else self.element_shape
        tail = _tail(dims)
        known = None if tail is None else (None, *tail)
        return Spec(element.dtype, known), Spec(int64, (None,))

    def grad(self, g: Any, y: Any, array: Tensor) -> Any:
        if g[0] is None:
            return (None,)
        return (apply(SplitArray(True, False), apply(EmptyArray(), array), g[0], y[1]),)

    def kernel(self, xp: ArrayModule, array: Items) -> Any:
        values = [xp.asarray(array.read(xp, i), array.form.dtype) for i in range(array.size)]
        if not values:
            dims = self.element_shape or array.dims or (None,)
            empty = zeros(xp, (0, *_known(array, dims[1:])), array.form.dtype)
            return empty, np.zeros((0,), np.int64)
        for i, v in enumerate(values):
            if not v.shape or v.shape[1:] != values[0].shape[1:]:
                raise InvalidArgumentError(
                    "expected values of equal shapes but for the first axis to concatenate, got "
                    f"{text(v.shape)} at index {i}"
                )
        return xp.concatenate(values), np.asarray([len(v) for v in values], np.int64)


@frozen
class SplitArray(Op, host_inputs=(2,)):
    """The array with parts of a tensor, of given lengths along its first axis, from index 0 on."""

    adds: bool
    is_uniform: bool
    views: ClassVar[Any] = (0, 1)

    def infer(self, array: Spec, value: Spec, lengths: Spec) -> Spec:
        tail = _tail(value.shape)
        if lengths.rank not in (None, 1):
            raise InvalidArgumentError(f"expected a vector as lengths, got {lengths}")
        dims = None if tail is None else (None, *tail)
        return _fits(array, value, dims, self.is_uniform)

    def grad(self, g: Tensor, y: Tensor, array: Tensor, value: Tensor, lengths: Tensor) -> Any:
        return g, apply(UnsplitArray(value.dtype), g, lengths, shape(value)), None

    def kernel(self, xp: ArrayModule, array: Items, value: Array, lengths: Array) -> Any:
        if int(sum(lengths)) != len(value):
            raise InvalidArgumentError(
                f"expected lengths with the sum {len(value)}, got {int(sum(lengths))}"
            )
        if not self.adds and len(lengths) != array.size and not array.form.can_grow:
            raise InvalidArgumentError(
                f'expected as many lengths as the array "{array.form.name}" has indices, '
                f"{array.size}, got {len(lengths)}"
            )
        at = 0
        for i, n in enumerate(lengths):
            array = _written(array, i, value[at : at + int(n)], self.adds)
            at += int(n)
        return array


@frozen
class UnsplitArray(Op, host_inputs=(1, 2)):
    """What `SplitArray` split, zeros where the array has no value: its gradient."""

    dtype: DType

    def infer(self, array: Spec, lengths: Spec, dims: Spec) -> Spec:
        return Spec(self.dtype, dims.shape_value())

    def grad(self, g: Tensor, y: Tensor, array: Tensor, lengths: Tensor, dims: Tensor) -> Any:
        return apply(SplitArray(True, False), apply(EmptyArray(), array), g, lengths), None, None

    def kernel(self, xp: ArrayModule, array: Items, lengths: Array, dims: Array) -> Array:
        out = xp.zeros(tuple(int(d) for d in dims), self.dtype.np_dtype)
        at = 0
        for i, n in enumerate(lengths):
            found = array.get(i)
            if found is not None:
                out[at : at + int(n)] = found
            at += int(n)
        return out


@frozen
class SizeOfArray(Op, host_outputs=(0,)):
    """The number of indices of an array."""

    is_differentiable: ClassVar[bool] = False

    def infer(self, array: Spec) -> Spec:
        element_spec(array)
        return Spec(int32, ())

    def kernel(self, xp: ArrayModule, array: Items) -> Array:
        return np.int32(array.size)
