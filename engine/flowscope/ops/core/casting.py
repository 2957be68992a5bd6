"""Changes of dtype, and the parts of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected_dtype
from flowscope.graph.values.shapes import broadcast
from flowscope.ops.core import builder
from flowscope.ops.core.broadcasting import unbroadcast
from flowscope.ops.core.build import apply, binary, on_values
from flowscope.ops.core.shape_rules import check_kind

__all__ = [
    "bitcast",
    "cast",
    "complex",
    "conj",
    "imag",
    "real",
    "saturate_cast",
    "to_bfloat16",
    "to_complex64",
    "to_complex128",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
]


@frozen
class Cast(Op, memory_order="K", native="cast"):
    """The input with another dtype: towards integers it is cut off, complex numbers lose their
    imaginary part, and whatever is not 0 is True.
    """

    dtype: DType

    def infer(self, x: Spec) -> Spec:
        if x.dtype.kind not in _NUMBERS or self.dtype.kind not in _NUMBERS:
            raise expected_dtype(f"numbers or bools to cast to {self.dtype}", x.dtype)
        if x.constant is not None and x.constant.size <= 16 and _is_integer(x.dtype, self.dtype):
            return Spec(self.dtype, x.shape, self.kernel(np, x.constant))
        dims = x.dims if _is_integer(x.dtype, self.dtype) else None
        return Spec(self.dtype, x.shape, dims=dims)

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        return 0 if inputs[0].dtype is self.dtype else None

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (cast(g, x.dtype) if x.dtype.is_differentiable else None,)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if isinstance(x, np.generic) and self.dtype.kind == "f" and x.dtype.kind in "fiub":
            return _numpy_type(self.dtype).type(x)  # quicker on scalars, to the same bits
        if x.dtype.kind == "c" and self.dtype.kind != "c":
            x = (x != 0) if self.dtype.kind == "b" else x.real
        if self.dtype.kind in "nm":
            return _wrapped(xp, x, self.dtype)
        return x.astype(_numpy_type(self.dtype))


#: Kinds of dtypes that can be cast.
_NUMBERS = frozenset("fiucbenm")


def _wrapped(xp: ArrayModule, x: Array, dtype: DType) -> Array:
    """Returns x as integers of 2 or 4 bits: of larger ones the lowest bits stay, as for others."""
    return x.astype(xp.int32).astype(xp.int8).astype(_numpy_type(dtype))


def _is_integer(*types: DType) -> bool:
    return all(t.kind in "iu" and t.size >= 4 for t in types)


_numpy_types: dict[DType, Any] = {}


def _numpy_type(dtype: DType) -> Any:
    found = _numpy_types.get(dtype)
    if found is None:
        found = _numpy_types[dtype] = dtype.np_dtype
    return found


class Conj(Op, template="xp.conj({0})"):
    """The complex conjugate, element by element."""

    def infer(self, x: Spec) -> Spec:
        return _complex(x, x.dtype)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (conj(g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return xp.conj(x)


class Real(Op):
    """The real part, element by element."""

    def infer(self, x: Spec) -> Spec:
        return _complex(x, x.dtype.real_dtype)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (cast(g, x.dtype),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x.real.copy()


class Imag(Op):
    """The imaginary part, element by element."""

    def infer(self, x: Spec) -> Spec:
        return _complex(x, x.dtype.real_dtype)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (complex(builder.zeros_like(g), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x.imag.copy()


class ComplexAbs(Op, grad_reads=("x",)):
    """The absolute value of complex numbers, element by element."""

    def infer(self, x: Spec) -> Spec:
        return _complex(x, x.dtype.real_dtype)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (builder.multiply(cast(g, x.dtype), builder.sign(x)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return xp.abs(x)


class Complex(Op):
    """Complex numbers from their real and imaginary parts, which are broadcast together."""

    def infer(self, re: Spec, im: Spec) -> Spec:
        if re.dtype is not im.dtype:
            raise expected_dtype("both of one dtype", re.dtype, im.dtype)
        if re.dtype not in (dtypes.float32, dtypes.float64):
            raise expected_dtype("float32 or float64 parts", re.dtype)
        out = dtypes.complex64 if re.dtype is dtypes.float32 else dtypes.complex128
        return Spec(out, broadcast(re.shape, im.shape))

    def grad(self, g: Tensor, y: Tensor, re: Tensor, im: Tensor) -> Any:
        return unbroadcast(real(g), re, im), unbroadcast(imag(g), im, re)

    def kernel(self, xp: ArrayModule, re: Array, im: Array) -> Array:
        out = xp.empty(
            xp.broadcast(re, im).shape, xp.complex64 if re.dtype.itemsize == 4 else xp.complex128
        )
        out.real, out.imag = re, im
        return out[()]


@frozen
class Bitcast(Op, is_differentiable=False):
    """The same bits read as another dtype.

    Shapes: [...] -> [...] for equal sizes, [..., n] if each element becomes n smaller ones, and
        [..., n] -> [...] if n of them become one larger.
    """

    dtype: DType

    def infer(self, x: Spec) -> Spec:
        for d in (x.dtype, self.dtype):
            if d.kind not in "fiuceq":
                raise expected_dtype("numeric dtypes", d)
        if x.shape is None:
            return Spec(self.dtype, None)
        before, after = x.dtype.size, self.dtype.size
        if before == after:
            return Spec(self.dtype, x.shape)
        if before > after:
            return Spec(self.dtype, (*x.shape, before // after))
        if not x.shape or x.shape[-1] not in (None, after // before):
            raise expected_dtype(f"a last dimension of {after // before} to make {self.dtype}", x)
        return Spec(self.dtype, x.shape[:-1])

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        before, after = x.dtype.itemsize, self.dtype.size
        x = xp.ascontiguousarray(x).reshape(x.shape)
        to = _numpy_type(self.dtype)
        if before == after:
            return x.view(to).copy()[()]
        if before > after:
            return x.reshape((*x.shape, 1)).view(to).copy()
        return x.view(to).reshape(x.shape[:-1]).copy()[()]


_CONJ, _REAL, _IMAG, _COMPLEX = Conj(), Real(), Imag(), Complex()
_CASTS: dict[DType, Cast] = {d: Cast(d) for d in dtypes.ALL}


def _complex(x: Spec, out: DType) -> Spec:
    check_kind(x.dtype, "c", "complex64 or complex128")
    return x.like(out)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Returns `x` with another dtype; `x` itself if it has it already.

    Args:
        x: A tensor of numbers or bools, a SparseTensor, or IndexedSlices.
        dtype: The new dtype. Towards integers numbers are cut off; what is not 0 is True.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.cast([1.7, -1.7], fs.int32))
        array([ 1, -1], dtype=int32)
    """
    dtype = as_dtype(dtype)
    if type(x) is not Tensor and isinstance(getattr(x, "values", None), Tensor):
        return on_values(x, lambda v: cast(v, dtype, name))  # type: ignore[no-any-return]
    x = convert_to_tensor(x)
    return x if x.spec.dtype is dtype else apply(_CASTS[dtype], x, name=name)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Returns `value` cast to `dtype`, what lies outside its range cut to its limits."""
    value, dtype = convert_to_tensor(value), as_dtype(dtype)
    if value.dtype.is_complex and not dtype.is_complex:
        value = real(value)
    if dtype.is_complex or value.dtype.is_bool or dtype.is_bool:
        return cast(value, dtype, name or "saturate_cast")
    if _plain(value.dtype, "min") < _plain(dtype, "min"):
        value = builder.maximum(
            value, convert_to_tensor(_inside(dtype.min, value.dtype), value.dtype)
        )
    if _plain(value.dtype, "max") > _plain(dtype, "max"):
        value = builder.minimum(
            value, convert_to_tensor(_inside(dtype.max, value.dtype), value.dtype)
        )
    return cast(value, dtype, name or "saturate_cast")


def _plain(dtype: DType, end: str) -> int | float:
    """Returns a limit of a dtype as Python's number: those compare exactly, of any two kinds."""
    limit = getattr(dtype, end)
    return float(limit) if dtype.is_floating else int(limit)


