"""Arrays of serialized `TensorProto`s and back, with a bound on what a few bytes may fill."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from flowscope.graph.messages.protobuf import (
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    LENGTH,
    UINT,
    FieldKind,
    decode,
    encode,
    field,
    fields,
    varint,
)
from flowscope.graph.messages.tensor_proto import ELEMENT_FIELDS, TensorProto
from flowscope.graph.values.dtypes import DType, as_dtype, string
from flowscope.graph.values.shapes import MAX_RANK, Dims, TensorShape, TensorShapeProto
from flowscope.graph.values.string_values import boxed


def shape_bytes(shape: TensorShapeProto) -> bytes:
    """Returns a shape as a serialized message; an unknown size is -1."""
    if shape.unknown_rank:
        return field(3, INT.wire_type, varint(1))
    sizes = [field(1, INT.wire_type, varint(d.size)) if d.size else b"" for d in shape.dim]
    return b"".join([field(2, LENGTH, s) for s in sizes])


def _shape(data: bytes) -> TensorShapeProto:
    sizes, is_unknown = [], False
    for number, wire_type, value in fields(data):
        if number == 2 and wire_type == LENGTH:
            size = next((v for n, kind, v in fields(value) if n == 1 and kind != LENGTH), 0)
            sizes.append(TensorShapeProto.Dim(INT.decode(size)))
        is_unknown |= number == 3 and bool(value)
    return TensorShapeProto(sizes, is_unknown)


_TENSOR_WIRE = {
    "dtype": (1, INT),
    "tensor_shape": (2, FieldKind(LENGTH, shape_bytes, _shape)),
    "tensor_content": (4, BYTES),
    "float_val": (5, FLOAT),
    "double_val": (6, DOUBLE),
    "int_val": (7, INT),
    "string_val": (8, BYTES),
    "scomplex_val": (9, FLOAT),
    "int64_val": (10, INT),
    "bool_val": (11, INT),
    "dcomplex_val": (12, DOUBLE),
    "half_val": (13, INT),
    "uint32_val": (16, UINT),
    "uint64_val": (17, UINT),
}

#: A field that holds a `TensorProto`.
TENSOR = FieldKind(
    LENGTH,
    lambda value: encode(value, _TENSOR_WIRE),
    lambda data: decode(TensorProto(), _TENSOR_WIRE, data),
)


class Expansion:
    """What one element that stands for many may fill, in all tensors of a file together.

    Args:
        file_bytes: The file's size.
    """

    def __init__(self, file_bytes: int) -> None:
        self._left = (64 << 20) + 8 * file_bytes

    def take(self, nbytes: int) -> None:
        """Notes that so many bytes are filled.

        Raises:
            ResourceExhaustedError: if that is more than there may be.
        """
        self._left -= nbytes
        if self._left < 0:
            raise ResourceExhaustedError(
                "the file is small, and its constants would be very large: one element each "
                "stands for all others"
            )


def dtype_of(number: int) -> DType:
    """Returns the dtype of TensorFlow's number; raises InvalidArgumentError if there is none."""
    try:
        return as_dtype(number)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"expected the number of a dtype, got {number}") from None


def dims_of(shape: Any) -> Dims:
    """Returns a TensorShapeProto as a shape; None for an unknown size or rank; () for None."""
    if shape is None:
        return ()
    if shape.unknown_rank:
        return None
    if len(shape.dim) > MAX_RANK:
        raise InvalidArgumentError(f"expected at most {MAX_RANK} sizes, got {len(shape.dim)}")
    return tuple([None if d.size < 0 else d.size for d in shape.dim])


