"""Element types of tensors, under TensorFlow's names."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flowscope.errors import DTypeError


class DType:
    """An element type. There is one instance of each; compare with `==` (NumPy's types fit too).

    Attributes:
        name: TensorFlow's name, e.g. "float32".
    """

    __slots__ = ("_np", "kind", "name")

    def __init__(self, name: str, np_dtype: Any, kind: str) -> None:
        self.name = name
        self._np = np_dtype
        #: "f" float, "i" signed, "u" unsigned, "c" complex, "b" bool, "s" bytes, "r" resource, "v"
        #: variant.
        self.kind = kind

    @property
    def np_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of arrays of this type."""
        made = self._np if isinstance(self._np, type) else self._np()
        found: np.dtype[Any] = np.dtype(made)
        return found

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type, e.g. `numpy.float32`."""
        return self.np_dtype.type

    @property
    def is_floating(self) -> bool:
        """Whether it is a real floating-point type."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer type."""
        return self.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an unsigned integer type."""
        return self.kind == "u"

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
        """Whether arithmetic is defined."""
        return self.kind in "fiuc"

    @property
    def is_quantized(self) -> bool:
        """Whether its numbers stand for others by a scale: flowscope has no such types."""
        return False

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether arrays of it are NumPy arrays of numbers, bools or bytes."""
        return self.kind not in "rv"

    @property
    def as_datatype_enum(self) -> int:
        """TensorFlow's number for it."""
        return _NUMBERS[self.name]

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients flow through tensors of this type."""
        return self.kind in "fcv"

    @property
    def size(self) -> int:
        """Bytes per element."""
        return int(self.np_dtype.itemsize)

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
        return self._limit("min")

    @property
    def max(self) -> Any:
        """The highest finite value."""
        return self._limit("max")

    @property
    def limits(self) -> tuple[Any, Any]:
        """(min, max)."""
        return self.min, self.max

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor of `other` fits where this type is asked for."""
        return self == as_dtype(other)

    def _limit(self, which: str) -> Any:
        if self.kind == "b":
            return which == "max"
        if self.kind in "iu":
            return getattr(np.iinfo(self.np_dtype), which)
        if self.name == "bfloat16":
            import ml_dtypes

            finfo: Any = ml_dtypes.finfo
            return getattr(finfo(self.np_dtype), which)
        if self.kind == "f":
            return getattr(np.finfo(self.np_dtype), which)
        raise DTypeError(f"{self.name} has no {which}imum")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
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


def _bfloat16() -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16


float16 = DType("float16", np.float16, "f")
float32 = DType("float32", np.float32, "f")
float64 = DType("float64", np.float64, "f")
bfloat16 = DType("bfloat16", _bfloat16, "f")
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

half = float16
double = float64

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
)
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
}
_BY_NUMBER = {_NUMBERS[d.name]: d for d in ALL}
_BY_NAME = {d.name: d for d in ALL} | {
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
_BY_NUMPY = {d.np_dtype: d for d in ALL if d.kind not in "srv" and d is not bfloat16}


def as_dtype(value: Any) -> DType:
    """Returns the `DType` that `value` (a DType, a name, a NumPy or Python type) stands for.

    Raises:
        DTypeError: if there is none.
    """
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
    if dtype.kind in "OSU":
        return string
    if dtype.name == "bfloat16":
        return bfloat16
    raise DTypeError(f"no flowscope dtype for NumPy's {dtype}")
