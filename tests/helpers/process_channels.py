"""Channels between two endpoints of this process, as one, for tests that send and receive."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flowscope.cluster.transport.channel import KeyTable, ProcessChannel, StepId
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.runtime.waits.rendezvous import Pending


class FreeGate:
    """A gate at which nobody is held."""

    def __init__(self) -> None:
        self.raised = False
        self._changed = threading.Condition()

    def wait(self, is_done: Callable[[], bool], here: Any = None, until: float = math.inf) -> None:
        with self._changed:
            assert self._changed.wait_for(is_done, 10)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def soon() -> float:
    """Returns when something is to have happened at the latest, by the monotonic clock."""
    return time.monotonic() + 10.0


SENDER, RECEIVER = (f"/job:worker/replica:0/task:{i}" for i in range(2))
STEP = StepId(0xC11E47, 1)


#: What carries the bytes of endpoints: own sockets, or comms of Dask's.
TRANSPORTS = ("sockets", "dask")


@contextmanager
def two_endpoints(transport: str = "sockets") -> Iterator[tuple[Endpoint, Endpoint]]:
    """Gives two endpoints that are connected."""
    one, other = Endpoint(SENDER, 1, b"secret"), Endpoint(RECEIVER, 1, b"secret")
    with led_to(transport, one, other) as (_, addresses):
        try:
            one.connect(RECEIVER, addresses[1], 1)
            yield one, other
        finally:
            one.close()
            other.close()


@contextmanager
def led_to(transport: str, *endpoints: Endpoint) -> Iterator[tuple[Any, list[Any]]]:
    """Gives what others dial by, if there is something, and the addresses of endpoints."""
    if transport == "sockets":
        yield None, [endpoint.address for endpoint in endpoints]
        return
    from dask_ports import dask_ports  # Dask takes a while to load

    with dask_ports() as ports:
        yield ports.streams.dial, [ports.lead_to(endpoint) for endpoint in endpoints]


def by_device(keys: Sequence[str]) -> KeyTable:
    """Returns keys whose devices say which process they belong to."""
    return KeyTable(keys, lambda device: device.rpartition("/device:")[0])


def from_first_to_second(keys: Sequence[str]) -> KeyTable:
    """Returns keys whose sending devices belong to the first endpoint, the others to the second."""
    senders = {key.split(";")[0] for key in keys}
    return KeyTable(keys, lambda device: SENDER if device in senders else RECEIVER)


@contextmanager
def joined_channel(keys: Sequence[str], transport: str = "sockets") -> Iterator[Any]:
    """Gives a channel whose mailboxes send at one endpoint and receive at another."""
    table = from_first_to_second(keys)
    with two_endpoints(transport) as (one, other):
        yield _Joined(one.open_step(STEP, table), other.open_step(STEP, table))


class _Joined:
    """Both ends of a channel."""

    def __init__(self, sender: ProcessChannel, receiver: ProcessChannel) -> None:
        self.sender = sender
        self.receiver = receiver

    def mailbox(self, key: str) -> Any:
        return _JoinedMailbox(self.sender.mailbox(key), self.receiver.mailbox(key))

    def tagged(self, key: str) -> Any:
        return _JoinedTagged(self.sender.tagged(key), self.receiver.tagged(key))

    def abort(self, error: BaseException) -> None:
        self.sender.abort(error)
        self.receiver.abort(error)

    def pending(self) -> list[Pending]:
        found = self.sender.pending() + self.receiver.pending()
        return sorted(found, key=lambda p: -p.seconds)


class _JoinedMailbox:
    def __init__(self, sender: Any, receiver: Any) -> None:
        self.sender, self.receiver = sender, receiver
        self.send, self.receive = sender.send, receiver.receive
        self.is_ahead, self.throttle = sender.is_ahead, sender.throttle


class _JoinedTagged:
    def __init__(self, sender: Any, receiver: Any) -> None:
        self.sender, self.receiver = sender, receiver
        self.send, self.unread = sender.send, sender.unread
        self.when_below = sender.when_below
        self.receive, self.forget = receiver.receive, receiver.forget

    def pending(self) -> list[Pending]:
        return [*self.sender.pending(), *self.receiver.pending()]


def unread(box: Any) -> int:
    """Returns how many values of a mailbox have been sent and not read, as its sender knows."""
    if isinstance(box, _JoinedMailbox):
        if box.sender._error is not None:
            return len(box.receiver.values)
        return box.sender._sending.sent - box.sender._sending.read
    return len(box.values)


def arrived(box: Any) -> int:
    """Returns how many values of a tagged mailbox can be received."""
    if isinstance(box, _JoinedTagged):
        box.receiver._counting.link.poll()
        return len(box.receiver._values)
    return len(box._values)


def until(is_true: Callable[[], bool], seconds: float = 10) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0)
