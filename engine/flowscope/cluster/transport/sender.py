"""A thread that goes on with writing where the kernel did not take all at once.

It waits in the kernel until that takes more, briefly at each connection in turn: so a peer that
does not read holds up others by two milliseconds at most.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol

from flowscope.runtime.waits.waiting import ENDS_S, join


class Sending(Protocol):
    """What a sender goes on with."""

    def write_on(self) -> bool:
        """Writes for a short time; returns whether there is more to write. Must not raise."""


class Sender:
    """Writes for the connections of one endpoint; its thread begins with the first of them.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: deque[Sending] = deque()
        self._go = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, one: Sending) -> None:
        """Has it write what a connection has left; from any thread."""
        with self._lock:
            if self._is_closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        self._queue.append(one)
        self._go.release()

    def close(self) -> None:
        """Ends the thread."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self._go.release()
        if thread is not None:
            join(thread, ENDS_S)
        self._queue.clear()

    def _run(self) -> None:
        while True:
            self._go.acquire()
            if self._is_closed:
                return
            one = self._queue.popleft()
            if one.write_on():
                self._queue.append(one)
                self._go.release()


__all__ = ["Sender"]
