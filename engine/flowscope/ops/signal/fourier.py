"""Discrete Fourier transforms over the last one, two or three axes."""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible
from flowscope.graph.values.work import per_comparison
from flowscope.ops.array.arrays import range as range_
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import where_v2
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast, conj, real
from flowscope.ops.core.declare import named, op_function
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.kernels.scipy_modules import scipy_of
from flowscope.ops.math.elementwise import equal, logical_or, multiply, realdiv
from flowscope.ops.math.reductions import reduce_prod

__all__ = ["fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"]


def _check_rank(x: Spec, rank: int) -> None:
    if x.rank is not None and x.rank < rank:
        raise expected(f"rank {rank} at least", x.shape)


@frozen
class FFT(Op, work=per_comparison(0.6e-9)):
    """The transform of complex numbers over the last `rank` axes; `inverse` divides by their size.

    Shapes: [..., n0, ...] -> [..., n0, ...]
    """

    rank: int = 1
    inverse: bool = False

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "c", "complex64 or complex128")
        _check_rank(x, self.rank)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        """The transform is linear: its adjoint is the inverse times the size, and back."""
        size = cast(reduce_prod(shape_of(x)[-self.rank :]), x.dtype)
        back = apply(FFT(self.rank, not self.inverse), g)
        return ((realdiv if self.inverse else multiply)(back, size),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        axes = tuple(range(-self.rank, 0))
        if not x.size:
            return x.copy()
        # SciPy's run several lines at once, thrice as fast as NumPy's.
        fft = scipy_of(xp, "fft")
        return (fft.ifftn if self.inverse else fft.fftn)(x, axes=axes).astype(x.dtype, copy=False)


@frozen
class RFFT(Op, grad_reads=("length",), host_inputs=(1,), work=per_comparison(0.6e-9)):
    """The first half of the transform of real numbers over the last `rank` axes, cut or padded.

    Shapes: x [..., n0, ...], length [rank] -> [..., length[0], ..., length[-1] // 2 + 1]
    """

    rank: int = 1

    def infer(self, x: Spec, length: Spec) -> Spec:
        if x.dtype.name not in ("float32", "float64"):
            raise expected_dtype("float32 or float64", x.dtype)
        _check_rank(x, self.rank)
        sizes = _sizes(length, self.rank, least=1)
        last = None if sizes[-1] is None else sizes[-1] // 2 + 1
        out = dtypes.complex64 if x.dtype is dtypes.float32 else dtypes.complex128
        if x.shape is None:
            return Spec(out, None)
        return Spec(out, (*x.shape[: -self.rank], *sizes[:-1], last))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, length: Tensor) -> Any:
        """The real part of the whole transform of g, filled up with zeros."""
        filled = _resized(g, length, self.rank)
        whole = conj(apply(FFT(self.rank), conj(filled)))
        return _resized(real(whole), shape_of(x)[-self.rank :], self.rank), None

    def kernel(self, xp: ArrayModule, x: Array, length: Array) -> Array:
        sizes, axes = length.tolist(), tuple(range(-self.rank, 0))
        out = xp.complex64 if x.dtype.itemsize == 4 else xp.complex128
        return scipy_of(xp, "fft").rfftn(x, sizes, axes).astype(out, copy=False)


@frozen
class IRFFT(Op, grad_reads=("length",), host_inputs=(1,), work=per_comparison(0.6e-9)):
    """The real numbers whose transform's first half the input is, over the last `rank` axes.

    Shapes: x [..., n0, ...], length [rank] -> [..., length[0], ...]
    """

    rank: int = 1

    def infer(self, x: Spec, length: Spec) -> Spec:
        check_kind(x.dtype, "c", "complex64 or complex128")
        _check_rank(x, self.rank)
        sizes = _sizes(length, self.rank, least=1)
        if x.shape is None:
            return Spec(x.dtype.real_dtype, None)
        return Spec(x.dtype.real_dtype, (*x.shape[: -self.rank], *sizes))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, length: Tensor) -> Any:
        """The transform of g over the size; what stands for two frequencies counts twice."""
        half = apply(RFFT(self.rank), g, length)
        places = range_(shape_of(half)[-1])
        is_single = logical_or(equal(places, 0), equal(places * 2, length[-1]))
        weight = where_v2(is_single, 1.0, 2.0)
        scale = realdiv(cast(weight, g.dtype), cast(reduce_prod(length), g.dtype))
        scaled = multiply(half, cast(scale, x.dtype))
        return _resized(scaled, shape_of(x)[-self.rank :], self.rank), None

    def kernel(self, xp: ArrayModule, x: Array, length: Array) -> Array:
        sizes, axes = length.tolist(), tuple(range(-self.rank, 0))
        out = xp.float32 if x.dtype.itemsize == 8 else xp.float64
        return scipy_of(xp, "fft").irfftn(x, sizes, axes).astype(out, copy=False)


