"""Element types of tensors, under TensorFlow's names."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flowscope.errors import DTypeError


@functools.cache
def _limit(dtype: DType, which: str) -> Any:
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype.np_dtype), which)
    if dtype.kind in "nm":
        return int(getattr(_ml_dtypes().iinfo(dtype.np_dtype), which))
    if dtype.kind == "e" or dtype.name == "bfloat16":
        return getattr(_ml_dtypes().finfo(dtype.np_dtype), which)
    if dtype.kind == "f":
        return getattr(np.finfo(dtype.np_dtype), which)
    raise DTypeError(f"{dtype.name} has no {which}imum")


class DType:
    """An element type. There is one instance of each; compare with `==` (NumPy's types fit too).

    Attributes:
        name: TensorFlow's name, e.g. "float32".
        kind: A letter for what can be done with it. "f" floating-point, "i" signed integer,
            "u" unsigned, "c" complex, "b" bool: arithmetic or logic. "e" floats of 8 bits, "n" and
            "m" signed and unsigned integers of 2 or 4: to keep and to cast. "q" quantised: integers
            that stand for other numbers by a scale. "s" bytes, "r" resource, "v" variant.
    """

    __slots__ = ("_dtype", "_np", "_size", "kind", "name")

    def __init__(self, name: str, np_dtype: Any, kind: str) -> None:
        self.name = name
        self._np = np_dtype
        self._dtype: np.dtype[Any] | None = None
        self._size = 0
        self.kind = kind

    @property
    def np_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of arrays of this type."""
        found = self._dtype
        if found is None:
            found = self._dtype = np.dtype(_small(self._np))
        return found

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type, e.g. `numpy.float32`; of a quantised type a dtype of its name."""
        if self.kind == "q":
            return np.dtype([(self.name, self.np_dtype)])
        return self.np_dtype.type

    @property
    def is_floating(self) -> bool:
        """Whether it is a real floating-point type."""
        return self.kind in "fe"

    @property
    def is_half(self) -> bool:
        """Whether it is floating-point of 16 bits: float16 or bfloat16."""
        return self.name in ("float16", "bfloat16")

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer type."""
        return self.kind in "iunm"

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an unsigned integer type."""
        return self.kind in "um"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self.kind == "c"

    @property
    def is_bool(self) -> bool:
        """Whether it is the bool type."""
        return self.kind == "b"

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined, or would be once a scale is applied."""
        return self.kind in "fiucq"

    @property
    def is_quantized(self) -> bool:
        """Whether its numbers stand for others by a scale."""
        return self.kind == "q"

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether arrays of it are NumPy arrays of numbers, bools or bytes."""
        return self.kind not in "rv"

    @property
    def as_datatype_enum(self) -> int:
        """TensorFlow's number for it."""
        return _NUMBERS[self.name]

    def __int__(self) -> int:
        return self.as_datatype_enum

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients flow through tensors of this type."""
        return self.kind in "fcv"

    @property
    def size(self) -> int:
        """Bytes per element."""
        found = self._size
        if not found:
            found = self._size = int(self.np_dtype.itemsize)
        return found

    @property
    def base_dtype(self) -> DType:
        """The type itself: flowscope has no reference types."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The type of the real part."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def min(self) -> Any:
        """The lowest finite value."""
        return _limit(self, "min")

    @property
    def max(self) -> Any:
        """The highest finite value."""
        return _limit(self, "max")

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range that images of this type use: from 0 to 1, or to the highest integer."""
        if self.kind in "iu":
            return 0, self.max
        if self.name in ("float32", "float64"):
            return 0, 1
        if self.kind == "b":
            return False, True
        raise DTypeError(f"{self.name} has no limits")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor of `other` fits where this type is asked for."""
        return self == as_dtype(other)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether it is `other`: no type is part of another one."""
        return self == as_dtype(other)

    def most_specific_common_supertype(self, types: Any) -> DType | None:
        """Returns it if all `types` are it, else None."""
        return self if all(self == as_dtype(t) for t in types) else None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType) or other in (int, complex, str, bytes):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"fs.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


def _ml_dtypes() -> Any:
    import ml_dtypes

    return ml_dtypes


def _small(np_dtype: Any) -> Any:
    """Returns NumPy's type; one that is given by name is one of ml_dtypes."""
    return getattr(_ml_dtypes(), np_dtype) if isinstance(np_dtype, str) else np_dtype


float16 = DType("float16", np.float16, "f")
float32 = DType("float32", np.float32, "f")
float64 = DType("float64", np.float64, "f")
bfloat16 = DType("bfloat16", "bfloat16", "f")
int8 = DType("int8", np.int8, "i")
int16 = DType("int16", np.int16, "i")
int32 = DType("int32", np.int32, "i")
int64 = DType("int64", np.int64, "i")
uint8 = DType("uint8", np.uint8, "u")
uint16 = DType("uint16", np.uint16, "u")
uint32 = DType("uint32", np.uint32, "u")
uint64 = DType("uint64", np.uint64, "u")
complex64 = DType("complex64", np.complex64, "c")
complex128 = DType("complex128", np.complex128, "c")
bool_ = DType("bool", np.bool_, "b")
#: Bytes of any length; arrays hold Python `bytes` objects.
string = DType("string", np.object_, "s")
#: A handle to state that outlives a step.
resource = DType("resource", np.object_, "r")
#: An immutable value that is no array: a list of tensors' values, say.
variant = DType("variant", np.object_, "v")

qint8 = DType("qint8", np.int8, "q")
quint8 = DType("quint8", np.uint8, "q")
qint16 = DType("qint16", np.int16, "q")
quint16 = DType("quint16", np.uint16, "q")
qint32 = DType("qint32", np.int32, "q")
float8_e5m2 = DType("float8_e5m2", "float8_e5m2", "e")
float8_e4m3fn = DType("float8_e4m3fn", "float8_e4m3fn", "e")
float8_e4m3fnuz = DType("float8_e4m3fnuz", "float8_e4m3fnuz", "e")
float8_e4m3b11fnuz = DType("float8_e4m3b11fnuz", "float8_e4m3b11fnuz", "e")
float8_e5m2fnuz = DType("float8_e5m2fnuz", "float8_e5m2fnuz", "e")
int2 = DType("int2", "int2", "n")
uint2 = DType("uint2", "uint2", "m")
int4 = DType("int4", "int4", "n")
uint4 = DType("uint4", "uint4", "m")

half = float16
double = float64

# TensorFlow's references to variables; here they have the variables' own types.
float16_ref = float16
float32_ref = float32
float64_ref = float64
bfloat16_ref = bfloat16
int8_ref = int8
int16_ref = int16
int32_ref = int32
int64_ref = int64
uint8_ref = uint8
uint16_ref = uint16
uint32_ref = uint32
uint64_ref = uint64
complex64_ref = complex64
complex128_ref = complex128
string_ref = string
qint8_ref = qint8
quint8_ref = quint8
qint16_ref = qint16
quint16_ref = quint16
qint32_ref = qint32
bool_ref = bool_
half_ref, double_ref = half, double

ALL = (
    float16,
    float32,
    float64,
    bfloat16,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    complex64,
    complex128,
    bool_,
    string,
    resource,
    variant,
    qint8,
    quint8,
    qint16,
    quint16,
    qint32,
    float8_e5m2,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e4m3b11fnuz,
    float8_e5m2fnuz,
    int2,
    uint2,
    int4,
    uint4,
)
#: Types of ml_dtypes, which NumPy arrays can have, and CuPy's not.
SMALL = frozenset(d for d in ALL if d.kind in "enm" or d is bfloat16)
QUANTIZED_DTYPES = frozenset(d for d in ALL if d.kind == "q")
#: TensorFlow's numbers for its types.
_NUMBERS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "string": 7,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "resource": 20,
    "variant": 21,
    "uint32": 22,
    "uint64": 23,
    "qint8": 11,
    "quint8": 12,
    "qint32": 13,
    "qint16": 15,
    "quint16": 16,
    "float8_e5m2": 24,
    "float8_e4m3fn": 25,
    "float8_e4m3fnuz": 26,
    "float8_e4m3b11fnuz": 27,
    "float8_e5m2fnuz": 28,
    "int4": 29,
    "uint4": 30,
    "int2": 31,
    "uint2": 32,
}
#: What TensorFlow adds for a reference to a variable, which here is the variable's own type.
_REF = 100
_BY_NUMBER = {_NUMBERS[d.name] + ref: d for d in ALL for ref in (0, _REF)}
_BY_NAME = {
    **{d.name: d for d in ALL},
    **{f"{d.name}_ref": d for d in ALL},
    "half": half,
    "double": double,
    "float": float32,
    "int": int32,
}
_BY_PYTHON = {
    float: float32,
    int: int32,
    bool: bool_,
    complex: complex128,
    str: string,
    bytes: string,
}
_BY_NUMPY = {d.np_dtype: d for d in ALL if d.kind in "fiucb" and d not in SMALL}


def as_dtype(type_value: Any) -> DType:
    """Returns the `DType` that `type_value` (a DType, a name, a NumPy or Python type) stands for.

    Raises:
        DTypeError: if there is none.
    """
    value = type_value
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    if isinstance(value, int) and value in _BY_NUMBER:
        return _BY_NUMBER[value]
    if value is None:
        raise DTypeError("expected a dtype, got None")
    try:
        return of_numpy(np.dtype(value))
    except TypeError:
        raise DTypeError(f"expected a dtype, got {value!r}") from None


@functools.cache
def of_numpy(dtype: np.dtype[Any]) -> DType:
    """Returns the `DType` of arrays of NumPy's `dtype`; raises DTypeError if there is none."""
    found = _BY_NUMPY.get(dtype.newbyteorder("="))
    if found is not None:
        return found
    if dtype.kind in "OSUT":
        return string
    if dtype.names is not None and len(dtype.names) == 1 and dtype.names[0] in _BY_NAME:
        return _BY_NAME[dtype.names[0]]
    found = _BY_NAME.get(dtype.name)
    if found in SMALL:
        return found
    raise DTypeError(f"no flowscope dtype for NumPy's {dtype}")
