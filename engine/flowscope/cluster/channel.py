"""The channel of a step between processes: some mailboxes have their other end at a peer.

A key's number on the wire is its place among the keys of its plan, which all processes list in the
same order. What two devices of one process send each other goes through plain mailboxes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flowscope.runtime.rendezvous import Rendezvous


class StepId(NamedTuple):
    """Which step of all clients it is.

    Attributes:
        client: The client's number, 64 bits, random.
        number: Rises with each step of the client; 64 bits.
    """

    client: int
    number: int


class Route(NamedTuple):
    """Where a key leads.

    Attributes:
        number: The key's number on the wire.
        sender, receiver: The names of the processes.
    """

    number: int
    sender: str
    receiver: str


class KeyTable:
    """The keys of a plan; made once for all its steps.

    Args:
        keys: The keys, in an order that all processes share.
        process_of: Which process a device belongs to.
    """

    def __init__(self, keys: Sequence[str], process_of: Callable[[str], str]) -> None:
        self.routes: dict[str, Route] = {}
        for number, key in enumerate(keys):
            sender, receiver, _ = key.split(";", 2)
            self.routes[key] = Route(number, process_of(sender), process_of(receiver))


class ProcessChannel(Rendezvous):
    """The channel of one step at one process."""


__all__ = ["KeyTable", "ProcessChannel", "Route", "StepId"]
