"""Counting: how often numbers come, and how many lie in each of equal parts of a range."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same, check_shape
from flowscope.ops.kernels.bounds import bounds
from flowscope.ops.kernels.scatter_rows import add_rows

__all__ = ["bincount", "histogram_fixed_width", "histogram_fixed_width_bins", "unravel_index"]


@frozen
class Bincount(Op, is_differentiable=False, accumulates=True):
    """How often each integer from 0 on comes, or the sum of the weights that come with it.

    Attributes: `low` and `high` are limits of the result's length, `high` -1 for none.
    Shapes: numbers s, and weights s if there are any -> [?]
    Raises: InvalidArgumentError if a number is negative.
    """

    low: int
    high: int
    dtype: DType

    def infer(self, numbers: Spec, *weights: Spec) -> Spec:
        check_kind(numbers.dtype, "iu", "integers to count")
        for w in weights:
            if w.dtype is not self.dtype or w.dtype.kind not in "fiu":
                raise expected_dtype(f"real weights of {self.dtype}", w.dtype)
            if not compatible(numbers.shape, w.shape):
                raise expected("a weight per number", f"{text(w.shape)} for {text(numbers.shape)}")
        return Spec(self.dtype, (self.high if self.low == self.high else None,))

    def kernel(self, xp: ArrayModule, numbers: Array, *weights: Array) -> Array:
        flat = numbers.reshape(-1)
        low, high = bounds(flat) if flat.size else (0, -1)
        if low < 0:
            raise expected("numbers from 0 on", low)
        n = max(self.low, int(high) + 1)
        given = [w.reshape(-1) for w in weights]
        if 0 <= self.high < n:
            n = self.high
            given = [w[flat < n] for w in given]
            flat = flat[flat < n]
        if given:
            return add_rows(xp, n, flat, given[0])
        return xp.bincount(flat, minlength=n)[:n].astype(self.dtype.np_dtype)


def _check_range(values: Spec, limits: Spec) -> None:
    check_same(values, limits)
    check_kind(values.dtype, "fi")
    check_shape(limits, (2,), "a range [low, high]")


def _limits(limits: Array) -> tuple[float, float]:
    low, high = [float(v) for v in limits.tolist()]
    if not low < high:
        raise expected("a range of rising limits", f"[{low}, {high}]")
    return low, high


def _parts(xp: ArrayModule, values: Array, limits: Array, count: int) -> Array:
    """Returns in which of `count` equal parts of a range each value lies, the outer ones open."""
    low, high = _limits(limits)
    parts = xp.asarray(values.astype(xp.float64))
    if low:
        parts -= low
    parts /= (high - low) / count
    # What is below, and NaN, counts at the lower end.
    xp.fmax(parts, 0, out=parts)
    xp.minimum(parts, count - 1, out=parts)
    return parts.astype(xp.int64)


@frozen
class HistogramFixedWidth(Op, is_differentiable=False, host_inputs=(1,)):
    """How many values lie in each of equal parts of a range; what lies outside counts at the ends.

    Shapes: values s, range [2] -> [bins]
    Raises: InvalidArgumentError if the range is empty.
    """

    bins: int
    dtype: DType

    def infer(self, values: Spec, limits: Spec) -> Spec:
        _check_range(values, limits)
        return Spec(self.dtype, (self.bins,))

    def kernel(self, xp: ArrayModule, values: Array, limits: Array) -> Array:
        parts = _parts(xp, values, limits, self.bins).reshape(-1)
        return xp.bincount(parts, minlength=self.bins).astype(self.dtype.np_dtype)


@frozen
class HistogramFixedWidthBins(Op, is_differentiable=False, host_inputs=(1,)):
    """In which of equal parts of a range each value lies; what lies outside, in those at the ends.

    Shapes: values s, range [2] -> s
    Raises: InvalidArgumentError if the range is empty.
    """

    bins: int
    dtype: DType

    def infer(self, values: Spec, limits: Spec) -> Spec:
        _check_range(values, limits)
        return values.like(self.dtype)

    def kernel(self, xp: ArrayModule, values: Array, limits: Array) -> Array:
        return _parts(xp, values, limits, self.bins).astype(self.dtype.np_dtype)[()]


class UnravelIndex(Op, is_differentiable=False, host_inputs=(1,)):
    """Positions in an array of a shape, from places in its elements row by row.

    Shapes: places s, dims [n] -> [n] + [number of places] (or [n] for one place)
    Raises: InvalidArgumentError if a place lies outside.
    """

    def infer(self, places: Spec, dims: Spec) -> Spec:
        check_same(places, dims)
        check_kind(places.dtype, "i")
        if places.rank not in (None, 0, 1) or dims.rank not in (None, 1):
            raise expected("places of rank 0 or 1 and a shape", places, dims)
        n = dims.shape[0] if dims.shape else None
        return Spec(places.dtype, None if places.shape is None else (n, *places.shape))

    def kernel(self, xp: ArrayModule, places: Array, dims: Array) -> Array:
        sizes = tuple(dims.tolist())
        total = 1
        for d in sizes:
            total *= d
        low, high = bounds(places) if places.size else (0, -1)
        if low < 0 or high >= total:
            raise expected(f"places in [0, {total})", f"{low} to {high}")
        left, found = places.astype(xp.int64), []
        for d in reversed(sizes):
            found.append(left % max(d, 1))
            left = left // max(d, 1)
        if not found:
            return xp.zeros((0, *places.shape), places.dtype)
        return xp.stack(found[::-1]).astype(places.dtype)


@op_function("arr:int32")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns how often each of the integers 0, 1, 2, ... occurs in `arr`.

    Args:
        arr: Integers from 0 on.
        weights: A number per integer: their sums are returned in place of counts.
        minlength: Least length of the result.
        maxlength: Greatest length: integers from there on do not count.
        dtype: Dtype of the result where there are no weights.
    """
    low, high = _number(minlength, 0, "minlength"), _number(maxlength, -1, "maxlength")
    low = min(low, high) if high >= 0 else low
    if weights is None:
        return apply(Bincount(low, high, as_dtype(dtype)), arr, name=name or "bincount")
    given = convert_to_tensor(weights)
    return apply(Bincount(low, high, given.dtype), arr, given, name=name or "bincount")


