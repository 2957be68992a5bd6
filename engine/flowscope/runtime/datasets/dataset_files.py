"""Pipelines of files and generators, and caches in memory and in files."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from flowscope.errors import DataLossError, InvalidArgumentError, OpError
from flowscope.graph.values.dtypes import as_dtype
from flowscope.ops.host import dataset_ops as ops
from flowscope.ops.host.files import file_errors
from flowscope.ops.host.py_functions import failure_of
from flowscope.ops.input.records import read_records
from flowscope.ops.input.streams import PIECE, ByteStream, check_compression, open_stream
from flowscope.runtime.datasets.dataset_pipelines import (
    Context,
    Element,
    EndOfDataset,
    Pipeline,
    Transformation,
    makers,
    positive,
)


class _Raw(io.RawIOBase):
    """A stream of bytes for Python's buffered readers."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._stream.close()
        super().close()


class Files(Pipeline):
    """Records of files, one file after the other.

    A file that cannot be read is passed over by who takes the next element.

    Args:
        names: Their names, or one.
        compression: "", "ZLIB" or "GZIP".
        buffer_bytes: So many bytes are read at once; 0 for some.
    """

    is_fresh = True

    def __init__(self, names: Any, compression: Any, buffer_bytes: Any) -> None:
        given = [names] if isinstance(names, bytes) else names.tolist()
        self._names = [os.fsdecode(n) for n in given]
        self._compression = bytes(compression).decode()
        self._buffer_bytes = int(buffer_bytes)
        self._records: Iterator[bytes] | None = None

    def records(self, name: str, file: Any) -> Iterator[bytes]:
        """Yields the records of a file."""
        raise NotImplementedError

    def next(self) -> Element:
        """Returns the next record."""
        while True:
            if self._records is None:
                if not self._names:
                    raise EndOfDataset
                self._records = self._read(self._names.pop(0))
            try:
                return (next(self._records),)
            except StopIteration:
                self._records = None
            except BaseException:
                self._records = None
                raise

    def _read(self, name: str) -> Iterator[bytes]:
        raw = _Raw(open_stream(name, check_compression(self._compression)))
        with io.BufferedReader(raw, self._buffer_bytes or PIECE) as file:
            yield from self.records(name, file)


class _Records(Files):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        names, compression = dataset.inputs
        super().__init__(names, compression, 0)

    def _read(self, name: str) -> Iterator[bytes]:
        return (data for data, _ in read_records(name, self._compression))


class _Lines(Files):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(*dataset.inputs)

    def records(self, name: str, file: Any) -> Iterator[bytes]:
        for line in file:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


class _FixedLength(Files):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        names, header, record, footer, buffer_bytes, compression = dataset.inputs
        super().__init__(names, compression, buffer_bytes)
        self._header, self._footer = int(header), int(footer)
        self._record = positive("record_bytes", record)

    def records(self, name: str, file: Any) -> Iterator[bytes]:
        whole = file.read(self._header + self._footer)
        if len(whole) < self._header + self._footer:
            raise DataLossError(f"the file {name!r} is shorter than its header and footer")
        held = whole[self._header :]
        while chunk := file.read(self._record):
            if len(chunk) < self._record:
                raise InvalidArgumentError(
                    f"expected records of {self._record} bytes in the file {name!r}, got "
                    f"{len(chunk)} bytes at its end"
                )
            held += chunk
            yield held[: self._record]
            held = held[self._record :]


# -- caches ---------------------------------------------------------------------------------------


class _MemoryCache(Transformation):
    """Keeps the elements of a pass that came to its end."""

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        kept = context.caches.get(context.cache_key)
        self._kept = kept
        self._made: list[Element] = []
        self._at = 0
        if kept is None:
            super().__init__(dataset, context)
        self.is_fresh = False

    def next(self) -> Element:
        if self._kept is not None:
            if self._at == len(self._kept):
                raise EndOfDataset
            self._at += 1
            return self._kept[self._at - 1]
        try:
            found = self.input.next()
        except EndOfDataset:
            self.context.caches[self.context.cache_key] = self._made
            raise
        self._made.append(found)
        return found

    def skip(self, count: int) -> int:
        if self._kept is None:
            return super().skip(count)
        found = min(count, len(self._kept) - self._at)
        self._at += found
        return found


