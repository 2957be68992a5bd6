"""Tensors with parts changed, at positions that the last axis of indices spells out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.gathering import GatherNd, flat_rows
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import named, op_function
from flowscope.ops.core.shape_rules import check_index_dtype, check_kind
from flowscope.ops.kernels.scatter_rows import add_rows, fold_rows, set_rows
from flowscope.ops.math.elementwise import equal, maximum, multiply, negative, realdiv

__all__ = [
    "tensor_scatter_add",
    "tensor_scatter_max",
    "tensor_scatter_min",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensor_scatter_sub",
    "tensor_scatter_update",
]


@frozen
class TensorScatter(Op, accumulates=True, grad_reads=("y", "x", "indices", "updates")):
    """The input with elements or slices changed at positions.

    Attributes: `how` is "update", "add", "sub", "min" or "max". Where a position is named again,
        all count, one after the other.

    Shapes: x, indices [..., k], updates [...] + x.shape[k:] -> x
    Raises: InvalidArgumentError if a position is out of range.
    """

    how: str

    def infer(self, x: Spec, indices: Spec, updates: Spec) -> Spec:
        check_index_dtype(indices, "indices")
        if updates.dtype is not x.dtype:
            raise expected_dtype(f"updates of {x.dtype}", f"{updates.dtype}: use fs.cast")
        if self.how != "update":
            check_kind(x.dtype, "fiu" if self.how in ("min", "max") else "fiuc")
        self._check(x.shape, indices.shape, updates.shape)
        return x.like()

    def _check(self, x: Dims, indices: Dims, updates: Dims) -> None:
        if indices == ():
            raise expected("indices of rank 1 at least", "[]")
        if x is None or indices is None or indices[-1] is None:
            return
        if indices[-1] > len(x):
            raise expected(f"at most {len(x)} numbers per position", indices[-1])
        wanted = (*indices[:-1], *x[indices[-1] :])
        if not compatible(wanted, updates):
            raise expected(f"updates of shape {text(wanted)}", updates)

    def grad(self, g: Tensor, y: Tensor, x: Tensor, indices: Tensor, updates: Tensor) -> Any:
        """Where positions are named again, all their updates get the cotangent."""
        part = apply(GatherNd(), g, indices)
        if self.how == "add":
            return g, None, part
        if self.how == "sub":
            return g, None, negative(part)
        if self.how == "update":
            return apply(self, g, indices, zeros_like(updates)), None, part
        return self._extremum_grad(g, y, x, indices, updates)

    def _extremum_grad(
        self, g: Tensor, y: Tensor, x: Tensor, indices: Tensor, updates: Tensor
    ) -> Any:
        """The cotangent goes to all that are the extreme, in equal shares."""
        mine = cast(equal(x, y), g.dtype)
        theirs = cast(equal(updates, apply(GatherNd(), y, indices)), g.dtype)
        ties = maximum(apply(TensorScatter("add"), mine, indices, theirs), 1.0)
        share = realdiv(g, ties)
        return multiply(share, mine), None, multiply(apply(GatherNd(), share, indices), theirs)

    def kernel(self, xp: ArrayModule, x: Array, indices: Array, updates: Array) -> Array:
        self._check(x.shape, indices.shape, updates.shape)
        out, k = x.copy(), indices.shape[-1]
        tail = x.shape[k:]
        places = flat_rows(xp, indices, x.shape)
        if not places.size:
            return out
        n = out.size // max(1, math.prod(tail)) if out.size else 0
        rows, changes = out.reshape(n, *tail), updates.reshape(places.size, *tail)
        if self.how == "update":
            set_rows(xp, rows, places, changes)
        elif self.how in ("add", "sub"):
            sums = add_rows(xp, n, places, changes)
            (xp.add if self.how == "add" else xp.subtract)(rows, sums, out=rows)
        else:
            fold_rows(xp, "minimum" if self.how == "min" else "maximum", rows, places, changes)
        return out


_ABOUT = """Returns a tensor {what} `updates` at positions.

    Args:
        tensor: A tensor.
        indices: Integers; the last axis spells out a position in the first axes of the tensor.
        updates: An element, or a slice of the other axes, for each position.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if a position is out of range.
    """


def _scatter(function: str, how: str, what: str) -> Callable[..., Tensor]:
    op, kind = TensorScatter(how), f"TensorScatter{how.title()}"

    @op_function("tensor indices:int32 updates~tensor")
    def call(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        return apply(op, tensor, indices, updates, name=name or kind)

    return named(call, function, _ABOUT.format(what=what))


tensor_scatter_update = _scatter("tensor_scatter_update", "update", "replaced by")
tensor_scatter_add = _scatter("tensor_scatter_add", "add", "plus")
tensor_scatter_sub = _scatter("tensor_scatter_sub", "sub", "minus")
tensor_scatter_min = _scatter("tensor_scatter_min", "min", "lowered to at most")
tensor_scatter_max = _scatter("tensor_scatter_max", "max", "raised to at least")
tensor_scatter_nd_update = tensor_scatter_update
tensor_scatter_nd_add = tensor_scatter_add
tensor_scatter_nd_sub = tensor_scatter_sub
tensor_scatter_nd_min = tensor_scatter_min
tensor_scatter_nd_max = tensor_scatter_max
