"""Gathering with indices of their own for each element of a batch."""

from __future__ import annotations

import math
from typing import Any

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible
from flowscope.ops.array.gathering import check_range
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.broadcasting import as_sizes
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_index_dtype
from flowscope.ops.kernels.scatter_rows import add_rows

__all__ = ["batch_gather"]


@frozen
class BatchGather(Op, grad_reads=("indices",)):
    """The slices of x along an axis that the indices of each batch element name.

    Shapes: x b + p + [n] + q, indices b + s -> b + p + s + q   (b: `batch_dims` axes, p up to axis)
    Raises: InvalidArgumentError if an index is not in [0, n).
    """

    axis: int
    batch_dims: int

    def infer(self, x: Spec, indices: Spec) -> Spec:
        check_index_dtype(indices, "indices")
        if x.shape is None or indices.shape is None:
            return Spec(x.dtype, None)
        return Spec(x.dtype, self._shape(x.shape, indices.shape))

    def _shape(self, x: Any, indices: Any) -> Any:
        axis, b = positive_axis(self.axis, len(x)), self.batch_dims
        if not 0 <= b <= axis or b > len(indices):
            raise expected(f"batch_dims up to the axis {axis} and the indices' rank", b)
        if not compatible(x[:b], indices[:b]):
            raise expected(f"{b} equal axes in front", x, indices)
        return (*x[:axis], *indices[b:], *x[axis + 1 :])

    def _rows(self, xp: ArrayModule, x: Any, indices: Array) -> Array:
        """Returns for each slice of the result the row of x, [batch, before, indices]."""
        axis, b = positive_axis(self.axis, len(x)), self.batch_dims
        check_range(indices, x[axis])
        batch, before = math.prod(x[:b]), math.prod(x[b:axis])
        lines = xp.arange(batch * before).reshape(batch, before, 1) * x[axis]
        return lines + indices.reshape(batch, 1, math.prod(indices.shape[b:]))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, indices: Tensor) -> Any:
        op = BatchGatherGrad(self.axis, self.batch_dims)
        return apply(op, g, shape_of(x), indices), None

    def kernel(self, xp: ArrayModule, x: Array, indices: Array) -> Array:
        shape = self._shape(x.shape, indices.shape)
        axis = positive_axis(self.axis, x.ndim)
        rows = self._rows(xp, x.shape, indices)
        flat = x.reshape(math.prod(x.shape[: axis + 1]), *x.shape[axis + 1 :])
        return xp.take(flat, rows.reshape(-1), axis=0).reshape(shape)[()]


@frozen
class BatchGatherGrad(Op, grad_reads=("indices",), accumulates=True, host_inputs=(1,)):
    """Zeros of a shape, to which slices are added where a `BatchGather` takes them.

    Shapes: g, shape [n], indices -> shape
    """

    axis: int
    batch_dims: int

    def infer(self, g: Spec, shape: Spec, indices: Spec) -> Spec:
        return Spec(g.dtype, shape.shape_value())

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor, indices: Tensor) -> Any:
        return apply(BatchGather(self.axis, self.batch_dims), g, indices), None, None

    def kernel(self, xp: ArrayModule, g: Array, shape: Array, indices: Array) -> Array:
        sizes = as_sizes(shape)
        axis = positive_axis(self.axis, len(sizes))
        rows = BatchGather(self.axis, self.batch_dims)._rows(xp, sizes, indices)
        tail = sizes[axis + 1 :]
        parts = g.reshape(rows.size, *tail)
        return add_rows(xp, math.prod(sizes[: axis + 1]), rows.reshape(-1), parts).reshape(sizes)


@op_function("params indices:int32")
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Returns slices of `params`: the last axis of the indices names them, the others are a batch.

    Args:
        params: A tensor.
        indices: Integers of a known rank, 1 at least.
    """
    if not indices.spec.rank:
        raise expected("indices of known rank, 1 at least", indices.spec)
    b = indices.spec.rank - 1
    return apply(BatchGather(b, b), params, indices, name=name or "BatchGather")
