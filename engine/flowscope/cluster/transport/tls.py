"""TLS in memory: bytes are sealed before they are written, and opened after they were read.

Python's own sockets with TLS cannot be read and written by two threads at once. Here the protocol
works on buffers, and the sockets are plain ones.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Sequence
from typing import Any

from flowscope.cluster.transport.values import Data
from flowscope.graph.lazy import frozen

_RECORD_BYTES = 1 << 14


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

    def shake_hands(self, sock: socket.socket) -> None:
        """Agrees with the other end; waits as long as the socket's timeout says."""
        while True:
            try:
                self._object.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(self._outgoing.read())
                data = sock.recv(_RECORD_BYTES)
                if not data:
                    raise ConnectionResetError("the other end ended the TLS handshake") from None
                self._incoming.write(data)
        sock.sendall(self._outgoing.read())

    def seal(self, parts: Sequence[Data]) -> bytes:
        """Returns what is to be written for some bytes."""
        with self._lock:
            for part in parts:
                if len(part) <= _RECORD_BYTES:
                    self._object.write(part)
                    continue
                view, start = memoryview(part), 0
                while start < len(view):
                    start += self._object.write(view[start : start + _RECORD_BYTES])
            return self._outgoing.read()

    def feed(self, data: bytes) -> None:
        """Takes bytes that were read."""
        with self._lock:
            self._incoming.write(data)
            self._is_starved = False

    def opened(self, data: bytes) -> bytes:
        """Returns what is sealed in bytes that were read, as far as it is complete."""
        self.feed(data)
        found = []
        while not self._is_starved and (one := self.read(_RECORD_BYTES)):
            found.append(one)
        return b"".join(found)

    @property
    def has_more(self) -> bool:
        """Whether something may have been fed that was not read."""
        return not self._is_starved

    def read(self, size: int) -> bytes:
        """Returns what has been fed and not been read yet."""
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
