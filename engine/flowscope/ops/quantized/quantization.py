"""Numbers of 8, 16 or 32 bits that stand for others in a range, and their products."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, merge_dims, text
from flowscope.ops.core.axes import as_axes, positive_axis
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.shape_rules import check_rank

__all__ = [
    "dequantize",
    "quantize",
    "quantize_v2",
]

_MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")


def _steps(dtype: DType) -> tuple[int, int]:
    """Returns the lowest and the highest integer of a quantised dtype."""
    info = np.iinfo(dtype.np_dtype)
    return int(info.min), int(info.max)


def _rounded(xp: ArrayModule, x: Array, away: bool = True) -> Array:
    """Returns the nearest integers; halves go away from 0, or to the even one."""
    return xp.sign(x) * xp.floor(xp.abs(x) + 0.5) if away else xp.rint(x)


@frozen
class QuantizeV2(Op, is_differentiable=False, devices=("CPU",)):
    """Integers that stand for numbers in a range, and the range that they really cover.

    Attributes: `axis` None stands for one range, others for one for each of its slices.
    Shapes: x s, min [], max [] -> s, [], [];   with an axis of n: min [n], max [n] -> s, [n], [n]
    """

    dtype: DType
    mode: str = "MIN_COMBINED"
    round_mode: str = "HALF_AWAY_FROM_ZERO"
    narrow_range: bool = False
    ensure_minimum_range: float = 0.01
    axis: int | None = None

    def infer(self, x: Spec, low: Spec, high: Spec) -> Any:
        for s in (x, low, high):
            if s.dtype is not dtypes.float32:
                raise expected_dtype("float32", s.dtype)
        ends = Spec(dtypes.float32, _check_ends(x.shape, self.axis, low.shape, high.shape))
        return x.like(self.dtype), ends, ends

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Any:
        _check_ends(x.shape, self.axis, low.shape, high.shape)
        if self.axis is None:
            return self._quantized(xp, x, low, high)
        out = xp.empty(x.shape, self.dtype.np_dtype)
        first, last = xp.empty(low.shape, xp.float32), xp.empty(low.shape, xp.float32)
        lines, found = xp.moveaxis(x, self.axis, 0), xp.moveaxis(out, self.axis, 0)
        for i in range(len(lines)):
            found[i], first[i], last[i] = self._quantized(xp, lines[i], low[i], high[i])
        return out, first, last

    def _quantized(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Any:
        first, last = _wide_range(float(low), float(high), self.ensure_minimum_range)
        least, most = _steps(self.dtype)
        if self.mode == "SCALED":
            least += self.narrow_range
            scale = _common_scale(first, last, least, most)
            first, last = least / scale, most / scale
            away = self.round_mode == "HALF_AWAY_FROM_ZERO"
            found = _rounded(xp, xp.clip(x, first, last) * np.float32(scale), away)
        elif self.mode == "MIN_FIRST":
            scale = (most - least) / (last - first)
            offset = round(first * scale) - least
            found = _rounded(xp, x * np.float32(scale)).astype(xp.float64)
            found = xp.clip(found - offset, least, most)
        else:
            scale = (most - least) / (last - first)
            half = (most - least + 1) / 2 if least < 0 else 0.0
            inside = xp.clip(x, np.float32(first), np.float32(last)) - np.float32(first)
            found = _rounded(xp, inside * np.float32(scale) - np.float32(half))
        ends = [xp.asarray(v, xp.float32)[()] for v in (first, last)]
        return (found.astype(self.dtype.np_dtype), *ends)


def _check_ends(dims: Dims, axis: int | None, *ends: Dims) -> Dims:
    """Returns the shape of a range's ends: a scalar, or one for each slice along an axis."""
    wanted: Dims = ()
    if axis is not None:
        wanted = (None if dims is None else dims[positive_axis(axis, len(dims))],)
    for end in ends:
        if not compatible(end, wanted):
            what = "a scalar" if axis is None else f"{text(wanted)}, one per slice,"
            raise expected(f"{what} for each end", end)
    return functools.reduce(merge_dims, ends, wanted)


