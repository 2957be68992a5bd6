"""Sums, products, extrema and reductions of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Cost, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.overloads import operators
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import text
from flowscope.ops.array.arrays import ones_like, zeros_like
from flowscope.ops.array.gathering import gather, gather_nd, scatter_nd
from flowscope.ops.array.joining import concat
from flowscope.ops.array.segments import unsorted_segment_max, unsorted_segment_sum
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import reshape, shape_of
from flowscope.ops.core.axes import as_axes, positive_axis
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast, conj
from flowscope.ops.core.flow import stop_gradient
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.bounds import bounds
from flowscope.ops.kernels.scatter_rows import add_rows
from flowscope.ops.kernels.scipy_modules import scipy_of
from flowscope.ops.linalg.matrix_tools import adjoint_of
from flowscope.ops.math.elementwise import (
    abs,
    add,
    equal,
    exp,
    greater_equal,
    logical_or,
    maximum,
    minimum,
    multiply,
    not_equal,
    realdiv,
    subtract,
    truediv,
)
from flowscope.ops.math.reductions import reduce_prod, reduce_sum
from flowscope.ops.math.scans import cumprod
from flowscope.ops.sparse.array_ops import shaped, sparse_retain
from flowscope.ops.sparse.index_ops import SparseUnique, check_indices
from flowscope.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue, as_sparse

__all__ = [
    "sparse_add",
    "sparse_maximum",
    "sparse_minimum",
    "sparse_reduce_max",
    "sparse_reduce_max_sparse",
    "sparse_reduce_sum",
    "sparse_reduce_sum_sparse",
    "sparse_softmax",
    "sparse_tensor_dense_matmul",
]

#: From so many products on SciPy's sparse product is quicker than adding rows.
_MANY = 4096


@frozen
class SparseTensorDenseMatMul(
    Op, grad_reads=("indices", "values", "b", "shape"), accumulates=True, host_inputs=(2,)
):
    """The product of a sparse and a dense matrix, of their adjoints if asked for.

    Shapes: indices [n, 2], values [n], shape [2] (the sparse matrix [m, k]), b [k, p] -> [m, p]
    Raises: InvalidArgumentError if an index lies outside the shape, or lengths differ.
    """

    adjoint_a: bool = False
    adjoint_b: bool = False

    def infer(self, indices: Spec, values: Spec, shape: Spec, b: Spec) -> Spec:
        check_same(values, b)
        check_kind(b.dtype, "fiuc")
        if check_indices(indices, shape, values) not in (None, 2) or b.rank not in (None, 2):
            raise expected("matrices", f"a sparse tensor with indices {indices} and {b}")
        m, k = shape.shape_value() or (None, None)
        rows, columns = (None, None) if b.shape is None else b.shape
        m, k = (k, m) if self.adjoint_a else (m, k)
        rows, columns = (columns, rows) if self.adjoint_b else (rows, columns)
        if None not in (k, rows) and k != rows:
            raise InvalidArgumentError(f"inner dimensions must agree: expected {k}, got {rows}")
        return Spec(b.dtype, (m, columns))

    def grad(self, g: Tensor, y: Tensor, indices: Tensor, values: Tensor, shape: Tensor,
             b: Tensor) -> Any:  # fmt: skip
        other = adjoint_of(b) if self.adjoint_b else b
        row, column = indices[:, 0], indices[:, 1]
        if self.adjoint_a:
            row, column = column, row
        to_values = reduce_sum(multiply(gather(g, row), conj(gather(other, column))), 1)
        op = SparseTensorDenseMatMul(not self.adjoint_a, False)
        to_b = apply(op, indices, values, shape, g)
        return (
            None,
            conj(to_values) if self.adjoint_a else to_values,
            None,
            adjoint_of(to_b) if self.adjoint_b else to_b,
        )

    def kernel(
        self, xp: ArrayModule, indices: Array, values: Array, shape: Array, b: Array
    ) -> Array:
        m, k = (int(d) for d in shape.tolist())
        row, column = indices[:, 0], indices[:, 1]
        self._check(row, column, m, k)
        if self.adjoint_a:
            row, column, m, k = column, row, k, m
            values = xp.conj(values)
        if self.adjoint_b:
            b = xp.conj(b.swapaxes(0, 1))
        if b.shape[0] != k:
            raise InvalidArgumentError(
                f"inner dimensions must agree: expected {k}, got {b.shape[0]}"
            )
        is_large = values.size * b.shape[1] >= _MANY
        if xp is np and is_large and values.dtype.itemsize >= 4 and values.dtype.isbuiltin == 1:
            sparse = scipy_of(xp, "sparse").coo_array((values, (row, column)), shape=(m, k))
            return np.ascontiguousarray(sparse.tocsr() @ b)
        return add_rows(xp, m, row, values[:, None] * b[column])

    def _check(self, row: Array, column: Array, m: int, k: int) -> None:
        if not row.size:
            return
        (top, bottom), (left, right) = bounds(row), bounds(column)
        if min(top, left) < 0 or bottom >= m or right >= k:
            raise expected(
                f"coordinates inside {text((m, k))}",
                f"some from [{top}, {left}] to [{bottom}, {right}]",
            )

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        n = None if inputs[1].shape is None else inputs[1].shape[0]
        columns = None if outputs[0].shape is None else outputs[0].shape[-1]
        flops = None if n is None or columns is None else 2.0 * n * columns
        return Cost(flops, super().cost(inputs, outputs).nbytes)


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Any:
    """Returns the product of a sparse and a dense matrix; either may be the sparse one.

    Args:
        sp_a: A sparse matrix.
        b: A dense matrix of the same dtype.
        adjoint_a: Whether `sp_a` is transposed and conjugated first.
        adjoint_b: Whether `b` is.
        name: Name of the operation.
    """
    if isinstance(b, SparseTensor | SparseTensorValue):
        # a @ b is the adjoint of adjoint(b) @ adjoint(a)
        turned = sparse_tensor_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a, name)
        return adjoint_of(turned)
    x = as_sparse(sp_a)
    dense = convert_to_tensor(b, None if isinstance(b, Tensor) else x.dtype)
    op = SparseTensorDenseMatMul(bool(adjoint_a), bool(adjoint_b))
    out = apply(op, x.indices, x.values, x.dense_shape, dense, name=name)
    if x.shape.ndims == 2:
        out.set_shape([x.shape[1 if adjoint_a else 0], None])
    return out


# -- sums and extrema of two ----------------------------------------------------------------------


def _union(a: SparseTensor, b: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the coordinates of either, and where a's and b's are among them."""
    together = concat([a.indices, b.indices], 0)
    places, which = apply_many(SparseUnique(), together, a.dense_shape)
    n = shape_of(a.indices)[0]
    return places, which[:n], which[n:]


