"""What a machine was told and what it did: for people, and to be done again.

A story keeps the last events, in order. One that has all of them, and the values, can be told to
another machine of the same graph: see `flowscope.executor.replay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from flowscope.errors import InternalError
from flowscope.graph.lazy import frozen

if TYPE_CHECKING:
    from flowscope.executor.frames import Iteration
    from flowscope.executor.static import Unit

What = Literal["start", "run", "idle", "done", "dead"]


@frozen
class LoggedEvent:
    """One entry of a story.

    Attributes:
        what: "start" of the step; a unit was handed out to "run", was "done", or is "dead"; "idle":
            there was nothing to hand out.
        unit: The unit's name, "" for the step.
        tag: The frames around and their iterations, as text.
        values: Feeds or outputs.
    """

    what: What
    unit: str = ""
    tag: str = ""
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        where = f" in {self.tag}" if self.tag else ""
        return f"{self.unit or 'the step'} {self.what}{where}"


class Story:
    """The last events of a machine.

    Args:
        length: How many are kept; None for all.

    Attributes:
        events: The events, the oldest first.
        running: What was handed out and is not done: (index of the unit, iteration).
    """

    def __init__(self, length: int | None = 10_000) -> None:
        self.events: deque[LoggedEvent] = deque(maxlen=length)
        self.running: dict[tuple[int, int], tuple[Unit, Iteration]] = {}

    def note_start(self, feeds: Iterable[Any]) -> None:
        """Notes the start of the step."""
        self.events.append(LoggedEvent("start", values=tuple(feeds)))

    def note_run(self, unit: Unit, it: Iteration) -> None:
        """Notes that a unit was handed out."""
        self.running[unit.index, id(it)] = unit, it
        self.events.append(LoggedEvent("run", unit.name, it.name))

    def note_idle(self) -> None:
        """Notes that there was nothing to hand out."""
        self.events.append(LoggedEvent("idle"))

    def note_done(self, unit: Unit, it: Iteration, outputs: Iterable[Any]) -> None:
        """Notes what a unit gave; raises InternalError if it was not handed out."""
        event = LoggedEvent("done", unit.name, it.name, tuple(outputs))
        if self.running.pop((unit.index, id(it)), None) is None:
            raise InternalError(f"{event}, but it was not running; it was: {self.of(unit.name)}")
        self.events.append(event)

    def note_dead(self, unit: Unit, it: Iteration) -> None:
        """Notes that a unit is dead."""
        self.events.append(LoggedEvent("dead", unit.name, it.name))

    def of(self, op: str) -> list[LoggedEvent]:
        """The events of an operation."""
        return [e for e in self.events if e.unit == op]


__all__ = ["LoggedEvent", "Story"]
