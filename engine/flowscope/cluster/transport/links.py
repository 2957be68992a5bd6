"""The small connection with a peer: who writes when, and who reads.

*Writing.* A frame that comes after a rest is written at once, with those that were put to go with
it: several values of straight code are one message. Frames that follow soon are written together:
when some kB are there, when a thread is about to wait, when the step ends, or by the flusher half a
millisecond later.

*Reading.* The thread that waits for a value reads the connection itself, for 5 ms, and hands out
what comes for others too; one thread reads at a time. Whoever waits longer, or while another one
reads, waits at the gate, and the poller reads.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from flowscope.cluster.transport.connections import Connection
from flowscope.cluster.transport.encoding.frames import (
    ADDRESS,
    HEAD,
    MOST_BYTES,
    READ,
    SCALAR,
    read_number,
    read_scalar,
)
from flowscope.cluster.transport.runs import BRIEF_S
from flowscope.cluster.transport.spinning import Spin
from flowscope.errors import DataLossError, OpError
from flowscope.runtime.waits.rendezvous import WaitingGate

if TYPE_CHECKING:
    from flowscope.cluster.transport.bulk import Bulk
    from flowscope.cluster.transport.flusher import Flusher

#: A frame is written at once if the last one was written so long ago.
_REST_S = 0.0002
#: With so many frames, those that wait are written.
_MANY_FRAMES = 128


class Arrivals(Protocol):
    """Where frames go that come."""

    #: Mailboxes by address, those of open steps that have been used.
    boxes: dict[bytes, Any]
    #: Mailboxes that send, of the same steps.
    out_boxes: dict[bytes, Any]

    def flush(self) -> None:
        """Writes what waits to be written to any peer."""

    def take(self, link: PeerLink, address: bytes, kind: int, code: int, body: bytes) -> None:
        """Takes a frame; raises DataLossError if it is broken."""


class PeerLink:
    """The small connection with one peer.

    Args:
        peer: The peer's name.
        connection: The connection.
        bulk: Where large values come from and go to.
        arrivals: Takes what comes.
        flusher: Writes what has waited.

    Attributes:
        unwritten: Frames that wait to be written.
        sent, received, flushes: How many frames and writes there were.
    """

    def __init__(
        self,
        peer: str,
        connection: Connection,
        bulk: Bulk,
        arrivals: Arrivals,
        flusher: Flusher,
    ) -> None:
        self.peer = peer
        self.connection = connection
        self.bulk = bulk
        self.unwritten: list[bytes] = []
        self.sent = self.received = 0
        self._arrivals = arrivals
        self._flusher = flusher
        self._written_at = 0.0
        self._joining = threading.Lock()
        self._reading = threading.Lock()
        self._counting = threading.Lock()
        self._waiting = 0
        self._rest = b""
        self._spin = Spin()
        connection.limit_reads(BRIEF_S)
        connection.on_ready = self._on_ready

    # ------------------------------------------------------------ writing

    def put(self, frame: bytes) -> None:
        """Sends a frame, at once or soon; never waits."""
        unwritten = self.unwritten
        unwritten.append(frame)
        if len(unwritten) > _MANY_FRAMES or time.perf_counter() - self._written_at > _REST_S:
            self.flush()
        elif not self._flusher.is_armed:
            self._flusher.arm()

    def put_with_next(self, frame: bytes) -> None:
        """Sends a frame with the next one, which this thread puts before it waits for anything."""
        self.unwritten.append(frame)

    def flush(self) -> None:
        """Writes the frames that wait."""
        unwritten = self.unwritten
        while unwritten and self._joining.acquire(False):
            try:
                count = len(unwritten)
                data = b"".join(unwritten[:count]) if count > 1 else unwritten[0]
                self.connection.write_one(data)
                del unwritten[:count]
                self.sent += count
                self._written_at = time.perf_counter()
            finally:
                self._joining.release()

    def flush_all(self) -> None:
        """Writes what waits to be written to any peer: a thread is about to wait."""
        self._arrivals.flush()

    @property
    def has_waited(self) -> bool:
        """Whether frames have waited to be written for some time."""
        return bool(self.unwritten) and time.perf_counter() - self._written_at > _REST_S

    # ------------------------------------------------------------ reading

    def read_until(self, is_done: Callable[[], bool], gate: WaitingGate) -> bool:
        """Reads until something is so, or for 5 ms; not where another thread reads.

        Returns:
            Whether it is so.
        """
        if not self._reading.acquire(False):
            return False
        try:
            while not is_done():
                if gate.raised or not self._read():
                    return is_done()
                if self.unwritten:
                    self.flush()
            return True
        except (OSError, OpError) as e:
            self.connection.fail(e)
            return is_done()
        finally:
            self._leave()

    def poll(self) -> None:
        """Takes what has come; does not wait."""
        if self._reading.acquire(False):
            try:
                while self._read(socket.MSG_DONTWAIT):
                    pass
            except (OSError, OpError) as e:
                self.connection.fail(e)
            finally:
                self._leave()

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Has the poller read as long as the block runs: somebody waits elsewhere."""
        self.begin_wait()
        try:
            yield
        finally:
            self.end_wait()

    def begin_wait(self) -> None:
        """Has the poller read until `end_wait`; may be nested."""
        with self._counting:
            self._waiting += 1
        self.connection.want_read()

    def end_wait(self) -> None:
        """Ends what `begin_wait` has begun."""
        with self._counting:
            self._waiting -= 1

    def _leave(self) -> None:
        self._reading.release()
        if self._waiting and self.connection.error is None:
            self.connection.want_read()

    def _on_ready(self) -> None:
        if self._waiting:
            self.poll()
            if self.unwritten:
                self.flush()

    def _read(self, flags: int = 0) -> bool:
        connection = self.connection
        data = connection.read(flags) if flags else self._spin.read(connection)
        if not data:
            return False
        if self._rest:
            data = self._rest + data
        self._rest = b""
        end = len(data)
        start = self._hand_out(data, end)
        self._rest = data[start:] if start < end else b""
        return True

    def _hand_out(self, data: bytes, end: int) -> int:
        """Hands out the frames that are complete; returns where the next one begins."""
        boxes, out_boxes = self._arrivals.boxes, self._arrivals.out_boxes
        head, size_of_head, count, start = HEAD.unpack_from, HEAD.size, 0, 0
        while end - start >= size_of_head:
            size, _, _, kind, code = head(data, start)
            stop = start + size
            if stop > end or not size_of_head <= size <= MOST_BYTES:
                if not size_of_head <= size <= MOST_BYTES:
                    raise DataLossError(f"expected a frame, got one of {size} bytes")
                break
            address = data[start + ADDRESS.start : start + ADDRESS.stop]
            body = start + size_of_head
            if kind == SCALAR and (box := boxes.get(address)) is not None:
                box.arrive(read_scalar(code, data, body, stop))
            elif kind == READ and (box := out_boxes.get(address)) is not None:
                box.acknowledged(read_number(data[body:stop]))
            else:
                self._arrivals.take(self, address, kind, code, data[body:stop])
            start = stop
            count += 1
        self.received += count
        return start


__all__ = ["Arrivals", "PeerLink"]
