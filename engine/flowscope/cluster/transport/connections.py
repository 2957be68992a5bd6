"""One socket: what is written to it is never waited for, and who reads waits briefly.

What the kernel does not take at once a thread writes (`Sender`) as soon as it does. Bytes are
sealed and opened in memory, by TLS or with message authentication codes: sockets themselves are
always plain ones, so that two threads may read and write at once, and no write waits for a read.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable

from flowscope.cluster.transport.encoding.macs import Seal
from flowscope.cluster.transport.encoding.values import Data
from flowscope.cluster.transport.poller import Poller
from flowscope.cluster.transport.sender import Sender

#: As many bytes and parts are given to the kernel at once.
_WRITE_BYTES = 1 << 20
_WRITE_PARTS = 256
_JOINED_BYTES = 1 << 16
#: So long the kernel waits to take more.
_SEND_S = 0.002


def _timeval(seconds: float) -> bytes:
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))


class Connection:
    """One socket after its handshake.

    Args:
        sock: The socket.
        seal: What seals and opens its bytes.
        poller: Reads where `want_read` was called.
        sender: Writes what the kernel does not take at once.

    Attributes:
        error: What it has ended with; None while it lives.
        on_ready: Is called by the poller when there is something to read.
        on_failed: Is told the error with which the connection has ended; at most once.
        sent_bytes, received_bytes, writes: How many there were.
        is_direct: Whether the socket leads to the peer, and is no half of a pair in this process.
    """

    def __init__(self, sock: socket.socket, seal: Seal, poller: Poller, sender: Sender) -> None:
        self._socket = sock
        self.is_direct = sock.family != socket.AF_UNIX
        self._seal = seal
        self._poller = poller
        self._sender = sender
        self.on_ready: Callable[[], None] = lambda: None
        self.on_failed: Callable[[Exception], None] = lambda error: None
        self.sent_bytes = self.received_bytes = self.writes = 0
        self.error: Exception | None = None
        self._queue: deque[Data] = deque()
        #: What the kernel has not taken of what was given to it last.
        self._rest: list[Data] = []
        self._writing = threading.Lock()
        #: Whether the sender goes on with it.
        self._is_waiting = False
        self._failing = threading.Lock()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(_SEND_S))

    def fileno(self) -> int:
        """Returns the socket's descriptor; -1 after it has been closed."""
        return self._socket.fileno()

    def limit_reads(self, seconds: float) -> None:
        """Has each read wait so long at most; 0 for any time."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(seconds))

    def write(self, *parts: Data) -> None:
        """Writes bytes, in one piece between those of others; never waits."""
        if len(parts) == 1:
            self.write_one(parts[0])
            return
        self._queue.extend(parts)
        self.flush()

    def write_one(self, data: Data) -> None:
        """Writes as `write` does; the shortest way where nothing else is to be written."""
        is_much = len(data) > _WRITE_BYTES
        if is_much or self._queue or self._rest or not self._writing.acquire(False):
            self._queue.append(data)
            self.flush()
            return
        try:
            if self.error is None:
                self._send(data)
        except OSError as e:
            self.fail(e)
        finally:
            self._writing.release()
        if self._queue:
            self.flush()

    def _send(self, data: Data) -> None:
        sealed = self._seal.seal(data)
        if len(sealed) > 1:
            self._rest = sealed
            is_done = self._write_some(socket.MSG_DONTWAIT)
        else:
            data = sealed[0]
            try:
                sent = self._socket.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                sent = 0
            self.sent_bytes += sent
            self.writes += 1
            is_done = sent == len(data)
            if not is_done:
                self._rest = [memoryview(data)[sent:]]
        if not is_done:
            self._is_waiting = True
            self._sender.add(self)

    def flush(self) -> None:
        """Writes what the kernel takes at once; the sender writes the rest."""
        while (self._queue or self._rest) and not self._is_waiting and self._writing.acquire(False):
            try:
                if self.error is not None:
                    return
                if not self._write_some(socket.MSG_DONTWAIT):
                    self._is_waiting = True
                    self._sender.add(self)
            except OSError as e:
                self.fail(e)
                return
            finally:
                self._writing.release()

    def write_on(self) -> bool:
        """Writes for a short time; returns whether there is more to write."""
        with self._writing:
            try:
                if self.error is None and (self._queue or self._rest):
                    self._write_some(0)
            except OSError as e:
                self.fail(e)
            is_more = self.error is None and bool(self._queue or self._rest)
            self._is_waiting = is_more
        if not is_more:
            self.flush()  # of what has come since
        return is_more

    @property
    def unwritten_bytes(self) -> int:
        """How many bytes the kernel has not taken."""
        return sum(map(len, [*self._queue, *self._rest]))

    def _write_some(self, flags: int) -> bool:
        """Writes once; returns whether the kernel took all of it."""
        rest = self._rest or self._batch()
        try:
            if len(rest) == 1:
                sent = self._socket.send(rest[0], flags)
            else:
                sent = self._socket.sendmsg(rest, (), flags)
        except BlockingIOError:
            sent = 0
        self.sent_bytes += sent
        self.writes += 1
        while rest and sent >= len(rest[0]):
            sent -= len(rest.pop(0))
        if sent:
            rest[0] = memoryview(rest[0])[sent:]
        self._rest = rest
        return not rest

    def _batch(self) -> list[Data]:
        """Takes from the queue what is written at once: small parts in one piece."""
        queue, batch, count = self._queue, list[Data](), 0
        while queue and count < _WRITE_BYTES and len(batch) < _WRITE_PARTS:
            part = queue.popleft()
            if count + len(part) > _WRITE_BYTES:
                view, room = memoryview(part), _WRITE_BYTES - count
                part = view[:room]
                queue.appendleft(view[room:])
            batch.append(part)
            count += len(part)
        if count < _JOINED_BYTES and len(batch) > 1:
            batch = [b"".join(batch)]
        return [sealed for part in batch for sealed in self._seal.seal(part)]

    def read(self, flags: int = 0) -> bytes:
        """Returns bytes that have come; none if none came in time.

        Raises:
            OSError: if the connection has ended.
            DataLossError: if the bytes are not those that the peer has sent.
        """
        seal = self._seal
        while not (seal.has_more and (data := seal.read())):
            if not self._take(flags):
                return b""
        return data

    def read_into(self, view: memoryview, flags: int = 0) -> int:
        """Reads into a buffer; returns how many bytes came. See `read`."""
        seal = self._seal
        while not (seal.has_more and (count := seal.read_into(view))):
            if not self._take(flags, view):
                return 0
        return count

    def _take(self, flags: int, view: memoryview | None = None) -> bool:
        """Has the seal take bytes from the socket; returns whether any came in time."""
        try:
            count = self._seal.take(self._socket, flags, view)
        except BlockingIOError:
            return False
        if not count:
            raise ConnectionResetError("the other end has closed the connection")
        self.received_bytes += count
        return True

    @property
    def is_cut(self) -> bool:
        """Whether the connection has ended at the other end, and all that came was read.

        Who reads learns it from `read`; this is for connections that nobody reads at the moment.
        """
        if self.error is not None:
            return False
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return self.error is None  # else it was closed here meanwhile

    def want_read(self) -> None:
        """Has the poller call `on_ready` once when there is something to read."""
        self._poller.want(self, self._seal.has_more)

    def ready(self) -> None:
        """Is told by the poller that there is something to read."""
        self.on_ready()

    def fail(self, error: Exception) -> None:
        """Ends the connection; the first error counts, and is told to `on_failed`."""
        if self._ended(error):
            self.on_failed(error)

    def close(self) -> None:
        """Ends the connection without telling anybody at this end."""
        self._ended(ConnectionAbortedError("the connection was closed at this end"))

    def _ended(self, error: Exception) -> bool:
        with self._failing:
            if self.error is not None:
                return False
            self.error = error
        with contextlib.suppress(OSError):  # it was not connected any more
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._queue.clear()
        self._rest = []
        return True


__all__ = ["Connection"]
