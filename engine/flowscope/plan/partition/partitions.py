"""Partitions: what each device, or each process, runs of a plan, as plain data.

A plan on one device has one. Else each is the projection of the plan's program onto a device, or
onto all devices of a process (`plan.passes.partition`). Its program takes the step's feeds by their
numbers and gives some of its fetches. Values reach another partition only by a `Send` there and a
`Recv` with the same key here. All partitions are subsequences of one global order, so waiting in
place cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from flowscope.graph.lazy import frozen
from flowscope.plan.executables.execution import is_executed
from flowscope.plan.ir.program import Program

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
        device: The device's full name, of a process that of its first CPU; "" where there is
            nothing to run.
        program: Its operations. A feed's `index` is its number among the step's feeds.
        back_end: The name of the code back end that compiles it.
        fetched: Which of the step's fetches it gives, in the order of the program's own.
    """

    device: str
    program: Program
    back_end: str
    fetched: tuple[int, ...]

    @property
    def title(self) -> str:
        """What the text form says above its program."""
        return f"partition on {self.device or 'no device'}, compiled by {self.back_end}:"


def partitioned(
    program: Program, mode: Mode, site_of: Callable[[str], str] = str
) -> tuple[Partition, ...]:
    """Returns the partitions of a plan's program.

    Args:
        program: The program, with transfers.
        mode: How it is run.
        site_of: Returns the site of a device, by default itself: those of one site are in one
            partition. `flowscope.plan.ir.memories.host_of` makes each process one.
    """
    from flowscope.plan.passes.partition import project  # one device needs none

    back_end = back_end_of(program, mode)
    return tuple(
        [Partition(p.device, p.program, back_end, p.fetched) for p in project(program, site_of)]
    )


def back_end_of(program: Program, mode: Mode) -> str:
    """Returns the name of the code back end that compiles a program."""
    return _BACK_ENDS[mode][is_executed(program)]


__all__ = ["Mode", "Partition", "back_end_of", "partitioned"]
