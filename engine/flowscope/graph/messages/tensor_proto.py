"""Arrays as messages: `make_tensor_proto` and back."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Convertible, to_array
from flowscope.graph.messages.message import Message, repeated
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.shapes import TensorShape, TensorShapeProto, as_dims, text

__all__ = ["AttrValue", "make_ndarray", "make_tensor_proto"]


class TensorProto(Message):
    """An array as a message.

    Attributes:
        dtype: TensorFlow's number of the element type, see `DType.as_datatype_enum`.
        tensor_shape: The shape.
        tensor_content: The elements as bytes, in row-major order. Where it is empty they stand in
            the list of their type, the last one for all that are missing.
        float_val, double_val, int_val, string_val, int64_val, bool_val, uint32_val, uint64_val:
            Elements.
        half_val: The bits of elements of 16 bits.
        scomplex_val, dcomplex_val: Real and imaginary parts, in turn.
    """

    dtype: int = 0
    tensor_shape: Any = None
    tensor_content: Any = b""
    half_val: list[int] = repeated()
    float_val: list[float] = repeated()
    double_val: list[float] = repeated()
    int_val: list[int] = repeated()
    string_val: list[bytes] = repeated()
    scomplex_val: list[float] = repeated()
    int64_val: list[int] = repeated()
    bool_val: list[bool] = repeated()
    dcomplex_val: list[float] = repeated()
    uint32_val: list[int] = repeated()
    uint64_val: list[int] = repeated()


class _ListValue(Message):
    """Values of one attribute that is a list."""

    s: list[bytes] = repeated()
    i: list[int] = repeated()
    f: list[float] = repeated()
    b: list[bool] = repeated()
    type: list[int] = repeated()
    shape: list[Any] = repeated()
    tensor: list[Any] = repeated()
    func: list[Any] = repeated()


class AttrValue(Message):
    """The value of an attribute, in the field of its type, as TensorFlow's message has it."""

    ListValue: ClassVar[type[_ListValue]] = _ListValue
    s: Any = b""
    i: int = 0
    f: float = 0.0
    b: bool = False
    type: int = 0
    shape: Any = None
    tensor: Any = None
    list: _ListValue = _ListValue()
    func: Any = None
    placeholder: str = ""


#: The list of elements of a type that has no field of its own name.
ELEMENT_FIELDS = {
    "float16": "half_val",
    "bfloat16": "half_val",
    "float32": "float_val",
    "float64": "double_val",
    "string": "string_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "bool": "bool_val",
}
#: Types whose arrays of several elements are written as bytes.
_AS_BYTES = "fiu"


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> TensorProto:
    """Returns values as a message.

    Args:
        values: A number, a string, a (nested) list of them, or an array.
        dtype: Element type; that of the values by default.
        shape: Shape; that of the values by default. It may hold more elements than there are
            values: the last one stands for the others.
        verify_shape: Whether the values must have exactly this shape.
        allow_broadcast: Whether one value may stand for all, even if `verify_shape` is True.

    Raises:
        DTypeError: if the values are tensors, do not have the dtype, or not the shape asked for.
        InvalidArgumentError: if there are more values than the shape holds.
    """
    if isinstance(values, TensorProto):
        return values
    if isinstance(values, Tensor | Convertible):
        raise DTypeError(f"expected values, got the tensor {values!r}: run it first")
    wished = None if dtype is None else as_dtype(dtype)
    array = np.asarray(to_array(values, wished))
    kind = wished or as_dtype(array.dtype)
    dims = array.shape if shape is None else tuple(as_dims(shape) or ())
    if verify_shape and array.shape != dims and not (allow_broadcast and array.size == 1):
        raise DTypeError(f"expected values of shape {text(dims)}, got {text(array.shape)}")
    size = math.prod([int(d) for d in dims if d is not None])
    if array.size > size:
        raise InvalidArgumentError(
            f"expected at most {size} values for shape {text(dims)}, got {array.size}"
        )
    proto = TensorProto(dtype=kind.as_datatype_enum, tensor_shape=TensorShape(dims).as_proto())
    if array.size == size > 1 and kind.kind in _AS_BYTES:
        proto.tensor_content = array.tobytes()
    else:
        setattr(proto, _field(kind), _listed(kind, array))
    return proto


def _field(dtype: DType) -> str:
    return ELEMENT_FIELDS.get(dtype.name, "int_val")


def _listed(dtype: DType, array: Any) -> list[Any]:
    flat = array.reshape(-1)
    if dtype.kind == "c":
        return [part for z in flat.tolist() for part in (z.real, z.imag)]
    if dtype.kind == "f" and dtype.size == 2:
        return flat.view(np.uint16).tolist()  # type: ignore[no-any-return]
    return flat.tolist()  # type: ignore[no-any-return]


def make_ndarray(tensor: TensorProto) -> Any:
    """Returns the array that a message stands for.

    Raises:
        DTypeError: if it is no message of an array.
    """
    if not isinstance(tensor, TensorProto):
        raise DTypeError(f"expected what fs.make_tensor_proto returned, got {tensor!r}")
    dtype = as_dtype(tensor.dtype)
    dims = _sizes(tensor.tensor_shape)
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype.np_dtype).reshape(dims).copy()
    found = _array(dtype, getattr(tensor, _field(dtype)))
    missing = math.prod(dims) - len(found)
    if len(found):
        found = np.concatenate([found, np.repeat(found[-1:], missing)])
    return found.reshape(dims) if len(found) else np.zeros(dims, dtype.np_dtype)


def _sizes(shape: TensorShapeProto | None) -> tuple[int, ...]:
    return () if shape is None else tuple([d.size for d in shape.dim])


def _array(dtype: DType, values: list[Any]) -> Any:
    if dtype.kind == "c":
        parts = np.array(values, np.float64).reshape(-1, 2)
        return (parts[:, 0] + 1j * parts[:, 1]).astype(dtype.np_dtype)
    if dtype.kind == "f" and dtype.size == 2:
        return np.array(values, np.uint16).view(dtype.np_dtype)
    return np.array(values, dtype.np_dtype)
