"""Mailboxes whose other end is at a peer.

Two for values in order (`OutBox`, `InBox`), two for values by iterations (`TaggedOutBox`,
`TaggedInBox`). Credit: the sender counts what it has sent, and what the receiver says that it has
read. Both know from the plan after how many values that is told, half of the sender's window: so it
seldom waits where the receiver keeps up, one message acknowledges many values, and who receives
need not read anything, or be asked, for others to go on. Values by iterations are counted by frame
(see `TaggedMailbox`).
"""

from __future__ import annotations

import copy
import sys
import threading
import time
from collections import deque
from typing import Any

import numpy as np

from flowscope.cluster.transport.bulk import Offer
from flowscope.cluster.transport.encoding.frames import (
    READ,
    SMALL_BYTES,
    large_frame,
    number_frame,
    scalar_head,
    value_frame,
)
from flowscope.cluster.transport.encoding.values import encoded
from flowscope.cluster.transport.links import PeerLink
from flowscope.plan.analysis.locations import StopPoint
from flowscope.runtime.waits.rendezvous import (
    Finish,
    Mailbox,
    Tag,
    TaggedMailbox,
    Waiter,
    WaitingGate,
)

_NEVER = sys.maxsize
#: With so few values unread nothing can have been told of them yet.
_FEW = 4
#: Of so many frames it is known how much is unread: of older ones nobody sends any more, as a rule.
_MOST_FRAMES = 1024


class _Sending:
    """What a mailbox does that sends to a peer: frames, and the count of what is unread.

    Args:
        address: The mailbox's address.
        link: Leads to the peer.
    """

    __slots__ = ("_address", "_heads", "link", "nbytes", "read", "sent")

    def __init__(self, address: bytes, link: PeerLink) -> None:
        self.link = link
        self.sent = self.read = 0
        #: Bytes of the value that was sent last.
        self.nbytes = 0
        self._address = address
        self._heads: dict[type, bytes] = {}

    def send(self, value: Any, tag: Tag | None = None) -> None:
        head = self._heads.get(type(value)) if tag is None else None
        if head is not None:
            self.sent += 1
            self.link.put(head + value.tobytes())
        else:
            frame = self._frame(value, tag)
            self.sent += 1
            self.link.put(frame)

    def send_with_next(self, value: Any) -> None:
        """Sends a value with the frame that is put next."""
        frame = self._frame(value, None)
        self.sent += 1
        self.link.put_with_next(frame)

    def _frame(self, value: Any, tag: Tag | None) -> bytes:
        code, shape, data = encoded(value)
        self.nbytes = len(data)
        if len(data) > SMALL_BYTES:
            offer = self.link.bulk.offer(self._address[:16], data)
            return large_frame(self._address, code, shape, offer, len(data), tag)
        if tag is None and isinstance(value, np.generic):
            head = scalar_head(self._address, code, len(data))
            if sys.byteorder == "little":
                self._heads[type(value)] = head
            return head + bytes(data)
        return value_frame(self._address, code, shape, data, tag)


class _Counting:
    """What a mailbox does that receives from a peer: it tells how much has been read.

    Args:
        address: The mailbox's address.
        link: Leads to the peer.
        window: After how many values that is told; None for never.
    """

    __slots__ = ("_address", "_frames", "_tell_at", "_window", "link", "taken")

    def __init__(self, address: bytes, link: PeerLink, window: int | None) -> None:
        self.link = link
        self.taken = 0
        self._address = address
        self._window = self._tell_at = _NEVER if window is None else window
        #: By frame how many values were read of which nothing was told.
        self._frames: dict[Tag, int] = {}

    def count(self) -> None:
        """Notes that a value was read."""
        self.taken += 1
        if self.taken >= self._tell_at:
            self._tell_at = self.taken + self._window
            self.link.put(number_frame(self._address, READ, self.taken, None))

    def count_in(self, frame: Tag) -> None:
        """Notes that a value of a frame was read."""
        if self._window == _NEVER:
            return
        frames = self._frames
        count = frames.get(frame, 0) + 1
        if count < self._window:
            frames[frame] = count
            if len(frames) <= _MOST_FRAMES:
                return
            frame = next(iter(frames))  # it may still be on its way: its sender waits for this
            count = frames[frame]
        frames.pop(frame, None)
        self.link.put(number_frame(self._address, READ, count, frame))


