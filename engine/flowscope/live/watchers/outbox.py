"""What waits to be sent to one view: a state machine without clock, lock or socket.

At most `WINDOW` messages are on their way until the view has said that it took one. Meanwhile
changes of the graph wait in order, as one; of a state the newest waits, and what it replaces is
counted. Where more operations wait than the graph has, the view gets a snapshot in their place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from flowscope.live.graphs.nodes import Described
from flowscope.live.protocol.schema import (
    Delta,
    GraphChange,
    Node,
    RunState,
    SessionState,
    Snapshot,
    TraceState,
)

#: Messages on their way to a view at most.
WINDOW = 2
#: Most tokens of one message; of more, the newest are told.
TOKENS = 200


class Outbox:
    """The messages to one view.

    Args:
        window: How many may be on their way; None for any number.

    Attributes:
        needs_snapshot: Whether a snapshot is to be put in before anything else can be sent.
    """

    def __init__(self, window: int | None = WINDOW) -> None:
        self._window = window
        self._seq = 0
        #: Numbers of the messages on their way.
        self._sent: list[int] = []
        self._graph: GraphChange | None = None
        self._session: SessionState | None = None
        self._run: RunState | None = None
        self._trace: TraceState | None = None
        self._has_news = False
        self._skipped = 0
        self.needs_snapshot = True

    @property
    def has_room(self) -> bool:
        """Whether a message can be sent now."""
        return self._window is None or len(self._sent) < self._window

    def put(
        self,
        graph: GraphChange | None,
        session: SessionState | None,
        run: RunState | None,
        trace: TraceState | None = None,
    ) -> None:
        """Puts in what is new: the session's state whole, of the others None for no news."""
        if self.needs_snapshot:
            return
        self._skipped += self._has_news
        self._has_news = True
        if graph is not None:
            self._graph = graph if self._graph is None else merged(self._graph, graph)
        self._session = session
        if run is not None:
            self._run = run if self._run is None else _with_tokens(self._run, run)
        if trace is not None:
            self._trace = trace

    def give_up(self, operations: int) -> None:
        """Lets a snapshot take the place of what waits, if that is more than the graph has."""
        waiting = self._graph
        if waiting is not None and len(waiting.added) + len(waiting.changed) > operations:
            self._graph = self._run = self._trace = None
            self._has_news = False
            self._skipped += 1
            self.needs_snapshot = True

    def snapshot(self, message: Snapshot) -> Snapshot:
        """Returns a snapshot as it is sent: what waited is part of it."""
        self._graph = self._session = self._run = self._trace = None
        self._has_news = self.needs_snapshot = False
        self._sent.clear()  # a view that asks anew has lost what was on its way
        return dataclasses.replace(message, seq=self._number())

    def take(self) -> Delta | None:
        """Returns the message that can be sent now, None if there is none."""
        if not self._has_news or not self.has_room:
            return None
        skipped, self._skipped = self._skipped, 0
        found = self._graph, self._session, self._run, skipped, self._trace
        message = Delta(self._number(), *found)
        self._graph = self._run = self._trace = None
        self._has_news = False
        return message

    def acknowledge(self, seq: int) -> None:
        """Notes that the view has taken the messages up to a number."""
        self._sent = [n for n in self._sent if n > seq]

    def _number(self) -> int:
        self._seq += 1
        if self._window is not None:
            self._sent.append(self._seq)
        return self._seq


def merged(first: GraphChange, then: GraphChange) -> GraphChange:
    """Returns two changes of a graph, one after the other, as one."""
    added = {one.id: one for one in _things(first.added)}
    changed = {one.id: one for one in _things(first.changed)}
    removed = dict.fromkeys(first.removed)
    for i in then.removed:
        changed.pop(i, None)
        if added.pop(i, None) is None:
            removed[i] = None
    for one in _things(then.changed):
        (added if one.id in added else changed)[one.id] = one
    for one in _things(then.added):
        if one.id in removed:  # the view has it under this number still
            del removed[one.id]
            changed[one.id] = one
        else:
            added[one.id] = one
    placed = {i: d for i, d in (*first.placed, *then.placed) if i not in removed}
    return GraphChange(
        version=then.version,
        added=_like(then, list(added.values())),
        placed=tuple(placed.items()),
        changed=_like(then, list(changed.values())),
        removed=tuple(removed),
        marked=then.marked,
        fetches=then.fetches or first.fetches,
    )


def _things(nodes: Sequence[Node]) -> Sequence[Any]:
    return nodes.operations if isinstance(nodes, Described) else nodes


def _like(change: GraphChange, things: list[Any]) -> Sequence[Node]:
    if isinstance(change.added, Described):
        return Described(things, change.added.placements)
    return tuple(things)


def _with_tokens(first: RunState, then: RunState) -> RunState:
    tokens = (*first.tokens, *then.tokens)[-TOKENS:]
    return dataclasses.replace(then, tokens=tokens)


__all__ = ["TOKENS", "WINDOW", "Outbox", "merged"]
