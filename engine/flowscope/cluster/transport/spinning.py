"""Looking for bytes in a loop for a moment, before the thread sleeps until they come.

A core that has nothing to do takes 30 to 60 us to wake, longer than most answers of another process
take. But a thread that looks in a loop uses up its share of a core, and is made to wait where
others want it: so between two looks it offers the core to them, and where one has taken it, it
sleeps at once for some time, which doubles where that comes again.
"""

from __future__ import annotations

import os
import socket
import time

from flowscope.cluster.transport.connections import Connection

#: So long it looks at most.
_SPIN_S = 100e-6
#: Two looks are closer together, unless another process had the core.
_GAP_S = 200e-6
#: So long it sleeps at once then: at first, and at most.
_REST_S = 0.005
_LONGEST_REST_S = 1.0
#: After so many times in a row for nothing it does not look so often.
_MOST_MISSES = 4
_PAUSE_S = 0.001


class Spin:
    """How a thread waits for the bytes of one connection."""

    __slots__ = ("_misses", "_rest_s", "_rests_until")

    def __init__(self) -> None:
        self._misses = 0
        self._rest_s = _REST_S
        self._rests_until = 0.0

    def read(self, connection: Connection) -> bytes:
        """Returns bytes that have come; waits for them as long as the connection says."""
        last = time.perf_counter()
        if last < self._rests_until:
            return connection.read()
        end = last + _SPIN_S
        while last < end:
            if data := connection.read(socket.MSG_DONTWAIT):
                self._misses = 0
                self._rest_s = max(_REST_S, 0.9 * self._rest_s)
                return data
            os.sched_yield()
            now = time.perf_counter()
            if now - last > _GAP_S:
                self._rests_until = now + self._rest_s
                self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)
                return connection.read()
            last = now
        self._misses += 1
        if self._misses >= _MOST_MISSES:
            self._rests_until = last + _PAUSE_S
        return connection.read()


__all__ = ["Spin"]
