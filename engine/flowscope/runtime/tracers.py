"""Who wants steps traced comes and goes, on any thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flowscope.runtime.step_trace import Tracer


class Traced(Protocol):
    """What has tracers: a session, or an engine."""

    tracers: tuple[Tracer, ...]


#: Held while tracers come and go: views, steps and callers do that on threads of their own.
_changes = threading.Lock()


def attach(owner: Traced, tracer: Tracer) -> None:
    """Has a tracer asked about steps; once, however often it is attached."""
    with _changes:
        if tracer not in owner.tracers:
            owner.tracers = (*owner.tracers, tracer)


def detach(owner: Traced, tracer: Tracer) -> None:
    """Has a tracer asked no more."""
    with _changes:
        owner.tracers = tuple([t for t in owner.tracers if t is not tracer])


__all__ = ["Traced", "attach", "detach"]
