"""Partitions: what each device runs of a plan, as plain data.

A partition's program takes the step's feeds by their numbers and gives some of its fetches. Values
reach another partition only by a `Send` there and a `Recv` with the same key here. All partitions
are subsequences of one global order, so waiting in place cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from flowscope.graph.lazy import frozen
from flowscope.plan.execution import is_executed
from flowscope.plan.passes.regions import Region, regions
from flowscope.plan.program import Program

#: "compiled": generated code; "op": one operation at a time, nothing simplified; "tokens": as
#: tokens arrive, in frames and iterations, nothing simplified.
Mode = Literal["compiled", "op", "tokens"]

#: By mode the names of two code back ends: for programs that run without waiting, and for others.
_BACK_ENDS: Mapping[Mode, tuple[str, str]] = {
    "compiled": ("python", "regions"),
    "op": ("op", "tokens"),
    "tokens": ("tokens", "tokens"),
}


@frozen
class Partition:
    """What one device runs of a plan.

    Attributes:
        device: The device's full name; "" where there is nothing to run.
        program: Its operations. A feed's `index` is its number among the step's feeds.
        regions: The units that are compiled and run as a whole.
        back_end: The name of the code back end that compiles them.
        fetched: Which of the step's fetches it gives, in the order of the program's own.
    """

    device: str
    program: Program
    regions: tuple[Region, ...]
    back_end: str
    fetched: tuple[int, ...]

    @property
    def title(self) -> str:
        """What the text form says above its program."""
        return f"partition on {self.device or 'no device'}, compiled by {self.back_end}:"


def partitioned(program: Program, mode: Mode, is_handed_out: bool = True) -> tuple[Partition, ...]:
    """Returns the partitions of a program that was placed: one, as one device runs it.

    Args:
        program: The program.
        mode: How it is run.
        is_handed_out: Whether the fetches go to the user.
    """
    back_end = _BACK_ENDS[mode][is_executed(program)]
    found = regions(program, is_handed_out)
    return (Partition(program.device, program, found, back_end, _all(program.fetches)),)


def _all(values: Sequence[object]) -> tuple[int, ...]:
    return tuple(range(len(values)))


__all__ = ["Mode", "Partition", "partitioned"]