class OutBox(Mailbox):
    """The sender's end of a key whose values are read at a peer, in order."""

    __slots__ = ("_sending",)

    def __init__(self, key: str, address: bytes, link: PeerLink) -> None:
        super().__init__(key)
        self._sending = _Sending(address, link)

    def send(self, value: Any) -> None:
        """Sends a value; never waits."""
        if self._error is not None:
            raise copy.copy(self._error)  # its traceback would hold values
        self._sending.send(value)

    def send_with_next(self, value: Any) -> None:
        """Sends a value in one message with that which is sent next to the peer."""
        if self._error is not None:
            raise copy.copy(self._error)
        self._sending.send_with_next(value)

    def is_ahead(self, most: int, nbytes: int = 0) -> bool:
        """Whether so many values are unread, and so many bytes, as far as is known here."""
        sending = self._sending
        count = sending.sent - sending.read
        return count >= most and (not nbytes or count * sending.nbytes >= nbytes)

    def throttle(
        self,
        most: int,
        nbytes: int,
        gate: WaitingGate,
        here: StopPoint | None = None,
        is_safe: bool = True,
    ) -> None:
        """Waits, if so much is unread, until half of that is read; see `Mailbox.throttle`."""
        sending = self._sending
        link = sending.link
        if sending.sent - sending.read > _FEW:
            link.poll()  # what is told of reading has often come
        while self.is_ahead(most, nbytes) and self._error is None:
            self._low = most // 2  # the receiver tells before less than that is left
            self.since_ahead = time.monotonic()
            try:
                link.flush_all()
                if gate.raised or not link.read_until(self._is_read, gate):
                    waiter = self._writer = Waiter()
                    with link.awaited():
                        self._wait(waiter, self._is_read, gate, here, is_safe)
            finally:
                self._writer, self.since_ahead = None, 0.0
        if self._error is not None:
            raise copy.copy(self._error)  # its traceback would hold values

    def acknowledged(self, count: int) -> None:
        """Is told how many values have been read."""
        self._sending.read = max(self._sending.read, count)
        writer = self._writer
        if writer is not None and self._is_read():
            writer.wake()

    def _is_read(self) -> bool:
        sending = self._sending
        return sending.sent - sending.read <= self._low or self._error is not None


class InBox(Mailbox):
    """The receiver's end of a key whose values a peer sends, in order."""

    __slots__ = ("_counting", "_guard", "_large", "_later")

    def __init__(self, key: str, address: bytes, link: PeerLink, window: int | None) -> None:
        super().__init__(key)
        self._counting = _Counting(address, link, window)
        self._guard = threading.Lock()
        #: The large values among `values`, by identity: their bytes.
        self._large: dict[int, int] = {}
        #: What has come after a large value that is not there yet, and that value.
        self._later: deque[Any] = deque()

    def receive(
        self, gate: WaitingGate, here: StopPoint | None = None, is_safe: bool = True
    ) -> Any:
        """Returns the next value; see `Mailbox.receive`."""
        values = self.values
        while True:
            try:
                value = values.popleft()
                break
            except IndexError:
                self._wait_for_value(gate, here, is_safe)
        if self._large and (nbytes := self._large.pop(id(value), 0)):
            self._counting.link.bulk.taken(nbytes)
        self._counting.count()
        return value

    def arrive(self, value: Any) -> None:
        """Takes a value that has come."""
        with self._guard:
            if self._error is not None:
                return
            (self._later if self._later else self.values).append(value)
        self._wake()

    def announced(self, offer: Offer) -> None:
        """Takes a large value that is to be asked for."""
        with self._guard:
            is_wanted = self._error is None
            if is_wanted:
                self._later.append(offer)
        bulk = self._counting.link.bulk
        if is_wanted:
            bulk.announced(offer)
            self._wake()  # whoever reads for this value waits otherwise
        else:
            bulk.drop(offer)

    def arrived(self, offer: Offer) -> None:
        """Is told that a large value is there."""
        with self._guard:
            later = self._later
            while later and (not isinstance(later[0], Offer) or later[0].is_there):
                value = later.popleft()
                if isinstance(value, Offer):
                    self._large[id(value.value)] = value.nbytes
                    value = value.value
                self.values.append(value)
        self._wake()

    def fail(self, error: BaseException) -> None:
        """Fails who waits and who comes later; lets go of what was not read."""
        with self._guard:
            self._error = error
            later = list(self._later)
            self._later.clear()
            read, self._large = sum(self._large.values()), {}
        bulk = self._counting.link.bulk
        bulk.taken(read)
        for offer in later:
            if isinstance(offer, Offer):
                bulk.drop(offer)
        super().fail(error)

    def _wake(self) -> None:
        reader = self._reader
        if reader is not None:
            reader.wake()

    def _wait_for_value(self, gate: WaitingGate, here: StopPoint | None, is_safe: bool) -> None:
        if self._error is not None:
            raise copy.copy(self._error)  # its traceback would hold values
        link = self._counting.link
        self.since = time.monotonic()
        try:
            link.flush_all()
            if not self._later and not gate.raised and link.read_until(self._is_told, gate):
                return
            self._wait_elsewhere(link, gate, here, is_safe)
        finally:
            self._reader, self.since = None, 0.0

    def _wait_elsewhere(
        self, link: PeerLink, gate: WaitingGate, here: StopPoint | None, is_safe: bool
    ) -> None:
        waiter = self._reader = Waiter()
        with self._guard:
            offer = self._later[0] if self._later else None
        if offer is not None:
            link.bulk.ask(offer)
            self._wait(waiter, self._has_come, gate, here, is_safe)
            return
        with link.awaited():
            self._wait(waiter, self._is_told, gate, here, is_safe)

    def is_on_way(self) -> bool:
        """Whether the next value has been announced and is not there yet."""
        return bool(self._later)

    def _is_told(self) -> bool:
        """Whether a value is there, or announced."""
        return bool(self.values) or bool(self._later) or self._error is not None


