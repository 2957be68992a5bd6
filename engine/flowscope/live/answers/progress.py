"""`fs.progress`: a loop that views can show with a bar and the time that is left."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, TypeVar

from flowscope.graph.default import get_default_graph
from flowscope.runtime.session.engine import current as engine
from flowscope.runtime.session.session import Session

if TYPE_CHECKING:
    from flowscope.live.protocol.schema import Progress
    from flowscope.runtime.session.engine import Engine

T = TypeVar("T")


class _Tracker:
    """How far one loop has come."""

    def __init__(self, description: str, total: int | None, owner: Engine) -> None:
        self.description = description
        self.total = total
        self.done = 0
        self.start_s = time.monotonic()
        #: Seconds in which steps of it were paused, as far as looks have seen.
        self.paused_s = 0.0
        self._paused_since_s: float | None = None
        self.end_s: float | None = None
        self._graph = get_default_graph()
        self._engine = owner
        #: How many steps each open session had tried when the loop began and when it ended.
        self._before = self._attempts()
        self._after: weakref.WeakKeyDictionary[Session, int] = weakref.WeakKeyDictionary()

    def end(self) -> None:
        self.end_s = time.monotonic()
        self._after = self._attempts()

    def concerns(self, session: Session) -> bool:
        """Whether steps are run in the loop on the session's graph.

        Before there is a step, it is the loop of the default graph.
        """
        now = self._attempts() if self.end_s is None else self._after
        ran = {s.graph for s, n in now.items() if n > self._before.get(s, 0) or s.running}
        return session.graph in (ran or {self._graph})

    def is_over_for(self, session: Session) -> bool:
        """Whether the session has gone on since the loop ended, or began after it."""
        return bool(session.running) or self._after.get(session) != session.attempts

    def look(self, now_s: float, is_paused: bool) -> None:
        """Notes whether its steps are paused: what a pause takes says nothing of the time left."""
        since_s, self._paused_since_s = self._paused_since_s, now_s if is_paused else None
        if since_s is not None:
            self.paused_s += now_s - since_s

    def state(self, now_s: float) -> Progress:
        from flowscope.live.protocol.schema import (
            Progress,  # at need: most programs are never looked at
        )

        elapsed = (now_s if self.end_s is None else self.end_s) - self.start_s - self.paused_s
        eta = None
        if self.total is not None and self.done and self.end_s is None:
            eta = round(elapsed / self.done * (self.total - self.done), 3)
        return Progress(self.description, self.done, self.total, round(elapsed, 3), eta)

    def _attempts(self) -> weakref.WeakKeyDictionary[Session, int]:
        sessions = list(self._engine.sessions)
        return weakref.WeakKeyDictionary({s: s.attempts for s in sessions})


def progress(iterable: Iterable[T], description: str = "", total: int | None = None) -> Iterator[T]:
    """Yields the items of `iterable`; views of the graph show how far the loop has come.

        for step in fs.progress(range(1000), "training"):
            sess.run(train_op, feed)

    Args:
        iterable: What to loop over.
        description: Shown beside the bar.
        total: Number of items, where `len(iterable)` does not tell.
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    owner = engine()
    tracker = _Tracker(description, total, owner)
    owner.loops.append(tracker)
    try:
        for item in iterable:
            yield item
            tracker.done += 1
    finally:
        tracker.end()
        owner.ended_loop = tracker
        owner.loops.remove(tracker)


def current(now_s: float, session: Session) -> Progress | None:
    """Returns the state of the outermost loop in which a session runs steps, else of the last one.

    A loop that has ended is shown until the session that is looked at goes on to something else.
    """
    running: list[_Tracker] = session.engine.loops
    for tracker in list(running):
        if tracker.concerns(session):
            tracker.look(now_s, session.gate.state == "paused")
            return tracker.state(now_s)
    ended: _Tracker | None = session.engine.ended_loop
    if ended is not None and ended.concerns(session) and not ended.is_over_for(session):
        return ended.state(now_s)
    return None
