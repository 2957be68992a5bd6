"""Files of events, which TensorBoard reads: records of serialized `Event`s with checksums.

A record is its length, the masked CRC-32C of the length, the event, and the event's masked CRC-32C.

Source: TensorFlow's format of records (its documentation of TFRecord), RFC 3720 for CRC-32C.
"""

from __future__ import annotations

import os
import platform
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flowscope.errors import DataLossError
from flowscope.graph.event_messages import Event

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def _checksums() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


#: The CRC-32C of each byte.
_TABLE = _checksums()


def masked_crc32c(data: bytes) -> int:
    """Returns the CRC-32C of bytes, turned and shifted as records have it."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """Returns bytes as a record."""
    length = struct.pack("<Q", len(data))
    checks = [struct.pack("<I", masked_crc32c(part)) for part in (length, data)]
    return length + checks[0] + data + checks[1]


def summary_iterator(path: str | os.PathLike[str]) -> Iterator[Event]:
    """Yields the events of a file; a record that is not complete yet ends it.

    Args:
        path: A file of events.

    Raises:
        DataLossError: if a record is damaged.
    """
    with open(path, "rb") as file:
        while len(head := file.read(12)) == 12:
            (length,) = struct.unpack("<Q", _checked(head[:8], head[8:], path))
            body = file.read(length + 4)
            if len(body) < length + 4:
                return
            yield Event.FromString(_checked(body[:-4], body[-4:], path))


def _checked(data: bytes, crc: bytes, path: Any) -> bytes:
    if struct.pack("<I", masked_crc32c(data)) != crc:
        raise DataLossError(f"a record of {os.fspath(path)} is damaged: its checksum differs")
    return data


class EventFile:
    """A new file of events in a folder. Several threads may add to it.

    Args:
        folder: Where the file is made; so is the folder.
        max_queue: How many events wait at most before they are written.
        flush_secs: After how many seconds they are written in any case.
        suffix: What the file's name ends in.
    """

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str) -> None:
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._timer: threading.Timer | None = None
        self._file = _new_file(Path(folder), suffix)
        self.add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        self.flush()

    def add(self, event: Event) -> None:
        """Adds an event, which is written at once if as many wait as may."""
        data = record(event.SerializeToString())
        with self._lock:
            self._waiting.append(data)
            if len(self._waiting) >= self._max_queue or self._flush_secs <= 0:
                self._write()
            elif self._timer is None:
                self._timer = threading.Timer(self._flush_secs, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Writes what waits."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._file.write(b"".join(self._waiting))
            self._waiting.clear()
            self._file.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        with self._lock:
            if not self._file.closed:
                self._write()
                self._file.close()


def _new_file(folder: Path, suffix: str) -> Any:
    """Opens a new file whose name tells when, where and by which process it was made."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"events.out.tfevents.{int(time.time()):010d}.{platform.node()}.{os.getpid()}"
    number = 0
    while True:
        try:
            return open(folder / f"{name}.{number}{suffix}", "xb")
        except FileExistsError:
            number += 1


__all__ = ["EventFile", "masked_crc32c", "record", "summary_iterator"]
