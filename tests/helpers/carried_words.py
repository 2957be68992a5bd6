"""Carries one end's words of a handshake over a socket, for tests that play one end by hand."""

from __future__ import annotations

import socket
import time
from typing import TypeVar

from flowscope.cluster.transport.handshake import Words

Found = TypeVar("Found")
_READ_BYTES = 1 << 14


def carry(words: Words[Found], sock: socket.socket, timeout_s: float) -> Found:
    """Carries one end's words over a socket, and waits; returns what they find.

    Args:
        words: The words.
        sock: The socket; it has a timeout of its own afterwards.
        timeout_s: How long all of it may take.

    Raises:
        OSError: if the other end does not answer.
        OpError: as the words do.
    """
    end = time.monotonic() + timeout_s
    try:
        unsent = next(words)
        while True:
            sock.settimeout(max(end - time.monotonic(), 1e-3))
            sock.sendall(unsent)
            data = sock.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError("the connection was closed in the handshake")
            if time.monotonic() > end:
                raise TimeoutError(f"it took longer than {timeout_s:g} s to say who is there")
            unsent = words.send(data)
    except StopIteration as e:
        found: Found = e.value
        return found
