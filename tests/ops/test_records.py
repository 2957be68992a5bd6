"""Files of records: written, read back, damaged, growing, hostile."""

from __future__ import annotations

import gzip
import os
import random
import struct
import sys
import zlib
from pathlib import Path

import pytest

import flowscope as fs
from flowscope.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from flowscope.ops.input import checksums
from flowscope.ops.input.records import RecordReader, masked_crc32c, read_records, record
from flowscope.ops.kernels import native_loops


def plain_crc32c(data: bytes) -> int:
    """CRC-32C bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.fixture(params=["compiled", "python"])
def scanner(request, monkeypatch):
    """A scanner whose loops are compiled, and one whose loops are not."""
    if request.param == "python":
        monkeypatch.setitem(sys.modules, "llvmlite", None)
    else:
        pytest.importorskip("llvmlite")
    made = checksums.RecordScanner()
    is_python = made.tiers.get(10**9).given is memoryview
    assert is_python == (request.param == "python")
    monkeypatch.setattr(checksums, "scanner", lambda: made)
    monkeypatch.setattr("flowscope.ops.input.records.scanner", lambda: made)
    return made


def test_checksums_are_those_of_the_standard(scanner) -> None:
    assert plain_crc32c(b"123456789") == 0xE3069283
    for size in (0, 1, 7, 8, 9, 255, 256, 257, 511, 512, 700, 3000):
        data = random.Random(size).randbytes(size)
        assert scanner.masked_crc32c(data) == masked(plain_crc32c(data)), size


def data_of(seed: int) -> list[bytes]:
    r = random.Random(seed)
    sizes = [r.choice((0, 1, 3, 100, 5000, 300_000)) for _ in range(r.randrange(1, 30))]
    return [r.randbytes(n) for n in sizes]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_what_was_written_is_read_back(scanner, tmp_path: Path, compression: str) -> None:
    for seed in range(3):
        path, records = tmp_path / "a.tfrecords", data_of(seed)
        options = fs.python_io.TFRecordOptions(compression, compression_level=1)
        with fs.python_io.TFRecordWriter(path, options) as writer:
            for one in records:
                writer.write(one)
        assert list(fs.python_io.tf_record_iterator(str(path), compression)) == records
        found = list(read_records(path, compression))
        offsets = [sum(len(r) + 16 for r in records[:i]) for i in range(len(records))]
        assert found == list(zip(records, offsets))
        middle = len(records) // 2
        assert list(read_records(path, compression, offsets[middle])) == found[middle:]
        contents = path.read_bytes()
        match compression:
            case "GZIP":
                contents = gzip.decompress(contents)
            case "ZLIB":
                contents = zlib.decompress(contents)
        assert contents == b"".join(map(record, records))


@pytest.mark.parametrize("place", ["length", "data"])
def test_a_damaged_record_is_told_with_file_and_place(scanner, tmp_path, place: str) -> None:
    path, records = tmp_path / "a", [b"first", b"second" * 100, b"third"]
    contents = bytearray(b"".join(map(record, records)))
    contents[21 + (3 if place == "length" else 40)] ^= 4
    path.write_bytes(contents)
    found = fs.python_io.tf_record_iterator(path)
    assert next(found) == b"first"
    with pytest.raises(DataLossError, match=r"record at byte 21 of '.*/a': .*damaged"):
        next(found)


def test_a_file_may_grow_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(record(b"one") + record(b"two" * 10_000)[:-7])
    reader = RecordReader(path)
    assert reader.read() == (b"one", 0)
    for _ in range(2):
        with pytest.raises(DataLossError, match="byte 19 .* ends within it"):
            reader.read()
    with path.open("ab") as file:
        file.write(record(b"two" * 10_000)[-7:] + record(b"three"))
    assert reader.read() == (b"two" * 10_000, 19)
    assert reader.offset == 19 + 30_016
    assert reader.read()[0] == b"three"
    assert reader.read() is None
    with path.open("ab") as file:
        file.write(record(b"four"))
    assert [r for r, _ in reader.read_many(5)] == [b"four"]
    reader.close()


@pytest.mark.parametrize("length", [2**60, 2**63 + 5, 2**64 - 1, 2**64 - 15, 2**31])
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_hostile_lengths_are_refused(scanner, tmp_path, length: int, compression: str) -> None:
    head = struct.pack("<Q", length)
    contents = record(b"good") + head + struct.pack("<I", masked_crc32c(head)) + bytes(1000)
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(contents) if compression else contents)
    found = read_records(path, compression)
    assert next(found) == (b"good", 0)
    with pytest.raises(DataLossError, match="byte 20"):
        next(found)


@pytest.mark.memory
def test_what_expands_a_lot_takes_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "bomb"
    with gzip.open(path, "wb", 9) as file:
        file.write(record(b"good"))
        for _ in range(64):
            file.write(bytes(1 << 20))  # no record: its length's checksum differs
    assert path.stat().st_size < 100_000
    checksums.scanner().tiers.get(10**9)
    tracemalloc.start()
    try:
        found = read_records(path, "GZIP")
        assert next(found) == (b"good", 0)
        with pytest.raises(DataLossError):
            next(found)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_damaged_compression(tmp_path: Path) -> None:
    path = tmp_path / "a"
    whole = gzip.compress(record(os.urandom(100_000)) * 10)
    path.write_bytes(whole[:-50_000])
    with pytest.raises(DataLossError, match="ends too early"):
        list(read_records(path, "GZIP"))
    path.write_bytes(whole[:20_000] + bytes(100) + whole[20_100:])
    with pytest.raises(DataLossError):
        list(read_records(path, "GZIP"))
    path.write_bytes(record(b"plain"))
    with pytest.raises(DataLossError, match="is damaged"):
        list(read_records(path, "ZLIB"))
    path.write_bytes(b"")
    assert list(read_records(path, "ZLIB")) == []


def test_options_and_misuse(tmp_path: Path) -> None:
    io = fs.python_io
    kinds = io.TFRecordCompressionType
    name_of = io.TFRecordOptions.get_compression_type_string
    assert [name_of(x) for x in (kinds.NONE, kinds.GZIP, "ZLIB", None)] == ["", "GZIP", "ZLIB", ""]
    assert name_of(io.TFRecordOptions(kinds.ZLIB)) == "ZLIB"
    for wrong in ("gzip", 7, 3.5):
        with pytest.raises(InvalidArgumentError, match="compression"):
            io.TFRecordOptions(wrong)
    with pytest.raises(InvalidArgumentError, match="zlib"):
        io.TFRecordWriter(tmp_path / "a", io.TFRecordOptions("GZIP", compression_level=77))
    with pytest.raises(UnimplementedError, match="input_buffer_size"):
        io.TFRecordOptions("GZIP", input_buffer_size=5)
    with pytest.raises(NotFoundError, match="nowhere"):
        io.TFRecordWriter(tmp_path / "nowhere" / "a")
    with pytest.raises(NotFoundError, match="nothing"):
        next(io.tf_record_iterator(tmp_path / "nothing"))
    writer = io.TFRecordWriter(tmp_path / "a", "GZIP")
    writer.write("text")
    writer.flush()
    reader = RecordReader(tmp_path / "a", "GZIP")
    assert reader.read() == (b"text", 0)  # before the file is closed
    reader.close()
    writer.close()
    writer.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        writer.write(b"more")
    assert fs.io.TFRecordWriter is io.TFRecordWriter


def test_a_loop_may_use_no_more_than_it_has() -> None:
    def odd(n: int) -> int:
        return n % 2

    with pytest.raises((KeyError, RuntimeError)):
        native_loops._Writer(odd)
