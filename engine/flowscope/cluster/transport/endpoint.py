"""One process' end of a cluster's transport: it listens, connects, sends and receives.

Two endpoints that know each other are *peers*. They have three connections: control, which is
always read; small, for the values of steps; bulk, for large arrays. Runs have connections of their
own. Any end may connect; afterwards both can do everything, except that only the end that has
connected starts runs.

An address is host and port of a socket, or a name that only the owner can dial: what he returns is
one half of a pair of sockets, whose other half leads to the peer.

Nothing here knows sessions, plans or Dask.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.cluster.transport.channel import KeyTable, ProcessChannel, StepId
from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.connector import HANDSHAKE_S, PURPOSES, Connector
from flowscope.cluster.transport.control import Control, OnCall, PendingAnswer
from flowscope.cluster.transport.counters import Counters
from flowscope.cluster.transport.doors import LIMITS, DoorLimits, Doors
from flowscope.cluster.transport.encoding.macs import Seal
from flowscope.cluster.transport.encoding.messages import packed
from flowscope.cluster.transport.encoding.tls import Tls, TLSContexts
from flowscope.cluster.transport.encoding.values import Data
from flowscope.cluster.transport.flusher import Flusher
from flowscope.cluster.transport.handshake import (
    ACCEPTED,
    Hello,
    Met,
    Words,
    meet,
    refusal,
)
from flowscope.cluster.transport.links import PeerLink
from flowscope.cluster.transport.peers import Address, Peer, PendingPeer, Way
from flowscope.cluster.transport.poller import Poller
from flowscope.cluster.transport.runs import OnRun, PendingRun, first_done, serve
from flowscope.cluster.transport.sender import Sender
from flowscope.cluster.transport.steps import Steps
from flowscope.cluster.transport.switch_interval import ShortSwitches
from flowscope.errors import (
    FailedPreconditionError,
    OpError,
    UnavailableError,
)
from flowscope.runtime.waits.waiting import OWN, join, wait_for

#: So long what is left of a lost peer may take to end.
_ENDS_S = 10.0
_BACKLOG = 128


def _no_call(peer: str, message: dict[str, Any]) -> None:
    raise FailedPreconditionError(f"nobody takes the messages of {peer} here yet")


def _no_run(peer: str, header: dict[str, Any], values: list[Any]) -> tuple[dict[str, Any], Any]:
    raise FailedPreconditionError(f"nobody runs anything for {peer} here yet")


#: Takes who was lost, which life of it, and why.
OnLost = Callable[[str, int, Exception], None]


def _no_loss(peer: str, incarnation: int, error: Exception) -> None:
    return


def _no_dial(address: str, timeout_s: float) -> socket.socket:
    raise ConnectionRefusedError("this process has sockets only")


class Endpoint(Connector):
    """One process' end. See the module.

    Args:
        name: The process' name, e.g. "/job:worker/replica:0/task:3".
        incarnation: Which life of that process it is.
        secret: What all processes of the cluster know, and nobody else.
        host: The address to listen at.
        port: The port; 0 for any.
        tls: How connections are sealed; None for ones that are authenticated only.
        limits: What whoever has connected may take before it has shown who it is.

    Attributes:
        address: Where it listens.
        on_call: Does what control messages say, on the one thread that reads those of all peers;
            must be quick. What it returns to be called runs on a thread of its own.
        on_run: Does what runs say, each on a thread of its own.
        on_lost: Is told once per life of a peer, and which life, that it has gone without a
            goodbye. The next life may be connected by then.
        dial: Returns a socket that leads to an address that is a name, within so many seconds.
    """

    def __init__(
        self,
        name: str,
        incarnation: int,
        secret: bytes,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: TLSContexts | None = None,
        limits: DoorLimits = LIMITS,
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.on_call: OnCall = _no_call
        self.on_run: OnRun = _no_run
        self.on_lost: OnLost = _no_loss
        self.dial: Callable[[str, float], socket.socket] = _no_dial
        #: Whether sockets reach the machines of peers that had two addresses.
        self._is_reached: dict[str, bool] = {}
        self._secret = secret
        self._tls = tls
        self._lock = threading.Lock()
        self._peers: dict[str, Peer] = {}
        #: Peers that are lost, and whose steps are being ended.
        self._going: set[Peer] = set()
        #: Held while a peer, by its name, is connected with: two connects are one.
        self._connecting: dict[str, threading.Lock] = {}
        self._forming: dict[int, PendingPeer] = {}
        self._threads: set[threading.Thread] = set()
        self._is_closed = False
        self._links: dict[str, PeerLink] = {}
        self._steps = Steps(name, self._links)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self.address: tuple[str, int] = listener.getsockname()[:2]
        self._flusher = Flusher(f"flusher {name}", lambda: list(self._links.values()))
        self._control_poller = Poller(f"control {name}")
        self._poller = Poller(f"reader {name}")
        self._bulk_poller = Poller(f"bulk {name}")
        self._sender = Sender(f"sender {name}")
        ShortSwitches.begin()
        self._doors = Doors(f"listener {name}", listener, self._meet, self._enter, limits)
        self._doors.start()

    # ------------------------------------------------------------ peers

    def is_connected(self, peer: str, incarnation: int | None = None) -> bool:
        """Whether messages for a peer, or only for one life of it, have somewhere to go."""
        found = self._peers.get(peer)
        return found is not None and incarnation in (None, found.incarnation)

    def disconnect(self, peer: str, incarnation: int | None = None) -> None:
        """Says goodbye to a peer, and ends its connections; `on_lost` is not called.

        Args:
            peer: Its name.
            incarnation: Which life of it is meant: another one stays. None for any.
        """
        found = self._peers.get(peer)
        if found is not None and incarnation in (None, found.incarnation):
            found.control.say_goodbye()
            self._lose(found, None)

    def close(self) -> None:
        """Says goodbye to all, and ends every thread that this endpoint has begun."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            forming, self._forming = self._forming, {}
        for some in forming.values():
            for one in some.connections.values():
                one.close()
        self._doors.close()
        for peer in list(self._peers):
            self.disconnect(peer)
        self._flusher.close()
        self._control_poller.close()
        self._poller.close()
        self._bulk_poller.close()
        self._sender.close()
        ShortSwitches.end()
        end = time.monotonic() + HANDSHAKE_S
        for thread in list(self._threads):
            if thread is not threading.current_thread():
                join(thread, max(0.0, end - time.monotonic()))

    # ------------------------------------------------------------ messages

    def call(
        self, peer: str, message: dict[str, Any], timeout_s: float, owned_by: Any = OWN
    ) -> dict[str, Any]:
        """Returns a peer's answer to a control message. Not to be called by `on_call`.

        Args:
            peer: Its name.
            message: Plain data.
            timeout_s: How long the answer may take.
            owned_by: See `flowscope.runtime.waits.waiting.wait_for`.

        Raises:
            DeadlineExceededError: if it does not come in time.
            UnavailableError: if the peer is not connected, or is lost meanwhile.
            InternalError: if what does it at the peer has raised.
        """
        return self.ask(peer, message).result(time.monotonic() + timeout_s, owned_by)

    def ask(self, peer: str, message: dict[str, Any]) -> PendingAnswer:
        """Sends a control message whose answer is taken later; never waits.

        Raises:
            UnavailableError: if the peer is not connected.
        """
        return self._peer(peer).control.ask(message)

    def end_waits(self, peer: str, error: OpError) -> None:
        """Has all that waits for a peer's answers end with an error: the peer hangs."""
        found = self._peers.get(peer)
        if found is not None:
            found.end_waits(error)

    def tell(self, peer: str, message: dict[str, Any]) -> None:
        """Sends a control message that has no answer; never waits.

        Raises:
            UnavailableError: if the peer is not connected.
        """
        self._peer(peer).control.tell(message)

    def peers(self) -> list[str]:
        """Returns the names of those that are connected."""
        return list(self._peers)

    def silent_s(self, peer: str) -> float | None:
        """Returns for how many seconds nothing has come from a peer; None if it is not there."""
        found = self._peers.get(peer)
        return None if found is None else time.monotonic() - found.control.heard_at

    def give_up(self, peer: str, error: Exception) -> None:
        """Loses a peer that says nothing any more; `on_lost` is told.

        Raises:
            UnavailableError: if the peer is not connected.
        """
        self._peer(peer).control.connection.fail(error)

    def look_at(self, peer: str) -> None:
        """Loses a peer with which a connection that is in use was cut, if nobody reads it now."""
        found = self._peers.get(peer)
        if found is not None:
            found.look()

    def end_cut(self, peer: str, incarnation: int) -> None:
        """Loses a life of a peer with which a connection was cut, unless it says goodbye first."""
        found = self._peers.get(peer)
        if found is not None and found.incarnation == incarnation:
            found.control.end_with(ConnectionResetError("a connection with it was cut"))

    def start_run(self, peer: str, header: dict[str, Any], values: Sequence[Any]) -> PendingRun:
        """Has a peer do something, on a thread of its own there; several may be under way.

        Args:
            peer: Its name; this end must have connected.
            header: Plain data.
            values: Arrays. Nobody may write them before the answer has come.

        Raises:
            UnavailableError: if the peer is not connected.
        """
        return self.start_packed(peer, packed(header, values))

    def start_packed(self, peer: str, parts: Sequence[Data]) -> PendingRun:
        """Has a peer do something, as `start_run` does.

        Args:
            peer: Its name; this end must have connected.
            parts: What `messages.packed` has made; may be sent to several peers.

        Raises:
            UnavailableError: if the peer is not connected.
        """
        found = self._peer(peer)
        while True:
            try:
                carrier = found.idle.pop()
                break
            except IndexError:
                self._new_runs([found], OWN)
        found.runs_started += 1
        return carrier.start(parts)

    first_done = staticmethod(first_done)

    def open_step(self, step: StepId, table: KeyTable) -> ProcessChannel:
        """Returns the channel of a step at this process; hands out what has come for it.

        Args:
            step: The step.
            table: The keys of its plan.
        """
        return self._steps.open(step, table)

    def close_step(self, step: StepId) -> None:
        """Ends a step at this process: what comes late for it is thrown away.

        To be called for each step of which this process has a part, also where it was never opened
        here. What peers have not read stays for them, unless the channel was aborted.
        """
        self._steps.close(step)

    def open_steps(self) -> list[tuple[StepId, ProcessChannel]]:
        """Returns the steps that are open now."""
        return self._steps.channels()

    def forget_client(self, client: int) -> None:
        """Ends the steps of a client, and forgets what has come for others of its steps."""
        self._steps.forget(client)

    @property
    def is_sealed(self) -> bool:
        """Whether what it sends is encrypted by TLS."""
        return self._tls is not None

    def counters(self) -> Counters:
        """Counters of the traffic with each peer, by the peers' names."""
        return {name: peer.counters() for name, peer in list(self._peers.items())}

    # ------------------------------------------------------------ connections

    def _peer(self, name: str) -> Peer:
        found = self._peers.get(name)
        if found is None:
            raise UnavailableError(f"{name} is not connected with {self.name}, or is lost")
        return found

    def _made(self, sock: socket.socket, seal: Seal, purpose: str) -> Connection:
        sock.settimeout(None)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pollers = {"bulk": self._bulk_poller, "control": self._control_poller}
        poller = pollers.get(purpose, self._poller)
        return Connection(sock, seal, poller, self._sender)

    # ------------------------------------------------------------ who connects

    def _start(self, name: str, function: Any, *arguments: Any) -> None:
        def work() -> None:
            try:
                function(*arguments)
            finally:
                self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def take(self, sock: socket.socket) -> None:
        """Takes a socket by which somebody has connected, and hears who it is."""
        self._doors.take(sock)

    def _meet(self, sock: socket.socket) -> Words[Met]:
        is_sealed = self._tls is not None and sock.family != socket.AF_UNIX
        tls = Tls(self._tls.server, True) if self._tls is not None and is_sealed else None
        return meet(self._secret, tls)

    def _enter(self, sock: socket.socket, met: Met) -> None:
        """Has a thread go on with whoever has shown that they belong to this cluster."""
        self._start(f"{met.hello.purpose} {met.hello.sender}", self._entered, sock, met)

    def _entered(self, sock: socket.socket, met: Met) -> None:
        """Takes a connection; serves it, if it is one for runs, on this thread."""
        hello = met.hello
        one = self._made(sock, met.seal, hello.purpose)
        try:
            peer = self._expected(hello)
        except OpError as e:
            one.write(refusal(e))
            one.close()
            return
        if peer is None:
            self._gather(hello, one)
            return
        peer.add_run(one)
        one.write(ACCEPTED)
        try:
            serve(one, peer.name, lambda *run: self.on_run(*run))
        finally:
            peer.ended(one)
            one.close()

    def _expected(self, hello: Hello) -> Peer | None:
        """Returns the peer whose run connection it is; None for another connection."""
        if hello.receiver != self.name or hello.receiver_incarnation != self.incarnation:
            raise UnavailableError(
                f"expected {hello.receiver} of incarnation {hello.receiver_incarnation:x} at this "
                f"address, got {self.name} of incarnation {self.incarnation:x}: it was restarted"
            )
        if self._is_closed:
            raise UnavailableError(f"{self.name} is leaving")
        known = self._peers.get(hello.sender)
        is_known = known is not None and known.incarnation == hello.sender_incarnation
        if hello.purpose == "run":
            if not is_known:
                raise UnavailableError(
                    f"{hello.sender} is not connected with {self.name} any more, which has lost it"
                )
            return known
        if hello.purpose not in PURPOSES:
            raise FailedPreconditionError(f"expected a purpose, got {hello.purpose!r}")
        if is_known:
            raise UnavailableError(
                f"{hello.sender} is connected with {self.name} already: the end of that connection "
                "has not been noticed yet"
            )
        return None

    def _gather(self, hello: Hello, one: Connection) -> None:
        """Keeps a connection until all of its peer are there; then admits the peer."""
        with self._lock:
            if self._is_closed:
                one.close()
                return
            found = self._forming.setdefault(hello.group, PendingPeer({}, time.monotonic()))
            found.connections[hello.purpose] = one
            is_complete = len(found.connections) == len(PURPOSES)
            if is_complete:
                del self._forming[hello.group]
            old = self._left_alone()
        for connection in old:
            connection.close()
        if is_complete:
            made = Peer(hello.sender, hello.sender_incarnation, None, found.connections)
            self._admit(made, one)
        else:
            one.write(ACCEPTED)

    def _left_alone(self) -> list[Connection]:
        """Takes out the connections of peers that have not made all of them in time."""
        begun = time.monotonic() - len(PURPOSES) * HANDSHAKE_S
        old = [group for group, some in self._forming.items() if some.began < begun]
        return [one for group in old for one in self._forming.pop(group).connections.values()]

    def _admit(self, peer: Peer, last: Connection | None = None) -> None:
        """Takes a peer whose connections are all there.

        Args:
            peer: The peer.
            last: The connection at whose other end somebody waits to hear of it.
        """
        control = peer.connections["control"]

        def ended(error: Exception | None) -> None:
            self._lose(peer, error)

        def aside(do: Callable[[], Any]) -> None:
            self._start(f"control {peer.name}", do)

        peer.control = Control(peer.name, control, lambda *call: self.on_call(*call), ended, aside)
        small, bulk = peer.connections["small"], peer.connections["bulk"]
        small.on_failed = bulk.on_failed = peer.control.end_with
        peer.link = PeerLink(peer.name, small, peer.bulk, self._steps, self._flusher)
        while (old := self._take_in(peer, last)) is not None:
            self._lose(old, ConnectionResetError(f"{peer.name} was started again"))
        if self._peers.get(peer.name) is not peer:
            peer.close()
            return
        peer.bulk.start()
        peer.control.start()

    def _take_in(self, peer: Peer, last: Connection | None) -> Peer | None:
        """Makes a peer known, unless an earlier life of it has to go first, which is returned."""
        with self._lock:
            found = [self._peers.get(peer.name), *self._going]
            for old in found:  # its steps end before this one begins others
                if old is not None and old.name == peer.name:
                    return old
            if not self._is_closed:
                self._peers[peer.name] = peer
                self._links[peer.name] = peer.link
                if last is not None:  # whoever hears it finds the peer here
                    last.write(ACCEPTED)
        return None

    def _lose(self, peer: Peer, error: Exception | None) -> None:
        """Ends what is left of a peer, once; has it gone when this returns.

        Args:
            peer: The peer.
            error: Why its control connection has ended; None after a goodbye.
        """
        with self._lock:
            was_lost, peer.is_lost = peer.is_lost, True
            if not was_lost:
                self._going.add(peer)
            if self._peers.get(peer.name) is peer:
                del self._peers[peer.name]
            if self._links.get(peer.name) is peer.link:
                del self._links[peer.name]
        if was_lost:
            wait_for(
                lambda: peer.has_gone, peer.gone, what=f"for the end of {peer.name}",
                until=time.monotonic() + _ENDS_S, owned_by=None,
            )  # fmt: skip
            return
        peer.control.close()
        peer.close()
        self._steps.lost(peer.name, error or ConnectionResetError("it has left"))
        with self._lock:
            self._going.discard(peer)
        peer.has_gone = True
        peer.gone.wake()
        if error is not None:
            self.on_lost(peer.name, peer.incarnation, error)


__all__ = ["Address", "Endpoint", "Peer", "Way"]
