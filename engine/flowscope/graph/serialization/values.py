"""Attributes as JSON, and back.

None, bools, integers, finite floats and strings are themselves; a tuple is a list; all else is an
object of one key that says what it is:

    {"dtype": "float32"}
    {"array": {"dtype": "float32", "shape": [2], "data": "<base64 of little-endian bytes>"}}
    {"array": {"dtype": "string", "shape": [2], "items": ["<base64>", "<base64>"]}}
    {"scalar": {...}}       a NumPy scalar, written as an array of rank 0
    {"float": "nan"}        or "inf", "-inf"
    {"complex": [1.0, {"float": "nan"}]}
    {"bytes": "<base64>"}
    {"function": "f"}       a function of the graph, by its name
    {"spec": ["resource", [], ["float32", [null, 2], null]]}    dtype, shape; of a handle: behind it
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Literal
from flowscope.graph.op import Spec
from flowscope.graph.serialization.definition import FunctionName
from flowscope.graph.values.dtypes import ALL, DType, of_numpy, string
from flowscope.graph.values.shapes import MAX_RANK, Dims
from flowscope.graph.values.string_values import boxed

_DTYPES = {d.name: d for d in ALL}
_PLAIN = frozenset({type(None), bool, int, str})


def encode(value: Any) -> Any:
    """The JSON form of `value`.

    Raises:
        DTypeError: if nothing does; the message alone, the caller says where.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is tuple:
        return [encode(v) for v in value]
    for known, tag, write in _WRITERS:
        if isinstance(value, known):
            return {tag: write(value)}
    if isinstance(value, np.str_):
        return str(value)
    raise DTypeError(
        f"a value of type {kind.__name__} cannot be written; numbers, strings, bytes, dtypes, "
        "constants and tuples of them can"
    )


def decode(value: Any) -> Any:
    """Returns the value that `value` stands for; raises InvalidArgumentError if it is none."""
    kind = type(value)
    if kind in _PLAIN or kind is float:
        return value
    if kind is list:
        return tuple([decode(v) for v in value])
    if kind is dict and len(value) == 1:
        ((tag, inner),) = value.items()
        if tag in _READERS:
            return _READERS[tag](inner)
    raise InvalidArgumentError(f"expected a value, got {_short(value)}")


def read_dtype(name: Any) -> DType:
    """Returns the dtype of this name; raises InvalidArgumentError if there is none."""
    found = _DTYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidArgumentError(f"expected a dtype's name, got {_short(name)}")
    return found


def read_sizes(value: Any) -> tuple[int, ...]:
    """Returns a list of sizes as a tuple; raises InvalidArgumentError if it is something else."""
    if type(value) is list and all(type(d) is int and 0 <= d < 1 << 63 for d in value):
        if len(value) > MAX_RANK:
            raise InvalidArgumentError(f"expected at most {MAX_RANK} sizes, got {len(value)}")
        return tuple(value)
    raise InvalidArgumentError(f"expected a list of sizes, got {_short(value)}")


def read_dims(value: Any) -> Dims:
    """Returns a shape with null for unknown dimensions, or null; raises as `read_sizes` does."""
    if value is None:
        return None
    sizes = value if type(value) is list else [value]
    read_sizes([0 if d is None else d for d in sizes])
    return tuple(sizes)


def dtype_of(array: Any) -> DType:
    """Returns the dtype of an array or scalar; a single string is a bytes object."""
    return string if isinstance(array, bytes) else of_numpy(array.dtype)