def _wide_range(low: float, high: float, least: float) -> tuple[float, float]:
    """Returns a range that holds 0 and is not too small."""
    if not low <= high:
        raise expected("min_range up to max_range", low, high)
    low = min(0.0, low)
    return low, max(0.0, high, low + max(1.0, abs(low), abs(high)) * least)


def _common_scale(first: float, last: float, least: int, most: int) -> float:
    scales = [q / r for q, r in ((least, first), (most, last)) if q * r > 0]
    return min(scales, default=float(np.finfo(np.float32).max))


@frozen
class Dequantize(Op, is_differentiable=False, devices=("CPU",)):
    """The numbers that integers stand for, in a range.

    Attributes: `axis` None stands for one range, others for one for each of its slices.
    Shapes: x s, min [], max [] -> s;   with an axis of n: min [n], max [n] -> s
    """

    mode: str = "MIN_COMBINED"
    narrow_range: bool = False
    axis: int | None = None

    def infer(self, x: Spec, low: Spec, high: Spec) -> Spec:
        if not x.dtype.is_quantized:
            raise expected_dtype("a quantised dtype, such as qint8", x.dtype)
        _check_ends(x.shape, self.axis, low.shape, high.shape)
        return x.like(dtypes.float32)

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Array:
        _check_ends(x.shape, self.axis, low.shape, high.shape)
        if self.axis is None:
            return self._dequantized(xp, x, low, high)
        out = xp.empty(x.shape, xp.float32)
        lines, found = xp.moveaxis(x, self.axis, 0), xp.moveaxis(out, self.axis, 0)
        for i in range(len(lines)):
            found[i] = self._dequantized(xp, lines[i], low[i], high[i])
        return out

    def _dequantized(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Array:
        first, last = float(low), float(high)
        info = np.iinfo(x.dtype)
        least, most = int(info.min), int(info.max)
        wide = x.astype(xp.float32)
        if self.mode == "SCALED":
            least += self.narrow_range
            scale = last / most if not least else max(first / least, last / most)
            return wide * np.float32(scale)
        scale = (last - first) / (most - least)
        if self.mode == "MIN_FIRST":
            start = round(first / scale) * scale if scale else first
            return ((x.astype(xp.float64) - least) * scale + start).astype(xp.float32)
        half = np.float32((most - least + 1) / 2 if least < 0 else 0)
        return (wide + half) * np.float32(scale) + np.float32(first)


def quantize_v2(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    axis: Any = None,
    ensure_minimum_range: float = 0.01,
) -> Any:
    """Returns integers that stand for numbers, and the ends of the range that they cover.

    Args:
        input: float32 numbers; those outside the range are cut to it.
        min_range: The range's lower end, a scalar; with an axis one for each of its slices.
        max_range: The upper end, or ends.
        T: A quantised dtype.
        mode: "MIN_COMBINED", "MIN_FIRST" (0 is exact) or "SCALED" (0 stands for 0).
        name: Name of the operation.
        round_mode: "HALF_AWAY_FROM_ZERO", or for "SCALED" also "HALF_TO_EVEN".
        narrow_range: For "SCALED": whether the lowest integer is not used.
        axis: The axis whose slices have a range each; None for one range.
        ensure_minimum_range: Least size of the range, as a part of its larger end or of 1.
    """
    dtype = as_dtype(T)
    if not dtype.is_quantized or mode not in _MODES:
        raise expected(f"a quantised dtype and a mode of {_MODES}", dtype, repr(mode))
    least = float(ensure_minimum_range)
    op = QuantizeV2(dtype, mode, round_mode, bool(narrow_range), least, _one_axis(axis))
    return apply_many(op, *_floats(input, min_range, max_range), name=name)


def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: Any = None,
    ensure_minimum_range: float = 0.01,
) -> Any:
    """Returns the same as `quantize_v2`, whose arguments come in another order."""
    return quantize_v2(
        input, min_range, max_range, T, mode, name or "quantize", round_mode, narrow_range, axis,
        ensure_minimum_range,
    )  # fmt: skip


