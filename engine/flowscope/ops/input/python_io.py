"""Files of records outside of graphs, under TensorFlow 1's names."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar, Self

from flowscope.errors import InvalidArgumentError
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.expected import expected
from flowscope.graph.values.string_values import as_bytes
from flowscope.ops.input.records import RecordWriter, read_records

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType:
    """The compressions of files of records, as numbers; their names serve as well."""

    NONE: ClassVar[int] = 0
    ZLIB: ClassVar[int] = 1
    GZIP: ClassVar[int] = 2


class TFRecordOptions:
    """How a file of records is compressed. What is None is as zlib has it.

    Args:
        compression_type: "GZIP", "ZLIB", "" for none, or one of `TFRecordCompressionType`.
        flush_mode: How zlib flushes behind each record, such as `zlib.Z_SYNC_FLUSH`.
        input_buffer_size: Not supported: records are handed to zlib one by one.
        output_buffer_size: Bytes that are collected before they are written.
        window_bits: zlib's, with its sign or 16 for the format.
        compression_level: 0 to 9; -1 for zlib's own.
        compression_method: Of zlib, which has one: `zlib.DEFLATED`.
        mem_level: 1 to 9.
        compression_strategy: Such as `zlib.Z_FILTERED`.

    Raises:
        InvalidArgumentError: if the compression is not known.
    """

    compression_type_map: ClassVar[dict[int, str]] = {1: "ZLIB", 2: "GZIP", 0: ""}

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        refuse("python_io.TFRecordOptions", input_buffer_size=input_buffer_size)
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Returns the name of a compression: "", "GZIP" or "ZLIB".

        Args:
            options: `TFRecordOptions`, one of `TFRecordCompressionType`, a name or None.

        Raises:
            InvalidArgumentError: if it is not known.
        """
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if options is None or options == "":
            return ""
        names = cls.compression_type_map
        found = names.get(options) if isinstance(options, int) else options
        if not isinstance(found, str) or found not in names.values():
            raise expected('a compression of "GZIP", "ZLIB" or ""', repr(options))
        return found

    def _for_zlib(self) -> dict[str, int]:
        given = {
            "wbits": self.window_bits,
            "level": self.compression_level,
            "method": self.compression_method,
            "memLevel": self.mem_level,
            "strategy": self.compression_strategy,
        }
        return {name: int(value) for name, value in given.items() if value is not None}


class TFRecordWriter:
    """Writes records to a new file; in a `with` block it closes the file.

        with fs.python_io.TFRecordWriter("train.tfrecords") as writer:
            writer.write(example.SerializeToString())

    Args:
        path: The file; one that is there is written over.
        options: `TFRecordOptions`, one of `TFRecordCompressionType`, or a compression's name.

    Raises:
        PermissionDeniedError: if it may not be written; NotFoundError if its folder is not there;
            InvalidArgumentError if the options are not known.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        given = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        mode = given.flush_mode
        if mode is not None and not zlib.Z_NO_FLUSH <= mode < zlib.Z_FINISH:
            raise InvalidArgumentError(f"expected a flush_mode of zlib but Z_FINISH, got {mode}")
        name = TFRecordOptions.get_compression_type_string(given)
        self._writer = RecordWriter(path, name, given._for_zlib(), mode, given.output_buffer_size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, record: Any) -> None:
        """Adds a record: bytes, or a text in UTF-8.

        Raises:
            FailedPreconditionError: if the file is closed.
        """
        self._writer.write(as_bytes(record))

    def flush(self) -> None:
        """Hands over what was written, so that others can read it."""
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """Yields the records of a file, as bytes.

    Args:
        path: The file.
        options: `TFRecordOptions`, one of `TFRecordCompressionType`, or a compression's name.

    Raises:
        NotFoundError: if there is no such file.
        DataLossError: if a record is damaged, or the file ends within one.
    """
    name = TFRecordOptions.get_compression_type_string(options)
    return (data for data, _ in read_records(path, name))
