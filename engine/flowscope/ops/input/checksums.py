"""The checksum of records, CRC-32C, and the records that lie in a piece of a file.

Where nothing is compiled, a long piece is cut into rows of equal length: the checksum is linear, so
those of all rows come from one table of each byte's share at each place, and are then joined.

Source: RFC 3720 for CRC-32C; M. Kounavis and F. Berry, "Novel table lookup-based algorithms for
high-performance CRC generation", for eight bytes at a time; TensorFlow's documentation of TFRecord
for the mask and the form of records.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from flowscope.ops.kernels.native_loops import Bytes, LoopTiers, Words32, Words64

__all__ = [
    "DAMAGED",
    "DAMAGED_LENGTH",
    "INCOMPLETE",
    "MOST_FOUND",
    "Found",
    "RecordScanner",
    "scanner",
]

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_ALL = 0xFFFFFFFF
#: Length of the rows that NumPy works on.
_ROW = 256
#: So many bytes of a piece of records are as an iteration of Python: NumPy adds up most.
_QUICK = 16
#: So many records are found at once.
MOST_FOUND = 1024
#: What ends a search: there are enough; the data end within a record; a record is damaged.
_ENOUGH, INCOMPLETE, DAMAGED_LENGTH, DAMAGED = 0, 1, 2, 3


def checksum(data: Bytes, at: int, end: int, table: Words32) -> int:
    """Returns the masked CRC-32C of the bytes from `at` to `end`."""
    crc = 0xFFFFFFFF
    while end - at >= 8:
        low = crc ^ (data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24)
        crc = table[1792 + (low & 255)] ^ table[1536 + (low >> 8 & 255)]
        crc = crc ^ table[1280 + (low >> 16 & 255)] ^ table[1024 + (low >> 24)]
        crc = crc ^ table[768 + data[at + 4]] ^ table[512 + data[at + 5]]
        crc = crc ^ table[256 + data[at + 6]] ^ table[data[at + 7]]
        at += 8
    while at < end:
        crc = table[(crc ^ data[at]) & 255] ^ crc >> 8
        at += 1
    crc = crc ^ 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & _ALL


def number(data: Bytes, at: int, size: int) -> int:
    """Returns the integer of `size` bytes that begins at `at`, the lowest byte first."""
    value = 0
    i = 0
    while i < size:
        value |= data[at + i] << (8 * i)
        i += 1
    return value


def search(data: Bytes, at: int, end: int, table: Words32, found: Words64) -> int:
    """Finds the records from `at` on: (first byte, length) of each, up to `MOST_FOUND`.

    Behind them it leaves where the next record begins, its length if that is known, and why it is
    not among them. Returns how many there are.
    """
    count = 0
    length = 0
    why = _ENOUGH
    while count < MOST_FOUND:
        length = 0
        left = end - at
        if left < 12:
            why = INCOMPLETE
            break
        if checksum(data, at, at + 8, table) != number(data, at + 8, 4):
            why = DAMAGED_LENGTH
            break
        length = number(data, at, 8)
        if length < 0 or length > left - 16:
            why = INCOMPLETE
            break
        last = at + 12 + length
        if checksum(data, at + 12, last, table) != number(data, last, 4):
            why = DAMAGED
            break
        found[2 * count] = at + 12
        found[2 * count + 1] = length
        count += 1
        at = last + 4
    found[2 * MOST_FOUND] = at
    found[2 * MOST_FOUND + 1] = length
    found[2 * MOST_FOUND + 2] = why
    return count


class Found(NamedTuple):
    """The records that lie in a piece of a file.

    Attributes:
        records: Their bytes, each with its place in the piece.
        next: Where the record behind them begins.
        length: Its length; 0 if that is not known.
        why: Why it is not among them; 0 if there are enough.
    """

    records: list[tuple[bytes, int]]
    next: int
    length: int
    why: int


class RecordScanner:
    """Computes checksums and finds records.

    Attributes:
        tiers: The loops.
    """

    def __init__(self) -> None:
        self.tiers = LoopTiers((checksum, number, search), {"checksum": _checksum_by_rows})

    def masked_crc32c(self, data: bytes) -> int:
        """Returns the CRC-32C of bytes, turned and shifted as records have it."""
        made = self.tiers.get(len(data) // _QUICK)
        return made.functions[0](data, 0, len(data), made.given(_tables()))

    def records(self, data: bytes, at: int) -> Found:
        """Returns the records that begin at a place."""
        found = np.empty(2 * MOST_FOUND + 3, np.uint64)
        made = self.tiers.get((len(data) - at) // _QUICK)
        count = made.functions[2](data, at, len(data), made.given(_tables()), made.given(found))
        next_, length, why = found[2 * MOST_FOUND :].tolist()
        flat = found[: 2 * count].tolist()
        pairs = zip(flat[::2], flat[1::2])
        return Found([(data[i : i + n], i - 12) for i, n in pairs], next_, length, why)


@functools.cache
def scanner() -> RecordScanner:
    """Returns the process's scanner."""
    return RecordScanner()


@functools.cache
def _tables() -> Any:
    """Returns, for each byte, its share of the checksum with 0 to 7 bytes behind it."""
    crc: Any = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = crc >> 1 ^ np.where(crc & 1, _POLYNOMIAL, 0).astype(np.uint32)
    rows = [crc]
    for _ in range(7):
        rows.append(crc[rows[-1] & 255] ^ rows[-1] >> 8)
    return np.concatenate(rows)


@functools.cache
def _shares() -> tuple[Any, Any]:
    """Returns each byte's share at each place of a row, and what a row behind makes of a sum."""
    table = _tables()[:256]
    rows = [table]
    for _ in range(_ROW - 1):
        rows.append(table[rows[-1] & 255] ^ rows[-1] >> 8)
    # The sum of what came before is added to the first four bytes of a row.
    return np.concatenate(rows[::-1]), np.concatenate(rows[:-5:-1])


def _checksum_by_rows(data: bytes, at: int, end: int, table: Any) -> int:
    """Computes `checksum` with NumPy."""
    crc, count = _ALL, (end - at) // _ROW
    if count:
        shares, shift = _shares()
        rows = np.frombuffer(data, np.uint8, count * _ROW, at).reshape(count, _ROW)
        places = np.arange(0, _ROW * 256, 256, dtype=np.intp)
        s0, s1, s2, s3 = shift.reshape(4, 256).tolist()
        for first in range(0, count, 1024):
            sums = np.bitwise_xor.reduce(shares[rows[first : first + 1024] + places], axis=1)
            for one in sums.tolist():
                crc = s0[crc & 255] ^ s1[crc >> 8 & 255] ^ s2[crc >> 16 & 255] ^ s3[crc >> 24] ^ one
        at += count * _ROW
    small = _small_table()
    for byte in bytes(data[at:end]):
        crc = small[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= _ALL
    return ((crc >> 15 | crc << 17) + _MASK) & _ALL


@functools.cache
def _small_table() -> tuple[int, ...]:
    return tuple(_tables()[:256].tolist())
