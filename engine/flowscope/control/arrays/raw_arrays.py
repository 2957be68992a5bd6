"""Operations of tensor arrays as TensorFlow's `raw_ops` name them.

An array is a value here: `flow_in` is the array that is read or written, and what a write returns
is the array to go on with. The handle only says which array is meant.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowscope.control.arrays.array_ops import ConcatArray
from flowscope.control.arrays.tensor_array import TensorArray
from flowscope.control.lists import element_spec
from flowscope.errors import DTypeError
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import as_dtype, variant
from flowscope.graph.values.shapes import as_dims
from flowscope.ops.core.build import apply_many


class TensorArrayOutput(NamedTuple):
    """What TensorArrayV3 returns: two names of the array."""

    handle: Tensor
    flow: Tensor


class TensorArrayConcatOutput(NamedTuple):
    """What TensorArrayConcatV3 returns: the tensors in one, and how long each of them is."""

    value: Tensor
    lengths: Tensor


def TensorArrayV3(
    *,
    size: Any,
    dtype: Any,
    element_shape: Any = None,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    identical_element_shapes: bool = False,
    tensor_array_name: str = "",
    name: str | None = None,
) -> TensorArrayOutput:
    """Returns a new array as (handle, flow); see `fs.TensorArray`.

    Args:
        size: Number of indices.
        dtype: Element type.
        element_shape: Shape of the elements, as far as it is known.
        dynamic_size: Whether a write behind the last index makes it larger.
        clear_after_read: Whether an element can be read once only.
        identical_element_shapes: Whether all elements have the shape of the first.
        tensor_array_name: What messages call it.
        name: Name of the operation.
    """
    made = TensorArray(
        dtype,
        size,
        dynamic_size,
        clear_after_read,
        tensor_array_name or None,
        infer_shape=identical_element_shapes,
        element_shape=element_shape,
        name=name,
    )
    return TensorArrayOutput(made.flow, made.flow)


def _array(handle: Tensor, flow_in: Tensor, dims: Any = None) -> TensorArray:
    """Returns the array of a flow; whether its elements are cleared is known when it runs."""
    for what, given in (("handle", handle), ("flow_in", flow_in)):
        if not isinstance(given, Tensor) or given.spec.dtype is not variant:
            raise DTypeError(f"expected a tensor of an array as {what}, got {given!r}")
    element = element_spec(flow_in.spec)
    known = as_dims(dims)
    return TensorArray(
        element.dtype,
        flow=flow_in,
        clear_after_read=True,
        infer_shape=False,
        element_shape=element.shape if known is None else known,
    )


def _check_dtype(array: TensorArray, dtype: Any) -> None:
    if as_dtype(dtype) is not array.dtype:
        raise DTypeError(f"expected {array.dtype}, the array's, got {as_dtype(dtype)}")


def TensorArrayWriteV3(
    *, handle: Any, index: Any, value: Any, flow_in: Any, name: str | None = None
) -> Tensor:
    """Returns the array with `value` at `index`."""
    return _array(handle, flow_in).write(index, value, name or "TensorArrayWriteV3").flow


def TensorArrayReadV3(
    *, handle: Any, index: Any, flow_in: Any, dtype: Any, name: str | None = None
) -> Tensor:
    """Returns the element at `index`."""
    array = _array(handle, flow_in)
    _check_dtype(array, dtype)
    return array.read(index, name or "TensorArrayReadV3")


def TensorArrayGatherV3(
    *,
    handle: Any,
    indices: Any,
    flow_in: Any,
    dtype: Any,
    element_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns the elements at `indices` along a new first axis."""
    array = _array(handle, flow_in, element_shape)
    _check_dtype(array, dtype)
    return array.gather(indices, name or "TensorArrayGatherV3")


def TensorArrayScatterV3(
    *, handle: Any, indices: Any, value: Any, flow_in: Any, name: str | None = None
) -> Tensor:
    """Returns the array with the parts of `value` along its first axis at `indices`."""
    return _array(handle, flow_in).scatter(indices, value, name or "TensorArrayScatterV3").flow


def TensorArrayConcatV3(
    *,
    handle: Any,
    flow_in: Any,
    dtype: Any,
    element_shape_except0: Any = None,
    name: str | None = None,
) -> TensorArrayConcatOutput:
    """Returns the elements one behind the other along their first axis, and their lengths."""
    rest = as_dims(element_shape_except0)
    array = _array(handle, flow_in)
    _check_dtype(array, dtype)
    op = ConcatArray(as_dims(array.element_shape) if rest is None else (None, *rest), True)
    found = apply_many(op, array.flow, name=name or "TensorArrayConcatV3")
    return TensorArrayConcatOutput(*found)


def TensorArraySplitV3(
    *, handle: Any, value: Any, lengths: Any, flow_in: Any, name: str | None = None
) -> Tensor:
    """Returns the array with parts of `value`, of these lengths along its first axis."""
    return _array(handle, flow_in).split(value, lengths, name or "TensorArraySplitV3").flow


def TensorArraySizeV3(*, handle: Any, flow_in: Any, name: str | None = None) -> Tensor:
    """Returns the number of indices, an int32 scalar."""
    return _array(handle, flow_in).size(name or "TensorArraySizeV3")


def TensorArrayCloseV3(*, handle: Any, name: str | None = None) -> Operation:
    """Returns an operation that does nothing: an array is freed with its last use."""
    return _array(handle, handle).close(name or "TensorArrayCloseV3")


TensorArrayWriteV2, TensorArrayReadV2 = TensorArrayWriteV3, TensorArrayReadV3
TensorArrayGatherV2, TensorArrayScatterV2 = TensorArrayGatherV3, TensorArrayScatterV3
TensorArrayConcatV2, TensorArraySplitV2 = TensorArrayConcatV3, TensorArraySplitV3
TensorArraySizeV2, TensorArrayCloseV2 = TensorArraySizeV3, TensorArrayCloseV3
