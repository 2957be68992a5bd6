"""Sorting, and searching in what is sorted."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, merge_dims
from flowscope.graph.values.work import per_comparison
from flowscope.ops.core.axes import one_axis, positive_axis
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.core.table import orderable
from flowscope.ops.math.dynamic_axes import along, dynamic_axes

__all__ = ["argsort", "searchsorted", "sort"]


@frozen
class _Sorting(Op, abstract=True):
    axis: int = -1
    descending: bool = False

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiu")
        if x.shape is not None:
            positive_axis(self.axis, len(x.shape))
        return x.like()

    def _order(self, xp: ArrayModule, x: Array) -> Array:
        """Returns the places of the elements in order; equal ones stay in theirs."""
        x = orderable(xp, x)
        if not self.descending:
            return xp.argsort(x, axis=self.axis, kind="stable")
        # Sorting the mirrored line keeps the first of equal ones in front.
        order = xp.argsort(xp.flip(x, self.axis), axis=self.axis, kind="stable")
        return x.shape[self.axis] - 1 - xp.flip(order, self.axis)


@frozen
class Sort(_Sorting, grad_reads=("x",), work=per_comparison(4e-9)):
    """The elements in rising (or falling) order along an axis; NaN counts as largest."""

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        order = apply(ArgSort(self.axis, self.descending), x)
        return (apply(Permuted(self.axis), g, apply(ArgSort(self.axis), order)),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        positive_axis(self.axis, x.ndim)
        out = xp.sort(orderable(xp, x), axis=self.axis).astype(x.dtype, copy=False)
        return xp.ascontiguousarray(xp.flip(out, self.axis)) if self.descending else out


@frozen
class ArgSort(_Sorting, is_differentiable=False, work=per_comparison(6e-9)):
    """The places of the elements in rising (or falling) order; equal ones stay in theirs.

    NaN counts as largest.
    """

    def infer(self, x: Spec) -> Spec:
        return super().infer(x).like(dtypes.int32)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        positive_axis(self.axis, x.ndim)
        return self._order(xp, x).astype(xp.int32)


@frozen
class Permuted(Op, grad_reads=("places",)):
    """The elements along an axis in the order of places, each of which comes once.

    Shapes: x, places as x -> x
    """

    axis: int

    def infer(self, x: Spec, places: Spec) -> Spec:
        check_kind(places.dtype, "i")
        return Spec(x.dtype, merge_dims(x.shape, places.shape))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, places: Tensor) -> Any:
        return apply(self, g, apply(ArgSort(self.axis), places)), None

    def kernel(self, xp: ArrayModule, x: Array, places: Array) -> Array:
        return xp.take_along_axis(x, places, axis=self.axis)


@frozen
class SearchSorted(Op, is_differentiable=False):
    """Where each value would stand in its sorted row; NaN counts as largest.

    Attributes: `side` "left" is in front of equal elements, "right" behind them.
    Shapes: rows s + [n], values s + [m] -> s + [m]
    """

    side: str
    dtype: DType

    def infer(self, rows: Spec, values: Spec) -> Spec:
        check_same(rows, values)
        check_kind(rows.dtype, "fiu")
        for s in (rows, values):
            if s.shape == ():
                raise expected("rank 1 at least", "[]")
        if rows.shape is not None and values.shape is not None:
            self._check(rows.shape, values.shape)
        return values.like(self.dtype)

    def _check(self, rows: Any, values: Any) -> None:
        if not compatible(rows[:-1], values[:-1]):
            raise expected("equal axes but the last", rows, values)

    def kernel(self, xp: ArrayModule, rows: Array, values: Array) -> Array:
        self._check(rows.shape, values.shape)
        rows, values = orderable(xp, rows), orderable(xp, values)
        if rows.ndim == 1:
            found = xp.searchsorted(rows, values, side=self.side)
            return found.astype(self.dtype.np_dtype)
        out = xp.empty(values.shape, self.dtype.np_dtype)
        if not out.size:
            return out
        flat, m = out.reshape(-1, values.shape[-1]), rows.shape[-1]
        lines, wanted = rows.reshape(flat.shape[0], m), values.reshape(flat.shape)
        for i in range(len(flat)):
            flat[i] = xp.searchsorted(lines[i], wanted[i], side=self.side)
        return out


def _is_descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise expected('direction "ASCENDING" or "DESCENDING"', repr(direction))
    return direction == "DESCENDING"


def _sorted(op: Any, values: Any, axis: Any, direction: str, name: str) -> Tensor:
    x, down = convert_to_tensor(values), _is_descending(direction)
    dynamic = dynamic_axes(axis)
    if dynamic is not None:
        return along(x, dynamic, lambda lines: apply(op(1, down), lines), name)
    return apply(op(one_axis(axis), down), x, name=name)


def sort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """Returns the elements sorted along an axis; NaN counts as largest.

    Args:
        values: A tensor of real numbers.
        axis: The axis.
        direction: "ASCENDING" or "DESCENDING".
        name: Name of the operation.
    """
    return _sorted(Sort, values, axis, direction, name or "sort")


def argsort(
    values: Any,
    axis: Any = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the indices that sort the elements along an axis, as int32; see `sort`.

    Args:
        values: A tensor of real numbers.
        axis: The axis.
        direction: "ASCENDING" or "DESCENDING".
        stable: True or False: equal elements always stay in their order.
        name: Name of the operation.
    """
    return _sorted(ArgSort, values, axis, direction, name or "argsort")


@op_function("sorted_sequence values~sorted_sequence")
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns the indices at which sorted rows would take values in; NaN counts as largest.

    Args:
        sorted_sequence: Rows in rising order, along the last axis.
        values: What to look for, of the same axes but the last.
        side: "left" for in front of equal elements, "right" for behind them.
        out_type: int32 or int64.
    """
    if side not in ("left", "right"):
        raise expected('side "left" or "right"', repr(side))
    dtype = as_dtype(out_type)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise expected_dtype("int32 or int64 for out_type", dtype)
    return apply(SearchSorted(side, dtype), sorted_sequence, values, name=name)
