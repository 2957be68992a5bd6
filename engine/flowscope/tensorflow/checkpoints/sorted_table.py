"""A table of sorted keys: the form of a checkpoint's .index file.

The file is a run of blocks, then a block that says where they are, then 48 bytes that say where
that one is. In a block a key says how many bytes it shares with the one before. Behind each block
stand how it is compressed (not at all, or by Snappy) and the masked CRC-32C of both.

Source: the table format of LevelDB, github.com/google/leveldb/blob/main/doc/table_format.md;
Snappy's format, github.com/google/snappy/blob/main/format_description.txt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flowscope.errors import DataLossError, InvalidArgumentError
from flowscope.graph.messages.protobuf import read_varint, varint
from flowscope.ops.input.records import masked_crc32c

_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER = 48
_PLAIN, _SNAPPY = 0, 1
#: A block is ended when it has so many bytes.
_BLOCK = 1 << 16
#: Every so many keys one is written in full.
_RESTART = 16
#: Snappy repeats at most 64 bytes by a copy of 3; more cannot come out of a block.
_MOST_PER_BYTE = 64


def read_table(data: bytes) -> dict[bytes, bytes]:
    """Returns the values by key.

    Raises:
        DataLossError: if the file is damaged: a checksum differs, or it does not hold together.
    """
    if len(data) < _FOOTER or data[-8:] != _MAGIC:
        raise DataLossError("the end of a table is missing")
    _, at = _handle(data, len(data) - _FOOTER)
    where, _ = _handle(data, at)
    found: dict[bytes, bytes] = {}
    last = b""
    read = 0
    for _, handle in _entries(_block(data, where)):
        place, _ = _handle(handle, 0)
        read += place[1]
        if read > len(data):  # blocks lie beside each other
            raise DataLossError("a block of the table is named twice")
        for key, value in _entries(_block(data, place)):
            if found and key <= last:
                raise DataLossError("the keys of the table are not sorted")
            found[key] = value
            last = key
    return found


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Reads where a block is: (first byte, bytes), and where it was read to."""
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return (offset, size), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        return read_varint(data, at)
    except InvalidArgumentError as e:
        raise DataLossError("a number of the table is damaged") from e


def _block(data: bytes, where: tuple[int, int]) -> bytes:
    offset, size = where
    end = offset + size
    if end + 5 > len(data):
        raise DataLossError("a block of the table lies outside of the file")
    expected = int.from_bytes(data[end + 1 : end + 5], "little")
    if masked_crc32c(data[offset : end + 1]) != expected:
        raise DataLossError("the checksum of a block of the table differs")
    if data[end] == _PLAIN:
        return data[offset:end]
    if data[end] == _SNAPPY:
        return unsnapped(data[offset:end])
    raise DataLossError(
        f"a block of the table is compressed in a way that is not known: {data[end]}"
    )


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (restarts + 1)
    if len(block) < 4 or end < 0:
        raise DataLossError("a block of the table is too short")
    key, at = b"", 0
    while at < end:
        shared, at = _varint(block, at)
        own, at = _varint(block, at)
        size, at = _varint(block, at)
        if shared > len(key) or at + own + size > end:
            raise DataLossError("an entry of the table is damaged")
        key = key[:shared] + block[at : at + own]
        at += own + size
        yield key, block[at - size : at]


def unsnapped(data: bytes) -> bytes:
    """Decompresses Snappy's form; raises DataLossError if it is damaged."""
    size, at = _varint(data, 0)
    if size > _MOST_PER_BYTE * len(data):
        raise DataLossError("a compressed block says that it is very long")
    out = bytearray()
    while at < len(data) and len(out) <= size:
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(data[at : at + extra], "little")
                at += extra
            out += data[at : at + length + 1]
            at += length + 1
            continue
        width = (1, 2, 4)[(tag & 3) - 1]
        offset = int.from_bytes(data[at : at + width], "little")
        at += width
        length = (tag >> 2) + 1
        if tag & 3 == 1:
            offset, length = offset | (tag >> 5) << 8, (tag >> 2 & 7) + 4
        if not 0 < offset <= len(out):
            raise DataLossError("a copy in a compressed block is damaged")
        piece = out[-offset:]
        out += (piece * (length // offset + 1))[:length]
    if len(out) != size or at != len(data):
        raise DataLossError("a compressed block is damaged")
    return bytes(out)


def table_bytes(values: Mapping[bytes, bytes]) -> bytes:
    """Returns values by key as a file's bytes."""
    out = bytearray()
    places: list[tuple[bytes, bytes]] = []
    left: list[tuple[bytes, bytes]] = []
    size = 0
    for key in sorted(values):
        left.append((key, values[key]))
        size += len(key) + len(values[key])
        if size >= _BLOCK:
            places.append((key, _written(out, left)))
            left, size = [], 0
    if left:
        places.append((left[-1][0], _written(out, left)))
    footer = _written(out, []) + _written(out, places)
    return bytes(out + footer.ljust(_FOOTER - 8, b"\0") + _MAGIC)


def _written(out: bytearray, entries: list[tuple[bytes, bytes]]) -> bytes:
    """Writes a block to the end of `out`; returns where it is."""
    block, restarts, last = bytearray(), [0], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % _RESTART:
            most = min(len(key), len(last))
            shared = next((k for k in range(most) if key[k] != last[k]), most)
        elif i:
            restarts.append(len(block))
        block += varint(shared) + varint(len(key) - shared) + varint(len(value))
        block += key[shared:] + value
        last = key
    for number in (*restarts, len(restarts)):
        block += number.to_bytes(4, "little")
    where = varint(len(out)) + varint(len(block))
    block.append(_PLAIN)
    out += block + masked_crc32c(bytes(block)).to_bytes(4, "little")
    return where


__all__ = ["read_table", "table_bytes", "unsnapped"]
