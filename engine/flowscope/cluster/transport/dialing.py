"""Connections that are being made, many at a time, by the thread that wants them.

Each connects a socket and then says its words (`handshake.introduce`). None of that blocks: the
thread waits for all sockets at once, as long as its owner lets it (`runtime.waits.waiting`).
"""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.cluster.transport.encoding.macs import Seal
from flowscope.cluster.transport.handshake import Words
from flowscope.errors import OpError
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import OWN, wait_for

_READ_BYTES = 1 << 14
_UNDER_WAY = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


class Dial:
    """One connection that is being made.

    Args:
        words: What this end says.

    Attributes:
        sock: The socket; None before one was made.
        seal: What bytes go through afterwards; None while it is not there.
        error: Why it is not made; None while it may be.
        is_taken: Whether the socket is somebody else's.
    """

    def __init__(self, words: Words[Seal]) -> None:
        self.sock: socket.socket | None = None
        self.seal: Seal | None = None
        self.error: Exception | None = None
        self.is_taken = False
        self._words = words
        self._addresses: list[Any] = []
        self._unsent = b""
        self._talks = False

    @property
    def is_done(self) -> bool:
        """Whether it is made, or is not going to be."""
        return self.seal is not None or self.error is not None

    @property
    def events(self) -> int:
        """What it waits for at its socket, as `select.poll` calls it."""
        return select.POLLIN if self._talks and not self._unsent else select.POLLOUT

    def connect(self, address: tuple[str, int]) -> None:
        """Begins to connect with a host and port; what goes wrong is its error."""
        try:
            self._addresses = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        except OSError as e:
            self.fail(e)
            return
        self._connect_next(OSError("it has no address"))

    def use(self, sock: socket.socket) -> None:
        """Begins the handshake on a socket that is connected."""
        sock.setblocking(False)
        self.sock = sock
        self._begin()

    def fail(self, error: Exception) -> None:
        """Gives it up, unless it is done; from any thread."""
        if not self.is_done:
            self.error = error

    def taken(self) -> tuple[socket.socket, Seal]:
        """Returns the socket of one that is made, and what its bytes go through; it is the
        caller's from now on.
        """
        sock, seal = self.sock, self.seal
        assert sock is not None and seal is not None
        self.is_taken = True
        return sock, seal

    def close(self) -> None:
        """Ends it at this end."""
        self.fail(ConnectionAbortedError("it was given up"))
        self._words.close()
        if self.sock is not None:
            self.sock.close()

    def go_on(self) -> None:
        """Does what can be done now that its socket is ready."""
        try:
            if not self._talks:
                assert self.sock is not None
                code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    self._connect_next(OSError(code, os.strerror(code)))
                    return
                self._begin()
                return
            self._talk()
        except (OSError, OpError) as e:
            self.fail(e)

    def _connect_next(self, error: OSError) -> None:
        """Tries the next address; the error is that of the one before."""
        if self.sock is not None:
            self.sock.close()
        if not self._addresses:
            self.fail(error)
            return
        family, kind, protocol, _, address = self._addresses.pop(0)
        self.sock = socket.socket(family, kind, protocol)
        self.sock.setblocking(False)
        code = self.sock.connect_ex(address)
        if code not in _UNDER_WAY:
            self._connect_next(OSError(code, os.strerror(code)))
        elif code == 0:
            self._begin()

    def _begin(self) -> None:
        """Says the first words."""
        self._talks = True
        try:
            self._unsent = next(self._words)
            self._talk()
        except (OSError, OpError) as e:
            self.fail(e)

    def _talk(self) -> None:
        """Says what is to be said, and hears what has come."""
        assert self.sock is not None
        while not self.is_done:
            try:
                if self._unsent:
                    self._unsent = self._unsent[self.sock.send(self._unsent) :]
                    continue
                data = self.sock.recv(_READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                raise ConnectionResetError("the connection was closed in the handshake")
            try:
                self._unsent = self._words.send(data)
            except StopIteration as e:
                self.seal = e.value


class _Sockets(Waiter):
    """Sleeps until sockets of dials are ready, and lets these go on."""

    polls = True

    def __init__(self, dials: Sequence[Dial]) -> None:
        super().__init__()
        self._dials = dials

    def sleep(self, seconds: float) -> None:
        """Waits until a dial can go on, so long at most."""
        poll, found = select.poll(), dict[int, Dial]()
        for dial in self._dials:
            if not dial.is_done and dial.sock is not None:
                found[dial.sock.fileno()] = dial
                poll.register(dial.sock, dial.events)
        for fd, _ in poll.poll(seconds * 1000):
            found[fd].go_on()


def finish(
    dials: Sequence[Dial],
    until: float,
    owned_by: Any = OWN,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Waits until all dials are done; those that are not in time have an error.

    Args:
        dials: The dials.
        until: When the time is over, by the monotonic clock.
        owned_by: See `runtime.waits.waiting.wait_for`. If that ends the wait, the caller closes
            the dials.
        is_over: Whether nobody wants them any more.
    """
    wait_for(
        lambda: all(d.is_done for d in dials) or is_over(),
        _Sockets(dials),
        what="for connections",
        until=until,
        owned_by=owned_by,
    )
    for dial in dials:
        dial.fail(TimeoutError("timed out: it did not answer in time"))


__all__ = ["Dial", "finish"]
