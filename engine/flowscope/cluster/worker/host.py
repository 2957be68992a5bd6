"""A host: what a process of a cluster has of flowscope - an endpoint, devices, values, clients.

It knows nothing of Dask: the worker plugin starts it, and so does a server in this process.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from flowscope.cluster.transport.encoding.tls import TLSContexts
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.worker.client_watch import CLIENT_SILENCE_S, ClientWatch
from flowscope.cluster.worker.handlers import register
from flowscope.cluster.worker.owners import Answer, Handler
from flowscope.cluster.worker.sessions import WorkerSteps
from flowscope.cluster.worker.state import GRACE_S, ClientContainers
from flowscope.errors import OpError, UnavailableError, UnimplementedError
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.devices.device import Device
from flowscope.runtime.devices.local_devices import local_devices
from flowscope.runtime.session.engine import Engine
from flowscope.runtime.state.containers import Container

#: What a client's name begins with; the names of tasks begin with "/job:".
CLIENT_PREFIX = "client:"
#: A client that is well hears within that why a host goes, before the connection is closed.
_GOODBYE_S = 1.0


class Host:
    """One process of a cluster.

    Args:
        name: The task's name.
        secret: What the processes of the cluster know each other by.
        address, port: Where to listen; port 0 for any.
        tls: How connections are sealed; None for plain ones.
        config: Says which devices it has.
        grace_s: So long what a client's own sessions have stays after its connection was lost.
        shares_values: Whether what lies in no named container is shared by all clients, too.
        client_silence_s: After so long a silence a client is taken for lost.

    Attributes:
        endpoint: Its end of the cluster's connections.
        engine: Owns its named containers and threads.
        devices: Its devices, the CPUs first.
        handlers: What control messages lead to, by their kinds.
        steps: What clients run here.
        shares_values: As above.
    """

    def __init__(
        self,
        name: str,
        secret: bytes,
        address: str = "127.0.0.1",
        port: int = 0,
        tls: TLSContexts | None = None,
        config: ConfigProto | None = None,
        grace_s: float = GRACE_S,
        shares_values: bool = False,
        client_silence_s: float = CLIENT_SILENCE_S,
    ) -> None:
        self.name = name
        self._silence_s = client_silence_s
        self.engine = Engine()
        self.shares_values = shares_values
        pool = self.engine.pool
        self.devices: tuple[Device, ...] = local_devices(
            config or ConfigProto(), pool.parallel_for, pool.tasks
        )
        for device in self.devices:
            device.belong_to(name)
        self.handlers: dict[str, Handler] = {}
        self._own = ClientContainers(grace_s)
        self._clients: set[str] = set()
        self.endpoint = Endpoint(name, new_incarnation(), secret, host=address, port=port, tls=tls)
        self.endpoint.on_lost = self._lost
        self.handlers |= {
            "ping": self._ping,
            "client.leave": self._leave,
            "container.reset": self._reset,
        }
        self.steps = WorkerSteps(self)
        register(self)
        self.endpoint.on_call = self._call
        self._watch = ClientWatch(
            f"clients of {name}", client_silence_s, self._silent_clients, self._give_up
        )
        self._watch.start()

    def container(self, client: str, session: int, name: str) -> Container:
        """Returns a container: "" is the session's own, others are shared by all clients."""
        if name or self.shares_values:
            return self.engine.containers.named(name)
        return self._own.of(client, session)

    def forget_container(self, client: str, session: int) -> None:
        """Drops what a session has for itself that was closed."""
        self._own.forget(client, session)

    def containers(self) -> list[Container]:
        """Returns all containers, the named ones first."""
        return [*self.engine.containers.all(), *self._own.all()]

    def held_bytes(self) -> int:
        """Returns the bytes of the values that variables and queues hold here."""
        return sum(bytes_of(c) for c in self.containers())

    def steps_done(self) -> int:
        """Returns how many steps have ended here."""
        return self.steps.done

    def close(self, reason: str = "it was closed") -> None:
        """Tells clients that it goes, and ends its connections and threads."""
        self._watch.close()
        connected = [p for p in self.endpoint.counters() if p.startswith(CLIENT_PREFIX)]
        message = {
            "kind": "host.leaving",
            "incarnation": self.endpoint.incarnation,
            "reason": reason,
        }
        asked, until = [], time.monotonic() + _GOODBYE_S
        for client in {*self._clients, *connected}:  # some have said nothing yet
            with contextlib.suppress(OpError):  # it is gone, too
                asked.append(self.endpoint.ask(client, message))
        for question in asked:
            with contextlib.suppress(OpError):  # it is gone meanwhile, or hangs
                question.result(until, owned_by=None)
        self.endpoint.close()
        self._own.drop_all()

    # -- control messages -------------------------------------------------------------------------

    def _call(self, peer: str, message: dict[str, Any]) -> Answer | Callable[[], Answer]:
        if peer.startswith(CLIENT_PREFIX) and peer not in self._clients:
            self._own.back(peer)
            self._clients.add(peer)
        return answer(self.handlers, peer, message)

    def _ping(self, peer: str, message: dict[str, Any]) -> None:
        self.steps.doubts.heed(peer, message)
        self.endpoint.tell(peer, {"kind": "pong"})

    def _reset(self, peer: str, message: dict[str, Any]) -> dict[str, Any]:
        self.engine.containers.reset(message["names"])
        return {}

    def _leave(self, peer: str, message: dict[str, Any]) -> dict[str, Any]:
        """Ends what a client has here, at its own wish."""
        self._end(peer)
        self._own.drop(peer)
        return {}

    def _lost(self, peer: str, incarnation: int, error: Exception) -> None:
        """Ends what a lost client runs here; its values stay for a while, it may come back."""
        if peer.startswith(CLIENT_PREFIX) and not self.endpoint.is_connected(peer):
            self._end(peer)
            self._own.drop_later(peer)
            if self.endpoint.is_connected(peer):  # it has come back meanwhile
                self._own.back(peer)

    def _silent_clients(self) -> list[tuple[str, float]]:
        """Returns who is connected, also before it has said anything, and how long it is silent."""
        peers = [peer for peer in self.endpoint.peers() if peer.startswith(CLIENT_PREFIX)]
        found = [(client, self.endpoint.silent_s(client)) for client in peers]
        return [(client, silent_s) for client, silent_s in found if silent_s is not None]

    def _give_up(self, client: str) -> None:
        """Takes a client for lost that says nothing any more; it is told, should it hear it."""
        reason = (
            f"{self.name} has given this client up, of which it had heard nothing for "
            f"{self._silence_s:g} s: the client was stopped, or the network between them was gone"
        )
        with contextlib.suppress(UnavailableError):  # it is lost already
            told = {"incarnation": self.endpoint.incarnation, "reason": reason}
            self.endpoint.tell(client, {"kind": "host.gave_up", **told})
            self.endpoint.give_up(client, ConnectionAbortedError("it said nothing for too long"))

    def _end(self, client: str) -> None:
        self._clients.discard(client)
        self.steps.client_lost(client)
        self.endpoint.forget_client(int(client.removeprefix(CLIENT_PREFIX), 16))


def new_incarnation() -> int:
    """Returns a number that no other life of a process has."""
    return int.from_bytes(os.urandom(7), "little")


def answer(
    handlers: dict[str, Handler], peer: str, message: dict[str, Any]
) -> Answer | Callable[[], Answer]:
    """The answer of the handler of a message's kind."""
    handler = handlers.get(message.get("kind", ""))
    if handler is None:
        raise UnimplementedError(f"expected a known kind of message, got {message.get('kind')!r}")
    return handler(peer, message)


def bytes_of(container: Container) -> int:
    """Returns the bytes of the values that a container holds, without waiting for writers."""
    held = sum(v.nbytes for v in container.variables().values())
    return held + sum(getattr(other, "nbytes", 0) for other in container.others())


__all__ = ["CLIENT_PREFIX", "Host", "answer", "bytes_of", "new_incarnation"]
