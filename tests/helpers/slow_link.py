"""A way to an address over which bytes go slowly."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: So many bytes go at once, and so long nothing goes after them.
CHUNK = 1 << 14
REST_S = 0.016


class _SlowLink:
    """Listens, and forwards what comes to another address, and what that answers."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._sockets = [self._listener]
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._sockets += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                target.sendall(data)
                if self._closed.wait(REST_S * len(data) / CHUNK):
                    return
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def slow_link(target: tuple[str, int]) -> Iterator[tuple[str, int]]:
    """An address that leads to another one, at a megabyte a second."""
    made = _SlowLink(target)
    try:
        yield made.address
    finally:
        made.close()
