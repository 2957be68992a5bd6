"""A virtual clock: when simulated devices would have done what they were given.

The host gives work to *streams*, which do it one after the other while the host goes on; it waits
where it reads a value. Nothing here takes real time. Seconds count from the clock's making.

A device has three streams: one computes, one brings values in, one brings them out. All devices of
a session share one clock, for the host gives work to all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flowscope.graph.lazy import frozen


@frozen
class Span:
    """What a stream did.

    Attributes:
        stream: Name of the stream, such as "GPU:0 compute".
        name: What ran, such as "matmul".
        start_s, end_s: From when to when.
        nbytes: Bytes that crossed; 0 where the device computed.
    """

    stream: str
    name: str
    start_s: float
    end_s: float
    nbytes: int = 0


class Stream:
    """Work that a device does one piece after the other.

    Attributes:
        name: What spans call it.
        ready_s: When it has done all that it was given.
        busy_s: Seconds that it has worked.
    """

    def __init__(self, name: str, clock: VirtualClock) -> None:
        self.name = name
        self.ready_s = 0.0
        self.busy_s = 0.0
        self._clock = clock

    def run(self, what: str, seconds: float, after_s: float = 0.0, nbytes: int = 0) -> float:
        """Takes a piece of work, which the host gives now; returns when it is done.

        Args:
            what: Its name.
            seconds: How long it takes.
            after_s: When all that it needs is there.
            nbytes: Bytes that cross.
        """
        start = max(self.ready_s, after_s, self._clock.now_s)
        self.ready_s = start + seconds
        self.busy_s += seconds
        if self._clock.spans is not None:
            self._clock.spans.append(Span(self.name, what, start, self.ready_s, nbytes))
        return self.ready_s


class VirtualClock:
    """The host's time, and which of the simulated devices is current on each thread.

    Attributes:
        now_s: Where the host is.
        waited_s: Seconds of that in which it waited for devices.
        devices: The simulated devices, by their full names.
        spans: What streams did while it is recorded; None otherwise.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.waited_s = 0.0
        self.devices: dict[str, Any] = {}
        self.spans: list[Span] | None = None
        self._local = threading.local()

    def work(self, seconds: float) -> None:
        """Has the host work so long."""
        self.now_s += seconds

    def wait(self, until_s: float) -> None:
        """Has the host wait until a time, if that is still to come."""
        if until_s > self.now_s:
            self.waited_s += until_s - self.now_s
            self.now_s = until_s

    @property
    def current(self) -> str | None:
        """Name of the device that is current on this thread; None before one was made so."""
        return getattr(self._local, "current", None)

    @contextmanager
    def making_current(self, name: str) -> Iterator[None]:
        """Makes a device current on this thread for a while."""
        before = self.current
        self._local.current = name
        try:
            yield
        finally:
            self._local.current = before

    @contextmanager
    def recording(self) -> Iterator[list[Span]]:
        """Gives the list to which the spans of a while are added."""
        before, self.spans = self.spans, []
        try:
            yield self.spans
        finally:
            self.spans = before


__all__ = ["Span", "Stream", "VirtualClock"]
