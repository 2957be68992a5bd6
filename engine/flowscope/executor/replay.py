"""A machine that is told again what another one was told: to find out how it came to a state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowscope.errors import InternalError
from flowscope.executor.event_log import LoggedEvent, Story
from flowscope.executor.machine import Machine
from flowscope.executor.static import ExecutorGraph


def replay(graph: ExecutorGraph, events: Iterable[LoggedEvent]) -> Machine:
    """Returns a new machine that was told the same events, in the same order.

    Raises: InternalError if an event does not fit: the story is not this graph's, or not whole.
    """
    machine = Machine(graph, Story(None))
    running: dict[tuple[str, str], Any] = {}
    for event in events:
        if event.what == "start":
            machine.start(event.values)
        elif event.what in ("run", "idle"):
            invocation = machine.next()
            if invocation is None and event.what == "idle":
                continue
            key = (invocation[0].name, invocation[1].name) if invocation else ("nothing", "")
            if key != (event.unit, event.tag):
                raise InternalError(f"expected {event}, but {key[0]} is next, in {key[1]!r}")
            running[key] = invocation
        elif event.what == "done":
            found = running.pop((event.unit, event.tag), None)
            if found is None:
                raise InternalError(f"{event}, but it was not running")
            machine.done(found[0], found[1], event.values)
    while machine.next() is not None:
        raise InternalError("the story ends before the step")
    return machine


__all__ = ["replay"]