def _spread(values: Tensor, which: Tensor, places: Tensor) -> Tensor:
    count = shape_of(places)[0]
    return unsorted_segment_sum(values, which, count)


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """Returns the sum of two tensors of one shape, of which one at least is sparse.

    Args:
        a: A sparse or dense tensor.
        b: A sparse or dense tensor.
        threshold: Of two sparse ones: sums of a smaller absolute value are left out; elements that
            only one of them has always stay.
        thresh: Old name of `threshold`.

    Returns:
        A sparse tensor if both are; else a dense one.
    """
    limit = thresh if threshold is None else threshold
    a_sparse, b_sparse = (isinstance(t, SparseTensor | SparseTensorValue) for t in (a, b))
    if not a_sparse and not b_sparse:
        raise expected("one sparse tensor at least", "two dense ones")
    if not (a_sparse and b_sparse):
        x, dense = (as_sparse(a), b) if a_sparse else (as_sparse(b), a)
        dense = convert_to_tensor(dense, None if isinstance(dense, Tensor) else x.dtype)
        sizes = cast(shape_of(dense), dtypes.int64)
        return add(scatter_nd(x.indices, x.values, sizes), dense, "SparseTensorDenseAdd")
    x, y = as_sparse(a), as_sparse(b)
    _check_pair(x, y)
    with x.graph.name_scope("SparseAdd"):
        places, ours, theirs = _union(x, y)
        which = concat([ours, theirs], 0)
        total = _spread(concat([x.values, y.values], 0), which, places)
        found = shaped(SparseTensor(places, total, x.dense_shape), x.shape)
        if limit is None or (isinstance(limit, int | float) and not limit):
            return found
        is_single = equal(_spread(ones_like(which), which, places), constant(1, dtypes.int64))
        is_large = greater_equal(abs(total), convert_to_tensor(limit, x.dtype.real_dtype))
        return sparse_retain(found, logical_or(is_large, is_single))