def _inside(limit: Any, dtype: DType) -> Any:
    """Returns the number of a dtype next to a limit, towards 0 where it is not exact."""
    if not dtype.is_floating:
        return limit
    found = dtype.np_dtype.type(limit)
    if abs(float(found)) > abs(float(limit)) or (isinstance(limit, int) and int(found) > limit > 0):
        found = np.nextafter(found, dtype.np_dtype.type(0))
    return found


def widened(x: Tensor) -> Tensor:
    """Returns floating-point numbers of 16 bits as float32, and others as they are."""
    return cast(x, dtypes.float32) if x.dtype.is_half else x


def to_float(x: Any, name: str = "ToFloat") -> Tensor:
    """Returns `x` as float32."""
    return cast(x, dtypes.float32, name)


def to_double(x: Any, name: str = "ToDouble") -> Tensor:
    """Returns `x` as float64."""
    return cast(x, dtypes.float64, name)


def to_int32(x: Any, name: str = "ToInt32") -> Tensor:
    """Returns `x` as int32."""
    return cast(x, dtypes.int32, name)


def to_int64(x: Any, name: str = "ToInt64") -> Tensor:
    """Returns `x` as int64."""
    return cast(x, dtypes.int64, name)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Tensor:
    """Returns `x` as bfloat16."""
    return cast(x, dtypes.bfloat16, name)


def to_complex64(x: Any, name: str = "ToComplex64") -> Tensor:
    """Returns `x` as complex64."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Tensor:
    """Returns `x` as complex128."""
    return cast(x, dtypes.complex128, name)


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """Returns the bits of `input` read as another dtype."""
    return apply(Bitcast(as_dtype(type)), convert_to_tensor(input), name=name)


def conj(x: Any, name: str | None = None) -> Tensor:
    """Returns the complex conjugate; a real tensor is returned as it is."""
    x = convert_to_tensor(x)
    return apply(_CONJ, x, name=name) if x.spec.dtype.kind == "c" else x


def real(input: Any, name: str | None = None) -> Tensor:
    """Returns the real part; a real tensor is returned as it is."""
    x = convert_to_tensor(input)
    return apply(_REAL, x, name=name) if x.spec.dtype.kind == "c" else x


def imag(input: Any, name: str | None = None) -> Tensor:
    """Returns the imaginary part of a complex tensor."""
    return apply(_IMAG, convert_to_tensor(input), name=name)


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Returns complex numbers from their parts, float32 or float64."""
    return binary(_COMPLEX, real, imag, name)
