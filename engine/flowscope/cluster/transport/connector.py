"""How an endpoint connects with others: with many at the same time, by sockets or another way."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.dialing import Dial, finish
from flowscope.cluster.transport.encoding import poly1305
from flowscope.cluster.transport.encoding.macs import Seal
from flowscope.cluster.transport.encoding.tls import Tls, TLSContexts
from flowscope.cluster.transport.handshake import Hello, introduce
from flowscope.cluster.transport.peers import Address, Peer, Way
from flowscope.cluster.transport.runs import RunConnection
from flowscope.errors import OpError, UnavailableError
from flowscope.runtime.waits.waiting import OWN, acquire

#: The connections of two peers.
PURPOSES = ("control", "small", "bulk")
#: So long a whole handshake may take.
HANDSHAKE_S = 5.0


class _UnreachableError(UnavailableError):
    """Nobody has answered at an address."""


def _told(way: Way, error: Exception) -> OpError:
    """Returns why a peer is not connected with."""
    if isinstance(error, OpError):
        return error
    where = way.address if isinstance(way.address, str) else f"{way.address[0]}:{way.address[1]}"
    return _UnreachableError(f"{way.peer} cannot be reached at {where}: {error}")


class Connector:
    """The part of an `Endpoint` that connects with others."""

    if TYPE_CHECKING:
        name: str
        incarnation: int
        dial: Callable[[str, float], socket.socket]
        _is_reached: dict[str, bool]
        _secret: bytes
        _tls: TLSContexts | None
        _lock: threading.Lock
        _connecting: dict[str, threading.Lock]
        _is_closed: bool

        def is_connected(self, peer: str, incarnation: int | None = None) -> bool: ...  # noqa: D102
        def _peer(self, name: str) -> Peer: ...
        def _made(self, sock: socket.socket, seal: Seal, purpose: str) -> Connection: ...
        def _admit(self, peer: Peer, last: Connection | None = None) -> None: ...

    def connect(
        self,
        peer: str,
        address: Address,
        incarnation: int,
        timeout_s: float = 5.0,
        *,
        instead: str | None = None,
        owned_by: Any = OWN,
    ) -> None:
        """Connects with a peer, unless it is connected; afterwards both ends can send.

        Args:
            peer: Its name.
            address: Where it listens.
            incarnation: Which life of it is meant.
            timeout_s: How long it may take, for each of the two ways.
            instead: Where it is reached if no socket reaches its machine.
            owned_by: See `flowscope.runtime.waits.waiting.wait_for`.

        Raises:
            UnavailableError: if it cannot be reached, or another life of it is there.
            UnauthenticatedError: if it does not know the secret.
        """
        found = self.connect_all([Way(peer, address, incarnation, instead)], timeout_s, owned_by)
        for error in found.values():
            raise error

    def connect_all(
        self, ways: Iterable[Way], timeout_s: float = 5.0, owned_by: Any = OWN
    ) -> dict[str, OpError]:
        """Connects with many peers at the same time, as `connect` does with one.

        Returns:
            Why not, by the peers with which it was not possible.
        """
        missing = {w.peer: w for w in ways if not self.is_connected(w.peer, w.incarnation)}
        turns = [self._turn(name) for name in sorted(missing)]  # in one order: none waits in a ring
        held: list[threading.Lock] = []
        try:
            for turn in turns:
                acquire(turn, "for another thread that connects")
                held.append(turn)
            failed = self._connect_some_way(list(missing.values()), timeout_s, owned_by)
            return {peer: error.as_public() for peer, error in failed.items()}
        finally:
            for turn in held:
                turn.release()

    def _turn(self, peer: str) -> threading.Lock:
        with self._lock:
            return self._connecting.setdefault(peer, threading.Lock())

    def _connect_some_way(
        self, ways: Sequence[Way], timeout_s: float, owned_by: Any
    ) -> dict[str, OpError]:
        """Connects by sockets, or where none reaches a peer's machine by the other address."""
        first = [w for w in ways if w.instead is None or self._is_reached.get(w.address[0], True)]
        failed = self._connect(first, timeout_s, owned_by)
        for way in first:
            if way.instead is not None and way.peer not in failed:
                self._is_reached[way.address[0]] = True
        behind = [w for w in ways if self._is_behind(w, failed.get(w.peer)) or w not in first]
        second = [w._replace(address=w.instead) for w in behind if w.instead is not None]
        again = self._connect(second, timeout_s, owned_by)
        for way in [w for w in behind if w.peer not in again]:
            self._is_reached[way.address[0]] = False
        return {p: e for p, e in failed.items() if all(p != w.peer for w in behind)} | again

    def _is_behind(self, way: Way, error: OpError | None) -> bool:
        """Whether a peer is to be tried the other way: its machine was never reached."""
        is_new = way.instead is not None and way.address[0] not in self._is_reached
        return is_new and isinstance(error, _UnreachableError)

    def _connect(self, ways: Sequence[Way], timeout_s: float, owned_by: Any) -> dict[str, OpError]:
        """Connects with peers that are not connected, by one address each; returns why not."""
        dials: dict[str, dict[str, Dial]] = {}
        failed: dict[str, OpError] = {}
        missing = [w for w in ways if not self.is_connected(w.peer, w.incarnation)]
        every: list[Dial] = []
        try:
            for way in missing:
                group = int.from_bytes(os.urandom(8), "little")
                some = dials[way.peer] = {}
                for purpose in PURPOSES:
                    some[purpose] = self._dial(purpose, group, way, timeout_s)
                    every.append(some[purpose])
            until = time.monotonic() + timeout_s  # who is dialled by a name had a time of its own
            finish(every, until, owned_by, lambda: self._is_closed)
        except BaseException:  # it is stopped, or its time is over
            for dial in every:
                dial.close()
            raise
        for way in [w for w in ways if w.peer in dials]:
            some = dials[way.peer]
            error = next((e for d in some.values() if (e := d.error) is not None), None)
            if error is None:
                made = {purpose: self._made_of(dial, purpose) for purpose, dial in some.items()}
                self._admit(Peer(way.peer, way.incarnation, way.address, made))
                continue
            for dial in some.values():
                dial.close()
            if not self.is_connected(way.peer, way.incarnation):  # it may have connected with us
                failed[way.peer] = _told(way, error)
        return failed

    def prepare_runs(self, peers: Iterable[str], owned_by: Any = OWN) -> None:
        """Makes connections for runs with peers that have none left, at the same time.

        Raises:
            UnavailableError: if one of them is lost, hangs, or cannot be reached.
        """
        self._new_runs([p for p in map(self._peer, peers) if not p.idle], owned_by)

    def _new_runs(self, peers: Sequence[Peer], owned_by: Any) -> None:
        """Makes a connection for runs with each of some peers."""
        dials: dict[Peer, Dial] = {}
        try:
            for peer in peers:
                if peer.address is None:
                    raise UnavailableError(
                        f"{peer.name} has connected with {self.name}: only {peer.name} can start "
                        "runs"
                    )
                way = Way(peer.name, peer.address, peer.incarnation)
                dials[peer] = self._dial("run", 0, way, HANDSHAKE_S)
                peer.dials.add(dials[peer])
            until = time.monotonic() + HANDSHAKE_S
            finish([*dials.values()], until, owned_by, lambda: self._is_closed)
            for peer, dial in dials.items():
                if dial.error is not None:
                    raise _told(Way(peer.name, peer.address or "", peer.incarnation), dial.error)
            for peer, dial in dials.items():
                peer.idle.append(self._carrier(peer, self._made_of(dial, "run")))
        finally:
            for peer, dial in dials.items():
                peer.dials.discard(dial)
                if not dial.is_taken:
                    dial.close()

    def _carrier(self, peer: Peer, one: Connection) -> RunConnection:
        def free(carrier: RunConnection) -> None:
            if one.error is not None:
                peer.ended(one)
            elif peer.is_lost:
                one.close()
            else:
                peer.idle.append(carrier)

        carrier = RunConnection(peer.name, one, free)
        peer.add_run(one)
        return carrier

    def _dial(self, purpose: str, group: int, way: Way, timeout_s: float) -> Dial:
        """Begins to make a connection."""
        address, own = way.address, (self.name, self.incarnation)
        hello = Hello(purpose, group, *own, way.peer, way.incarnation, poly1305.is_available())
        tls = None
        if self._tls is not None and not isinstance(address, str):
            tls = Tls(self._tls.client, False, address[0])
        dial = Dial(introduce(hello, self._secret, tls))
        try:
            if isinstance(address, str):
                dial.use(self.dial(address, timeout_s))
            else:
                dial.connect(address)
        except OSError as e:
            dial.fail(e)
        except BaseException:  # a stop or a deadline ends the wait of `self.dial`
            dial.close()
            raise
        return dial

    def _made_of(self, dial: Dial, purpose: str) -> Connection:
        sock, seal = dial.taken()
        return self._made(sock, seal, purpose)


__all__ = ["HANDSHAKE_S", "PURPOSES", "Connector"]
