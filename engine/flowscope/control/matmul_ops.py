"""Matrix products in other forms: plans put these ops in the place of those that users build.

A product with few rows is far from what a processor can do: BLAS packs a matrix for each of them,
and threads have little to share. A sum of many products over few rows is one product over many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from flowscope.control.lists import elements
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.ops.linalg.products import MatMul

#: So many bytes of a factor are copied behind each other for one product.
CHUNK_BYTES = 1 << 20

_PRODUCT = MatMul(transpose_a=True)


@frozen
class SumOfProducts(Op):
    """A matrix, plus transpose(x) @ y for each pair of elements of two lists.

    Attributes:
        is_reversed: Whether the lists run in opposite directions.

    Shapes: start [m, n], x's [?, m], y's [?, n] -> [m, n]
    """

    is_reversed: bool
    is_differentiable: ClassVar[bool] = False
    memory_order: ClassVar[str | None] = "C"
    accumulates: ClassVar[bool] = True

    def infer(self, start: Spec, xs: Spec, ys: Spec) -> Spec:
        return Spec(start.dtype, start.shape)

    def kernel(self, xp: ArrayModule, start: Array, xs: Any, ys: Any) -> Array:
        a, b = elements(xs), elements(ys)
        if self.is_reversed:
            b.reverse()
        return xp.ascontiguousarray(start + summed(xp, a, b)) if a else start.copy()


@frozen
class SumOfMatMuls(Op):
    """The sum of transpose(x) @ y for pairs of matrices.

    Shapes: k times [?, m], then k times [?, n] -> [m, n]
    """

    is_differentiable: ClassVar[bool] = False
    memory_order: ClassVar[str | None] = "C"
    accumulates: ClassVar[bool] = True

    def infer(self, *inputs: Spec) -> Spec:
        x, y = inputs[0], inputs[-1]
        return _PRODUCT.infer(Spec(x.dtype, x.shape), Spec(y.dtype, y.shape))

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Array:
        half = len(inputs) // 2
        return summed(xp, inputs[:half], inputs[half:])


@frozen
class TransposedCopy(Op, keeps_finite=True):
    """The transpose of a matrix, in memory of its own.

    Shapes: [m, n] -> [n, m]
    """

    is_differentiable: ClassVar[bool] = False
    memory_order: ClassVar[str | None] = "C"

    def infer(self, x: Spec) -> Spec:
        return Spec(x.dtype, None if x.shape is None else x.shape[::-1])

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return xp.ascontiguousarray(x.T)


@frozen
class Part(Op, keeps_finite=True):
    """Rows (axis 0) or columns (axis 1) of a matrix, from `start` to before `stop`.

    Shapes: [m, n] -> [stop - start, n] or [m, stop - start]
    """

    axis: int
    start: int
    stop: int
    is_differentiable: ClassVar[bool] = False
    views: ClassVar[Any] = (0,)
    memory_order: ClassVar[str | None] = "R"

    def infer(self, x: Spec) -> Spec:
        if x.shape is None:
            return Spec(x.dtype, None)
        n = self.stop - self.start
        return Spec(x.dtype, (x.shape[0], n) if self.axis else (n, x.shape[1]))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x[:, self.start : self.stop] if self.axis else x[self.start : self.stop]


def summed(xp: ArrayModule, xs: Sequence[Array], ys: Sequence[Array]) -> Array:
    """Returns the sum of transpose(x) @ y over pairs, in products of many rows."""
    total: Any = None
    step = max(1, CHUNK_BYTES // max(xs[0].nbytes, ys[0].nbytes, 1))
    for first in range(0, len(xs), step):
        x = xp.concatenate(xs[first : first + step])
        y = xp.concatenate(ys[first : first + step])
        product = _PRODUCT.kernel(xp, x, y)
        total = product if total is None else xp.add(total, product, out=total)
    return total


__all__ = ["CHUNK_BYTES", "SumOfMatMuls", "SumOfProducts", "TransposedCopy", "summed"]
