"""Message authentication: who changes, repeats, reorders or leaves out bytes of peers is found out.

Where there is no TLS, all that goes over a connection after the handshake goes in records:

    bytes of the payload (u32), tag (16 bytes), payload

A tag is keyed by the connection's session key and by the direction, and covers the record's number,
its size and its payload. Keys come from the handshake: from the secret and the random numbers of
both ends. Small records have keyed BLAKE2b; large ones Poly1305 with a key for each record, where
both ends can compute it, for nothing of `hashlib` keeps up with a socket (decision 60).

Nothing is secret: whoever listens on the network reads the payloads. That is what TLS is for.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import struct
from typing import Protocol

from flowscope.cluster.transport.encoding.poly1305 import KEY_BYTES, TAG_BYTES, Poly1305
from flowscope.cluster.transport.encoding.values import Data
from flowscope.errors import DataLossError

#: No payload is larger.
RECORD_BYTES = 1 << 19
#: As large a payload is tagged by Poly1305: both cost the same there.
_LARGE_BYTES = 1 << 12
_READ_BYTES = 1 << 18
_SIZE = struct.Struct("<I")
_COVERED = struct.Struct("<QI")
_HEAD_BYTES = _SIZE.size + TAG_BYTES
_size = _SIZE.unpack_from
_cover = _COVERED.pack


class Seal(Protocol):
    """What bytes go through between a connection and its socket."""

    @property
    def has_more(self) -> bool:
        """Whether something was taken from the socket that may be read."""

    def seal(self, data: Data) -> list[Data]:
        """The bytes to write for some data."""

    def take(self, sock: socket.socket, flags: int = 0, view: memoryview | None = None) -> int:
        """Takes bytes from a socket; returns how many, 0 at its end.

        Args:
            sock: The socket.
            flags: How it is read.
            view: Where bytes may be put at once, if they are read next by `read_into` there.

        Raises:
            OSError: as the socket does.
            DataLossError: if they are not those that the peer has sent.
        """

    def feed(self, data: bytes) -> None:
        """Takes bytes that were read; see `take`."""

    def read(self, size: int | None = None) -> bytes:
        """Returns bytes of the peer that were taken: so many at most, None for all of them."""

    def read_into(self, view: memoryview) -> int:
        """Reads into a buffer; returns how many bytes."""


class _Tags:
    """The tags of one direction of a connection, in the order of its records.

    Args:
        key: The session key of the direction.
        is_fast: Whether large payloads are tagged by Poly1305.
    """

    __slots__ = ("_base", "_key", "_number", "_poly")

    def __init__(self, key: bytes, is_fast: bool) -> None:
        self._base = hashlib.blake2b(key=key, digest_size=TAG_BYTES, person=b"small")
        self._key = hashlib.blake2b(key=key, digest_size=KEY_BYTES, person=b"large")
        self._poly = Poly1305() if is_fast else None
        self._number = 0

    def next(self, data: Data) -> bytes:
        """Returns the tag of the next record."""
        covered = _cover(self._number, len(data))
        self._number += 1
        if self._poly is not None and len(data) >= _LARGE_BYTES:
            key = self._key.copy()
            key.update(covered)
            return self._poly.tag(key.digest(), data)
        tag = self._base.copy()
        tag.update(covered)
        tag.update(data)
        return tag.digest()


class Macs:
    """One end of a connection whose bytes are authenticated.

    One thread at a time may write, and one read; they do not disturb each other.

    Args:
        sends: The session key of what this end sends.
        takes: The session key of what the peer sends.
        is_fast: Whether both ends can compute Poly1305.

    Attributes:
        has_more: Whether payloads have come that were not read.
    """

    def __init__(self, sends: bytes, takes: bytes, is_fast: bool) -> None:
        self._sending = _Tags(sends, is_fast)
        self._taking = _Tags(takes, is_fast)
        self.has_more = False
        #: Payloads that were found right, and have not been read.
        self._open: Data = b""
        #: The beginning of a record.
        self._rest = b""
        #: A large record that comes in pieces, its bytes so far, and of how many: 0 for none.
        self._record = memoryview(b"")
        self._got = self._total = 0
        #: How many bytes `take` has put in their place: `read_into` is asked next.
        self._placed = 0

    def seal(self, data: Data) -> list[Data]:
        """Returns the records of some bytes."""
        size = len(data)
        if size < _LARGE_BYTES:
            return [b"".join((_SIZE.pack(size), self._sending.next(data), data))]
        view, parts = memoryview(data), list[Data]()
        for start in range(0, size, RECORD_BYTES):
            payload = view[start : start + RECORD_BYTES]
            parts += (_SIZE.pack(len(payload)) + self._sending.next(payload), payload)
        return parts

    def take(self, sock: socket.socket, flags: int = 0, view: memoryview | None = None) -> int:
        """Takes bytes from a socket; see `Seal`. What came before must have been read."""
        if len(self._rest) == _HEAD_BYTES:
            self._split(self._rest)  # it came with a large record
        if self._total:
            is_whole = view is not None and self._got == _HEAD_BYTES
            if view is not None and is_whole and self._total - _HEAD_BYTES <= len(view):
                return self._take_in_place(sock, flags, view[: self._total - _HEAD_BYTES])
            # With the head of the next record: large ones come one after the other.
            count = sock.recv_into(self._record[self._got : self._total + _HEAD_BYTES], 0, flags)
            self._got += count
            if self._got >= self._total:
                self._end_record()
            return count
        missing = _HEAD_BYTES - len(self._rest)
        # Where much is wanted the head comes alone: it tells what is read to its place next.
        is_much = view is not None and len(view) >= _LARGE_BYTES and missing > 0
        data = sock.recv(missing if is_much else _READ_BYTES, flags)
        count = len(data)
        if not self._rest and count >= _HEAD_BYTES and count == _HEAD_BYTES + _size(data)[0]:
            payload = data[_HEAD_BYTES:]  # most small messages come alone
            if not hmac.compare_digest(data[_SIZE.size : _HEAD_BYTES], self._taking.next(payload)):
                raise _changed()
            self._open, self.has_more = payload, True
        elif count:
            self._split(self._rest + data if self._rest else data)
        return count

    def _take_in_place(self, sock: socket.socket, flags: int, payload: memoryview) -> int:
        """Takes a large record into the place where its payload is wanted."""
        record, size, got = self._record, len(payload), 0
        head, next_head = record[_SIZE.size : _HEAD_BYTES], record[_HEAD_BYTES : 2 * _HEAD_BYTES]
        while got < size:
            try:
                count, _, _, _ = sock.recvmsg_into([payload[got:], next_head], 0, flags)
            except (BlockingIOError, TimeoutError):
                if not got:
                    raise
                count = 0
            got += count
            if not count:  # it goes on when more has come, or with the end of the connection
                record[_HEAD_BYTES : _HEAD_BYTES + got] = payload[:got]
                self._got += got
                return got
        self._check(head, payload)
        self._total, self._rest = 0, bytes(next_head[: got - size])
        self._placed, self.has_more = size, True
        return got

    def feed(self, data: bytes) -> None:
        """Takes bytes that were read."""
        if self._total:
            data = bytes(self._record[: self._got]) + data
            self._total = 0
        self._split(self._rest + data)

    def read(self, size: int | None = None) -> bytes:
        """Returns payloads that have come; see `Seal`."""
        found = self._open
        if size is not None and size < len(found):
            self._open = found[size:]
            return bytes(found[:size])
        self._open, self.has_more = b"", False
        return bytes(found)

    def read_into(self, view: memoryview) -> int:
        """Reads into a buffer; returns how many bytes."""
        if self._placed:
            count, self._placed, self.has_more = self._placed, 0, False
            return count
        count = min(len(view), len(self._open))
        view[:count] = self._open[:count]
        self._open = self._open[count:]
        self.has_more = bool(self._open)
        return count

    def _split(self, data: bytes) -> None:
        """Opens the records that are complete; keeps the beginning of the next one."""
        start, end, found = 0, len(data), list[Data]()
        size = 0
        while end - start >= _HEAD_BYTES:
            (size,) = _size(data, start)
            body = start + _HEAD_BYTES
            if size > RECORD_BYTES:
                raise DataLossError(f"expected a record of at most {RECORD_BYTES}, got {size}")
            if body + size > end:
                break
            payload = data[body : body + size]
            self._check(data[start + _SIZE.size : body], payload)
            found.append(payload)
            start = body + size
        if found:
            self._open = found[0] if len(found) == 1 and not self._open else self._joined(found)
            self.has_more = bool(self._open)
        if end - start >= _HEAD_BYTES and size >= _LARGE_BYTES:
            self._rest = b""
            self._begin_record(size, data[start:])
        else:
            self._rest = data[start:]

    def _joined(self, found: list[Data]) -> bytes:
        return b"".join([self._open, *found])

    def _begin_record(self, size: int, begin: bytes) -> None:
        total = _HEAD_BYTES + size
        if len(self._record) < total + _HEAD_BYTES:
            room = total if size < RECORD_BYTES // 2 else _HEAD_BYTES + RECORD_BYTES
            self._record = memoryview(bytearray(room + _HEAD_BYTES))
        self._record[: len(begin)] = begin
        self._got, self._total = len(begin), total

    def _end_record(self) -> None:
        record, total = self._record, self._total
        payload = record[_HEAD_BYTES:total]
        self._check(record[_SIZE.size : _HEAD_BYTES], payload)
        self._open, self.has_more = payload, True
        self._rest = bytes(record[total : self._got])
        self._total = 0

    def _check(self, tag: Data, payload: Data) -> None:
        if not hmac.compare_digest(tag, self._taking.next(payload)):
            raise _changed()


def _changed() -> DataLossError:
    return DataLossError(
        "the bytes that came are not those that were sent: somebody on the network has changed, "
        "repeated or left out some (the message authentication code is wrong)"
    )


__all__ = ["RECORD_BYTES", "Macs", "Seal"]
