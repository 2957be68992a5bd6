"""Peers of an endpoint: other endpoints, and the connections with them."""

from __future__ import annotations

import time
from typing import NamedTuple

from flowscope.cluster.transport.bulk import Bulk
from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.control import Control
from flowscope.cluster.transport.counters import PeerCounters
from flowscope.cluster.transport.dialing import Dial
from flowscope.cluster.transport.links import PeerLink
from flowscope.cluster.transport.runs import RunConnection
from flowscope.errors import OpError
from flowscope.graph.lazy import frozen
from flowscope.runtime.waits.rendezvous import Waiter

#: Where a process listens: host and port, or a name that `Endpoint.dial` knows.
Address = tuple[str, int] | str


class Way(NamedTuple):
    """How a peer is reached.

    Attributes:
        peer: Its name.
        address: Where it listens.
        incarnation: Which life of it is meant.
        instead: Where it is reached if no socket reaches its machine.
    """

    peer: str
    address: Address
    incarnation: int
    instead: str | None = None


class Peer:
    """Another endpoint, and the connections with it.

    Args:
        name: Its name.
        incarnation: Which life of it.
        address: Where it listens; None if it is not known, for it has connected.
        connections: By purpose.
    """

    def __init__(
        self,
        name: str,
        incarnation: int,
        address: Address | None,
        connections: dict[str, Connection],
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.address = address
        self.connections = connections
        self.control: Control
        self.link: PeerLink
        self.bulk = Bulk(connections["bulk"])
        self.idle: list[RunConnection] = []
        self.runs: set[Connection] = set()
        self.is_lost = False
        #: What the last look has found cut.
        self._cut: set[Connection] = set()
        #: Connections for runs that are being made.
        self.dials: set[Dial] = set()
        #: Whether the steps that needed it have ended; who waits for that is woken.
        self.has_gone = False
        self.gone = Waiter()
        self.runs_started = 0
        #: Bytes and writes of run connections that have ended.
        self._past = [0, 0, 0]

    def add_run(self, run: Connection) -> None:
        """Has one more connection for runs, which ends when the peer is lost.

        It may be lost just now, and have ended those that it had: then this one ends here.
        """
        self.runs.add(run)
        if self.is_lost:
            run.fail(self._given_up())

    def ended(self, run: Connection) -> None:
        """Notes that a run connection has ended."""
        if run in self.runs:
            self.runs.discard(run)
            for i, count in enumerate(_counts(run)):
                self._past[i] += count

    def look(self) -> None:
        """Ends what is left of it if a connection that is in use was cut.

        A step that runs here does not read the connections on which others answer: that they are
        cut would be seen when it has ended. A peer that goes by itself says so on its control
        connection, which may be read a little later: so it is cut if the next look finds it so too.
        """
        idle = {carrier.connection for carrier in list(self.idle)}
        used = [*self.connections.values(), *[c for c in list(self.runs) if c not in idle]]
        found = {c for c in used if c.is_cut}
        if found & self._cut:
            self.control.end_with(ConnectionResetError("a connection with it was cut"))
        self._cut = found

    def counters(self) -> PeerCounters:
        """Counters of the traffic with the peer."""
        connections = [*self.connections.values(), *list(self.runs)]
        sent, received, writes = (
            sum(counts) for counts in zip(self._past, *map(_counts, connections), strict=True)
        )
        return PeerCounters(
            runs=self.runs_started,
            sent=self.link.sent,
            received=self.link.received,
            sent_bytes=sent,
            received_bytes=received,
            writes=writes,
            unwritten_bytes=sum(c.unwritten_bytes for c in connections),
            offered=self.bulk.offered,
            asked=self.bulk.asked,
            silent_s=time.monotonic() - self.control.heard_at,
            is_direct=self.connections["control"].is_direct,
        )

    def end_waits(self, error: OpError) -> None:
        """Has all that waits for its answers end with an error: it hangs."""
        self.control.end_waits(error)
        for dial in list(self.dials):
            dial.fail(error)
        idle = {carrier.connection for carrier in list(self.idle)}
        for run in [c for c in list(self.runs) if c not in idle]:
            run.fail(error)

    def close(self) -> None:
        """Ends all connections."""
        for dial in list(self.dials):
            dial.fail(self._given_up())
        for one in [*self.connections.values(), *list(self.runs)]:
            one.fail(self._given_up())

    def _given_up(self) -> ConnectionAbortedError:
        return ConnectionAbortedError(f"the connection with {self.name} was given up")


def _counts(one: Connection) -> tuple[int, int, int]:
    return one.sent_bytes, one.received_bytes, one.writes


@frozen
class PendingPeer:
    """Connections of a peer that has not made all of them."""

    connections: dict[str, Connection]
    began: float


__all__ = ["Address", "Peer", "PendingPeer", "Way"]
