"""What a view is told of queues, runners and hooks: a part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class QueueWait:
    """An operation that waits at a queue."""

    #: The operation; None where it is not one of the graph as written.
    op: int | None
    name: str
    #: What it waits for.
    kind: Literal["space", "elements", "gradients"]
    #: Whole seconds for which it has waited.
    seconds: int


@dataclass(frozen=True)
class QueueState:
    """How full a queue or an accumulator of gradients is, and who waits at it."""

    #: The operation of its handle.
    op: int
    #: Elements that it holds, and may hold at most; of an iterator those that are computed ahead.
    #: Gradients of an accumulator, and those that whoever takes them needs: 0 if it is not known.
    size: int
    capacity: int
    #: Operations that wait for space, and those that wait for elements.
    enqueues: int
    dequeues: int
    is_closed: bool
    #: Whether it is an iterator: it computes its elements itself, and is closed at its end.
    fills_itself: bool = False
    #: Elements that stay in until it is closed.
    least: int = 0
    #: Elements that were taken out a second, over the last seconds; None where none were.
    per_s: float | None = None
    #: The waits that are known, the longest first; of many some.
    waits: tuple[QueueWait, ...] = ()
    #: Why a producer has failed that has put nothing in since; "" where none has.
    error: str = ""
    #: The time stamp of an accumulator; None of a queue.
    stamp: int | None = None
    #: Stale gradients that an accumulator has dropped.
    dropped: int = 0


@dataclass(frozen=True)
class HelperState:
    """A thread or a hook that belongs to a session's input and training."""

    kind: Literal["runner", "coordinator", "hook"]
    name: str
    #: The operation that it runs; None for none.
    op: int | None
    #: What it does or waits for.
    text: str
    #: Whether it has ended with an error.
    has_failed: bool = False
