"""Attaches tracers to sessions and detaches them, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from flowscope.plan.plan import Plan
    from flowscope.runtime.trace.step_trace import StepTrace, Tracer


class Traced(Protocol):
    """What has tracers: a session, or an engine."""

    tracers: tuple[Tracer, ...]


class FetchObserver:
    """A tracer that has nothing traced, and sees what steps have fetched."""

    def wants(self, plan: Plan) -> bool:
        """False: a step is not traced for it."""
        return False

    def take(self, trace: StepTrace) -> None:
        """Takes nothing."""

    def see(self, plan: Plan, step: int, values: Sequence[Any]) -> None:
        """Takes what a step has fetched, on the thread that ran it.

        Args:
            plan: The step's plan.
            step: How many steps have ended.
            values: What was fetched, in the order of the plan's fetches.
        """
        raise NotImplementedError


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


def tell_fetched(
    tracers: Sequence[Tracer], trace: StepTrace | None, plan: Plan, step: int, values: Sequence[Any]
) -> None:
    """Tells observers, and the step's trace if it has one, what a step has fetched.

    Args:
        tracers: Those of the session.
        trace: The step's; None where it has none.
        plan, step, values: See `FetchObserver.see`.
    """
    if trace is not None:
        trace.fetched = tuple(values)
    for tracer in tracers:
        if isinstance(tracer, FetchObserver):
            tracer.see(plan, step, values)


__all__ = ["FetchObserver", "Traced", "attach", "detach", "tell_fetched"]
