"""Arrays as bytes: how values travel, whatever carries them.

A value is told by a code of its dtype (TensorFlow's number), its shape, and its bytes: in C order,
or as the array lies (`layouts`); then the code says so, and behind the shape stands how.
Rank 0 arrives as a NumPy scalar, as it is on a CPU. Strings are object arrays of bytes: their
lengths stand before their bytes. Nothing that arrives is ever executed: no value is pickled.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np

from flowscope.cluster.transport.encoding.layouts import laid_out, layout_of, memory_shape, viewed
from flowscope.errors import DataLossError, DTypeError, InvalidArgumentError
from flowscope.graph.values.dtypes import as_dtype, of_numpy, string
from flowscope.runtime.waits.rendezvous import DEAD

#: The code of what stands for a dead value.
DEAD_CODE = 255
#: Added to the code of an array that is sent as it lies.
_AS_IT_LIES = 128
#: An array that could not be held by any machine is a broken message.
_MOST_BYTES = 1 << 46
_MOST_DIMENSIONS = 64
_LENGTHS = np.dtype("<u8")
_STRING = int(string)

Shape = tuple[int, ...]
Data = bytes | memoryview


@functools.cache
def _code(dtype: np.dtype[Any]) -> int:
    found = of_numpy(dtype)
    if found.kind in "rv":
        raise DTypeError(f"expected numbers or strings, got {found.name}")
    return int(found)


@functools.cache
def numpy_dtype(code: int) -> np.dtype[Any]:
    """Returns NumPy's dtype of a code; raises DataLossError if there is none."""
    try:
        found = as_dtype(code)
    except DTypeError:
        raise DataLossError(f"expected the number of a dtype, got {code}") from None
    if found.kind in "rv":
        raise DataLossError(f"expected numbers or strings, got {found.name}")
    return found.np_dtype


def encoded(value: Any) -> tuple[int, Shape, Data]:
    """Returns code, shape and bytes of a value; a large array is not copied.

    Raises:
        InvalidArgumentError: if it is no array of numbers or strings.
    """
    if value is DEAD:
        return DEAD_CODE, (), b""
    if isinstance(value, np.generic):
        return _code(value.dtype), (), _ordered(value).tobytes()
    if isinstance(value, bytes):
        value = np.array(value, object)
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    try:
        code = _code(array.dtype)
    except DTypeError as e:
        what = f"{type(value).__name__} of NumPy's {array.dtype}"
        raise InvalidArgumentError(f"{e.message}: {what} cannot be sent to another process") from e
    if code == _STRING:
        return code, array.shape, _strings(array)
    array = _ordered(array)
    shape: Shape = array.shape
    if array.flags.c_contiguous or (layout := layout_of(array)) is None:
        flat = np.asarray(array, order="C").reshape(-1)
    else:
        flat = laid_out(array, layout)
        code, shape = code | _AS_IT_LIES, (*shape, *layout)
    return code, shape, flat.view(np.uint8).data if flat.size else b""


def _ordered(value: Any) -> Any:
    """Returns an array in the order of bytes that all machines read."""
    dtype = value.dtype
    is_little = dtype.byteorder in "|<" or (dtype.byteorder == "=" and sys.byteorder == "little")
    return value if is_little else value.astype(dtype.newbyteorder("<"))


def _strings(array: np.ndarray[Any, Any]) -> bytes:
    found = [s.encode() if isinstance(s, str) else s for s in array.reshape(-1).tolist()]
    for item in found:
        if not isinstance(item, bytes):
            got = type(item).__name__
            raise InvalidArgumentError(
                f"expected strings, got {got}: such objects cannot be sent to another process"
            )
    return np.array([len(s) for s in found], _LENGTHS).tobytes() + b"".join(found)


def is_string(code: int) -> bool:
    """Whether a code stands for strings, whose bytes are no array's."""
    return code == _STRING


def empty(code: int, shape: Shape, nbytes: int) -> tuple[np.ndarray[Any, Any], memoryview]:
    """Returns an array for the bytes of numbers, and the bytes to be filled.

    Raises:
        DataLossError: if code, shape and number of bytes do not belong together.
    """
    code, shape, layout = _parted(code, shape)
    dtype = numpy_dtype(code)
    _check(shape if layout is None else memory_shape(shape, layout), dtype.itemsize, nbytes)
    try:
        flat = np.empty(nbytes // dtype.itemsize, dtype)
    except MemoryError:
        raise DataLossError(f"no memory for an array of {nbytes} bytes") from None
    array = flat.reshape(shape) if layout is None else viewed(flat, shape, layout)
    return array, flat.view(np.uint8).data


def decoded(code: int, shape: Shape, data: Any) -> Any:
    """Returns a value that a peer has sent; it belongs to whoever takes it.

    Raises:
        DataLossError: if code, shape and bytes do not belong together.
    """
    if code == DEAD_CODE:
        return DEAD
    if code & _AS_IT_LIES:
        array, memory = empty(code, shape, len(data))
        memory[:] = data
        return array
    dtype = numpy_dtype(code)
    if code == _STRING:
        return _read_strings(shape, bytes(data))
    if not shape and len(data) == dtype.itemsize:
        return np.frombuffer(data, dtype)[0]
    _check(shape, dtype.itemsize, len(data))
    if not len(data):
        return np.empty(shape, dtype)
    return np.frombuffer(bytearray(data), dtype).reshape(shape)


def _parted(code: int, shape: Shape) -> tuple[int, Shape, Shape | None]:
    """Returns code, shape and layout; None for C order."""
    if not code & _AS_IT_LIES:
        return code, shape, None
    count, rest = divmod(len(shape), 2)
    code &= ~_AS_IT_LIES
    if rest or is_string(code):
        raise DataLossError(f"expected a shape and how the array lies, got {shape!r}")
    _check(shape[:count], 0, 0)
    return code, shape[:count], shape[count:]


def _read_strings(shape: Shape, data: bytes) -> Any:
    _check(shape, 0, 0)
    count = math.prod(shape)
    ends = count * _LENGTHS.itemsize
    if ends > len(data):
        raise DataLossError(f"expected the lengths of {count} strings, got {len(data)} bytes")
    lengths = np.frombuffer(data, _LENGTHS, count).tolist()
    if ends + sum(lengths) != len(data):
        raise DataLossError(f"expected {sum(lengths)} bytes of strings, got {len(data) - ends}")
    found = np.empty(count, object)
    for i, length in enumerate(lengths):
        found[i] = data[ends : ends + length]
        ends += length
    return found.reshape(shape) if shape else found[0]


def _check(shape: Shape, itemsize: int, nbytes: int) -> None:
    if len(shape) > _MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise DataLossError(f"expected a shape, got {shape!r}")
    if math.prod(shape) * itemsize != nbytes or nbytes > _MOST_BYTES:
        raise DataLossError(f"expected an array of shape {shape}, got {nbytes} bytes")


__all__ = ["DEAD_CODE", "Data", "Shape", "decoded", "empty", "encoded", "is_string", "numpy_dtype"]
