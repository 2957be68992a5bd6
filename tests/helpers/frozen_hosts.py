"""A host of this process that stands still from some message on, as a stopped process does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster_hosts import Host

from flowscope.cluster.transport.connections import Connection


class Freezer:
    """Counts what a host sends and receives, and holds it up from some time on.

    Args:
        at: The how manieth message it does not send or take any more; None for never.

    Attributes:
        count: How many there were.
        is_frozen: Set when it stands still.
    """

    def __init__(self, at: int | None = None) -> None:
        self.at, self.count = at, 0
        self.is_frozen = threading.Event()
        self._goes_on = threading.Event()
        self._goes_on.set()
        self._lock = threading.Lock()

    def pass_by(self) -> None:
        """Counts one; waits while the host stands still."""
        with self._lock:
            if self.count == self.at:
                self._goes_on.clear()
                self.is_frozen.set()
            self.count += 1
        self._goes_on.wait()

    def thaw(self) -> None:
        """Lets it go on."""
        self.at = None
        self._goes_on.set()


class _Socket:
    """A socket whose bytes pass by a freezer."""

    def __init__(self, sock: Any, freezer: Freezer) -> None:
        self.sock, self.freezer = sock, freezer

    def send(self, *arguments: Any) -> Any:
        self.freezer.pass_by()
        return self.sock.send(*arguments)

    def sendmsg(self, *arguments: Any) -> Any:
        self.freezer.pass_by()
        return self.sock.sendmsg(*arguments)

    def recv(self, *arguments: Any) -> Any:
        data = self.sock.recv(*arguments)
        self.freezer.pass_by()
        return data

    def recv_into(self, *arguments: Any) -> Any:
        count = self.sock.recv_into(*arguments)
        self.freezer.pass_by()
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)


def connections_of(host: Host) -> list[Connection]:
    """Returns a host's connections with all its peers."""
    peers = list(host.endpoint._peers.values())
    return [c for p in peers for c in [*p.connections.values(), *p.runs]]


@contextmanager
def frozen(host: Host, at: int | None = None) -> Iterator[Freezer]:
    """Has a host stand still from its message of a number on, until it is thawed or the block ends.

    Args:
        host: The host; all its connections are there already.
        at: The number of the message; None to count them only.
    """
    freezer = Freezer(at)
    found = connections_of(host)
    for one in found:
        one._socket = _Socket(one._socket, freezer)  # type: ignore[assignment]
    try:
        yield freezer
    finally:
        freezer.thaw()
        for one in found:
            one._socket = one._socket.sock  # type: ignore[attr-defined]
