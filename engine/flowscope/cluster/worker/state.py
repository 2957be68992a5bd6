"""Containers of sessions of clients: a client's values live until it leaves, and a little longer.

A client that leaves says so, and its values go at once. One whose connection is lost may come back
within `GRACE_S`, and finds them then.
"""

from __future__ import annotations

import threading

from flowscope.runtime.state.containers import Container

#: So long the values of a client's own sessions stay after its connection was lost.
GRACE_S = 30.0


class ClientContainers:
    """The sessions' own containers, by clients."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._containers: dict[tuple[str, int], Container] = {}
        self._timers: dict[str, threading.Timer] = {}

    def of(self, client: str, session: int) -> Container:
        """Returns the container of a client's session, made on first use."""
        with self._lock:
            return self._containers.setdefault((client, session), Container())

    def all(self) -> list[Container]:
        """Returns all containers."""
        with self._lock:
            return list(self._containers.values())

    def forget(self, client: str, session: int) -> None:
        """Drops what a session has that was closed."""
        with self._lock:
            found = self._containers.pop((client, session), None)
        if found is not None:
            found.clear()

    def drop_later(self, client: str) -> None:
        """Drops what a client has, unless it comes back in time."""
        timer = threading.Timer(self._grace_s, self.drop, (client,))
        timer.name, timer.daemon = f"values of {client}", True
        with self._lock:
            old = self._timers.pop(client, None)
            self._timers[client] = timer
        if old is not None:
            old.cancel()
        timer.start()

    def back(self, client: str) -> None:
        """Notes that a client has come back: it keeps what it has."""
        with self._lock:
            timer = self._timers.pop(client, None)
        if timer is not None:
            timer.cancel()

    def drop(self, client: str) -> None:
        """Drops what a client has."""
        self.back(client)
        with self._lock:
            keys = [key for key in self._containers if key[0] == client]
            found = [self._containers.pop(key) for key in keys]
        for each in found:
            each.clear()

    def drop_all(self) -> None:
        """Drops everything."""
        with self._lock:
            clients = {client for client, _ in self._containers} | set(self._timers)
        for client in clients:
            self.drop(client)


__all__ = ["GRACE_S", "ClientContainers"]
