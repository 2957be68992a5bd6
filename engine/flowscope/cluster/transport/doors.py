"""The door of an endpoint: who has connected and has not shown who it is.

One thread accepts connections and hears all of them (`handshake.meet`), however many there are and
however slowly they talk. Nobody has shown anything so far, so all of it is bounded: the time of a
whole handshake, and how many there are at once. Where there are as many, newcomers wait in the
kernel, and after a moment of patience the oldest makes room: peers that are well need some
milliseconds, and whoever is silent keeps nobody out.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from flowscope.cluster.transport.handshake import Met, Words
from flowscope.graph.lazy import frozen
from flowscope.runtime.waits.waiting import ENDS_S, join

_READ_BYTES = 1 << 14
#: So many sockets that others have accepted may wait for their turn.
_MOST_GIVEN = 128
#: So long nobody is accepted after the process had no descriptors left.
_REST_S = 0.01
_READ = selectors.EVENT_READ


@frozen
class DoorLimits:
    """What whoever has connected may take.

    Attributes:
        total_s: How long a whole handshake may last.
        at_once: How many there may be at once.
        patience_s: How long a handshake is safe from making room for another one.
    """

    total_s: float = 5.0
    at_once: int = 32
    patience_s: float = 0.5


#: The limits of endpoints.
LIMITS = DoorLimits()


@frozen
class _Forming:
    """A handshake under way."""

    words: Words[Met]
    began: float


class Doors:
    """Hears who has connected, for all of them on one thread, which `start` begins.

    Args:
        name: The thread's name.
        listener: Where others connect.
        meet: Returns the acceptor's part of a handshake on a socket.
        enter: Takes a socket, and whom it leads to; must be quick.
        limits: What whoever has connected may take.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        name: str,
        listener: socket.socket,
        meet: Callable[[socket.socket], Words[Met]],
        enter: Callable[[socket.socket, Met], None],
        limits: DoorLimits = LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._meet = meet
        self._enter = enter
        self._limits = limits
        self._clock = clock
        listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for one in (self._woken, self._waker):
            one.setblocking(False)
        self._selector.register(self._woken, _READ)
        #: Those under way, the oldest first.
        self._forming: dict[socket.socket, _Forming] = {}
        #: Sockets that others have accepted.
        self._given: deque[socket.socket] = deque()
        self._listens = False
        self._rests_until = 0.0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins to accept connections."""
        self._thread.start()

    @property
    def count(self) -> int:
        """How many handshakes are under way."""
        return len(self._forming)

    def take(self, sock: socket.socket) -> None:
        """Takes a socket by which somebody has connected; from any thread."""
        if self._is_closed or len(self._given) >= _MOST_GIVEN:
            sock.close()
            return
        self._given.append(sock)
        self._wake()
        self._drop_given_late()

    def close(self) -> None:
        """Ends the thread, and all connections that nobody has been shown for."""
        self._is_closed = True
        self._wake()
        join(self._thread, ENDS_S)
        for sock in self._forming:
            sock.close()
        self._forming.clear()
        self._drop_given()
        self._selector.close()
        for one in (self._listener, self._woken, self._waker):
            one.close()

    def step(self, timeout_s: float | None = None) -> None:
        """Waits until something happens, and does what follows from it.

        Args:
            timeout_s: How long to wait at most; None for any time.
        """
        self._make_room()
        for key, _ in self._selector.select(self._wait_s(timeout_s)):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._woken:
                self._woken.recv(4096)
            elif key.fileobj in self._forming:  # else it has just made room for another one
                self._hear(key.fileobj)

    # ------------------------------------------------------------ time and room

    def _run(self) -> None:
        while not self._is_closed:
            self.step()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it will look anyway, or has ended
            self._waker.send(b"x")

    def _make_room(self) -> None:
        """Ends handshakes that last too long; decides whether others may begin."""
        now, limits = self._clock(), self._limits
        for sock, one in list(self._forming.items()):
            if now - one.began < limits.total_s:
                break
            self._end(sock)
        while self._given and self._has_room(now):
            self._begin(self._given.popleft())
        listens = self._has_room(now) and now >= self._rests_until
        if listens != self._listens:
            self._listens = listens
            if listens:
                self._selector.register(self._listener, _READ)
            else:
                self._selector.unregister(self._listener)

    def _drop_given_late(self) -> None:
        if self._is_closed:  # it has been closed in this moment
            self._drop_given()

    def _drop_given(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._given.popleft().close()

    def _has_room(self, now: float) -> bool:
        if len(self._forming) < self._limits.at_once:
            return True
        return now - self._oldest().began >= self._limits.patience_s

    def _oldest(self) -> _Forming:
        return next(iter(self._forming.values()))

    def _wait_s(self, timeout_s: float | None) -> float | None:
        """Returns how long nothing happens by itself."""
        now, ends = self._clock(), list[float]()
        if self._forming:
            ends.append(self._oldest().began + self._limits.total_s - now)
            if len(self._forming) >= self._limits.at_once and not self._has_room(now):
                ends.append(self._oldest().began + self._limits.patience_s - now)
        if self._rests_until > now:
            ends.append(self._rests_until - now)
        if timeout_s is not None:
            ends.append(timeout_s)
        return max(0.0, min(ends)) if ends else None

    # ------------------------------------------------------------ handshakes

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:  # it has gone again
            return
        except OSError:  # no descriptors are left: it may be better soon
            self._rests_until = self._clock() + _REST_S
            return
        self._begin(sock)

    def _begin(self, sock: socket.socket) -> None:
        if len(self._forming) >= self._limits.at_once:
            self._end(next(iter(self._forming)))
        sock.setblocking(False)
        self._forming[sock] = _Forming(self._meet(sock), self._clock())
        self._selector.register(sock, _READ)
        self._go_on(sock, None)

    def _hear(self, sock: Any) -> None:
        try:
            data = sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._go_on(sock, data)
        else:
            self._end(sock)  # who goes half-way has nothing more to say, and no handshake

    def _go_on(self, sock: socket.socket, data: bytes | None) -> None:
        words = self._forming[sock].words
        try:
            unsent = next(words) if data is None else words.send(data)
            if sock.send(unsent) < len(unsent):
                self._end(sock)  # it has not read the few words that were said
        except StopIteration as e:
            self._selector.unregister(sock)
            del self._forming[sock]
            self._let_in(sock, e.value)
        except Exception:  # nothing that a stranger says may end this thread
            self._end(sock)

    def _let_in(self, sock: socket.socket, met: Met) -> None:
        try:
            sock.setblocking(True)
            self._enter(sock, met)
        except Exception:  # no thread is left, or it has gone: this thread goes on
            sock.close()

    def _end(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        self._forming.pop(sock).words.close()
        sock.close()


__all__ = ["LIMITS", "DoorLimits", "Doors"]