class _FileCache(Transformation):
    """Keeps the elements of a pass that came to its end in a file, for later processes too."""

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self._path = os.fsdecode(bytes(dataset.inputs[1]))
        self._is_kept = os.path.exists(self._path)
        self._file: Any = None
        if not self._is_kept:
            super().__init__(dataset, context)
        self.is_fresh = self._is_kept

    @property
    def _unfinished(self) -> str:
        return f"{self._path}.{os.getpid()}.{id(self)}.tmp"

    def next(self) -> Element:
        with file_errors("read" if self._is_kept else "write", self._path):
            return self._kept() if self._is_kept else self._keeping()

    def _kept(self) -> Element:
        if self._file is None:
            self._file = open(self._path, "rb")  # noqa: SIM115 (until the end of the pass)
        found = _read_element(self._path, self._file)
        if found is None:
            self._file.close()
            raise EndOfDataset
        return found

    def _keeping(self) -> Element:
        try:
            found = self.input.next()
        except EndOfDataset:
            if self._file is not None and not self._file.closed:
                self._file.write(_END)
                self._file.close()
                os.replace(self._unfinished, self._path)
            raise
        if self._file is None:
            os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
            self._file = open(self._unfinished, "wb")  # noqa: SIM115
        _write_element(self._file, found)
        return found

    def __del__(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None and not file.closed:
            file.close()
            if not self._is_kept:
                os.unlink(self._unfinished)


#: What stands behind the last element.
_END = b"null\n"


def _write_element(file: BinaryIO, element: Element) -> None:
    """Writes a line of JSON that says what there is per component, then the bytes of all."""
    head: list[Any] = []
    data: list[bytes] = []
    for value in element:
        if isinstance(value, bytes) or value.dtype.kind == "O":
            flat = [value] if isinstance(value, bytes) else value.reshape(-1).tolist()
            head.append([None, list(np.shape(value)), [len(v) for v in flat]])
            data += flat
        else:
            # A dtype of ml_dtypes is known by its name alone.
            head.append([value.dtype.name, list(np.shape(value)), value.nbytes])
            data.append(value.tobytes())
    file.write(json.dumps(head).encode() + b"\n" + b"".join(data))


def _read_element(path: str, file: BinaryIO) -> Element | None:
    line = file.readline(1 << 24)
    try:
        head = json.loads(line)
        return None if head is None else tuple([_read_value(file, *facts) for facts in head])
    except (ValueError, TypeError) as e:
        raise DataLossError(f"the file {path!r} holds no elements of a dataset: {e}") from e


def _read_value(file: BinaryIO, name: str | None, shape: list[int], lengths: Any) -> Any:
    if name is not None:
        array = np.frombuffer(bytearray(_exactly(file, lengths)), as_dtype(name).np_dtype)
        found = array.reshape(shape)
        return found if shape else found[()]
    flat = np.empty(len(lengths), object)
    flat[:] = [_exactly(file, n) for n in lengths]
    return flat.reshape(shape) if shape else flat[0]


def _exactly(file: BinaryIO, count: int) -> bytes:
    found = file.read(count)
    if len(found) < count:
        raise ValueError(f"it ends {count - len(found)} bytes too early")
    return found


def _cache(dataset: ops.DatasetValue, context: Context) -> Pipeline:
    kind = _FileCache if bytes(dataset.inputs[1]) else _MemoryCache
    return kind(dataset, context)


# -- generators -----------------------------------------------------------------------------------


class _Generated(Pipeline):
    """The elements of a generator of the user's.

    It is not called with signals let through: an exception would end it, and lose what it has.
    """

    is_fresh = True

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        self._op: Any = dataset.op
        self._arguments = dataset.inputs
        self._elements: Iterator[Element] | None = None
        self._number = 0

    def next(self) -> Element:
        holder = self._op.holder()
        try:
            if self._elements is None:
                self._elements = iter(holder.function(*self._arguments))
            found: Element | None = next(self._elements, None)
        except OpError:
            raise
        except Exception as e:
            error = failure_of(holder, e)
            raise error.reworded(f"element {self._number}: {error.message}") from e
        self._number += 1
        if found is None:
            raise EndOfDataset
        return found


makers |= {
    ops.CacheDataset: _cache,
    ops.FixedLengthRecordDataset: _FixedLength,
    ops.GeneratorDataset: _Generated,
    ops.TFRecordDataset: _Records,
    ops.TextLineDataset: _Lines,
}

__all__ = ["Files"]
