"""Reductions of bools. A file of its own, for here `Any` is an op and not a type."""

from __future__ import annotations

from flowscope.graph.op import Array, ArrayModule, frozen
from flowscope.ops.core.axes import ReductionOp

__all__: list[str] = []


@frozen
class All(ReductionOp, kinds="b", is_differentiable=False):
    """Whether all along axes are true; true where there are none."""

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x.all(axis=self._axes(x), keepdims=self.keepdims)[()]


@frozen
class Any(ReductionOp, kinds="b", is_differentiable=False):
    """Whether one along axes is true; false where there are none."""

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x.any(axis=self._axes(x), keepdims=self.keepdims)[()]
