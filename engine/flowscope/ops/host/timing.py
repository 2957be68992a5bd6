"""The time of the run. Its kernel is in `flowscope.runtime.trace.clock_kernels`."""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.ops.core.build import apply

__all__ = ["timestamp"]


class Timestamp(Op, is_stateful=True, is_differentiable=False):
    """Seconds since 1970, as float64: another number in each run."""

    def infer(self) -> Any:
        return Spec(dtypes.float64, ())


def timestamp(name: str | None = None) -> Tensor:
    """Returns the time when it runs, in seconds since 1970, as float64."""
    return apply(Timestamp(), name=name)
