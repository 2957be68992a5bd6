"""Reductions over segments: rows that share a number are folded into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.array.arrays import fill, ones_like, rank, zeros_like
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of
from flowscope.ops.core.broadcasting import broadcast_to
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast, widened
from flowscope.ops.core.declare import named, op_function
from flowscope.ops.core.shape_rules import check_kind, check_rank
from flowscope.ops.kernels.bounds import bounds
from flowscope.ops.kernels.scatter_rows import add_rows, fold_rows
from flowscope.ops.math.elementwise import (
    equal,
    greater_equal,
    logical_and,
    maximum,
    multiply,
    realdiv,
    sqrt,
)

__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "sparse_segment_mean",
    "sparse_segment_sqrt_n",
    "sparse_segment_sum",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
]


def check_ids(ids: Spec, what: str = "segment ids") -> None:
    """Raises DTypeError unless these are integers."""
    if ids.dtype.name not in ("int32", "int64"):
        raise expected_dtype(f"{what} of dtype int32 or int64", ids.dtype)


def _check_prefix(x: Dims, ids: Dims) -> None:
    if x is not None and ids is not None and not compatible(x[: len(ids)], ids):
        raise expected(f"a segment id per row of {text(x)}", f"ids of shape {text(ids)}")


class _Segments(Op, abstract=True):
    """Base: folds the rows of x that share an id. Empty segments get `empty`, or the dtype's."""

    kinds: ClassVar[str] = "fiuc"
    function: ClassVar[str] = "add"

    def _folded(self, xp: ArrayModule, x: Array, ids: Array, n: int, empty: Any) -> Array:
        """Returns n rows; ids below 0 do not count, and rise where `empty` is given."""
        _check_prefix(x.shape, ids.shape)
        rows, places = x.reshape(ids.size, *x.shape[ids.ndim :]), ids.reshape(-1)
        if ids.size and empty is None:
            low, high = bounds(places)
            if high >= n:
                raise expected(f"segment ids below {n}", high)
            if low < 0:
                rows, places = rows[places >= 0], places[places >= 0]
        if self.function == "add":
            return add_rows(xp, n, places, rows)
        neutral = _neutral(self.function, x.dtype)
        out = xp.full((n, *rows.shape[1:]), neutral, x.dtype)
        fold_rows(xp, self.function, out, places, rows, empty is not None)
        if empty is not None and empty != neutral:
            hit = xp.zeros(n, bool)
            hit[places] = True
            out[~hit] = empty
        return out


def _neutral(function: str, dtype: Any) -> Any:
    if function == "multiply":
        return 1
    info = dtypes.of_numpy(dtype)
    return info.min if function == "maximum" else info.max


class _Unsorted(_Segments, abstract=True, host_inputs=(2,)):
    """Base of those with any ids; the number of segments is an input."""

    def infer(self, x: Spec, ids: Spec, num: Spec) -> Spec:
        check_kind(x.dtype, self.kinds)
        check_ids(ids)
        check_ids(num, "a number of segments")
        check_rank(num, 0, "a scalar number of segments")
        _check_prefix(x.shape, ids.shape)
        if x.shape is None or ids.shape is None:
            return Spec(x.dtype, None)
        n = None if num.constant is None else int(num.constant)
        return Spec(x.dtype, (n, *x.shape[len(ids.shape) :]))

    def kernel(self, xp: ArrayModule, x: Array, ids: Array, num: Array) -> Array:
        n = int(num)
        if n < 0:
            raise expected("a number of segments from 0 on", n)
        return self._folded(xp, x, ids, n, None)


class _Sorted(_Segments, abstract=True):
    """Base of those whose ids rise: the last one says how many segments there are."""

    empty: ClassVar[int] = 0

    def infer(self, x: Spec, ids: Spec) -> Spec:
        check_kind(x.dtype, self.kinds)
        check_ids(ids)
        check_rank(ids, 1, "ids of rank 1")
        _check_prefix(x.shape, ids.shape)
        n = None if ids.constant is None else _count(ids.constant)
        return Spec(x.dtype, None if x.shape is None else (n, *x.shape[1:]))

    def kernel(self, xp: ArrayModule, x: Array, ids: Array) -> Array:
        return self._folded(xp, x, ids, _count(ids), self.empty)


