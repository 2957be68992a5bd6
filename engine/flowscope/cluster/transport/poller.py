"""A thread that looks after connections at which nobody waits in place.

It reads for those who wait elsewhere: at a gate, or by a continuation. A connection says when it
wants to be read; that lasts until it has been told once that there is something.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import deque
from typing import Protocol

from flowscope.runtime.waits.waiting import ENDS_S, join

_READ = selectors.EVENT_READ


class PolledConnections(Protocol):
    """What a poller looks after."""

    def fileno(self) -> int:
        """Returns the socket's descriptor; -1 after it has been closed."""

    def ready(self) -> None:
        """Is told that there is something to read; on the poller's thread, must not raise."""


class Poller:
    """Waits for many connections on one thread, which begins with the first wish.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._selector = selectors.DefaultSelector()
        self._wishes: deque[tuple[PolledConnections, bool]] = deque()
        self._watched: dict[int, PolledConnections] = {}
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, _READ)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def want(self, one: PolledConnections, is_ready: bool = False) -> None:
        """Has `one.ready` called once when there is something to read; from any thread.

        Args:
            one: The connection.
            is_ready: Whether there is something already that the kernel does not know of.
        """
        self._wishes.append((one, is_ready))
        self._wake()

    def close(self) -> None:
        """Ends the thread."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self._wake()
        if thread is not None:
            join(thread, ENDS_S)
        if thread is None:
            self._release()

    def _wake(self) -> None:
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._is_closed:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
        if threading.current_thread() is not self._thread:
            try:
                self._waker.send(b"x")
            except OSError:  # it will look anyway, or has ended
                return

    def _run(self) -> None:
        while not self._is_closed:
            for key, _ in self._selector.select(0 if self._wishes else None):
                if key.data is None:
                    self._woken.recv(4096)
                else:
                    self._forget(key.fd)
                    key.data.ready()
            while self._wishes:
                self._take(*self._wishes.popleft())
        self._release()

    def _take(self, one: PolledConnections, is_ready: bool) -> None:
        if is_ready:
            one.ready()
            return
        fd = one.fileno()
        if self._watched.get(fd) is one:
            return
        self._forget(fd)  # an older one was closed, and its number is used again
        try:
            self._selector.register(fd, _READ, one)
        except (OSError, KeyError, ValueError):  # it was closed meanwhile
            return
        self._watched[fd] = one

    def _forget(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            with contextlib.suppress(OSError, KeyError, ValueError):  # it was closed
                self._selector.unregister(fd)

    def _release(self) -> None:
        self._selector.close()
        self._woken.close()
        self._waker.close()
        self._watched.clear()
        self._wishes.clear()


__all__ = ["PolledConnections", "Poller"]
