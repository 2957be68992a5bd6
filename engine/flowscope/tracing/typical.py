"""Typical steps: what each operation takes in a step of a plan, from the newest traced steps.

A mean over all traced steps is easily wrong: the first step of a plan meets cold caches and fresh
memory, and one step in which the machine was busy outweighs a hundred others. So the figures are
medians, per operation, of the newest steps, and the first traced step of a plan counts only as long
as it is the only one. Each plan is apart: a step that trains and one that evaluates have nothing in
common.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

import numpy as np

from flowscope.graph.lazy import frozen
from flowscope.plan.plan import Plan

Array = Any

#: Steps of one plan whose medians are taken.
STEPS = 25
#: So many parts outweigh a whole step before them.
_MANY_PARTS = 3
#: Names that a program's name lists.
_NAMES = 2

#: What figures were taken from: "median" of steps without the first; "first" step, the only one so
#: far; "parts" of steps that last, or that failed; "mean" of all steps.
Basis = Literal["median", "first", "parts", "mean"]


@frozen
class ProgramFigures:
    """From which steps of a plan its figures were taken.

    Attributes:
        plan: The number of the plan in its recording.
        name: What it fetches and runs, for people.
        basis: How the figures were made.
        steps: The number of steps, or of parts of steps, that they were made of.
        newest_ns: When the newest of these ended, in nanoseconds since the recording's origin.
        step_ns: Nanoseconds that the operations of one step take together.
    """

    plan: int
    name: str
    basis: Basis
    steps: int
    newest_ns: int
    step_ns: int


class TypicalStep:
    """Collects the traced steps of one plan.

    Args:
        plan: The plan.

    Attributes:
        name: What the plan fetches and runs.
        ended: When the newest step ended, by the recorder's clock in nanoseconds.
    """

    def __init__(self, plan: Plan) -> None:
        self.name = program_name(plan)
        self.ended = 0
        self._first: Array | None = None
        self._newest: deque[Array] = deque(maxlen=STEPS)
        #: Parts of steps that came after the newest whole step, the newest of them.
        self._parts: deque[Array] = deque(maxlen=STEPS)

    def take(self, count: Array, self_ns: Array, is_whole: bool, ended: int) -> None:
        """Takes a step.

        Args:
            count, self_ns: Per node how often it ran, and its own nanoseconds.
            is_whole: Whether it was traced from its begin to its end, and did not fail.
            ended: When it ended, by the recorder's clock in nanoseconds.
        """
        self.ended = ended
        row = np.array([count, self_ns], np.int64)
        if not is_whole:
            self._parts.append(row)
            return
        self._parts.clear()
        if self._first is None:
            self._first = row
        else:
            self._newest.append(row)

    def figures(self) -> tuple[Basis, int, Array]:
        """Returns the basis, the number of steps, and a row each of counts and own nanoseconds.

        Parts tell less than whole steps: they count where there is no whole step, or where several
        of them have followed the newest one.
        """
        is_known = self._first is not None
        if self._parts and (not is_known or len(self._parts) >= _MANY_PARTS):
            return "parts", len(self._parts), np.mean(self._parts, axis=0)
        if self._newest:
            rows = np.stack(self._newest)
            figures = np.stack([rows[:, 0].mean(axis=0), np.median(rows[:, 1], axis=0)])
            return "median", len(rows), figures
        if self._first is None:
            raise ValueError("no step has been taken")
        return "first", 1, self._first.astype(np.float64)


def program_name(plan: Plan) -> str:
    """The fetches and targets of a plan as text, such as "train, loss"; longer lists are cut."""
    request = plan.request
    names = [op.name for op in request.targets] + [t.op.name for t in request.fetches]
    names = list(dict.fromkeys(name.rpartition("/")[2] for name in names))
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


__all__ = ["STEPS", "Basis", "ProgramFigures", "TypicalStep", "program_name"]