def _number(value: Any, default: int, what: str) -> int:
    from flowscope.graph.constant import get_static_value

    if value is None:
        return default
    known = get_static_value(value)
    if known is None or known.shape != () or known < 0:
        raise expected(f"a {what} from 0 on, known while the graph is built", repr(value))
    return int(known)


def _histogram(op: Any, values: Any, limits: Any, nbins: Any, dtype: Any, name: str) -> Tensor:
    x = convert_to_tensor(values)
    bins = _number(nbins, 100, "number of bins")
    if bins < 1:
        raise expected("one bin at least", bins)
    edges = convert_to_tensor(limits, None if isinstance(limits, Tensor) else x.dtype)
    return apply(op(bins, as_dtype(dtype)), x, edges, name=name)


def histogram_fixed_width(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns how many values lie in each bin; the bins are equal parts of a range.

    Args:
        values: Real numbers; those outside the range count at its ends, NaN at the lower one.
        value_range: [lowest, highest], of the values' dtype.
        nbins: Number of bins.
        dtype: Dtype of the result.
        name: Name of the operation.
    """
    found = name or "histogram_fixed_width"
    return _histogram(HistogramFixedWidth, values, value_range, nbins, dtype, found)


def histogram_fixed_width_bins(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns the index of the bin in which each value lies; see `histogram_fixed_width`."""
    found = name or "histogram_fixed_width_bins"
    return _histogram(HistogramFixedWidthBins, values, value_range, nbins, dtype, found)


@op_function("indices:int32 dims~indices")
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Returns coordinates, a row per axis, of flat (row-major) indices into an array.

    Args:
        indices: Flat indices: an integer or a vector of them.
        dims: Shape of the array, of the same dtype.
    """
    return apply(UnravelIndex(), indices, dims, name=name)