def _check_pair(x: SparseTensor, y: SparseTensor) -> None:
    if x.dtype is not y.dtype or not x.shape.is_compatible_with(y.shape):
        raise expected("sparse tensors of one dtype and shape", repr(x), repr(y))  # fmt: skip


def _extremum(function: Any, a: Any, b: Any, name: str) -> SparseTensor:
    x, y = as_sparse(a), as_sparse(b)
    _check_pair(x, y)
    with x.graph.name_scope(name):
        places, ours, theirs = _union(x, y)
        found = function(_spread(x.values, ours, places), _spread(y.values, theirs, places))
        return shaped(SparseTensor(places, found, x.dense_shape), x.shape)


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Returns the larger of two sparse tensors' elements; one that is missing counts as 0."""
    return _extremum(maximum, sp_a, sp_b, name or "SparseSparseMaximum")


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Returns the smaller of two sparse tensors' elements; one that is missing counts as 0."""
    return _extremum(minimum, sp_a, sp_b, name or "SparseSparseMinimum")


def _with_dense(function: Any, x: SparseTensor, dense: Any, name: str) -> SparseTensor:
    """Returns x with `function(its values, those of a dense tensor, which is broadcast)`."""
    other = convert_to_tensor(dense, None if isinstance(dense, Tensor) else x.dtype)
    with x.graph.name_scope(name):
        return x.with_values(function(x.values, _picked(other, x)))


def _picked(dense: Tensor, x: SparseTensor) -> Tensor:
    """Returns the elements of a dense tensor, broadcast to x's shape, at x's coordinates."""
    if dense.spec.rank == 0:
        return dense
    if None not in (dense.spec.rank, x.rank) and (dense.spec.rank or 0) > (x.rank or 0):
        raise expected(f"a rank of {x.rank} at most", dense.spec)
    sizes = cast(shape_of(dense), dtypes.int64)
    own = shape_of(sizes)[0]
    places = x.indices[:, shape_of(x.dense_shape)[0] - own :]
    is_long = cast(not_equal(sizes, convert_to_tensor(1, dtypes.int64)), dtypes.int64)
    return gather_nd(dense, multiply(places, is_long))


