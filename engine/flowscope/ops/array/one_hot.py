"""One-hot vectors, and identity matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import constant, convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected
from flowscope.graph.values.string_values import boxed
from flowscope.graph.values.work import per_element
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core import builder
from flowscope.ops.core.axes import positive_axis, with_new_axis
from flowscope.ops.core.broadcasting import broadcast_to
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_rank, check_same

__all__ = ["eye", "one_hot"]

#: Up to so many elements comparing is the quickest way to one-hot vectors.
_SMALL = 1 << 12


@frozen
class OneHot(
    Op,
    is_differentiable=False,
    memory_order="C",
    host_inputs=(1,),
    calls=5,
    work=per_element(3e-9),
    keeps_finite=True,
):
    """`on` at the position that each index names along a new axis of length `depth`, else `off`.

    Shapes: indices s, depth [], on [], off [] -> s with `depth` at the new axis
    """

    axis: int = -1

    def infer(self, indices: Spec, depth: Spec, on: Spec, off: Spec) -> Spec:
        check_kind(indices.dtype, "iu", "integer indices")
        check_kind(depth.dtype, "iu", "integer depth")
        check_same(on, off)
        for s in (depth, on, off):
            check_rank(s, 0, "scalars behind the indices")
        if depth.constant is not None and np.asarray(depth.constant) < 0:
            raise expected("a depth from 0 on", depth.constant)
        n = depth.shape_value() or (None,)
        return with_new_axis(indices.like(on.dtype), self.axis, n[0])

    def kernel(self, xp: ArrayModule, indices: Array, depth: Array, on: Array, off: Array) -> Array:
        if depth < 0:
            raise expected("a depth from 0 on", depth)
        axis = positive_axis(self.axis, indices.ndim + 1)
        on, off = boxed(on), boxed(off)
        if indices.size * int(depth) < _SMALL:
            places = xp.arange(int(depth)).reshape((-1,) + (1,) * (indices.ndim - axis))
            return xp.where(xp.expand_dims(indices, axis) == places, on, off)
        out = xp.empty((*indices.shape[:axis], int(depth), *indices.shape[axis:]), on.dtype)
        out[...] = off
        is_inside = (indices >= 0) & (indices < depth)
        values = xp.where(is_inside, on, off)  # what is outside writes an `off` at 0
        places = xp.where(is_inside, indices, 0).astype(xp.int64)
        xp.put_along_axis(out, xp.expand_dims(places, axis), xp.expand_dims(values, axis), axis)
        return out


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Returns vectors that are `on_value` at one position and `off_value` elsewhere.

    Args:
        indices: The positions; one out of range gives a vector that is `off_value` everywhere.
        depth: Length of the vectors.
        on_value: 1 by default.
        off_value: 0 by default.
        axis: Where the new axis stands in the result; last by default.
        dtype: Element type; that of the values, else float32.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.one_hot([0, 2], 3))
        array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    if dtype is None:
        given = [convert_to_tensor(v).dtype for v in (on_value, off_value) if v is not None]
        dtype = given[0] if given else dtypes.float32
    dtype = as_dtype(dtype)
    on = convert_to_tensor(_default(on_value, True, dtype), dtype, "one_hot/on_value")
    off = convert_to_tensor(_default(off_value, False, dtype), dtype, "one_hot/off_value")
    length = convert_to_tensor(depth, None, "one_hot/depth", dtypes.int32)
    op = OneHot(-1 if axis is None else axis)
    return apply(op, convert_to_tensor(indices), length, on, off, name=name or "one_hot")


def _default(value: Any, default: bool, dtype: DType) -> Any:
    if value is not None:
        return value
    return default if dtype.is_bool else int(default)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Returns an identity matrix, or a batch of them.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns; as many as rows by default.
        batch_shape: Shape of the batch in front.
        dtype: Element type.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.eye(2))
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    rows = get_static_value(num_rows)
    columns = rows if num_columns is None else get_static_value(num_columns)
    dtype, name = as_dtype(dtype), name or "eye"
    if rows is None or columns is None:
        width = num_rows if num_columns is None else num_columns
        if batch_shape is None:
            return _dynamic_eye(num_rows, width, dtype, name)
        with get_default_graph().name_scope(name):
            square = _dynamic_eye(num_rows, width, dtype, "eye")
            return broadcast_to(square, concat([batch_shape, shape_of(square)], 0))
    matrix = np.eye(int(rows), int(columns), dtype=dtype.np_dtype)
    if batch_shape is None:
        return constant(matrix, dtype, name=name)
    with get_default_graph().name_scope(name):
        sizes = convert_to_tensor(batch_shape, None, "batch_shape", dtypes.int32)
        whole = concat([sizes, convert_to_tensor(matrix.shape, sizes.dtype)], 0)
        return broadcast_to(constant(matrix, dtype, name="matrix"), whole)


def _dynamic_eye(rows: Any, columns: Any, dtype: Any, name: str) -> Tensor:
    """Returns an identity matrix whose size is known only when the step runs."""
    return one_hot(builder.range(convert_to_tensor(rows)), columns, dtype=dtype, name=name)