def _count(ids: Array) -> int:
    """Returns the number of segments; raises unless the ids rise from 0 on or later."""
    if not ids.size:
        return 0
    if (first := on_host(ids[0])) < 0:
        raise expected("segment ids from 0 on", first)
    if on_host((ids[1:] < ids[:-1]).any()):
        raise InvalidArgumentError(
            "expected segment ids that never fall: use the unsorted form for others"
        )
    return int(on_host(ids[-1])) + 1


# -- gradients ------------------------------------------------------------------------------------


def _spread(rows: Tensor, ids: Tensor) -> Tensor:
    """Returns for each id its row, zeros for ids below 0."""
    found = gather(rows, maximum(ids, 0))
    if ids.spec.constant is not None and (np.asarray(ids.spec.constant) >= 0).all():
        return found
    here = _like_rows(greater_equal(ids, 0), found)
    return where(here, found, zeros_like(found))


def _like_rows(mask: Tensor, rows: Tensor) -> Tensor:
    """Returns a mask of leading axes broadcast to the shape of `rows`."""
    return broadcast_to(_with_rank_of(mask, rows), shape_of(rows))


def _with_rank_of(x: Tensor, rows: Tensor) -> Tensor:
    """Returns x with axes of length 1 behind its own, as many as `rows` has more."""
    mine, all_ = x.spec.rank, rows.spec.rank
    if mine is not None and all_ is not None:
        return expand_axes(x, tuple(range(mine, all_))) if all_ > mine else x
    new = fill(reshape(rank(rows) - rank(x), [1]), 1)
    return reshape(x, concat([shape_of(x), new], 0))


class _SumGrad(_Segments, abstract=True, grad_reads=("ids",), accumulates=True):
    def grad(self, g: Tensor, y: Tensor, x: Tensor, ids: Tensor, *num: Tensor) -> Any:
        return (_spread(g, ids), None, *[None] * len(num))


class _ExtremumGrad(_Segments, abstract=True, kinds="fiu", grad_reads=("y", "x", "ids")):
    """The cotangent of an extreme goes to all that are it, in equal shares."""

    def grad(self, g: Tensor, y: Tensor, x: Tensor, ids: Tensor, *num: Tensor) -> Any:
        chosen = equal(x, _spread(y, ids))
        ties = unsorted_segment_sum(cast(chosen, x.dtype), ids, shape_of(y)[0])
        share = _spread(realdiv(g, maximum(ties, 1.0)), ids)
        return (where(chosen, share, zeros_like(share)), None, *[None] * len(num))


class _ProdGrad(
    _Segments,
    abstract=True,
    function="multiply",
    kinds="fiu",
    grad_reads=("x", "ids"),
    accumulates=True,
):
    """g times the product of the others: exact where one of them, or several, are 0."""

    def grad(self, g: Tensor, y: Tensor, x: Tensor, ids: Tensor, *num: Tensor) -> Any:
        n = shape_of(y)[0]
        is_zero = equal(x, 0.0)
        zeros = _spread(unsorted_segment_sum(cast(is_zero, "int32"), ids, n), ids)
        filled = where(is_zero, ones_like(x), x)
        product = _spread(unsorted_segment_prod(filled, ids, n), ids)
        alone = logical_and(is_zero, equal(zeros, 1))
        others = where(is_zero, product, realdiv(product, filled))
        counts = where(alone, ones_like(x), cast(equal(zeros, 0), x.dtype))
        to_x = multiply(_spread(g, ids), multiply(others, counts))
        return (to_x, None, *[None] * len(num))


# -- the ops --------------------------------------------------------------------------------------


class UnsortedSegmentSum(_SumGrad, _Unsorted):
    """Sums of the rows that share an id; ids below 0 do not count; 0 for an empty segment.

    Shapes: x i + s, ids i, num_segments [] -> [num_segments] + s
    Raises: InvalidArgumentError if an id is not below num_segments.
    """