def _sizes(length: Spec, rank: int, least: int = 0) -> tuple[Any, ...]:
    if length.dtype.name not in ("int32", "int64") or not compatible(length.shape, (rank,)):
        raise expected_dtype(f"{rank} lengths of int32 or int64", length)
    numbers: list[int] = [] if length.constant is None else length.constant.reshape(-1).tolist()
    if any(n < least for n in numbers):
        raise expected(f"lengths of {least} at least", numbers)
    return length.shape_value() or (None,) * rank


@frozen
class Resized(Op, host_inputs=(1,)):
    """The input with its last axes cut, or filled up with zeros, to the lengths given.

    Shapes: x [..., n0, ...], lengths [rank] -> [..., lengths[0], ...]
    """

    rank: int

    def infer(self, x: Spec, lengths: Spec) -> Spec:
        sizes = _sizes(lengths, self.rank)
        return Spec(x.dtype, None if x.shape is None else (*x.shape[: -self.rank], *sizes))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, lengths: Tensor) -> Any:
        return apply(self, g, shape_of(x)[-self.rank :]), None

    def kernel(self, xp: ArrayModule, x: Array, lengths: Array) -> Array:
        sizes = lengths.tolist()
        out = xp.zeros((*x.shape[: -self.rank], *sizes), x.dtype)
        both = [slice(0, min(d, n)) for d, n in zip(x.shape[-self.rank :], sizes)]
        out[(..., *both)] = x[(..., *both)]
        return out


def _resized(x: Tensor, lengths: Tensor, rank: int) -> Tensor:
    return apply(Resized(rank), x, lengths)


def _kind(letters: str, rank: int, inverse: bool) -> str:
    return f"{'I' if inverse else ''}{letters}{'' if rank == 1 else f'{rank}D'}"


def _axes(rank: int) -> str:
    return "axis" if rank == 1 else f"{rank} axes"


def _complex(rank: int, inverse: bool) -> Any:
    op, kind = FFT(rank, inverse), _kind("FFT", rank, inverse)
    what = f"{'inverse of the ' if inverse else ''}discrete Fourier transform"

    @op_function("input")
    def transform(input: Any, name: str | None = None) -> Tensor:
        return apply(op, input, name=name or kind)

    doc = f"""Returns the {what} of complex numbers over the last {_axes(rank)}.

    Args:
        input: A tensor of complex64 or complex128.
        name: Name of the operation.
    """
    return named(transform, kind.lower(), doc)


fft, ifft = _complex(1, False), _complex(1, True)
fft2d, ifft2d = _complex(2, False), _complex(2, True)
fft3d, ifft3d = _complex(3, False), _complex(3, True)


def _real(rank: int, inverse: bool) -> Any:
    op: Op = IRFFT(rank) if inverse else RFFT(rank)
    kind = _kind("RFFT", rank, inverse)

    @op_function("input_tensor fft_length:int32")
    def transform(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        if fft_length is None:
            sizes = shape_of(input_tensor)[-rank:]
            fft_length = _whole(sizes) if inverse else sizes
        return apply(op, input_tensor, fft_length, name=name or kind)

    what = "real numbers from the first half of their" if inverse else "first half of the"
    doc = f"""Returns the {what} Fourier transform over the last {_axes(rank)}.

    Args:
        input_tensor: A tensor.
        fft_length: Lengths of the real numbers; longer inputs are cut, shorter ones filled up.
        name: Name of the operation.
    """
    return named(transform, kind.lower(), doc)


def _whole(sizes: Tensor) -> Tensor:
    """Returns the lengths of real numbers by those of half their transform."""
    return concat([sizes[:-1], (sizes[-1:] - 1) * 2], 0)


rfft, irfft = _real(1, False), _real(1, True)
rfft2d, irfft2d = _real(2, False), _real(2, True)
rfft3d, irfft3d = _real(3, False), _real(3, True)