def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: Any = None,
    narrow_range: bool = False,
    dtype: Any = dtypes.float32,
) -> Tensor:
    """Returns the numbers that quantised integers stand for; see `quantize_v2`."""
    if mode not in _MODES or as_dtype(dtype) is not dtypes.float32:
        raise expected(f"a mode of {_MODES} and float32", repr(mode), dtype)
    low, high = _floats(min_range, max_range)
    op = Dequantize(mode, bool(narrow_range), _one_axis(axis))
    return apply(op, convert_to_tensor(input), low, high, name=name)


def _one_axis(axis: Any) -> int | None:
    axes = as_axes(axis)
    if axes is not None and len(axes) != 1:
        raise expected("one axis or None", repr(axis))
    return None if axes is None else axes[0]


def _floats(*values: Any) -> list[Tensor]:
    return [convert_to_tensor(v, None if isinstance(v, Tensor) else dtypes.float32) for v in values]


# -- products -------------------------------------------------------------------------------------


class QuantizedMatMul(Op, is_differentiable=False, uses_blas=True, devices=("CPU",)):
    """The product of matrices of quint8, as qint32, and the range that it covers.

    Shapes: a [m, k], b [k, n], four scalars: the ends of their ranges -> [m, n], [], []
    """

    def infer(self, a: Spec, b: Spec, *ends: Spec) -> Any:
        for s in (a, b):
            if s.dtype is not dtypes.quint8:
                raise expected_dtype("quint8", s.dtype)
            check_rank(s, 2, "matrices")
        _check_ends(None, None, *[end.shape for end in ends])
        m, k = a.shape or (None, None)
        j, n = b.shape or (None, None)
        if k is not None and j is not None and k != j:
            raise InvalidArgumentError(f"inner dimensions must agree: expected {k}, got {j}")
        end = Spec(dtypes.float32, ())
        return Spec(dtypes.qint32, (m, n)), end, end

    def kernel(self, xp: ArrayModule, a: Array, b: Array, *ends: Array) -> Any:
        if not a.ndim == b.ndim == 2:
            raise expected("matrices", a.shape, b.shape)
        ranges = [float(e) for e in ends]
        # Sums of products of 8 bits are exact in float64, and BLAS knows no integers.
        wide = [x.astype(xp.float64) - _zero(*ranges[i : i + 2]) for i, x in ((0, a), (2, b))]
        found = xp.matmul(*wide).astype(xp.int32)
        step = np.float32((ranges[1] - ranges[0]) / 255 * ((ranges[3] - ranges[2]) / 255))
        limits = [xp.asarray(step * np.float32(v), xp.float32)[()] for v in (-(2**31), 2**31 - 1)]
        return (found, *limits)


def _zero(low: float, high: float) -> float:
    """Returns the integer that stands for 0."""
    return float(round(-low * 255 / (high - low)))


def quantized_matmul(
    a: Any, b: Any, min_a: Any, max_a: Any, min_b: Any, max_b: Any, name: str | None = None
) -> Any:
    """Returns the product of quint8 matrices as qint32, and the ends of the range that it covers.

    Args:
        a: A matrix.
        b: A matrix.
        min_a: Lower end of a's range.
        max_a: Upper end.
        min_b: Lower end of b's range.
        max_b: Upper end.
        name: Name of the operation.
    """
    ends = _floats(min_a, max_a, min_b, max_b)
    op = QuantizedMatMul()
    return apply_many(op, convert_to_tensor(a), convert_to_tensor(b), *ends, name=name)
