"""TensorFlow's lists of tensors become our arrays: values, so gradients lead through.

Source: names and meaning of the op types are TensorFlow's (list_ops).
"""

from __future__ import annotations

from typing import Any

from flowscope.control.arrays.array_ops import (
    GatherArray,
    NewArray,
    ReadArray,
    ScatterArray,
    SizeOfArray,
)
from flowscope.control.arrays.list_ops import SetItem
from flowscope.control.lists import element_spec
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import get_static_value
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, int32, variant
from flowscope.graph.values.shapes import Dims, TensorShape
from flowscope.ops.array.arrays import range as range_of, shape
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.tensorflow.op_table import OpUse, maker


def _dims(value: Tensor) -> Dims:
    """The shape of elements that a tensor says: -1 is unknown; None if nothing is known."""
    found = get_static_value(value)
    if found is None:
        return value.spec.shape_value() if value.spec.rank == 1 else None
    if found.ndim == 0:
        return None
    return tuple([None if d < 0 else int(d) for d in found.tolist()])


def _list(value: Tensor) -> Tensor:
    if value.spec.dtype is not variant or value.spec.variable is None:
        raise DTypeError(f"expected a list of tensors, got {value.spec}")
    return value


def _new(use: OpUse, size: Any, dims: Dims, dtype: DType, name: str | None) -> Tensor:
    return apply(NewArray(dtype, dims, True, False, False, use.name), size, name=name)


@maker("TensorListReserve")
def _reserve(use: OpUse) -> Any:
    dims, count = use.inputs
    dtype = use.attribute("element_dtype", DType)
    return _new(use, cast(count, int32), _dims(dims), dtype, use.name)


@maker("EmptyTensorList")
def _empty(use: OpUse) -> Any:
    dims, _ = use.inputs
    dtype = use.attribute("element_dtype", DType)
    return _new(use, cast(0, int32), _dims(dims), dtype, use.name)


@maker("TensorListFromTensor")
def _from_tensor(use: OpUse) -> Any:
    tensor, dims = use.inputs
    if tensor.spec.rank == 0:
        raise InvalidArgumentError("expected a tensor of rank 1 at least, got a scalar")
    count = shape(tensor)[0]
    known = _dims(dims)
    if known is None and tensor.spec.shape is not None:
        known = tensor.spec.shape[1:]
    empty = _new(use, count, known, tensor.dtype, None)
    return apply(ScatterArray(False, False), empty, range_of(count), tensor, name=use.name)


@maker("TensorListGetItem")
def _get(use: OpUse) -> Any:
    items, index, _ = use.inputs
    return apply(ReadArray(), _list(items), index, name=use.name)


@maker("TensorListSetItem")
def _set(use: OpUse) -> Any:
    items, index, value = use.inputs
    grows = bool(use.attributes.get("resize_if_index_out_of_bounds", False))
    return apply(SetItem(grows), _list(items), index, value, name=use.name)


@maker("TensorListPushBack")
def _push(use: OpUse) -> Any:
    items, value = use.inputs
    at = apply(SizeOfArray(), _list(items))
    return apply(SetItem(True), items, at, value, name=use.name)


@maker("TensorListLength")
def _length(use: OpUse) -> Any:
    return apply(SizeOfArray(), _list(use.inputs[0]), name=use.name)


@maker("TensorListStack")
def _stack(use: OpUse) -> Any:
    items, dims = use.inputs
    places = range_of(apply(SizeOfArray(), _list(items)))
    found = apply(GatherArray(_dims(dims)), items, places, name=use.name)
    count = use.attributes.get("num_elements", -1)
    if count >= 0 and found.spec.shape is not None:
        found.set_shape(TensorShape([count, *found.spec.shape[1:]]))
    return found


@maker("TensorListGather")
def _gather(use: OpUse) -> Any:
    items, places, dims = use.inputs
    return apply(GatherArray(_dims(dims)), _list(items), places, name=use.name)


@maker("TensorListElementShape")
def _element_shape(use: OpUse) -> Any:
    dims = element_spec(_list(use.inputs[0]).spec).shape
    known = [-1 if d is None else d for d in dims] if dims is not None else -1
    return cast(
        reshape(known, [-1] if dims is not None else []), use.attribute("shape_type", DType)
    )


__all__: list[str] = []