class TaggedOutBox(TaggedMailbox):
    """The sender's end of a key whose values are read at a peer, by iterations.

    It counts as unread what it has not been told to be read.
    """

    def __init__(self, key: str, address: bytes, link: PeerLink) -> None:
        super().__init__(key)
        self._sending = _Sending(address, link)

    def send(self, value: Any, tag: Tag) -> None:
        """Sends the value of an iteration; never waits."""
        frame = tag[:-1]
        with self._lock:
            if self._error is not None:
                raise copy.copy(self._error)  # its traceback would hold values
            self._sending.send(value, tag)
            self._unread[frame] = self._unread.get(frame, 0) + 1
            oldest = next(iter(self._unread)) if len(self._unread) > _MOST_FRAMES else None
        if oldest is not None:
            self.acknowledged(self.unread(oldest), oldest)

    def when_below(self, most: int, frame: Tag, tell: Any) -> bool:
        """Whether fewer values of a frame than `most` are unread; else `tell` is called then."""
        link = self._sending.link

        def told() -> None:
            link.end_wait()
            tell()

        if self.unread(frame) >= most:
            link.poll()
        if super().when_below(most, frame, told):
            return True
        link.begin_wait()
        link.flush_all()
        return False

    def acknowledged(self, count: int, frame: Tag) -> None:
        """Is told how many more values of a frame have been read."""
        with self._lock:
            self._note_read(frame, count)
        self._tell_producers(frame)


class TaggedInBox(TaggedMailbox):
    """The receiver's end of a key whose values a peer sends, by iterations."""

    def __init__(self, key: str, address: bytes, link: PeerLink, window: int | None) -> None:
        super().__init__(key)
        self._counting = _Counting(address, link, window)
        self._offers: set[Offer] = set()
        #: The bytes of large values that have come and that nobody has received, by iteration.
        self._large: dict[Tag, int] = {}

    def receive(self, tag: Tag, finish: Finish) -> Any:
        """Returns the value of an iteration in a tuple; None if `finish` will be told it."""
        link = self._counting.link

        def finished(value: Any) -> None:
            link.end_wait()
            if not isinstance(value, BaseException):
                self._note_taken(tag)
            finish(value)

        link.begin_wait()
        found = super().receive(tag, finished)
        if found is None:
            with self._lock:
                offer = next((o for o in self._offers if o.tag == tag), None)
            if offer is not None:
                link.bulk.ask(offer)
            link.flush_all()
            return None
        link.end_wait()
        self._note_taken(tag)
        return found

    def _note_taken(self, tag: Tag) -> None:
        """Notes that the value of an iteration was received."""
        if nbytes := self._large.pop(tag, 0):
            self._counting.link.bulk.taken(nbytes)
        self._count(tag)

    def forget(self, tag: Tag) -> None:
        """Gives up to wait for the value of an iteration."""
        with self._lock:
            found = self._waiting.pop(tag, None)
        if found is not None:
            self._counting.link.end_wait()

    def arrive(self, value: Any, tag: Tag) -> None:
        """Takes a value that has come; of a step that has failed, none."""
        self._put(value, tag)

    def announced(self, offer: Offer) -> None:
        """Takes a large value: it is asked for at once where somebody waits for it."""
        bulk = self._counting.link.bulk
        with self._lock:
            is_wanted, is_awaited = self._error is None, offer.tag in self._waiting
            if is_wanted:
                self._offers.add(offer)
        if not is_wanted:
            bulk.drop(offer)
        elif is_awaited:
            bulk.ask(offer)
        else:
            bulk.announced(offer)

    def arrived(self, offer: Offer) -> None:
        """Is told that a large value is there."""
        with self._lock:
            is_wanted = offer in self._offers
            self._offers.discard(offer)
            if is_wanted:
                self._large[offer.tag] = offer.nbytes
        if is_wanted:
            self.arrive(offer.value, offer.tag)

    def fail(self, error: BaseException) -> None:
        """Fails who waits and who comes later; lets go of what was not read."""
        super().fail(error)  # nothing is taken from now on
        with self._lock:
            offers, self._offers = self._offers, set()
            read, self._large = sum(self._large.values()), {}
        self._counting.link.bulk.taken(read)
        for offer in offers:
            self._counting.link.bulk.drop(offer)

    def is_on_way(self, tag: Tag) -> bool:
        """Whether the value of an iteration has been announced and is not there yet."""
        return any(offer.tag == tag for offer in self._offers)

    def _count(self, tag: Tag) -> None:
        with self._lock:
            self._counting.count_in(tag[:-1])


__all__ = ["InBox", "OutBox", "TaggedInBox", "TaggedOutBox"]
