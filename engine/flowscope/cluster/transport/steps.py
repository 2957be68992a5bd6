"""The steps that are open at one process: where frames go that come for them.

A frame may come before its step has begun here: it is kept. It may come after the step has ended:
it is thrown away. Which steps have ended is remembered for the latest ones of each client.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from flowscope.cluster.transport.boxes import InBox, OutBox, TaggedInBox, TaggedOutBox
from flowscope.cluster.transport.bulk import Offer
from flowscope.cluster.transport.channel import KeyTable, ProcessChannel, StepId
from flowscope.cluster.transport.encoding.frames import (
    ARRAY,
    LARGE,
    READ,
    SCALAR,
    TAGGED,
    key_number,
    read_array,
    read_large,
    read_number,
    read_scalar,
    read_tag,
    step_bytes,
)
from flowscope.cluster.transport.links import PeerLink
from flowscope.errors import DataLossError, UnavailableError

#: So many steps that have ended are remembered.
_ENDED = 1 << 14

Box = TypeVar("Box")
_Frame = tuple[PeerLink, bytes, int, int, bytes]


class Steps:
    """The open steps of one process.

    Args:
        process: The process' name.
        links: The links by peer; others change it.

    Attributes:
        boxes: Mailboxes by address, those in which values come in order.
        out_boxes: Those that send them.
        done: How many steps have ended.
    """

    def __init__(self, process: str, links: dict[str, PeerLink]) -> None:
        self.process = process
        self.boxes: dict[bytes, InBox] = {}
        self.out_boxes: dict[bytes, OutBox] = {}
        self.done = 0
        self._links = links
        self._lock = threading.RLock()
        self._open: dict[bytes, ProcessChannel] = {}
        self._early: dict[bytes, list[_Frame]] = {}
        self._ended: OrderedDict[bytes, None] = OrderedDict()
        #: While frames that were kept are handed out, mailboxes that are made meanwhile.
        self._placed: dict[bytes, InBox] | None = None

    # ------------------------------------------------------------ who runs steps

    def open(self, step: StepId, table: KeyTable) -> ProcessChannel:
        """Begins a step; hands out what has come for it."""
        channel = ProcessChannel(step, table, self)
        with self._lock:
            self._open[channel.name] = channel
            self._ended.pop(channel.name, None)
            frames = self._early.pop(channel.name, ())
            self._placed = {}
            try:
                for frame in frames:
                    self._hand_out(channel, *frame)
            finally:
                # Others find the mailboxes now, not before: their frames come after these.
                self.boxes.update(self._placed)
                self._placed = None
        return channel

    def close(self, step: StepId) -> None:
        """Ends a step: what comes for it from now on is thrown away."""
        name = step_bytes(*step)
        with self._lock:
            channel = self._open.pop(name, None)
            self._ended[name] = None
            if len(self._ended) > _ENDED:
                self._ended.popitem(last=False)
            early = self._early.pop(name, ())
            for link, _, kind, _, body in early:
                self._throw_away(link, kind, body)
            if channel is None:
                return
            self.done += 1
            for at in channel.addresses:
                self.boxes.pop(at, None)
                self.out_boxes.pop(at, None)
        if channel.error is not None:
            for peer in channel.peers:
                if (link_of := self._links.get(peer)) is not None:
                    link_of.bulk.withdraw(name)
        channel.abort(_Ended("the step has ended"))
        self.flush()

    def channels(self) -> list[tuple[StepId, ProcessChannel]]:
        """Returns the open steps."""
        return [(c.step, c) for c in list(self._open.values())]

    @property
    def kept(self) -> int:
        """How many frames wait for their steps to begin."""
        return sum(map(len, list(self._early.values())))

    def lost(self, peer: str, error: Exception) -> None:
        """Ends the steps that send to a peer, or receive from it."""
        with self._lock:
            for name, frames in list(self._early.items()):
                self._early[name] = [f for f in frames if f[0].peer != peer]
        for channel in list(self._open.values()):
            if peer in channel.peers:
                channel.abort(UnavailableError(f"{peer} is lost: {error}"))

    def forget(self, client: int) -> None:
        """Forgets what a client has left."""
        start = client.to_bytes(8, "little")
        with self._lock:
            for name in [n for n in [*self._early, *self._open] if n.startswith(start)]:
                self.close(StepId(client, int.from_bytes(name[8:], "little")))

    # ------------------------------------------------------------ channels

    def made(self, make: Callable[[], Box]) -> Box:
        """Makes a mailbox, not while frames are handed out."""
        with self._lock:
            return make()

    def place(self, channel: ProcessChannel, at: bytes, box: InBox | OutBox) -> None:
        """Has frames find a mailbox."""
        if self._open.get(channel.name) is not channel:
            return
        channel.addresses.append(at)
        if isinstance(box, OutBox):
            self.out_boxes[at] = box
        else:
            (self.boxes if self._placed is None else self._placed)[at] = box

    def link(self, peer: str) -> PeerLink:
        """The link to a peer; raises UnavailableError if it is not connected."""
        found = self._links.get(peer)
        if found is None:
            raise UnavailableError(f"{peer} is not connected with {self.process}, or is lost")
        return found

    def flush(self) -> None:
        """Writes what waits to be written to any peer."""
        for link in list(self._links.values()):
            if link.unwritten:
                link.flush()

    # ------------------------------------------------------------ frames

    def take(self, link: PeerLink, address: bytes, kind: int, code: int, body: bytes) -> None:
        """Takes a frame that has come; raises DataLossError if it is broken."""
        name = address[:16]
        with self._lock:
            channel = self._open.get(name)
            if channel is not None:
                self._hand_out(channel, link, address, kind, code, body)
            elif name in self._ended or kind & ~TAGGED == READ:
                self._throw_away(link, kind, body)
            else:
                self._early.setdefault(name, []).append((link, address, kind, code, body))

    def _hand_out(
        self,
        channel: ProcessChannel,
        link: PeerLink,
        address: bytes,
        kind: int,
        code: int,
        body: bytes,
    ) -> None:
        is_tagged = bool(kind & TAGGED)
        box = channel.box_of(key_number(address), is_tagged)
        tag: Any = ()
        if is_tagged:
            tag, body = read_tag(body)
        kind &= ~TAGGED
        if isinstance(box, OutBox) and kind == READ:
            box.acknowledged(read_number(body))
        elif isinstance(box, TaggedOutBox) and kind == READ:
            box.acknowledged(read_number(body), tag)
        elif isinstance(box, InBox | TaggedInBox) and kind == LARGE:
            number, nbytes, shape = read_large(body)
            box.announced(Offer(number, code, shape, nbytes, box.arrived, tag))
        elif isinstance(box, InBox | TaggedInBox) and kind in (SCALAR, ARRAY):
            is_scalar = kind == SCALAR
            value = read_scalar(code, body, 0, len(body)) if is_scalar else read_array(code, body)
            if isinstance(box, TaggedInBox):
                box.arrive(value, tag)
            else:
                box.arrive(value)
        else:
            raise DataLossError(f"expected a frame for key {key_number(address)}, got kind {kind}")

    def _throw_away(self, link: PeerLink, kind: int, body: bytes) -> None:
        if kind & ~TAGGED == LARGE:
            if kind & TAGGED:
                _, body = read_tag(body)
            link.bulk.drop_number(read_large(body)[0])


class _Ended(Exception):
    """What is left of a step that has ended fails with this; nobody is told."""


__all__ = ["Steps"]
