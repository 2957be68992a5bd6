"""Where the elements of sparse tensors lie: ops on coordinates, which values then follow.

They compute integers only. The values move by `gather` and are added up by segment sums, so all
functions of sparse tensors have gradients of any order without one of their own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims, compatible, merge_dims, text
from flowscope.graph.values.string_values import boxed
from flowscope.ops.array.gathering import gather_nd
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import reshape, shape_of
from flowscope.ops.core.broadcasting import as_sizes, sum_to
from flowscope.ops.core.shape_rules import check_rank
from flowscope.ops.kernels.scatter_rows import set_rows
from flowscope.ops.math.elementwise import subtract
from flowscope.ops.math.reductions import reduce_sum

#: Up to so many elements of the whole a coordinate fits into one integer.
_LARGEST = 2**62


def check_indices(indices: Spec, shape: Spec, values: Spec | None = None) -> int | None:
    """Returns the rank as far as it is known; raises unless these can be a sparse tensor's parts.

    Args:
        indices: Coordinates in the shape.
        shape: The shape of the whole.
        values: One for each row of the indices.
    """
    if values is not None and indices.shape is not None:
        if not compatible(values.shape, indices.shape[:1]):
            raise expected(
                "as many values as indices", f"{text(values.shape)} for {text(indices.shape)}"
            )
    for s, what in ((indices, "indices"), (shape, "a shape")):
        if s.dtype is not dtypes.int64:
            raise expected_dtype(f"int64 for {what}", s.dtype)
    places = merge_dims(indices.shape, (None, None))
    sizes = merge_dims(shape.shape, (None,))
    return (merge_dims((places or (None, None))[1:], sizes) or (None,))[0]


def _check_inside(xp: ArrayModule, indices: Array, shape: Array) -> tuple[int, ...]:
    sizes = as_sizes(shape)
    if indices.ndim != 2 or indices.shape[1] != len(sizes):
        raise expected(f"{len(sizes)} coordinates each", f"indices of shape {text(indices.shape)}")
    # By columns, as the last axis is short; negative ones are huge as unsigned numbers.
    unsigned = xp.dtype(f"u{indices.dtype.itemsize}")
    columns = (indices[:, i].view(unsigned) for i in range(len(sizes)))
    if indices.size and any(
        int(on_host(c.max())) >= d for c, d in zip(columns, sizes, strict=True)
    ):
        bad = indices[~((indices >= 0) & (indices < shape)).all(1)][0]
        raise expected(f"coordinates inside {text(sizes)}", on_host(bad).tolist())
    return sizes


def _order(xp: ArrayModule, indices: Array, sizes: tuple[int, ...]) -> tuple[Array, Array]:
    """Returns the row-major order of coordinates, and which of them, sorted, differ from the next.

    The sort is stable.
    """
    if math.prod(sizes) < _LARGEST:
        flat = _flat_indices(indices, sizes)
        order = xp.argsort(flat, kind="stable")
        flat = flat[order]
        return order, flat[1:] != flat[:-1]
    order = xp.lexsort(indices.T[::-1])
    rows = indices[order]
    return order, (rows[1:] != rows[:-1]).any(axis=1)


def _flat_indices(indices: Array, sizes: tuple[int, ...]) -> Array:
    """Returns the flat index of each coordinate, in row-major order."""
    flat = indices[:, -1].copy() if sizes else indices.sum(1)
    for i, step in enumerate(_strides(sizes)[:-1]):
        flat += indices[:, i] * flat.dtype.type(step)
    return flat


def _strides(sizes: tuple[int, ...]) -> list[int]:
    """Returns the strides of an array of these sizes in row-major order, counted in elements."""
    steps = [1] * len(sizes)
    for i in range(len(sizes) - 1, 0, -1):
        steps[i - 1] = steps[i] * sizes[i]
    return steps


class _IndexOp(Op, abstract=True, is_differentiable=False, devices=("CPU",)):
    """Base of the ops on coordinates, which compute integers, on the host."""


class SparseOrder(_IndexOp):
    """Coordinates in row-major order, and where each of them came from.

    Shapes: indices [n, r], shape [r] -> [n, r], [n]
    """

    def infer(self, indices: Spec, shape: Spec) -> Any:
        rank = check_indices(indices, shape)
        n = None if indices.shape is None else indices.shape[0]
        return Spec(dtypes.int64, (n, rank)), Spec(dtypes.int64, (n,))

    def kernel(self, xp: ArrayModule, indices: Array, shape: Array) -> Any:
        order, _ = _order(xp, indices, _check_inside(xp, indices, shape))
        return indices.take(order, 0), order.astype(xp.int64)


class SparseUnique(_IndexOp):
    """The different coordinates in row-major order, and which of them each one is.

    Shapes: indices [n, r], shape [r] -> [m, r], [n]
    """

    def infer(self, indices: Spec, shape: Spec) -> Any:
        rank = check_indices(indices, shape)
        n = None if indices.shape is None else indices.shape[0]
        return Spec(dtypes.int64, (None, rank)), Spec(dtypes.int64, (n,))

    def kernel(self, xp: ArrayModule, indices: Array, shape: Array) -> Any:
        order, changes = _order(xp, indices, _check_inside(xp, indices, shape))
        n = len(order)
        ends = xp.append(xp.flatnonzero(changes) + 1, n)[:n]
        starts = xp.concatenate([xp.zeros(min(n, 1), ends.dtype), ends[:-1]])
        places = xp.empty(n, xp.int64)
        places[order] = xp.repeat(xp.arange(len(ends)), ends - starts)
        return indices.take(order[starts], 0), places


class SparseReshape(_IndexOp):
    """Coordinates of the same elements in another shape, in which one -1 is worked out.

    Shapes: indices [n, r], shape [r], new_shape [s] -> [n, s], [s]
    """

    def infer(self, indices: Spec, shape: Spec, new_shape: Spec) -> Any:
        check_indices(indices, shape)
        if new_shape.dtype is not dtypes.int64:
            raise expected_dtype("int64 for a shape", new_shape.dtype)
        sizes = merge_dims(new_shape.shape, (None,)) or (None,)
        n = None if indices.shape is None else indices.shape[0]
        return Spec(dtypes.int64, (n, sizes[0])), self._resolved(shape, new_shape)

    def _resolved(self, shape: Spec, new_shape: Spec) -> Spec:
        """Returns the new shape's Spec, with what is known of its values."""
        old, new = shape.shape_value(), new_shape.shape_value()
        if shape.constant is not None and new_shape.constant is not None and old is not None:
            sizes = _worked_out(tuple(old), np.asarray(new_shape.constant).tolist())  # type: ignore[arg-type]
            return Spec(dtypes.int64, (len(sizes),), np.array(sizes, np.int64))
        return Spec(dtypes.int64, new_shape.shape, dims=new)

    def kernel(self, xp: ArrayModule, indices: Array, shape: Array, new_shape: Array) -> Any:
        old = _check_inside(xp, indices, shape)
        new = _worked_out(old, new_shape.tolist())
        flat = indices @ xp.asarray(_strides(old), xp.int64)
        columns = []
        for size, step in zip(new, _strides(new)):
            columns.append(flat // max(step, 1) % max(size, 1))
        out = xp.stack(columns, axis=1) if columns else xp.zeros((flat.size, 0), xp.int64)
        return out.astype(xp.int64), xp.asarray(new, xp.int64).reshape(len(new))


def _worked_out(old: tuple[int, ...], new: list[int]) -> tuple[int, ...]:
    total, known = math.prod(old), math.prod(d for d in new if d >= 0)
    if sum(d < 0 for d in new) > 1 or (min(new, default=0) >= 0 and known != total):
        raise expected(f"a shape of {total} elements with at most one -1", tuple(new))
    if min(new, default=0) >= 0:
        return tuple(new)
    if not known or total % known:
        raise expected(f"a shape of {total} elements", tuple(new))
    return tuple([total // known if d < 0 else d for d in new])


class SparseFillEmptyRows(_IndexOp):
    """Coordinates by row, with one at the start of each row that had none.

    Shapes: indices [n, r], shape [r] -> indices [m, r], where each came from (n: it is new) [m],
        whether a row was empty [rows]
    """

    def infer(self, indices: Spec, shape: Spec) -> Any:
        rank = check_indices(indices, shape)
        dims = shape.shape_value()
        rows = dims[0] if dims else None
        whole = Spec(dtypes.int64, (None, rank))
        return whole, Spec(dtypes.int64, (None,)), Spec(dtypes.bool_, (rows,))

    def kernel(self, xp: ArrayModule, indices: Array, shape: Array) -> Any:
        rows = _check_inside(xp, indices, shape)[0]
        is_empty = xp.ones(rows, bool)
        is_empty[indices[:, 0]] = False
        missing = xp.flatnonzero(is_empty)
        new = xp.zeros((missing.size, indices.shape[1]), xp.int64)
        new[:, 0] = missing
        whole = xp.concatenate([indices, new])
        order = xp.argsort(whole[:, 0], kind="stable").astype(xp.int64)
        return whole[order], xp.minimum(order, indices.shape[0]), is_empty


@frozen
class SparseConcatShape(_IndexOp):
    """The shape of sparse tensors joined along an axis; the other lengths agree, or the largest
    are taken.

    Shapes: n times [r] -> [r]
    """

    axis: int
    expands: bool

    def infer(self, *shapes: Spec) -> Spec:
        dims: Dims = None
        for s in shapes:
            dims = merge_dims(dims, merge_dims(s.shape, (None,)))
        values = [s.shape_value() for s in shapes]
        if any(v is None or None in v for v in values):
            return Spec(dtypes.int64, dims, dims=None)
        joined = self._joined([list(v) for v in values])  # type: ignore[arg-type]
        return Spec(dtypes.int64, (len(joined),), dims=tuple(joined))

    def _joined(self, shapes: list[list[int]]) -> list[int]:
        out = [max(column) for column in zip(*shapes)]
        for shape in shapes:
            others = [d for i, d in enumerate(shape) if i != self.axis % len(shape)]
            if not self.expands and others != [
                d for i, d in enumerate(out) if i != self.axis % len(out)
            ]:
                raise InvalidArgumentError(
                    f"expected shapes that differ along axis {self.axis} alone, got "
                    + " and ".join(text(tuple(s)) for s in shapes)
                )
        out[self.axis] = sum(s[self.axis] for s in shapes)
        return out

    def kernel(self, xp: ArrayModule, *shapes: Array) -> Array:
        return xp.asarray(self._joined([s.tolist() for s in shapes]), xp.int64)


class SparseResetShape(_IndexOp):
    """A new shape for a sparse tensor, which is as large as the old one at least.

    Shapes: shape [r], new_shape [r] -> [r]
    """

    def infer(self, shape: Spec, new_shape: Spec) -> Spec:
        dims = merge_dims(shape.shape, new_shape.shape)
        return Spec(dtypes.int64, dims, None, new_shape.shape_value())

    def kernel(self, xp: ArrayModule, shape: Array, new_shape: Array) -> Array:
        if shape.shape != new_shape.shape or bool((new_shape < shape).any()):
            raise expected(
                f"a shape that holds {text(tuple(shape.tolist()))}", tuple(new_shape.tolist())
            )
        return new_shape.copy()


@frozen
class SparseToDense(Op, grad_reads=("indices",), host_inputs=(1,)):
    """A dense tensor with the values at the indices, and a default value elsewhere.

    Shapes: indices [], [n] or [n, r], shape [r], values [] or [n], default [] -> shape
    Raises: InvalidArgumentError if the indices are validated, and out of order or repeated.
    """

    validate_indices: bool = True

    def infer(self, indices: Spec, shape: Spec, values: Spec, default: Spec) -> Spec:
        for s in (indices, shape):
            if s.dtype.name not in ("int32", "int64"):
                raise expected_dtype("int32 or int64 for indices and shape", s.dtype)
        if values.dtype is not default.dtype:
            raise expected_dtype(f"a default of {values.dtype}", default.dtype)
        if values.rank not in (None, 0, 1) or default.shape not in (None, ()):
            raise expected("values of rank 0 or 1 and a scalar default", values, default)
        check_rank(shape, 1, "a vector for a shape")
        return Spec(values.dtype, shape.shape_value())

    def grad(self, g: Tensor, y: Tensor, indices: Tensor, shape: Tensor, values: Tensor,
             default: Tensor) -> Any:  # fmt: skip
        rank = shape_of(shape)[0]
        found = gather_nd(g, reshape(indices, concat([[-1], [rank]], 0)))
        total = reduce_sum(found)
        to_values = found if values.spec.rank == 1 else sum_to(found, shape_of(values))
        return None, None, to_values, subtract(reduce_sum(g), total)

    def kernel(
        self, xp: ArrayModule, indices: Array, shape: Array, values: Array, default: Array
    ) -> Array:
        sizes = as_sizes(shape)
        n = indices.shape[0] if indices.ndim else 1
        if indices.ndim < 2:
            indices = indices.reshape(n, 1)
        _check_inside(xp, indices, shape)
        if np.ndim(values) and values.shape[0] != n:
            raise expected(f"{n} values", values.shape[0])
        flat = _flat_indices(indices, sizes)
        if self.validate_indices:
            self._check_order(flat, indices)
        out = _filled(xp, sizes, values, default)
        set_rows(xp, out.reshape(-1), flat, values)
        return out[()]

    def _check_order(self, flat: Array, indices: Array) -> None:
        falls = flat[1:] <= flat[:-1]
        if on_host(falls.any()):
            bad = on_host(indices[1:][falls][0]).tolist()
            raise expected("indices in row-major order, each once", f"{bad} out of place")


def _filled(xp: ArrayModule, sizes: tuple[int, ...], values: Array, default: Array) -> Array:
    return xp.full(sizes, boxed(default), getattr(values, "dtype", object))
