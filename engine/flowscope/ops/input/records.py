"""Files of records: read, checked and written.

A record is its length, the masked CRC-32C of the length, its bytes, and their masked CRC-32C.

Source: TensorFlow's format of records (its documentation of TFRecord).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any

from flowscope.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from flowscope.ops.host.files import file_errors
from flowscope.ops.input.checksums import DAMAGED, DAMAGED_LENGTH, scanner
from flowscope.ops.input.streams import (
    COMPRESSIONS,
    MOST_BYTES,
    PIECE,
    check_compression,
    open_stream,
)

__all__ = ["RecordReader", "RecordWriter", "masked_crc32c", "read_records", "record"]

#: Bytes before a record's own, and behind them.
_HEAD, _TAIL = 12, 4


def masked_crc32c(data: bytes) -> int:
    """Returns the CRC-32C of bytes, turned and shifted as records have it."""
    return scanner().masked_crc32c(data)


def record(data: bytes) -> bytes:
    """Returns bytes as a record."""
    crc = scanner().masked_crc32c
    length = struct.pack("<Q", len(data))
    head = length + struct.pack("<I", crc(length))
    return b"".join((head, data, struct.pack("<I", crc(data))))


def read_records(
    path: str | os.PathLike[str], compression: str = "", offset: int = 0
) -> Iterator[tuple[bytes, int]]:
    """Yields the records of a file, each with its offset: of its first byte, once expanded.

    Args:
        path: The file.
        compression: "", "GZIP" or "ZLIB".
        offset: Where the first record begins that is wanted.

    Raises:
        NotFoundError: if there is no such file.
        DataLossError: if a record is damaged, or the file ends within one.
    """
    reader = RecordReader(path, compression, offset)
    try:
        while (found := reader.read()) is not None:
            yield found
    finally:
        reader.close()


class RecordReader:
    """Reads the records of a file, which may grow meanwhile.

    After an error it is where it was: at a record that is not whole, to which more may be added.

    Args:
        path: The file.
        compression: "", "GZIP" or "ZLIB".
        offset: Where the first record begins that is wanted.
    """

    def __init__(
        self, path: str | os.PathLike[str], compression: str = "", offset: int = 0
    ) -> None:
        self._path = os.fspath(path)
        self._stream = open_stream(self._path, check_compression(compression))
        if offset:
            self._stream.skip(offset)
        #: What was read from `_start` on; records are looked for from `_at` on.
        self._data, self._start, self._at = b"", offset, 0
        self._found: deque[tuple[bytes, int]] = deque()
        self._search = scanner().records

    @property
    def offset(self) -> int:
        """Where the next record begins."""
        return self._start + (self._found[0][1] if self._found else self._at)

    def read(self, is_growing: bool = False) -> tuple[bytes, int] | None:
        """Returns the next record and its offset; None at the end.

        Args:
            is_growing: Whether a record that is not whole is the end, too.

        Raises:
            DataLossError: if it is damaged, or the file ends within it.
        """
        found = self._found
        if not found and not self._fill(is_growing):
            return None
        data, at = found.popleft()
        return data, self._start + at

    def read_many(self, most: int) -> list[tuple[bytes, int]]:
        """Returns at most so many records, those that are at hand; none at the end."""
        found = self._found
        if not found and not self._fill():
            return []
        start = self._start
        taken = [found.popleft() for _ in range(min(most, len(found)))]
        return [(data, start + at) for data, at in taken]

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()

    def _fill(self, is_growing: bool = False) -> bool:
        """Finds records; returns False at the end of the file."""
        wanted = PIECE
        while True:
            if len(self._data) > self._at:
                found = self._search(self._data, self._at)
                self._at = found.next
                if found.records:
                    self._found.extend(found.records)
                    return True
                if found.why == DAMAGED_LENGTH:
                    raise self._lost("its length is damaged: the checksum differs")
                if found.why == DAMAGED:
                    raise self._lost("it is damaged: its checksum differs")
                wanted = self._missing(found.length)
            if not wanted or not self._more(wanted):
                if is_growing or len(self._data) == self._at:
                    return False
                raise self._lost("the file ends within it")

    def _missing(self, length: int) -> int:
        """Returns how many bytes to read on; 0 where there are fewer."""
        have = len(self._data) - self._at
        missing = _HEAD + length + _TAIL - have if have >= _HEAD else 0
        left = self._stream.left()
        if left is not None and missing > left:
            return 0
        if left is None and length > MOST_BYTES:
            raise self._lost(f"expected at most {MOST_BYTES} bytes, its length says {length}")
        return max(missing, PIECE)

    def _more(self, wanted: int) -> bool:
        """Reads on; returns whether there was anything."""
        pieces = [self._data[self._at :]]
        self._start, self._at = self._start + self._at, 0
        count = 0
        try:
            while count < wanted and (piece := self._stream.read(wanted - count)):
                pieces.append(piece)
                count += len(piece)
        except DataLossError as e:
            if not count:  # what came before may have whole records, and the error comes again
                where = self._start + len(self._data)
                raise DataLossError(f"{e.message} (behind byte {where})") from e
        finally:
            self._data = b"".join(pieces)
        return count > 0

    def _lost(self, what: str) -> DataLossError:
        return DataLossError(f"{self._place}: {what}")

    @property
    def _place(self) -> str:
        return f"the record at byte {self.offset} of {self._path!r}"


class RecordWriter:
    """Writes records to a new file.

    Args:
        path: The file; one that is there is written over.
        compression: "", "GZIP" or "ZLIB".
        options: Keywords of `zlib.compressobj`.
        flush_mode: How zlib flushes behind each record; None: not at all.
        buffer: Bytes that are collected before they are written.

    Raises:
        PermissionDeniedError: if it may not be written; NotFoundError if its folder is not there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        compression: str = "",
        options: dict[str, int] | None = None,
        flush_mode: int | None = None,
        buffer: int | None = None,
    ) -> None:
        self._path = os.fsdecode(path)
        self._compressor: Any = None
        self._flush_mode = flush_mode
        if check_compression(compression):
            given: dict[str, Any] = {"wbits": COMPRESSIONS[compression], **(options or {})}
            try:
                self._compressor = zlib.compressobj(**given)
            except ValueError as e:
                raise InvalidArgumentError(f"expected options of zlib, got {given}: {e}") from e
        with file_errors("write", self._path):
            self._file: Any = open(self._path, "wb", buffering=buffer or PIECE)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        """Adds a record.

        Raises:
            FailedPreconditionError: if the file is closed.
        """
        self._check_open()
        made = record(data)
        if self._compressor is not None:
            made = self._compressor.compress(made)
            if self._flush_mode:
                made += self._compressor.flush(self._flush_mode)
        with file_errors("write", self._path):
            self._file.write(made)

    def flush(self) -> None:
        """Hands over to the system what was written, so that others can read it."""
        self._check_open()
        with file_errors("write", self._path):
            if self._compressor is not None:
                self._file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        if self._file.closed:
            return
        with file_errors("write", self._path):
            if self._compressor is not None:
                self._file.write(self._compressor.flush(zlib.Z_FINISH))
            self._file.close()

    def _check_open(self) -> None:
        if self._file.closed:
            raise FailedPreconditionError(f"the file {self._path!r} is closed")