def shaped(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Any:
    """Returns a read-only array of this shape, a NumPy scalar for rank 0."""
    try:
        out = array.reshape(shape)
    except ValueError as e:
        raise InvalidArgumentError(f"no array can have the shape {list(shape)}: {e}") from None
    return out if out.ndim else out[()]


def little_endian(array: Any) -> bytes:
    """Returns the array's bytes, row by row."""
    array = np.asarray(array)
    data: bytes = (array.byteswap() if sys.byteorder == "big" else array).tobytes()
    return data


def from_bytes(data: bytes, dtype: DType, shape: tuple[int, ...]) -> Any:
    """Returns the array of these bytes; raises InvalidArgumentError if they are not enough."""
    if dtype.kind in "srv":
        raise InvalidArgumentError(f"an array of {dtype} is not written as bytes")
    expected = math.prod(shape) * dtype.size
    if len(data) != expected:
        raise InvalidArgumentError(
            f"expected {expected} bytes for {dtype}{list(shape)}, got {len(data)}"
        )
    flat = np.frombuffer(bytearray(data), dtype.np_dtype)
    if dtype.is_bool and flat.view(np.uint8).max(initial=0) > 1:
        raise InvalidArgumentError("expected bytes 0 and 1 for bools, got others")
    return shaped(flat.byteswap() if sys.byteorder == "big" else flat, shape)


def from_base64(text: Any) -> bytes:
    """Returns the bytes; raises InvalidArgumentError if `text` is no base64."""
    try:
        data: bytes = base64.b64decode(text, validate=True)
        return data
    except (binascii.Error, TypeError, ValueError):
        raise InvalidArgumentError(f"expected base64, got {_short(text)}") from None


def to_base64(data: bytes) -> str:
    """Returns the bytes as text."""
    return base64.b64encode(data).decode()


def strings(items: list[bytes], shape: tuple[int, ...]) -> Any:
    """Returns an array of bytes objects; raises InvalidArgumentError if their number is wrong."""
    if len(items) != math.prod(shape):
        raise InvalidArgumentError(
            f"expected {math.prod(shape)} strings for shape {list(shape)}, got {len(items)}"
        )
    flat = np.empty(len(items), object)
    flat[:] = items
    return shaped(flat, shape)


def _write_array(array: Any) -> dict[str, Any]:
    array = np.asarray(boxed(array))
    dtype = of_numpy(array.dtype)
    head = {"dtype": dtype.name, "shape": list(array.shape)}
    if dtype.kind == "s":
        return head | {"items": [to_base64(v) for v in array.reshape(-1).tolist()]}
    return head | {"data": to_base64(little_endian(array))}


def _read_array(facts: Any) -> Any:
    if type(facts) is not dict or not {"dtype", "shape"} < set(facts) or len(facts) != 3:
        raise InvalidArgumentError(f"expected an array, got {_short(facts)}")
    dtype, shape = read_dtype(facts["dtype"]), read_sizes(facts["shape"])
    if dtype.kind != "s":
        return from_bytes(from_base64(facts.get("data")), dtype, shape)
    items = facts.get("items")
    if type(items) is not list:
        raise InvalidArgumentError(f"expected a list of strings, got {_short(items)}")
    return strings([from_base64(v) for v in items], shape)


def _read_scalar(facts: Any) -> Any:
    found = _read_array(facts)
    if isinstance(found, np.generic):
        return found
    raise InvalidArgumentError(f"expected one number, got {_short(facts)}")


def _read_float(text: Any) -> float:
    if text in ("nan", "inf", "-inf"):
        return float(text)
    raise InvalidArgumentError(f"expected nan, inf or -inf, got {_short(text)}")


def _read_complex(parts: Any) -> complex:
    values = [decode(p) for p in parts] if type(parts) is list else []
    if len(values) == 2 and all(type(v) is float for v in values):
        return complex(*values)
    raise InvalidArgumentError(f"expected a complex number, got {_short(parts)}")


def _write_spec(spec: Spec) -> list[Any]:
    shape = None if spec.shape is None else list(spec.shape)
    return [spec.dtype.name, shape, spec.variable and _write_spec(spec.variable)]


def _read_spec(facts: Any) -> Spec:
    match facts:
        case [name, shape, variable]:
            inner = None if variable is None else _read_spec(variable)
            return Spec(read_dtype(name), read_dims(shape), variable=inner)
    raise InvalidArgumentError(f"expected [dtype, shape, variable], got {_short(facts)}")


def _read_function(name: Any) -> FunctionName:
    if isinstance(name, str):
        return FunctionName(name)
    raise InvalidArgumentError(f"expected a function's name, got {_short(name)}")


def _short(value: Any) -> str:
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= 60 else shown[:57] + "..."


_WRITERS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (DType, "dtype", lambda d: d.name),
    (Literal, "array", lambda a: _write_array(a.array)),
    (bytes, "bytes", to_base64),
    (FunctionName, "function", lambda f: f.name),
    (Spec, "spec", _write_spec),
    (np.number, "scalar", _write_array),
    (np.bool_, "scalar", _write_array),
    (complex, "complex", lambda c: [encode(c.real), encode(c.imag)]),
)
_READERS: dict[str, Callable[[Any], Any]] = {
    "dtype": read_dtype,
    "array": lambda facts: Literal(_read_array(facts)),
    "scalar": _read_scalar,
    "float": _read_float,
    "complex": _read_complex,
    "bytes": from_base64,
    "function": _read_function,
    "spec": _read_spec,
}


# -- whether a value fits a field -----------------------------------------------------------------


_NUMBERS: dict[Any, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
    complex: (int, float, complex, np.number),
}


@functools.cache
def field_types(op: Any) -> dict[str, Any]:
    """Returns the types of an op's fields by name; empty where they cannot be worked out."""
    try:
        return typing.get_type_hints(op)
    except Exception:  # whatever a user's annotations may hold
        return {}


#: What stands for objects of a class in attributes of a NodeDef; higher floors fill it.
stand_ins: dict[Any, type] = {}


def fits(value: Any, kind: Any) -> bool:
    """Whether `value` may stand in a field that is declared as `kind`."""
    if type(value) is kind:
        return True
    kind = stand_ins.get(kind, kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is None:
        return kind is Any or value is None
    if origin is typing.Union or origin is types.UnionType:
        return any(fits(value, k) for k in arguments)
    if origin is tuple:
        return type(value) is tuple and _parts_fit(value, arguments)
    if kind in _NUMBERS:
        return isinstance(value, _NUMBERS[kind]) and type(value) is not bool
    return not isinstance(kind, type) or isinstance(value, kind)


def _parts_fit(value: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(fits(v, arguments[0]) for v in value)
    return len(value) == len(arguments) and all(map(fits, value, arguments))