def array_of(tensor: Any, expansion: Expansion) -> Any:
    """Returns a TensorProto's array, a NumPy scalar or bytes for rank 0.

    Raises:
        InvalidArgumentError: if its elements do not fit its dtype and shape.
        ResourceExhaustedError: if one element stands for very many.
        UnimplementedError: for dtypes whose values cannot be constants.
    """
    dtype, dims = dtype_of(tensor.dtype), dims_of(tensor.tensor_shape)
    if dims is None or None in dims:
        raise InvalidArgumentError("expected the full shape of a constant, got a part of it")
    if dtype.kind in "rv":
        raise UnimplementedError(f"a constant of {dtype} cannot be read")
    sizes = [d for d in dims if d is not None]
    count = math.prod(sizes)
    if count > 1 << 48:
        raise InvalidArgumentError(f"expected a shape of a constant, got {sizes}")
    content = tensor.tensor_content
    found = _from_bytes(content, dtype, count) if content else _listed(tensor, dtype)
    if len(found) > count or (count and not len(found) and content):
        raise InvalidArgumentError(f"expected {count} elements of {dtype}, got {len(found)}")
    if len(found) < count:
        expansion.take((count - len(found)) * max(dtype.size, 1))
        last = found[-1:] if len(found) else _zero(dtype)
        found = np.concatenate([found, np.repeat(last, count - len(found))])
    out = found.reshape(sizes)
    return out if out.ndim else out[()]


def _zero(dtype: DType) -> Any:
    zero = np.empty(1, object) if dtype is string else np.zeros(1, dtype.np_dtype)
    if dtype is string:
        zero[0] = b""
    return zero


def _from_bytes(content: bytes, dtype: DType, count: int) -> Any:
    if dtype is string:
        raise InvalidArgumentError("expected strings one by one, got bytes")
    if len(content) != count * dtype.size:
        raise InvalidArgumentError(
            f"expected {count * dtype.size} bytes for {count} elements of {dtype}, "
            f"got {len(content)}"
        )
    return np.frombuffer(content, np.dtype(dtype.np_dtype).newbyteorder("<")).view(dtype.np_dtype)


def _listed(tensor: Any, dtype: DType) -> Any:
    values = getattr(tensor, ELEMENT_FIELDS.get(dtype.name, "int_val"))
    if dtype is string:
        found = np.empty(len(values), object)
        found[:] = list(values)
        return found
    if dtype.kind == "c":
        parts = np.array(values, np.float64)
        if len(parts) % 2:
            raise InvalidArgumentError("expected pairs of real and imaginary parts")
        return parts.view(np.complex128).astype(dtype.np_dtype)
    if ELEMENT_FIELDS.get(dtype.name) == "half_val":
        return np.array(values, np.int64).astype(np.uint16).view(dtype.np_dtype)
    with np.errstate(over="ignore"):
        return np.array(values, _wide(dtype)).astype(dtype.np_dtype)


def _wide(dtype: DType) -> Any:
    """NumPy's type that holds all elements as the message has them."""
    if dtype.kind == "f":
        return np.float64
    return np.uint64 if dtype.name == "uint64" else np.int64


def array_bytes(array: Any, dtype: DType) -> bytes:
    """Returns an array as a serialized TensorProto, the same bytes as TensorFlow writes."""
    values = np.asarray(boxed(array))
    proto = TensorProto(
        dtype=dtype.as_datatype_enum, tensor_shape=TensorShape(values.shape).as_proto()
    )
    if dtype is string:
        proto.string_val = values.reshape(-1).tolist()
    else:
        proto.tensor_content = values.tobytes()
    return TENSOR.encode(proto)


def array_from_bytes(data: bytes) -> tuple[DType, Any]:
    """Returns the dtype and the array of a serialized TensorProto; a NumPy scalar for rank 0.

    Raises:
        InvalidArgumentError: if the bytes are no TensorProto, or its elements do not fit its dtype
            and shape.
        ResourceExhaustedError: if one element stands for very many.
        UnimplementedError: for resources and variants.
    """
    proto = TENSOR.decode(data)
    return dtype_of(proto.dtype), array_of(proto, Expansion(len(data)))


__all__ = [
    "TENSOR",
    "Expansion",
    "array_bytes",
    "array_from_bytes",
    "array_of",
    "dims_of",
    "dtype_of",
    "shape_bytes",
]
