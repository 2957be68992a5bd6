"""Large arrays between two peers: announced in the small stream, sent when they are asked for.

    kind (u8), number of the offer (u64), bytes (u64), then the bytes of the array (DATA)

A step that is aborted withdraws what it has offered: whoever asks for it hears that it is GONE.
The receiver asks at once while what it has asked for and not read is below a bound, else when that
has been read or somebody receives the value. The poller of bulk connections sends from the array,
and reads into the new one, without copies, while kernels run.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.encoding.values import Data, Shape, decoded, empty, is_string
from flowscope.errors import DataLossError, OpError
from flowscope.graph.values.dtypes import uint8
from flowscope.runtime.waits.rendezvous import Tag

_HEAD = struct.Struct("<BQQ")
_ASK, _DROP, _DATA, _GONE = range(4)
#: As many bytes are asked for before somebody waits for them, or one value: the next one is on its
#: way while kernels work on this one, and the receiver's memory does not hold all that will come.
_AHEAD_BYTES = 1 << 25
_SKIPPED_BYTES = 1 << 20
#: So long a read waits in the midst of an array.
_BRIEF_S = 0.001


class Offer:
    """A large value that a peer has announced.

    Args:
        number: The sender's number for it.
        code, shape, nbytes: See `flowscope.cluster.transport.encoding.values`.
        tell: Is called on the poller's thread when the value is there.
        tag: The numbers of the iterations around; none where values come in order.

    Attributes:
        is_asked: Whether it has been asked for.
        is_there: Whether `value` is.
    """

    def __init__(
        self,
        number: int,
        code: int,
        shape: Shape,
        nbytes: int,
        tell: Callable[[Offer], None],
        tag: Tag = (),
    ) -> None:
        self.number = number
        self.code = code
        self.shape = shape
        self.nbytes = nbytes
        self.tell = tell
        self.is_asked = self.is_there = False
        self.tag = tag
        self.value: Any = None

    def buffer(self) -> memoryview:
        """Makes room for the value; returns where its bytes go."""
        if is_string(self.code):
            self.value, view = empty(int(uint8), (self.nbytes,), self.nbytes)
        else:
            self.value, view = empty(self.code, self.shape, self.nbytes)
        return view

    def fill(self) -> None:
        """Notes that all bytes have come."""
        if is_string(self.code):
            self.value = decoded(self.code, self.shape, self.value)
        self.is_there = True
        self.tell(self)


class Bulk:
    """The bulk connection with one peer.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._lock = threading.Lock()
        self._next = 0
        #: What the peer may ask for: the step's name and the bytes.
        self._offered: dict[int, tuple[bytes, Data]] = {}
        #: What the peer was asked for.
        self._asked: dict[int, Offer] = {}
        self._unread_bytes = 0
        #: What was announced and may not have been asked for yet, in this order.
        self._later: deque[Offer] = deque()
        self._head = b""
        #: What was asked for, and nobody wants any more.
        self._dropped: dict[int, int] = {}
        self._filling: tuple[Offer, memoryview] | None = None
        #: So many bytes that come next are not wanted.
        self._skipped = 0
        connection.on_ready = self._on_ready
        connection.limit_reads(_BRIEF_S)

    def start(self) -> None:
        """Begins to read."""
        self.connection.want_read()

    @property
    def offered(self) -> int:
        """How many arrays wait to be asked for."""
        return len(self._offered)

    @property
    def asked(self) -> int:
        """How many arrays are on their way here."""
        return len(self._asked)

    # ------------------------------------------------------------ this end sends

    def offer(self, step: bytes, data: Data) -> int:
        """Keeps the bytes of an array until the peer asks for it; returns its number."""
        with self._lock:
            number = self._next
            self._next += 1
            self._offered[number] = step, data
        return number

    def withdraw(self, step: bytes) -> None:
        """Forgets what was offered in a step."""
        with self._lock:
            for number in [n for n, (of, _) in self._offered.items() if of == step]:
                del self._offered[number]

    # ------------------------------------------------------------ this end receives

    def announced(self, offer: Offer) -> None:
        """Asks for a value that the peer has announced, if that may be done ahead."""
        with self._lock:
            self._later.append(offer)
        self._ask_ahead()

    def _ask_ahead(self) -> None:
        """Asks for what was announced, as far as that may be done ahead."""
        while True:
            with self._lock:
                while self._later and self._later[0].is_asked:
                    self._later.popleft()
                if not self._later:
                    return
                offer, unread = self._later[0], self._unread_bytes
                if unread and unread + offer.nbytes > _AHEAD_BYTES:
                    return
            self.ask(offer)

    def ask(self, offer: Offer) -> None:
        """Asks for a value, unless that has been done."""
        with self._lock:
            if offer.is_asked:
                return
            offer.is_asked = True
            self._asked[offer.number] = offer
            self._unread_bytes += offer.nbytes
        self.connection.write(_HEAD.pack(_ASK, offer.number, offer.nbytes))

    def taken(self, nbytes: int) -> None:
        """Notes that a value was read that had been asked for."""
        with self._lock:
            self._unread_bytes -= nbytes
        self._ask_ahead()

    def drop(self, offer: Offer) -> None:
        """Gives up a value: nobody will read it."""
        with self._lock:
            was_asked = offer.is_asked
            offer.is_asked = True
            if was_asked:
                self._unread_bytes -= offer.nbytes
                if self._asked.pop(offer.number, None) is not None:
                    self._dropped[offer.number] = offer.nbytes
        if not was_asked:
            self.drop_number(offer.number)
        else:
            self._ask_ahead()

    def drop_number(self, number: int) -> None:
        """Tells the peer that nobody will ask for what it has announced."""
        self.connection.write(_HEAD.pack(_DROP, number, 0))

    # ------------------------------------------------------------ reading

    def _on_ready(self) -> None:
        try:
            while self._read():
                pass
        except (OSError, OpError) as e:
            self._filling = None
            self.connection.fail(e)
            return
        self.connection.want_read()

    def _read(self) -> bool:
        if self._filling is not None:
            offer, view = self._filling
            count = self.connection.read_into(view)
            if count < len(view):
                self._filling = offer, view[count:]
                return bool(count)
            self._filling = None
            offer.fill()
            return True
        return self._skip() if self._skipped else self._read_head()

    def _skip(self) -> bool:
        room = bytearray(min(self._skipped, _SKIPPED_BYTES))
        count = self.connection.read_into(memoryview(room), socket.MSG_DONTWAIT)
        self._skipped -= count
        return bool(count)

    def _read_head(self) -> bool:
        missing = bytearray(_HEAD.size - len(self._head))
        count = self.connection.read_into(memoryview(missing), socket.MSG_DONTWAIT)
        self._head += missing[:count]
        if len(self._head) == _HEAD.size:
            kind, number, nbytes = _HEAD.unpack(self._head)
            self._head = b""
            self._take(kind, number, nbytes)
        return bool(count)

    def _take(self, kind: int, number: int, nbytes: int) -> None:
        if kind == _DATA:
            self._begin(number, nbytes)
            return
        if kind == _GONE:
            with self._lock:
                self._asked.pop(number, None)
                self._dropped.pop(number, None)
            return
        if kind not in (_ASK, _DROP):
            raise DataLossError(f"expected a bulk message, got one of kind {kind}")
        with self._lock:
            _, data = self._offered.pop(number, (b"", b""))
        if kind == _ASK:
            head = _HEAD.pack(_DATA if len(data) else _GONE, number, len(data))
            self.connection.write(*[head, data][: 1 + bool(len(data))])

    def _begin(self, number: int, nbytes: int) -> None:
        with self._lock:
            offer, dropped = self._asked.pop(number, None), self._dropped.pop(number, None)
        expected = dropped if offer is None else offer.nbytes
        if nbytes != expected:
            raise DataLossError(f"expected {expected} bytes of an array, got {nbytes}")
        if offer is None:
            self._skipped = nbytes
        else:
            self._filling = offer, offer.buffer()


__all__ = ["Bulk", "Offer"]
