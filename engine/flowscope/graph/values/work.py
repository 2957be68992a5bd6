"""How much an op has to do: what `Op.work` says of ops that take longer than their memory does.

Seconds are those of one core of a Xeon at 2.8 GHz with NumPy 2.4; decisions depend on their ratios,
which differ little between processors. See `plan.analysis.costs` for what is made of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from flowscope.graph.values.shapes import size_of

if TYPE_CHECKING:
    from flowscope.graph.op import Spec


class Work:
    """What the work of one invocation grows with.

    Attributes:
        unit: "element": the output's elements; "comparison": the first input's elements times the
            doublings of its last axis, as when that is sorted; "cube": m * n * min(m, n) of each
            matrix of the first input, as when LAPACK factors it; "product": the multiplications and
            additions that `Op.cost` counts, done by BLAS.
        seconds: Of one unit; 0 where the rate is BLAS's.
    """

    __slots__ = ("seconds", "unit")

    def __init__(self, unit: str, seconds: float = 0.0) -> None:
        self.unit = unit
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"Work({self.unit!r}, {self.seconds:g})"

    def seconds_of(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> float | None:
        """The seconds of one invocation, None where shapes are unknown. Not of "product"."""
        if self.unit == "element":
            size = size_of(outputs[0].shape)
            return None if size is None else self.seconds * size
        size, shape = size_of(inputs[0].shape), inputs[0].shape
        if size is None or not shape:
            return None
        if self.unit == "comparison":
            return self.seconds * size * math.log2(max(2, shape[-1] or 0))
        if len(shape) < 2:
            return None
        return self.seconds * size * min(d or 0 for d in shape[-2:])


#: Products of matrices, convolutions among them.
PRODUCT = Work("product")


def per_element(seconds: float) -> Work:
    """The work of an op that takes so long for each element of its output."""
    return Work("element", seconds)


def per_comparison(seconds: float) -> Work:
    """The work of an op that sorts, or transforms as FFT does, along the last axis."""
    return Work("comparison", seconds)


def per_cube(seconds: float) -> Work:
    """The work of an op that factors matrices."""
    return Work("cube", seconds)


__all__ = ["PRODUCT", "Work", "per_comparison", "per_cube", "per_element"]
