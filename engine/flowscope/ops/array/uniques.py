"""Vectors as sets: distinct elements, differences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.work import per_element
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_same
from flowscope.ops.core.table import orderable
from flowscope.ops.kernels.bounds import bounds
from flowscope.ops.kernels.device_scatter import scatter

__all__ = ["listdiff", "setdiff1d", "unique", "unique_with_counts"]


#: A range of so many integers is worth a table however few there are.
_SMALL = 1 << 10


def _check_vector(x: Spec) -> None:
    check_kind(x.dtype, "fiucbs", "numbers, bools or strings")
    check_rank(x, 1, "a vector")


def _index_type(dtype: Any) -> DType:
    found = as_dtype(dtype)
    if found not in (dtypes.int32, dtypes.int64):
        raise expected_dtype("int32 or int64 for indices", found)
    return found


def _distinct(xp: ArrayModule, x: Array) -> tuple[Array, Array, Array]:
    """Returns the first place of each distinct element, in order, the number of each, and counts.

    NaN is not equal to NaN.
    """
    if x.ndim != 1:
        raise expected("a vector", x.shape)
    if x.dtype.kind == "O":
        return _distinct_strings(xp, x)
    if x.dtype.kind in "iu" and x.size:
        low, high = (int(v) for v in bounds(x))
        if high - low <= max(4 * x.size, _SMALL):
            return _distinct_of_few(xp, x, low, high - low + 1)
    _, first, inverse, counts = xp.unique(
        orderable(xp, x),
        return_index=True,
        return_inverse=True,
        return_counts=True,
        equal_nan=False,
    )
    order = xp.argsort(first)
    rank = xp.empty_like(order)
    rank[order] = xp.arange(order.size)
    return first[order], rank[inverse.reshape(-1)], counts[order]


def _distinct_of_few(xp: ArrayModule, x: Array, low: int, n: int) -> tuple[Array, Array, Array]:
    """Does the same for integers of a short range, by a table of it, without sorting."""
    if x.dtype.kind == "u":
        keys = (x - x.dtype.type(low)).astype(xp.int64)
    else:
        keys = x.astype(xp.int64) - low
    counts = xp.bincount(keys, minlength=n)
    first = xp.full(n, x.size, xp.int64)
    if xp is np:
        first[keys[::-1]] = np.arange(x.size)[::-1]  # of what goes to one place the last stays
    else:
        scatter(xp, "minimum", first, keys, xp.arange(x.size))
    found = xp.argsort(first)[: int(on_host((counts > 0).sum()))]
    rank = xp.empty(n, xp.int64)
    rank[found] = xp.arange(found.size)
    return first[found], rank[keys], counts[found]


def _distinct_strings(xp: ArrayModule, x: Array) -> tuple[Array, Array, Array]:
    numbers: dict[bytes, int] = {}
    inverse = [numbers.setdefault(v, len(numbers)) for v in x.tolist()]
    first, counts = [0] * len(numbers), [0] * len(numbers)
    for i in range(len(inverse) - 1, -1, -1):
        first[inverse[i]] = i
        counts[inverse[i]] += 1
    return xp.array(first, int), xp.array(inverse, int), xp.array(counts, int)


@frozen
class Unique(Op, is_differentiable=False, work=per_element(10e-9)):
    """The distinct elements in the order in which they come, and for each element which it is.

    Shapes: [n] -> [?], [n]
    """

    dtype: DType

    def infer(self, x: Spec) -> Any:
        _check_vector(x)
        return Spec(x.dtype, (None,)), Spec(self.dtype, x.shape or (None,))

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        first, number, _ = _distinct(xp, x)
        return x[first], number.astype(self.dtype.np_dtype)


@frozen
class UniqueWithCounts(Op, is_differentiable=False, work=per_element(10e-9)):
    """The distinct elements, for each element which it is, and how often each of them comes.

    Shapes: [n] -> [?], [n], [?]
    """

    dtype: DType

    def infer(self, x: Spec) -> Any:
        _check_vector(x)
        several = Spec(self.dtype, (None,))
        return Spec(x.dtype, (None,)), Spec(self.dtype, x.shape or (None,)), several

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        first, number, counts = _distinct(xp, x)
        dtype = self.dtype.np_dtype
        return x[first], number.astype(dtype), counts.astype(dtype)


@frozen
class ListDiff(Op, is_differentiable=False):
    """The elements of x that y does not have, and their places in x.

    Shapes: x [m], y [n] -> [?], [?]
    """

    dtype: DType

    def infer(self, x: Spec, y: Spec) -> Any:
        check_same(x, y)
        _check_vector(x)
        _check_vector(y)
        return Spec(x.dtype, (None,)), Spec(self.dtype, (None,))

    def kernel(self, xp: ArrayModule, x: Array, y: Array) -> Any:
        if x.dtype.kind == "O":
            known = set(y.tolist())
            left = xp.array([v not in known for v in x.tolist()], bool)
        else:
            left = ~xp.isin(orderable(xp, x), orderable(xp, y))
        return x[left], xp.flatnonzero(left).astype(self.dtype.np_dtype)


class UniqueResult(NamedTuple):
    """What `unique` returns."""

    y: Tensor
    idx: Tensor


class UniqueWithCountsResult(NamedTuple):
    """What `unique_with_counts` returns."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


class ListDiffResult(NamedTuple):
    """What `setdiff1d` returns."""

    out: Tensor
    idx: Tensor


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> UniqueResult:
    """Returns (y, idx): the distinct elements, and for each element its index among them.

    NaN is not equal to NaN: each one is an element of its own.

    Args:
        x: A vector.
        out_idx: Dtype of `idx`, int32 or int64.
        name: Name of the operation.

    Example:
        >>> values, indices = fs.unique([7, 8, 7])
        >>> fs.Session().run([values, indices])
        [array([7, 8], dtype=int32), array([0, 1, 0], dtype=int32)]
    """
    return UniqueResult(*apply_many(Unique(_index_type(out_idx)), convert_to_tensor(x), name=name))


def unique_with_counts(
    x: Any, out_idx: Any = dtypes.int32, name: str | None = None
) -> UniqueWithCountsResult:
    """Returns (y, idx, count): as `unique`, and how often each distinct element occurs."""
    op = UniqueWithCounts(_index_type(out_idx))
    return UniqueWithCountsResult(*apply_many(op, convert_to_tensor(x), name=name))


@op_function("x y~x")
def setdiff1d(
    x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None
) -> ListDiffResult:
    """Returns (out, idx): the elements of x that y does not have, in order, and their indices in x.

    NaN is not equal to NaN: those of x stay.

    Args:
        x: A vector.
        y: A vector of the same dtype.
        index_dtype: Dtype of `idx`, int32 or int64.
    """
    op = ListDiff(_index_type(index_dtype))
    return ListDiffResult(*apply_many(op, x, y, name=name))


listdiff = setdiff1d
