"""The k largest of each row, and whether a target is among them."""

from __future__ import annotations

from typing import Any, NamedTuple

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import merge_dims
from flowscope.graph.values.work import per_comparison
from flowscope.ops.array.arrays import range as range_, size, zeros_like
from flowscope.ops.array.gathering import scatter_nd
from flowscope.ops.array.shaping import reshape, shape_of
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.core.table import orderable
from flowscope.ops.math.elementwise import (
    add,
    maximum,
)

__all__ = ["in_top_k", "top_k"]


#: Up to so many of the largest are found one after the other.
_FEW = 8


@frozen
class InTopK(Op, is_differentiable=False):
    """Whether each target is among its row's k largest predictions; those equal to the k-th count.

    No target is in a row that holds NaN or infinity.

    Shapes: predictions [batch, classes], targets [batch] -> [batch]
    """

    k: int

    def infer(self, predictions: Spec, targets: Spec) -> Spec:
        check_kind(predictions.dtype, "f")
        check_kind(targets.dtype, "i")
        if predictions.rank not in (None, 2) or targets.rank not in (None, 1):
            raise expected("predictions of rank 2 and targets of rank 1", predictions, targets)
        rows = None if predictions.shape is None else predictions.shape[:1]
        return Spec(dtypes.bool_, merge_dims(merge_dims(rows, targets.shape), (None,)))

    def kernel(self, xp: ArrayModule, predictions: Array, targets: Array) -> Array:
        if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
            raise expected(
                "predictions of rank 2 and one target for each row",
                predictions.shape,
                targets.shape,
            )
        inside = (targets >= 0) & (targets < predictions.shape[1])
        own = predictions[xp.arange(targets.size), xp.where(inside, targets, 0)]
        above = (predictions > own[:, None]).sum(axis=1)
        return inside & xp.isfinite(predictions).all(axis=1) & (above < self.k)


def in_top_k(predictions: Any, targets: Any, k: int, name: str | None = None) -> Tensor:
    """Returns whether each target is among its row's k largest predictions.

    It is among them if fewer than k are larger, and never in a row that holds NaN or infinity.
    """
    return apply(
        InTopK(int(k)),
        convert_to_tensor(predictions),
        convert_to_tensor(targets, None, None, dtypes.int32),
        name=name,
    )


@frozen
class TopK(Op, grad_reads=("y",), work=per_comparison(3e-9)):
    """The k largest of each row, in falling order, and their positions; the first one at ties.

    NaN counts as largest.

    Shapes: [..., n] -> values [..., k], indices [..., k]
    """

    k: int

    def infer(self, x: Spec) -> Any:
        check_kind(x.dtype, "fiu")
        if x.shape == () or (x.shape and x.shape[-1] is not None and x.shape[-1] < self.k):
            raise expected(f"a last axis of {self.k} at least", x.shape)
        dims = None if x.shape is None else (*x.shape[:-1], self.k)
        return Spec(x.dtype, dims), Spec(dtypes.int32, dims)

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        if self.k == 0:
            return (zeros_like(x),)
        whole = cast(shape_of(x), dtypes.int64)
        width = whole[-1]
        count = cast(size(x), dtypes.int64)
        # Where the rows of x begin in all its elements, one after the other.
        starts = reshape(range_(0, count, maximum(width, 1)), [-1, 1])
        places = add(starts, reshape(cast(y[1], dtypes.int64), [-1, self.k]))
        flat = scatter_nd(reshape(places, [-1, 1]), reshape(g[0], [-1]), reshape(count, [1]))
        return (reshape(flat, whole),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        if x.ndim == 0 or x.shape[-1] < self.k:
            raise expected(f"a last axis of {self.k} at least", x.shape)
        values, places = self._found(xp, orderable(xp, x))
        return values.astype(x.dtype, copy=False), places

    def _found(self, xp: ArrayModule, x: Array) -> Any:
        if self.k <= _FEW < x.shape[-1] and x.size:
            found = self._by_maxima(xp, x)
            if found is not None:
                return found
        # Sorting the mirrored row keeps the first of equal ones in front.
        order = xp.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., : self.k]
        places = x.shape[-1] - 1 - order
        return xp.take_along_axis(x, places, axis=-1), places.astype(xp.int32)

    def _by_maxima(self, xp: ArrayModule, x: Array) -> Any:
        """Takes out the largest k times; None where the lowest number there is turned up."""
        lowest = -float("inf") if x.dtype.kind == "f" else xp.iinfo(x.dtype).min
        rest = x.reshape(-1, x.shape[-1]).copy()
        rows = xp.arange(len(rest))
        values, places = [], []
        for _ in range(self.k):
            place = rest.argmax(axis=1)
            values.append(rest[rows, place])
            places.append(place)
            rest[rows, place] = lowest
        if on_host((values[-1] == lowest).any()):
            return None  # it may stand for what was taken out
        dims = (*x.shape[:-1], self.k)
        order = xp.stack(places, 1).astype(xp.int32).reshape(dims)
        return xp.stack(values, 1).reshape(dims), order


class TopKValues(NamedTuple):
    """What `top_k` returns."""

    values: Tensor
    indices: Tensor


def top_k(input: Any, k: int = 1, sorted: bool = True, name: str | None = None) -> TopKValues:
    """Returns the k largest along the last axis and their positions; NaN counts as largest.

    Args:
        input: A tensor of real numbers.
        k: How many.
        sorted: True or False: they always come in falling order.
        name: Name of the operation.

    Example:
        >>> values, indices = fs.nn.top_k([1, 9, 5], 2)
        >>> fs.Session().run([values, indices])
        [array([9, 5], dtype=int32), array([1, 2], dtype=int32)]
    """
    return TopKValues(*apply_many(TopK(int(k)), convert_to_tensor(input), name=name or "TopKV2"))
