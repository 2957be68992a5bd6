"""TLS in memory: bytes are sealed before they are written, and opened after they were read.

Python's own sockets with TLS cannot be read and written by two threads at once. Here the protocol
works on buffers, and the sockets are plain ones.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Generator
from typing import Any

from flowscope.cluster.transport.encoding.values import Data
from flowscope.graph.lazy import frozen

_RECORD_BYTES = 1 << 14
_READ_BYTES = 1 << 18


@frozen
class TLSContexts:
    """How a process shows who it is, and checks who others are.

    Attributes:
        server: Where others connect.
        client: Where this process connects.
    """

    server: ssl.SSLContext
    client: ssl.SSLContext


class Tls:
    """One end of a connection that is sealed.

    Args:
        context: What it shows and checks.
        is_server: Whether the other end has connected.
        host: What the certificate is for, where the context checks that.
    """

    def __init__(self, context: ssl.SSLContext, is_server: bool, host: str | None = None) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = host if context.check_hostname else None
        self._object = context.wrap_bio(self._incoming, self._outgoing, is_server, name)
        self._lock = threading.Lock()
        #: Whether nothing can be read before more has been fed.
        self._is_starved = False

    def shake_hands(self) -> Generator[bytes, bytes, None]:
        """Agrees with the other end: gives what is to be written, and is sent what was read."""
        while True:
            try:
                self._object.do_handshake()
                return
            except ssl.SSLWantReadError:
                self._incoming.write((yield self._outgoing.read()))

    def unsent(self) -> bytes:
        """The bytes of the handshake that are still to be written."""
        return self._outgoing.read()

    def seal(self, data: Data) -> list[Data]:
        """The encrypted bytes to write for some data."""
        with self._lock:
            if len(data) <= _RECORD_BYTES:
                self._object.write(data)
            else:
                view, start = memoryview(data), 0
                while start < len(view):
                    start += self._object.write(view[start : start + _RECORD_BYTES])
            return [self._outgoing.read()]

    def take(self, sock: socket.socket, flags: int = 0, view: memoryview | None = None) -> int:
        """Takes bytes from a socket; returns how many, 0 at its end."""
        data = sock.recv(_READ_BYTES, flags)
        self.feed(data)
        return len(data)

    def feed(self, data: bytes) -> None:
        """Takes bytes that were read."""
        with self._lock:
            self._incoming.write(data)
            self._is_starved = False

    @property
    def has_more(self) -> bool:
        """Whether something may have been fed that was not read."""
        return not self._is_starved

    def read(self, size: int | None = None) -> bytes:
        """The decrypted bytes that are not read yet: at most `size`, or all for None."""
        if size is not None:
            return self._read(size)
        found = []
        while not self._is_starved and (one := self._read(_RECORD_BYTES)):
            found.append(one)
        return b"".join(found)

    def _read(self, size: int) -> bytes:
        with self._lock:
            try:
                data = self._object.read(size)
            except ssl.SSLWantReadError:
                self._is_starved = True
                return b""
            self._note_what_is_left()
            return data

    def read_into(self, view: memoryview) -> int:
        """Reads into a buffer; returns how many bytes."""
        with self._lock:
            try:
                count: Any = self._object.read(len(view), view)
            except ssl.SSLWantReadError:
                self._is_starved = True
                return 0
            self._note_what_is_left()
            return int(count)

    def _note_what_is_left(self) -> None:
        """Notes where nothing is: to ask then costs as much as to open a record."""
        self._is_starved = not self._incoming.pending and not self._object.pending()


__all__ = ["TLSContexts", "Tls"]
