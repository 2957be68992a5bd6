"""A thread that writes what nobody else has written in half a millisecond."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from flowscope.runtime.waits.waiting import ENDS_S, join

#: So long frames wait for others.
_WAIT_S = 0.0005
#: It goes on to look for some time: to be woken for each frame costs more.
_QUIET_ROUNDS = 20


class Flushed(Protocol):
    """What a flusher looks after."""

    unwritten: list[bytes]

    @property
    def has_waited(self) -> bool:
        """Whether something has waited long enough."""

    def flush(self) -> None:
        """Writes it."""


class Flusher:
    """Looks after the links of one endpoint; its thread begins with the first frame that waits.

    Args:
        name: The thread's name.
        links: Returns the links.

    Attributes:
        is_armed: Whether it is going to look.
    """

    def __init__(self, name: str, links: Callable[[], Iterable[Flushed]]) -> None:
        self.is_armed = False
        self._name = name
        self._links = links
        self._lock = threading.Lock()
        self._go = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def arm(self) -> None:
        """Has it look in half a millisecond; from any thread."""
        with self._lock:
            if self.is_armed or self._is_closed:
                return
            self.is_armed = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        self._go.release()

    def close(self) -> None:
        """Ends the thread."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self._go.release()
        if thread is not None:
            join(thread, ENDS_S)

    def _run(self) -> None:
        while True:
            self._go.acquire()
            if self._is_closed:
                return
            quiet = 0
            while quiet < _QUIET_ROUNDS:
                time.sleep(_WAIT_S)
                quiet += 1
                for link in self._links():
                    if link.unwritten:
                        quiet = 0
                    if link.has_waited:
                        link.flush()
            self.is_armed = False
            if any(link.unwritten for link in self._links()):
                self.arm()


__all__ = ["Flusher"]
