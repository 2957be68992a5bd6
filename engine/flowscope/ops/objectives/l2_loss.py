"""Half the sum of squares: the usual penalty of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.ops.core.build import unary
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.math.elementwise import (
    multiply,
)

__all__ = ["l2_loss"]


#: Elements of one piece of a sum of squares.
_LONG = 1 << 12


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Returns half the sum of the squares of all elements."""
    return unary(_L2_LOSS, t, name)


@frozen
class L2Loss(Op, grad_reads=("x",), accumulates=True):
    """Half the sum of the squares of all elements.

    Shapes: any -> []
    """

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return Spec(x.dtype, ())

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (multiply(x, g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if xp is np and x.size >= _LONG and x.flags.c_contiguous and x.dtype.itemsize >= 4:
            # Squares and sums in one pass, piece by piece, which is as exact as pairwise.
            whole = x.size // _LONG * _LONG
            flat = x.reshape(-1)
            pieces = np.einsum("ij,ij->i", *[flat[:whole].reshape(-1, _LONG)] * 2)
            rest = np.square(flat[whole:]).sum(dtype=x.dtype)
            return (pieces.sum(dtype=x.dtype) + rest) / 2
        return (xp.square(x).sum(dtype=x.dtype) / 2)[()]


_L2_LOSS = L2Loss()