def sparse_dense_cwise_mul(x: Any, dense: Any, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor times a dense one, which is broadcast."""
    return _with_dense(multiply, as_sparse(x), dense, name or "SparseDenseCwiseMul")


def sparse_dense_cwise_div(x: Any, dense: Any, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor divided by a dense one, which is broadcast."""
    return _with_dense(truediv, as_sparse(x), dense, name or "SparseDenseCwiseDiv")


def sparse_dense_cwise_add(x: Any, dense: Any, name: str | None = None) -> SparseTensor:
    """Returns a sparse tensor with a dense one, which is broadcast, added where it has elements."""
    return _with_dense(add, as_sparse(x), dense, name or "SparseDenseCwiseAdd")


# -- reductions -----------------------------------------------------------------------------------


def _axes(x: SparseTensor, axis: Any) -> tuple[list[int], list[int]]:
    """Returns the axes that are reduced, and those that are not."""
    if x.rank is None:
        raise expected("a sparse tensor of known rank", repr(x))
    given = as_axes(axis)
    gone = sorted({positive_axis(a, x.rank) for a in (range(x.rank) if given is None else given)})
    return gone, [i for i in range(x.rank) if i not in gone]


def _flat(x: SparseTensor, kept: list[int]) -> tuple[Tensor, Tensor]:
    """Returns the position of each element in the block of the axes that stay, and its shape."""
    sizes = gather(x.dense_shape, convert_to_tensor(kept, dtypes.int32))
    steps = cumprod(sizes, exclusive=True, reverse=True)
    columns = gather(x.indices, convert_to_tensor(kept, dtypes.int32), axis=1)
    return reduce_sum(multiply(columns, steps), 1), sizes


def _reduced(x: SparseTensor, axis: Any, keepdims: bool, reduce: Any, name: str) -> Tensor:
    gone, kept = _axes(x, axis)
    with x.graph.name_scope(name):
        flat, sizes = _flat(x, kept)
        found = reduce(x.values, flat, reduce_prod(sizes))
        if keepdims:
            ones = constant([1 if i in gone else 0 for i in range(len(gone + kept))], dtypes.int64)
            left = constant([0 if i in gone else 1 for i in range(len(gone + kept))], dtypes.int64)
            sizes = add(multiply(x.dense_shape, left), ones)
        out = reshape(found, sizes)
        if x.shape.ndims is not None:
            dims = [1 if i in gone else d for i, d in enumerate(x.shape) if keepdims or i in kept]
            out.set_shape(dims)
        return out


def _largest(values: Tensor, places: Tensor, count: Tensor) -> Tensor:
    """Returns the largest value of each group, 0 where there is none."""
    found = unsorted_segment_max(values, places, count)
    number = unsorted_segment_sum(ones_like(places), places, count)
    return where(not_equal(number, zeros_like(number)), found, zeros_like(found))


def sparse_reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Returns the sum along axes as a dense tensor.

    Args:
        sp_input: A sparse tensor.
        axis: The axes; all by default.
        keepdims: Whether they stay, of length 1.
        reduction_axes: Old name of `axis`.
        keep_dims: Old name of `keepdims`.
    """
    x, axes = as_sparse(sp_input), reduction_axes if axis is None else axis
    keep = bool(keepdims or keep_dims)
    return _reduced(x, axes, keep, unsorted_segment_sum, "SparseReduceSum")


def sparse_reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Returns the largest of the elements that are kept along axes as a dense tensor, 0 for none.

    It is NaN if one of them is. The arguments are those of `sparse_reduce_sum`.
    """
    x, axes = as_sparse(sp_input), reduction_axes if axis is None else axis
    return _reduced(x, axes, bool(keepdims or keep_dims), _largest, "SparseReduceMax")


def _reduced_sparse(
    x: SparseTensor, axis: Any, keepdims: bool, reduce: Any, name: str
) -> SparseTensor:
    gone, _ = _axes(x, axis)
    with x.graph.name_scope(name):
        stays = constant([0 if i in gone else 1 for i in range(x.rank or 0)], dtypes.int64)
        short = constant([1 if i in gone else 0 for i in range(x.rank or 0)], dtypes.int64)
        sizes = add(multiply(x.dense_shape, stays), short)
        places, which = apply_many(SparseUnique(), multiply(x.indices, stays), sizes)
        values = reduce(x.values, which, cast(shape_of(places)[0], dtypes.int64))
        if not keepdims:
            kept = convert_to_tensor([i for i in range(x.rank or 0) if i not in gone], dtypes.int32)
            places, sizes = gather(places, kept, axis=1), gather(sizes, kept)
        return SparseTensor(places, values, sizes)


def sparse_reduce_sum_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """Returns the sum along axes as a sparse tensor; see `sparse_reduce_sum`."""
    x, axes = as_sparse(sp_input), reduction_axes if axis is None else axis
    keep = bool(keepdims or keep_dims)
    return _reduced_sparse(x, axes, keep, unsorted_segment_sum, "SparseReduceSumSparse")


def sparse_reduce_max_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """Returns the largest elements along axes as a sparse tensor; see `sparse_reduce_sum`."""
    x, axes = as_sparse(sp_input), reduction_axes if axis is None else axis
    keep = bool(keepdims or keep_dims)
    return _reduced_sparse(x, axes, keep, unsorted_segment_max, "SparseReduceMaxSparse")


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Returns the softmax along the last axis of the elements that are kept; others stay zero."""
    x = as_sparse(sp_input)
    check_kind(x.values.spec.dtype, "f")
    if x.rank is not None and x.rank < 2:
        raise expected("rank 2 at least", repr(x))
    with x.graph.name_scope(name or "SparseSoftmax"):
        rows, which = apply_many(SparseUnique(), x.indices[:, :-1], x.dense_shape[:-1])
        count = shape_of(rows)[0]
        most = stop_gradient(unsorted_segment_max(x.values, which, count))
        powers = exp(subtract(x.values, gather(most, which)))
        total = unsorted_segment_sum(powers, which, count)
        return x.with_values(realdiv(powers, gather(total, which)))


# What `SparseTensor` does, which stands below.
operators["__sparse_mul__"] = sparse_dense_cwise_mul
operators["__sparse_truediv__"] = sparse_dense_cwise_div
