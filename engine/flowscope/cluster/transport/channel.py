"""The channel of a step between processes: some mailboxes have their other end at a peer.

A key's number on the wire is its place among the keys of its plan, which all processes list in the
same order. What two devices of one process send each other goes through plain mailboxes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from flowscope.cluster.transport.boxes import InBox, OutBox, TaggedInBox, TaggedOutBox
from flowscope.cluster.transport.encoding.frames import address, step_bytes
from flowscope.runtime.waits.rendezvous import Mailbox, Rendezvous, TaggedMailbox

if TYPE_CHECKING:
    from flowscope.cluster.transport.steps import Steps


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
        windows: By key after how many values who receives tells that they are read; of keys that
            are not there it never does. None for each value of each key.
    """

    def __init__(
        self,
        keys: Sequence[str],
        process_of: Callable[[str], str],
        windows: Mapping[str, int] | None = None,
    ) -> None:
        self.keys = tuple(keys)
        self.windows = dict.fromkeys(keys, 1) if windows is None else windows
        self.routes: dict[str, Route] = {}
        for number, key in enumerate(self.keys):
            sender, receiver, _ = key.split(";", 2)
            self.routes[key] = Route(number, process_of(sender), process_of(receiver))


class ProcessChannel(Rendezvous):
    """The channel of one step at one process.

    Args:
        step: The step.
        table: The keys of its plan.
        steps: Where frames come from, and who knows the peers.

    Attributes:
        name: How the step is called in addresses.
        peers: The peers that mailboxes lead to.
        addresses: Those of the mailboxes whose values go in order.
    """

    def __init__(self, step: StepId, table: KeyTable, steps: Steps) -> None:
        super().__init__()
        self.step = step
        self.name = step_bytes(*step)
        self.peers: set[str] = set()
        self.addresses: list[bytes] = []
        self._table = table
        self._windows = table.windows
        self._steps = steps

    def mailbox(self, key: str) -> Mailbox:
        """Returns where the values of a key are sent and received in order.

        Raises:
            UnavailableError: if the peer at the other end is not connected.
        """
        return self._boxes.get(key) or self._steps.made(partial(super().mailbox, key))

    def tagged(self, key: str) -> TaggedMailbox:
        """Returns where the values of a key are sent and received by iterations; see `mailbox`."""
        return self._tagged.get(key) or self._steps.made(partial(super().tagged, key))

    def flush(self) -> None:
        """Writes what has been sent and waits for more: a partition has ended."""
        self._steps.flush()

    def box_of(self, number: int, is_tagged: bool) -> Any:
        """Returns the mailbox of a key by its number; None if the plan has no such key.

        Not to be called but by `Steps`.
        """
        if number >= len(self._table.keys):
            return None
        key = self._table.keys[number]
        return super().tagged(key) if is_tagged else super().mailbox(key)

    def _made(self, key: str) -> Mailbox:
        return self._connected(key, OutBox, InBox) or super()._made(key)

    def _made_tagged(self, key: str) -> TaggedMailbox:
        return self._connected(key, TaggedOutBox, TaggedInBox) or super()._made_tagged(key)

    def _connected(self, key: str, out: Any, into: Any) -> Any:
        """Returns the mailbox of a key whose other end is at a peer; else None."""
        route = self._table.routes.get(key)
        if route is None or route.sender == route.receiver:
            return None
        is_sender = route.sender == self._steps.process
        peer = route.receiver if is_sender else route.sender
        self.peers.add(peer)  # before it is looked up: a loss that comes between is seen
        link = self._steps.link(peer)
        at = address(self.name, route.number)
        box = out(key, at, link) if is_sender else into(key, at, link, self._windows.get(key))
        if isinstance(box, InBox | OutBox):
            self._steps.place(self, at, box)
        return box


__all__ = ["KeyTable", "ProcessChannel", "Route", "StepId"]