class UnsortedSegmentProd(_ProdGrad, _Unsorted):
    """Products of the rows that share an id; 1 for an empty segment.

    Shapes: x i + s, ids i, num_segments [] -> [num_segments] + s
    """


class UnsortedSegmentMax(_ExtremumGrad, _Unsorted, function="maximum"):
    """The largest of the rows that share an id; the dtype's lowest for an empty segment.

    Shapes: x i + s, ids i, num_segments [] -> [num_segments] + s
    """


class UnsortedSegmentMin(_ExtremumGrad, _Unsorted, function="minimum"):
    """The smallest of the rows that share an id; the dtype's highest for an empty segment.

    Shapes: x i + s, ids i, num_segments [] -> [num_segments] + s
    """


class SegmentSum(_SumGrad, _Sorted):
    """Sums of the rows that share an id; the ids rise. 0 for an empty segment.

    Shapes: x [m] + s, ids [m] -> [last id + 1] + s
    Raises: InvalidArgumentError if the ids fall.
    """


class SegmentProd(_ProdGrad, _Sorted, empty=1):
    """Products of the rows that share an id; the ids rise. 1 for an empty segment.

    Shapes: x [m] + s, ids [m] -> [last id + 1] + s
    """


class SegmentMax(_ExtremumGrad, _Sorted, function="maximum"):
    """The largest of the rows that share an id; the ids rise. 0 for an empty segment.

    Shapes: x [m] + s, ids [m] -> [last id + 1] + s
    """


class SegmentMin(_ExtremumGrad, _Sorted, function="minimum"):
    """The smallest of the rows that share an id; the ids rise. 0 for an empty segment.

    Shapes: x [m] + s, ids [m] -> [last id + 1] + s
    """


class SegmentMean(_Sorted, grad_reads=("ids",), accumulates=True):
    """Means of the rows that share an id; the ids rise. 0 for an empty segment.

    Shapes: x [m] + s, ids [m] -> [last id + 1] + s
    """

    def grad(self, g: Tensor, y: Tensor, x: Tensor, ids: Tensor) -> Any:
        return _spread(realdiv(g, _counts(ids, shape_of(y)[0], g)), ids), None

    def kernel(self, xp: ArrayModule, x: Array, ids: Array) -> Array:
        n = _count(ids)
        sums = self._folded(xp, x, ids, n, 0)
        counts = xp.maximum(xp.bincount(ids, minlength=n), 1).astype(x.dtype)
        counts = counts.reshape(-1, *[1] * (x.ndim - 1))
        return sums // counts if x.dtype.kind in "iu" else sums / counts


def _counts(ids: Tensor, n: Any, rows: Tensor) -> Tensor:
    """Returns how many rows each segment has, 1 at least, in the dtype and rank of `rows`."""
    one = ones_like(cast(ids, rows.dtype.real_dtype))
    found = maximum(unsorted_segment_sum(one, ids, n), 1.0)
    return cast(_with_rank_of(found, rows), rows.dtype)


# -- functions ------------------------------------------------------------------------------------

_SORTED = """

    Args:
        data: A tensor.
        segment_ids: A vector of integers that never fall: the segment of each row.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if an id is negative or below the one before.
    """
_UNSORTED = """

    Args:
        data: A tensor.
        segment_ids: Integers: the segment of each row; below 0 for none. Their shape begins data's.
        num_segments: Number of segments.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if an id is not below num_segments.
    """


