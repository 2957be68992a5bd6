"""`fs.progress`: a loop that views can show with a bar and the time that is left."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, TypeVar

from flowscope.runtime.session import Session, open_sessions

if TYPE_CHECKING:
    from flowscope.live.schema import Progress

T = TypeVar("T")

#: Trackers of the loops that run now, innermost last; views show the outermost.
_running: list[_Tracker] = []


class _Tracker:
    """How far one loop has come."""

    def __init__(self, description: str, total: int | None) -> None:
        self.description = description
        self.total = total
        self.done = 0
        self.start_s = time.monotonic()
        self.end_s: float | None = None
        #: How many steps each open session had done when the loop ended.
        self.steps: weakref.WeakKeyDictionary[Session, int] = weakref.WeakKeyDictionary()

    def end(self) -> None:
        self.end_s = time.monotonic()
        self.steps.update((s, s.steps) for s in list(open_sessions))

    def is_over_for(self, session: Session) -> bool:
        """Whether the session has gone on since the loop ended, or began after it."""
        return bool(session.running) or self.steps.get(session) != session.steps

    def state(self, now_s: float) -> Progress:
        from flowscope.live.schema import Progress  # at need: most programs are never looked at

        elapsed = (now_s if self.end_s is None else self.end_s) - self.start_s
        eta = None
        if self.total is not None and self.done:
            eta = round(elapsed / self.done * (self.total - self.done), 3)
        return Progress(self.description, self.done, self.total, round(elapsed, 3), eta)


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
    tracker = _Tracker(description, total)
    _running.append(tracker)
    try:
        for item in iterable:
            yield item
            tracker.done += 1
    finally:
        tracker.end()
        _finished.append(tracker)
        del _finished[:-1]
        _running.remove(tracker)


#: The loop that ended last, so that a view shows its end and not its last sample.
_finished: list[_Tracker] = []


def current(now_s: float, session: Session) -> Progress | None:
    """Returns the state of the outermost loop that runs now, else of the one that ended last.

    A loop that has ended is shown until the session that is looked at goes on to something else.
    """
    for tracker in _running[:1]:
        return tracker.state(now_s)
    for tracker in _finished:
        if not tracker.is_over_for(session):
            return tracker.state(now_s)
    return None
