"""Readers: records from files whose names come from a queue of the graph.

    names = fs.train.string_input_producer(["a.csv", "b.csv"])
    reader = fs.TextLineReader(skip_header_lines=1)
    key, line = reader.read(names)

A reader lives where its operation is placed, and reads files there. A read that waits for a name
holds no thread but the one that called `Session.run`. A file that cannot be opened fails one read,
and the next one goes on with the next name. A damaged record fails each read until `reset` gives
its file up, as in TensorFlow: more may be added to a record at the end.
"""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.build import apply, apply_many, apply_none
from flowscope.ops.core.handles import add_handle
from flowscope.ops.input import reader_ops as ops
from flowscope.ops.input.python_io import TFRecordOptions
from flowscope.ops.input.streams import check_compression
from flowscope.ops.state.containers.queues import QueueBase

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "ReaderBase",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]


class ReaderBase:
    """What readers of all kinds have in common; make one of the kinds, such as `fs.TextLineReader`.

    Args:
        reader_ref: The handle.
        supports_serialize: Whether the reader's state can be saved.

    Attributes:
        reader_ref: The handle.
        supports_serialize: Whether the reader's state can be saved; all kinds here can.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = True) -> None:
        self.reader_ref = reader_ref
        self.supports_serialize = supports_serialize

    def __repr__(self) -> str:
        return f"<fs.{type(self).__name__} '{self.reader_ref.op.name}'>"

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record, and its key; takes a name from the queue where that is needed.

        Args:
            queue: A queue of strings, or its handle.
            name: Name of the operation.

        Returns:
            (key, value), string scalars.

        Raises:
            OutOfRangeError: when it runs, if the queue is closed and empty.
            NotFoundError: when it runs, if there is no such file; DataLossError if it is damaged.
        """
        key, value = apply_many(ops.ReaderRead(), self.reader_ref, _queue(queue), name=name)
        return key, value

    def read_up_to(
        self, queue: Any, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next records, at most `num_records`: fewer at the end of a file, or of a buffer.

        Args:
            queue: A queue of strings, or its handle.
            num_records: int64 scalar above 0.
            name: Name of the operation.

        Returns:
            (keys, values), both of shape [k], k from 1 to `num_records`.

        Raises:
            OutOfRangeError: when it runs, as for `read`; so do the others.
        """
        count = convert_to_tensor(num_records, dtypes.int64)
        keys, values = apply_many(
            ops.ReaderReadUpTo(), self.reader_ref, _queue(queue), count, name=name
        )
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records it has produced since it was made or reset, an int64 scalar."""
        return apply(ops.ReaderNumRecordsProduced(), self.reader_ref, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files it has read to their ends since it was made or reset, an int64 scalar."""
        return apply(ops.ReaderNumWorkUnitsCompleted(), self.reader_ref, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """Where it is, a string scalar: the file in progress, the place in it, the counts."""
        return apply(ops.ReaderSerializeState(), self.reader_ref, name=name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """An operation that puts it to where a reader of its kind was.

        Args:
            state: What `serialize_state` has given, a string scalar.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: when it runs, if that is no state of a reader.
            NotFoundError: when it runs, if the file in progress is gone.
        """
        given = convert_to_tensor(state, dtypes.string)
        return apply_none(ops.ReaderRestoreState(), self.reader_ref, given, name=name)

    def reset(self, name: str | None = None) -> Operation:
        """An operation that makes it new: it gives up its file, and counts from 0."""
        return apply_none(ops.ReaderReset(), self.reader_ref, name=name)


class WholeFileReader(ReaderBase):
    """Reads whole files: the key is the name, the value the contents.

    Args:
        name: Name of the operation that makes the handle.
        shared_name: Name of the reader in its container (see `fs.container`), by which others can
            use it; the handle's by default.
    """

    def __init__(self, name: str | None = None, shared_name: str | None = None) -> None:
        super().__init__(_handle(ops.WholeFileReaderHandle, name or "WholeFileReader", shared_name))


class IdentityReader(ReaderBase):
    """Hands on what the queue has: key and value are the name.

    Args:
        name: Name of the operation that makes the handle.
        shared_name: Name of the reader in its container (see `fs.container`), by which others can
            use it; the handle's by default.
    """

    def __init__(self, name: str | None = None, shared_name: str | None = None) -> None:
        super().__init__(_handle(ops.IdentityReaderHandle, name or "IdentityReader", shared_name))


class TextLineReader(ReaderBase):
    """Reads lines, without the line feed or "\\r\\n" at their ends; keys are "name:number", from 1.

    Args:
        skip_header_lines: So many lines at the beginning of each file are passed over.
        name: Name of the operation that makes the handle.
        shared_name: Name of the reader in its container (see `fs.container`), by which others can
            use it; the handle's by default.

    Raises:
        InvalidArgumentError: if `skip_header_lines` is negative.
    """

    def __init__(
        self,
        skip_header_lines: int | None = None,
        name: str | None = None,
        shared_name: str | None = None,
    ) -> None:
        skipped = _length("skip_header_lines", skip_header_lines or 0, 0)
        super().__init__(
            _handle(
                ops.TextLineReaderHandle,
                name or "TextLineReader",
                shared_name,
                skip_header_lines=skipped,
            )
        )


class FixedLengthRecordReader(ReaderBase):
    """Reads records of one length; keys are "name:number", from 0.

    What is left behind the last whole record, or is less than the footer, is passed over.

    Args:
        record_bytes: Bytes of a record.
        header_bytes: Bytes before the first record.
        footer_bytes: Bytes at the end of a file that are no records.
        hop_bytes: From the beginning of a record to that of the next; 0: they follow each other.
        name: Name of the operation that makes the handle.
        encoding: How files are compressed: "GZIP", "ZLIB", or "" for not.
        shared_name: Name of the reader in its container (see `fs.container`), by which others can
            use it; the handle's by default.

    Raises:
        InvalidArgumentError: if a length is negative, `record_bytes` is 0, or the encoding is not
            known.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
        shared_name: str | None = None,
    ) -> None:
        record = _length("record_bytes", record_bytes, 1)
        lengths = (
            _length("header_bytes", header_bytes or 0, 0),
            record,
            _length("footer_bytes", footer_bytes or 0, 0),
            _length("hop_bytes", hop_bytes or 0, 0) or record,
        )
        super().__init__(
            _handle(
                ops.FixedLengthRecordReaderHandle,
                name or "FixedLengthRecordReader",
                shared_name,
                lengths=lengths,
                compression=check_compression(encoding or ""),
            )
        )


class TFRecordReader(ReaderBase):
    """Reads files of records, whose checksums it checks; keys are "name:offset".

    Args:
        name: Name of the operation that makes the handle.
        options: `fs.python_io.TFRecordOptions`, or one of
            `fs.python_io.TFRecordCompressionType`: how the files are compressed.
        shared_name: Name of the reader in its container (see `fs.container`), by which others can
            use it; the handle's by default.

    Raises:
        InvalidArgumentError: if the compression is not known.
    """

    def __init__(
        self, name: str | None = None, options: Any = None, shared_name: str | None = None
    ) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(
            _handle(
                ops.TFRecordReaderHandle,
                name or "TFRecordReader",
                shared_name,
                compression=compression,
            )
        )


def _handle(op: Any, name: str, shared_name: str | None, **facts: Any) -> Tensor:
    return add_handle(op, name, shared_name or None, **facts)


def _queue(queue: Any) -> Tensor:
    if isinstance(queue, QueueBase):
        if queue.dtypes != [dtypes.string]:
            raise expected_dtype("a queue of strings", ", ".join(map(str, queue.dtypes)))
        return queue.queue_ref
    if isinstance(queue, Tensor) and queue.dtype is dtypes.resource:
        return queue
    raise expected_dtype("a queue of strings, or its handle", repr(queue))


def _length(what: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise expected_dtype(f"{what} as an integer", repr(value))
    if value < least:
        raise expected(f"{what} of {least} or more", value)
    return int(value)
