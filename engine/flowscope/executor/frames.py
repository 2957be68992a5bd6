"""The dynamic side of the executor: frames and iterations that are on their way."""

from __future__ import annotations

from collections import deque
from typing import Any

from flowscope.executor.static import StaticFrame, Unit


class Iteration:
    """One pass through a loop's body; the step itself is one, of a frame of its own.

    Attributes:
        frame: The frame that it is an iteration of.
        number: From 0.
        pending: Tokens still to come per unit; of a Merge 1, until a live one has come, and 2 per
            control edge.
        dead: Per unit how many dead tokens came.
        slots: Inputs.
        outstanding: Units that are ready or run, and have not finished.
        children: Frames of loops inside by their static frames, None before the first; with
            `outstanding`, what the iteration waits for.
        next: The next iteration, once it has begun.
    """

    __slots__ = (
        "children", "dead", "frame", "next", "number", "outstanding", "pending", "slots",
    )  # fmt: skip

    def __init__(self, frame: Frame, number: int) -> None:
        static = frame.static
        self.frame = frame
        self.number = number
        self.pending = static.pending[:]
        self.slots = static.slots[:]
        self.dead = [0] * len(self.pending)
        self.outstanding = 0
        self.children: dict[StaticFrame, Frame] | None = None
        self.next: Iteration | None = None

    @property
    def path(self) -> tuple[int, ...]:
        """The iterations' numbers of the frames around, from the outermost, and its own."""
        parent = self.frame.parent
        return () if parent is None else (*parent.path, self.number)

    @property
    def name(self) -> str:
        """The frames around and their iterations, as text: the tag of its tokens."""
        parent = self.frame.parent
        if parent is None:
            return ""
        return "/".join(p for p in (parent.name, f"{self.frame.static.name}:{self.number}") if p)

    def __repr__(self) -> str:
        return f"<Iteration {self.name or 'of the step'}>"


class Frame:
    """One execution of a loop; the step itself is one.

    Attributes:
        static: The loop.
        parent: The iteration that it belongs to; None for the step.
        iterations: Those on their way, the oldest first.
        missing: Enters that have not come yet.
        constants: The constant Enters that came: (unit, value, whether it is dead).
        parked: What waits for the next iteration: (NextIteration, value).
        dead_exits: Exits that were dead in the newest iteration.
        started: How many iterations have begun.
    """

    __slots__ = (
        "constants", "dead_exits", "iterations", "missing", "parent", "parked", "started", "static",
    )  # fmt: skip

    def __init__(self, static: StaticFrame, parent: Iteration | None) -> None:
        self.static = static
        self.parent = parent
        self.missing = static.enters
        self.constants: list[tuple[Unit, Any, bool]] = []
        self.parked: list[tuple[Unit, Any]] = []
        self.dead_exits: list[Unit] = []
        self.started = 1
        self.iterations = deque([Iteration(self, 0)])

    @property
    def name(self) -> str:
        """What tells it from all others: the same in every run, whatever the order."""
        if self.parent is None:
            return ""
        return "/".join(p for p in (self.parent.name, self.static.name) if p)

    def __repr__(self) -> str:
        return f"<Frame {self.name or 'of the step'}>"


__all__ = ["Frame", "Iteration"]
