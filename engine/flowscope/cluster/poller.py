"""A thread that looks after connections at which nobody waits in place.

It writes what the kernel did not take at once, and reads for those who wait elsewhere: at a gate,
or by a continuation. A connection says what it wants; what is wanted lasts until it happens once.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from typing import Protocol

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Watched(Protocol):
    """What a poller looks after."""

    def fileno(self) -> int:
        """Returns the socket's descriptor; -1 after it has been closed."""

    def ready(self, events: int) -> None:
        """Is told that it can be read or written; on the poller's thread, must not raise."""


class Poller:
    """Waits for many connections on one thread, which begins with the first wish.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._selector = selectors.DefaultSelector()
        self._wishes: deque[tuple[Watched, int]] = deque()
        self._wanted: dict[int, tuple[Watched, int]] = {}
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, READ)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def want(self, one: Watched, events: int) -> None:
        """Has `one.ready` called once when it can be read or written; from any thread."""
        self._wishes.append((one, events))
        self._wake()

    def close(self) -> None:
        """Ends the thread."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        self._wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
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
            for key, events in self._selector.select(None if not self._wishes else 0):
                if key.data is None:
                    self._woken.recv(4096)
                else:
                    self._happened(key.fd, events)
            while self._wishes:
                self._take(*self._wishes.popleft())
        self._release()

    def _happened(self, fd: int, events: int) -> None:
        one, wanted = self._wanted[fd]
        self._set(fd, one, wanted & ~events)
        one.ready(events & wanted)

    def _take(self, one: Watched, events: int) -> None:
        fd = one.fileno()
        if fd < 0:
            self._forget(one)
            return
        known, wanted = self._wanted.get(fd, (one, 0))
        if known is not one:  # an older one was closed, and its number is used again
            self._set(fd, known, 0)
            wanted = 0
        self._set(fd, one, wanted | events)

    def _forget(self, one: Watched) -> None:
        for fd in [fd for fd, (known, _) in self._wanted.items() if known is one]:
            self._set(fd, one, 0)

    def _set(self, fd: int, one: Watched, events: int) -> None:
        was = self._wanted.pop(fd, (one, 0))[1]
        try:
            if not events:
                if was:
                    self._selector.unregister(fd)
                return
            if was:
                self._selector.modify(fd, events, one)
            else:
                self._selector.register(fd, events, one)
        except (OSError, KeyError, ValueError):  # it was closed meanwhile
            return
        self._wanted[fd] = one, events

    def _release(self) -> None:
        self._selector.close()
        self._woken.close()
        self._waker.close()
        self._wanted.clear()
        self._wishes.clear()


__all__ = ["READ", "WRITE", "Poller", "Watched"]
