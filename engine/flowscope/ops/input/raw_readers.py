"""Operations of readers as TensorFlow's `raw_ops` name them; a handle may be a reader.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.core.handles import in_container
from flowscope.ops.input import readers
from flowscope.ops.input.reader_ops import ReaderHandle

__all__ = [
    "FixedLengthRecordReader",
    "FixedLengthRecordReaderV2",
    "IdentityReader",
    "IdentityReaderV2",
    "ReaderNumRecordsProduced",
    "ReaderNumRecordsProducedV2",
    "ReaderNumWorkUnitsCompleted",
    "ReaderNumWorkUnitsCompletedV2",
    "ReaderRead",
    "ReaderReadUpTo",
    "ReaderReadUpToV2",
    "ReaderReadV2",
    "ReaderReset",
    "ReaderResetV2",
    "ReaderRestoreState",
    "ReaderRestoreStateV2",
    "ReaderSerializeState",
    "ReaderSerializeStateV2",
    "TFRecordReader",
    "TFRecordReaderV2",
    "TextLineReader",
    "TextLineReaderV2",
    "WholeFileReader",
    "WholeFileReaderV2",
]


class _Record(NamedTuple):
    """One record."""

    key: Tensor
    value: Tensor


class _Records(NamedTuple):
    """Several records."""

    keys: Tensor
    values: Tensor


# -- handles --------------------------------------------------------------------------------------


def WholeFileReaderV2(
    *, container: str = "", shared_name: str = "", name: str | None = None
) -> Tensor:
    """The handle of a reader of whole files.

    Args:
        container: Container of the reader; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.
    """
    with in_container(container):
        return readers.WholeFileReader(name or "WholeFileReaderV2", shared_name).reader_ref


def IdentityReaderV2(
    *, container: str = "", shared_name: str = "", name: str | None = None
) -> Tensor:
    """The handle of a reader whose records are names; arguments as of `WholeFileReaderV2`."""
    with in_container(container):
        return readers.IdentityReader(name or "IdentityReaderV2", shared_name).reader_ref


def TextLineReaderV2(
    *,
    skip_header_lines: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a reader of lines.

    Args:
        skip_header_lines: So many lines at the beginning of each file are passed over.
        container: Container of the reader; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.
    """
    called = name or "TextLineReaderV2"
    with in_container(container):
        return readers.TextLineReader(skip_header_lines, called, shared_name).reader_ref


def FixedLengthRecordReaderV2(
    *,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    hop_bytes: int = 0,
    container: str = "",
    shared_name: str = "",
    encoding: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a reader of records of one length.

    Args:
        record_bytes: Bytes of a record.
        header_bytes: Bytes before the first record.
        footer_bytes: Bytes at the end of a file that are no records.
        hop_bytes: From the beginning of a record to that of the next; 0: they follow each other.
        container: Container of the reader; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        encoding: How files are compressed: "GZIP", "ZLIB", or "" for not.
        name: Name of the operation.
    """
    lengths = record_bytes, header_bytes, footer_bytes, hop_bytes
    called = name or "FixedLengthRecordReaderV2"
    with in_container(container):
        made = readers.FixedLengthRecordReader(*lengths, called, encoding, shared_name)
        return made.reader_ref


def TFRecordReaderV2(
    *,
    container: str = "",
    shared_name: str = "",
    compression_type: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a reader of files of records.

    Args:
        container: Container of the reader; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        compression_type: "GZIP", "ZLIB", or "" for none.
        name: Name of the operation.
    """
    called = name or "TFRecordReaderV2"
    with in_container(container):
        made = readers.TFRecordReader(called, compression_type or None, shared_name)
        return made.reader_ref


# -- what is done with them -----------------------------------------------------------------------


def _reader(handle: Any) -> readers.ReaderBase:
    if isinstance(handle, readers.ReaderBase):
        return handle
    if not isinstance(handle, Tensor) or not isinstance(handle.op.definition, ReaderHandle):
        raise expected_dtype("the handle of a reader", repr(handle))
    return readers.ReaderBase(handle)


def ReaderReadV2(*, reader_handle: Any, queue_handle: Any, name: str | None = None) -> _Record:
    """The next record: `key` and `value`, string scalars; takes a name where that is needed."""
    return _Record(*_reader(reader_handle).read(queue_handle, name or "ReaderReadV2"))


def ReaderReadUpToV2(
    *, reader_handle: Any, queue_handle: Any, num_records: Any, name: str | None = None
) -> _Records:
    """The next records, at most `num_records`: `keys` and `values`, vectors of strings."""
    called = name or "ReaderReadUpToV2"
    return _Records(*_reader(reader_handle).read_up_to(queue_handle, num_records, called))


def ReaderNumRecordsProducedV2(*, reader_handle: Any, name: str | None = None) -> Tensor:
    """How many records a reader has produced, an int64 scalar."""
    return _reader(reader_handle).num_records_produced(name or "ReaderNumRecordsProducedV2")


def ReaderNumWorkUnitsCompletedV2(*, reader_handle: Any, name: str | None = None) -> Tensor:
    """How many files a reader has read to their ends, an int64 scalar."""
    called = name or "ReaderNumWorkUnitsCompletedV2"
    return _reader(reader_handle).num_work_units_completed(called)


def ReaderSerializeStateV2(*, reader_handle: Any, name: str | None = None) -> Tensor:
    """Where a reader is, a string scalar."""
    return _reader(reader_handle).serialize_state(name or "ReaderSerializeStateV2")


def ReaderRestoreStateV2(*, reader_handle: Any, state: Any, name: str | None = None) -> Operation:
    """An operation that puts a reader to where one of its kind was."""
    return _reader(reader_handle).restore_state(state, name or "ReaderRestoreStateV2")


def ReaderResetV2(*, reader_handle: Any, name: str | None = None) -> Operation:
    """An operation that makes a reader new."""
    return _reader(reader_handle).reset(name or "ReaderResetV2")


WholeFileReader, IdentityReader, TextLineReader = (
    WholeFileReaderV2, IdentityReaderV2, TextLineReaderV2,
)  # fmt: skip
FixedLengthRecordReader, TFRecordReader = FixedLengthRecordReaderV2, TFRecordReaderV2
ReaderRead, ReaderReadUpTo = ReaderReadV2, ReaderReadUpToV2
ReaderNumRecordsProduced = ReaderNumRecordsProducedV2
ReaderNumWorkUnitsCompleted = ReaderNumWorkUnitsCompletedV2
ReaderSerializeState, ReaderRestoreState = ReaderSerializeStateV2, ReaderRestoreStateV2
ReaderReset = ReaderResetV2
