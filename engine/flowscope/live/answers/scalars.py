"""Scalars for views: the numbers that steps fetch, and writers of summaries are given, unasked.

At each look some of the steps that follow are asked what they have fetched: a number that is
fetched now and then is found after a few looks. What is kept is a short curve of each.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from flowscope.errors import OpError
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.live.protocol.run_schema import ScalarState
from flowscope.plan.plan import Plan
from flowscope.runtime.session.session import Session
from flowscope.runtime.trace.tracers import FetchObserver, attach, detach

#: Steps that are asked after a look, scalars that are told, points of a curve, fetches looked at.
STEPS, MOST, POINTS, FETCHES = 16, 8, 40, 32
#: Digits that are told: a curve is a few pixels high.
_DIGITS = 6


class Scalars(FetchObserver):
    """The numbers of a session that views are told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._left = 0
        #: By the tensor's name: its operation's number, and its newest values with their steps.
        self._kept: dict[str, tuple[int | None, deque[tuple[int, float]]]] = {}

    def see(self, plan: Plan, step: int, values: Sequence[Any]) -> None:
        """Takes the numbers among what a step has fetched."""
        with self._lock:
            for tensor, value in zip(plan.request.fetches[:FETCHES], values, strict=False):
                if isinstance(tensor, Tensor) and _is_number(value):
                    self._add(tensor.name.removesuffix(":0"), tensor.op.id, step, float(value))
            self._left -= 1
            is_over, session = self._left <= 0, self._session
        if is_over and session is not None:
            detach(session, self)

    def _add(self, name: str, op: int | None, step: int, value: float) -> None:
        known = self._kept.pop(name, None)
        points = known[1] if known is not None else deque[tuple[int, float]](maxlen=POINTS)
        if not points or points[-1][0] != step:
            points.append((step, value))
        self._kept[name] = op, points  # the newest stands last
        while len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]

    def look(self, session: Session | None) -> None:
        """Asks the steps that follow, of whichever session runs."""
        with self._lock:
            before, self._session, self._left = self._session, session, STEPS
            if before is not session:
                self._kept.clear()
        if before is not None and before is not session:
            detach(before, self)
        if session is not None and not session.is_closed:
            attach(session, self)

    def end(self) -> None:
        """Asks nobody any more."""
        if self._session is not None:
            detach(self._session, self)

    def told(self, graph: Graph) -> tuple[ScalarState, ...]:
        """Returns the scalars: those that are floating-point numbers by name, as they came first.

        Args:
            graph: The graph, whose operations have the names of summaries.
        """
        with self._lock:
            found = [(name, op, [*points]) for name, (op, points) in self._kept.items()]
        seen = {name for name, _, _ in found}
        found += [one for one in _summarised(self._session, graph) if one[0] not in seen]
        found.sort(key=lambda one: one[0])
        return tuple([
            ScalarState(name, op, points[-1][0], *_rounded(points))
            for name, op, points in found[:MOST]
        ])  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, np.floating | np.integer | float | int) and not isinstance(value, bool)


def _rounded(points: Sequence[tuple[int, float]]) -> tuple[float, tuple[float, ...]]:
    """Returns the newest value, and those of the curve."""
    values = [float(f"{value:.{_DIGITS}g}") for _, value in points]
    return values[-1], tuple(values)


def _summarised(
    session: Session | None, graph: Graph
) -> list[tuple[str, int | None, list[tuple[int, float]]]]:
    """Returns the curves of the tags that writers of summaries were given last."""
    log = None if session is None else session.engine.summaries
    if log is None or not log.version:
        return []
    with log.lock:
        series = [one for one in log.series() if one.kind == "scalar" and len(one)]
        newest = sorted(series, key=lambda one: one.times[-1])[-MOST:]
        told = [
            (one.tag, [*zip(one.steps[-POINTS:], one.values[-POINTS:], strict=True)])
            for one in newest
        ]
    found = [(tag, _operation(graph, tag), points) for tag, points in told]
    return [one for one in found if one[1] is not None]  # others are of another graph


def _operation(graph: Graph, tag: str) -> int | None:
    """Returns the number of the operation that is called as a tag; None for none."""
    with suppress(OpError, ValueError):
        return graph.get_operation_by_name(tag).id
    return None


__all__ = ["MOST", "POINTS", "STEPS", "Scalars"]
