"""What readers read from one work unit, such as a file: records with keys, a few at a time.

A source can be left and opened again later at the same position, which may be in a compressed file.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import NamedTuple

from flowscope.errors import ResourceExhaustedError
from flowscope.ops.host.files import file_errors
from flowscope.ops.input.records import RecordReader
from flowscope.ops.input.streams import MOST_BYTES, PIECE, open_stream

__all__ = [
    "FixedLengthSource",
    "IdentitySource",
    "Item",
    "LineSource",
    "Position",
    "RecordSource",
    "Source",
    "WholeFileSource",
]


class Position(NamedTuple):
    """Where a source is: at a byte, and behind so many records."""

    byte: int = 0
    records: int = 0


class Item(NamedTuple):
    """One record: its key and its bytes, its work unit, and where it begins there."""

    key: bytes
    value: bytes
    work: bytes
    position: Position


class Source(ABC):
    """The records of one work unit.

    Args:
        work: Its name, mostly a file's.

    Attributes:
        position: Where the next record begins.
    """

    position = Position()

    def __init__(self, work: bytes) -> None:
        self.work = work
        self.path = os.fsdecode(work)

    @abstractmethod
    def read(self, most: int) -> list[Item]:
        """Returns the next records: one at least, at most so many; none at the end."""

    def close(self) -> None:  # noqa: B027 - most keep a file open, and some do not
        """Closes the file."""


class IdentitySource(Source):
    """The work unit itself, as its only record."""

    def __init__(self, work: bytes, position: Position) -> None:
        super().__init__(work)
        self.position = position

    def read(self, most: int) -> list[Item]:
        if self.position.records:
            return []
        item = Item(self.work, self._value(), self.work, self.position)
        self.position = Position(0, 1)
        return [item]

    def _value(self) -> bytes:
        return self.work


class WholeFileSource(IdentitySource):
    """A file as its only record; its name is the key."""

    def _value(self) -> bytes:
        with file_errors("read", self.path), open(self.path, "rb") as file:
            return file.read()


class RecordSource(Source):
    """The records of a file of records; keys are "name:offset".

    Args:
        work: The file's name.
        position: Where to begin.
        compression: "", "GZIP" or "ZLIB".
    """

    def __init__(self, work: bytes, position: Position, compression: str) -> None:
        super().__init__(work)
        self._reader = RecordReader(self.path, compression, position.byte)
        self._count = position.records

    @property
    def position(self) -> Position:  # type: ignore[override]
        """Where the next record begins."""
        return Position(self._reader.offset, self._count)

    def read(self, most: int) -> list[Item]:
        found = []
        for value, offset in self._reader.read_many(most):
            key = b"%s:%d" % (self.work, offset)
            found.append(Item(key, value, self.work, Position(offset, self._count)))
            self._count += 1
        return found

    def close(self) -> None:
        self._reader.close()


class _Buffered(Source):
    """A file of which a piece is kept, from where the next record begins."""

    def __init__(self, work: bytes, position: Position, compression: str = "") -> None:
        super().__init__(work)
        self._stream = open_stream(self.path, compression)
        if position.byte:
            self._stream.skip(position.byte)
        self.position = position
        self._data, self._at = b"", 0

    def _more(self, wanted: int) -> bool:
        """Reads on; returns whether there was anything."""
        pieces = [self._data[self._at :]]
        try:
            while wanted > 0 and (piece := self._stream.read(wanted)):
                pieces.append(piece)
                wanted -= len(piece)
        finally:
            self._data, self._at = b"".join(pieces), 0
        return len(pieces) > 1

    def close(self) -> None:
        self._stream.close()


class LineSource(_Buffered):
    """The lines of a file, without what ends them; keys are "name:number", from 1.

    Args:
        work: The file's name.
        position: Where to begin; `count` is the number of the line before.
        skipped: So many lines at the beginning are passed over.
    """

    def __init__(self, work: bytes, position: Position, skipped: int) -> None:
        super().__init__(work, position)
        while self.position.records < skipped and self.read(1):
            pass

    def read(self, most: int) -> list[Item]:
        found: list[Item] = []
        byte, count = self.position
        while len(found) < most:
            end = self._data.find(b"\n", self._at)
            if end < 0:
                if found:
                    break
                end = self._next_end()
                if end < 0:
                    return []
            line = self._data[self._at : end]
            if line.endswith(b"\r"):
                line = line[:-1]
            key = b"%s:%d" % (self.work, count + 1)
            found.append(Item(key, line, self.work, Position(byte, count)))
            byte, count = byte + end + 1 - self._at, count + 1
            self._at = min(end + 1, len(self._data))
        self.position = Position(byte, count)
        return found

    def _next_end(self) -> int:
        """Reads on until the line ends; returns where, -1 if there is none."""
        wanted = PIECE
        while True:
            looked = len(self._data) - self._at
            if looked > MOST_BYTES:
                raise ResourceExhaustedError(
                    f"line {self.position.records + 1} of {self.path!r} has more than {MOST_BYTES} "
                    "bytes"
                )
            if not self._more(wanted):
                return len(self._data) if looked else -1
            end = self._data.find(b"\n", looked)
            if end >= 0:
                return end
            wanted = max(PIECE, looked)


class FixedLengthSource(_Buffered):
    """Records of one length in a file; keys are "name:number", from 0.

    What is left behind the last whole record is passed over.

    Args:
        work: The file's name.
        position: Where to begin.
        lengths: Bytes of the header, of a record, of the footer, and from one record to the next.
        compression: "", "GZIP" or "ZLIB".
    """

    def __init__(
        self,
        work: bytes,
        position: Position,
        lengths: tuple[int, int, int, int],
        compression: str,
    ) -> None:
        header, self._record, self._footer, self._hop = lengths
        super().__init__(work, position if position.byte else Position(header), compression)

    def read(self, most: int) -> list[Item]:
        record, hop, needed = self._record, self._hop, self._record + self._footer
        found: list[Item] = []
        byte, count = self.position
        while len(found) < most:
            missing = needed - (len(self._data) - self._at)
            if missing > 0:
                left = self._stream.left()
                if found or (left is not None and left < missing):
                    break
                if not self._more(max(missing, PIECE)):
                    break
                continue
            value = self._data[self._at : self._at + record]
            key = b"%s:%d" % (self.work, count)
            found.append(Item(key, value, self.work, Position(byte, count)))
            byte, count = byte + hop, count + 1
            skipped = hop - (len(self._data) - self._at)
            self._at = min(self._at + hop, len(self._data))
            if skipped > 0:
                self._stream.skip(skipped)
        self.position = Position(byte, count)
        return found