def _sorted(function: str, op: Op, what: str) -> Callable[..., Tensor]:
    @op_function("data segment_ids:int32")
    def call(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        return apply(op, data, segment_ids, name=name)

    return named(call, function, f"Returns {what} of the rows of each segment.{_SORTED}")


def _unsorted(function: str, op: Op, what: str) -> Callable[..., Tensor]:
    @op_function("data segment_ids:int32 num_segments:int32")
    def call(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        return apply(op, data, segment_ids, num_segments, name=name)

    return named(call, function, f"Returns {what} of the rows of each segment.{_UNSORTED}")


segment_sum = _sorted("segment_sum", SegmentSum(), "the sum")
segment_prod = _sorted("segment_prod", SegmentProd(), "the product")
segment_max = _sorted("segment_max", SegmentMax(), "the largest (NaN if one is)")
segment_min = _sorted("segment_min", SegmentMin(), "the smallest (NaN if one is)")
segment_mean = _sorted("segment_mean", SegmentMean(), "the mean")
unsorted_segment_sum = _unsorted("unsorted_segment_sum", UnsortedSegmentSum(), "the sum")
unsorted_segment_prod = _unsorted("unsorted_segment_prod", UnsortedSegmentProd(), "the product")
unsorted_segment_max = _unsorted(
    "unsorted_segment_max", UnsortedSegmentMax(), "the largest (NaN if one is)"
)
unsorted_segment_min = _unsorted(
    "unsorted_segment_min", UnsortedSegmentMin(), "the smallest (NaN if one is)"
)


def _to_average(x: Tensor) -> Tensor:
    """Returns numbers in a dtype in which sums and means of them have a place."""
    if not x.dtype.is_integer:
        return widened(x)
    return cast(x, dtypes.float32 if x.dtype.size <= 2 else dtypes.float64)


@op_function("data segment_ids:int32", scope="UnsortedSegmentMean")
def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Returns the mean of the rows of each segment, 0 for an empty one.

    Means of integers are float32 for those of 8 and 16 bits and float64 for wider ones.
    """
    sums = unsorted_segment_sum(_to_average(data), segment_ids, num_segments)
    mean = realdiv(sums, _counts(segment_ids, num_segments, sums), "truediv")
    return cast(mean, data.dtype) if data.dtype.is_half else mean


@op_function("data segment_ids:int32", scope="UnsortedSegmentSqrtN")
def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Returns the sum of the rows of each segment divided by the root of their number."""
    sums = unsorted_segment_sum(widened(data), segment_ids, num_segments)
    scaled = realdiv(sums, sqrt(_counts(segment_ids, num_segments, sums)), "truediv")
    return cast(scaled, data.dtype)


def _sparse(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the sums of rows that the indices name, the ids, and the number of segments."""
    rows = widened(gather(data, indices))
    ids = convert_to_tensor(segment_ids, None, None, dtypes.int32)
    if num_segments is not None:
        number = convert_to_tensor(num_segments, None, None, dtypes.int32)
        return unsorted_segment_sum(rows, ids, number), ids, number
    sums = segment_sum(rows, ids)
    return sums, ids, shape_of(sums)[0]


_SPARSE = """

    Args:
        data: A tensor.
        indices: A vector of integers: rows of `data`.
        segment_ids: A vector of integers that never fall: the segment of each of these rows.
        name: Name scope of the operations.
        num_segments: Number of segments; by default the last id plus 1.
        sparse_gradient: True or False: slices become dense where it matters.
    """


@op_function("data", scope="SparseSegmentSum")
def sparse_segment_sum(
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None = None,
    num_segments: Any = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Returns the sum of the rows that the indices name, by segment."""
    return cast(_sparse(data, indices, segment_ids, num_segments)[0], data.dtype)


@op_function("data", scope="SparseSegmentMean")
def sparse_segment_mean(
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None = None,
    num_segments: Any = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Returns the mean of the rows that the indices name, by segment; 0 for an empty one."""
    sums, ids, n = _sparse(data, indices, segment_ids, num_segments)
    return cast(realdiv(sums, _counts(ids, n, sums)), data.dtype)


@op_function("data", scope="SparseSegmentSqrtN")
def sparse_segment_sqrt_n(
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None = None,
    num_segments: Any = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Returns the sum of the rows that the indices name, by segment, over their number's root."""
    sums, ids, n = _sparse(data, indices, segment_ids, num_segments)
    return cast(realdiv(sums, sqrt(_counts(ids, n, sums))), data.dtype)


for _f in (sparse_segment_sum, sparse_segment_mean, sparse_segment_sqrt_n):
    _f.__doc__ = f"{_f.__doc__}{_SPARSE}"
