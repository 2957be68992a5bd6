"""ONNX's tensors and element types, as NumPy's and flowscope's; sizes are checked before."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import uses_external_data

from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype

#: The names of ONNX's element types that are not flowscope's in lower case.
_NAMES = {
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BOOL": "bool",
    "STRING": "string",
    "FLOAT8E4M3FN": "float8_e4m3fn",
    "FLOAT8E4M3FNUZ": "float8_e4m3fnuz",
    "FLOAT8E5M2": "float8_e5m2",
    "FLOAT8E5M2FNUZ": "float8_e5m2fnuz",
}


def dtype_of(number: int) -> DType:
    """The element type of a number of ONNX's.

    Raises:
        UnimplementedError: if flowscope has none like it.
        InvalidArgumentError: if it is no number of an element type.
    """
    if number not in TensorProto.DataType.values() or number == TensorProto.UNDEFINED:
        raise InvalidArgumentError(f"expected an element type of ONNX's, got number {number}")
    name = TensorProto.DataType.Name(number)
    try:
        return as_dtype(_NAMES.get(name, name.lower()))
    except TypeError:
        raise UnimplementedError(f"element type {name} is not supported") from None


def number_of(dtype: DType) -> int:
    """ONNX's number of an element type; raises UnimplementedError if there is none."""
    name = next((n for n, ours in _NAMES.items() if ours == dtype.name), dtype.name.upper())
    if name not in TensorProto.DataType.keys():  # noqa: SIM118
        raise UnimplementedError(f"ONNX has no element type like {dtype}")
    return int(TensorProto.DataType.Value(name))


def as_array(tensor: TensorProto, folder: Path | None = None) -> npt.NDArray[Any]:
    """The array of a tensor; strings are bytes.

    Args:
        tensor: The tensor.
        folder: Where data that lie beside the model are found; None if there may be none.

    Raises:
        InvalidArgumentError: if the data do not fit the shape, or lie outside the folder.
    """
    dtype = dtype_of(tensor.data_type)
    size = math.prod(tensor.dims)
    if any(d < 0 for d in tensor.dims) or len(tensor.dims) > 32:
        raise InvalidArgumentError(
            f"tensor {tensor.name!r}: {list(tensor.dims)[:8]} is not a shape"
        )
    if uses_external_data(tensor):
        return _external(tensor, dtype, size, folder)
    if tensor.HasField("segment"):
        raise UnimplementedError(f"tensor {tensor.name!r}: segments are not supported")
    packed = 8 * len(tensor.raw_data)
    listed = max(len(getattr(tensor, f)) for f in _FIELDS)
    bits = _bits(dtype)
    if tensor.HasField("raw_data"):
        if dtype is dtypes.string or not size * bits <= packed < size * bits + 8:
            raise _misfit(tensor, dtype, f"{len(tensor.raw_data)} bytes")
    elif listed > 2 * size or listed * 8 < size:
        raise _misfit(tensor, dtype, f"{listed} numbers")
    if dtype is dtypes.string:
        if len(tensor.string_data) != size:
            raise _misfit(tensor, dtype, f"{len(tensor.string_data)} strings")
        found = np.empty(size, object)
        found[:] = list(tensor.string_data)
        return found.reshape(tuple(tensor.dims))
    return numpy_helper.to_array(tensor)


_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def _bits(dtype: DType) -> int:
    return {"2": 2, "4": 4}.get(dtype.name[-1], 8) if dtype.kind in "nm" else 8 * dtype.size


def _misfit(tensor: TensorProto, dtype: DType, got: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"tensor {tensor.name!r}: expected {math.prod(tensor.dims)} elements of {dtype} for shape "
        f"{list(tensor.dims)}, got {got}"
    )


def _external(
    tensor: TensorProto, dtype: DType, size: int, folder: Path | None
) -> npt.NDArray[Any]:
    facts = {e.key: e.value for e in tensor.external_data}
    place = facts.get("location", "")
    if folder is None:
        raise InvalidArgumentError(
            f"tensor {tensor.name!r} lies in a file beside the model, {place!r}: load the model "
            "from its file, not from bytes"
        )
    root = folder.resolve()
    path = (root / place).resolve()
    if not place or not path.is_relative_to(root) or not path.is_file():
        raise InvalidArgumentError(
            f"tensor {tensor.name!r}: expected a file in the model's folder, got {place[:200]!r}"
        )
    try:
        offset, length = int(facts.get("offset", 0)), int(facts.get("length", -1))
    except ValueError:
        raise InvalidArgumentError(
            f"tensor {tensor.name!r}: offset and length are no numbers"
        ) from None
    needed = -(-size * _bits(dtype) // 8)
    length = needed if length < 0 else length
    if dtype is dtypes.string or length != needed or offset < 0:
        raise _misfit(tensor, dtype, f"{length} bytes at {offset}")
    if offset + length > path.stat().st_size:
        raise _misfit(tensor, dtype, f"a file of {path.stat().st_size} bytes")
    if dtype.kind in "nm":
        inner = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
        with path.open("rb") as file:
            file.seek(offset)
            inner.raw_data = file.read(length)
        return numpy_helper.to_array(inner)
    if not length:
        return np.zeros(tuple(tensor.dims), dtype.np_dtype)
    with path.open("rb") as file:
        found = np.fromfile(file, dtype.np_dtype, size, offset=offset)
    return found.reshape(tuple(tensor.dims))


def dense(sparse: onnx.SparseTensorProto) -> npt.NDArray[Any]:
    """The array of a sparse tensor; raises InvalidArgumentError if it is too large."""
    data, where = as_array(sparse.values), as_array(sparse.indices)
    dims = tuple(sparse.dims)
    if any(d < 0 for d in dims) or np.prod(dims, dtype=float) > 1 << 28:
        raise InvalidArgumentError(f"sparse tensor {sparse.values.name!r}: too large: {dims}")
    found = np.zeros(dims, data.dtype)
    if where.ndim == 1:
        where = np.stack(np.unravel_index(where, dims), 1)
    found[tuple(where.T)] = data
    return found


def read_model(source: Any) -> tuple[onnx.ModelProto, Path | None, str]:
    """Returns the model, its folder and its name, from a file, its bytes or a ModelProto.

    Raises:
        InvalidArgumentError: if it is no model.
        NotFoundError: if there is no such file.
    """
    if isinstance(source, onnx.ModelProto):
        return source, None, "model"
    if isinstance(source, bytes | bytearray | memoryview):
        data, folder, name = bytes(source), None, "model"
    else:
        path = Path(source)
        if not path.is_file():
            from flowscope.errors import NotFoundError

            raise NotFoundError(f"there is no file {str(path)!r}")
        data, folder, name = path.read_bytes(), path.parent, path.name
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as e:  # protobuf's DecodeError, of whichever implementation
        raise InvalidArgumentError(f"{name}: expected a model in ONNX's form: {e}") from None
    return model, folder, name


__all__ = ["as_array", "dense", "dtype_of", "number_of", "read_model"]
