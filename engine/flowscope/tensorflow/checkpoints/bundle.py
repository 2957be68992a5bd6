"""TensorFlow's checkpoints as arrays by name: the files .index and .data-00000-of-00001.

The index has, by name, dtype, shape, where the bytes are and their masked CRC-32C. A tensor that
was written in parts has a list of them, and each part an entry of its own. Bytes are little-endian,
row by row; of strings the lengths come first, with a checksum of their own.

Source: the format of TensorFlow's tensor_bundle.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowscope.errors import DataLossError, NotFoundError, OpError, UnimplementedError
from flowscope.graph.messages.protobuf import varint
from flowscope.graph.messages.tensor_arrays import dims_of, dtype_of
from flowscope.graph.messages.tensorflow_schema import message_class, parse
from flowscope.graph.op import Array
from flowscope.graph.serialization.whole_files import os_error, os_errors, replaced
from flowscope.graph.values.dtypes import DType, as_dtype, string
from flowscope.graph.values.expected import expected
from flowscope.graph.values.string_values import boxed
from flowscope.ops.input.records import masked_crc32c
from flowscope.ops.state.checkpoint_file import CheckpointReader, bundle_formats, index_of
from flowscope.tensorflow.checkpoints.slice_keys import slice_key
from flowscope.tensorflow.checkpoints.sorted_table import read_table, table_bytes

_PRODUCER = 1


class BundleReader(CheckpointReader):
    """Reads arrays by name from a checkpoint that TensorFlow wrote.

    Args:
        prefix: The checkpoint's prefix.

    Raises:
        NotFoundError: if there is no such checkpoint.
        DataLossError: if the index is damaged.
        UnimplementedError: if it was written on a big-endian machine.
    """

    def __init__(self, prefix: Any) -> None:
        self.path = os.fsdecode(prefix)
        self.is_written_here = False
        with os_errors(index_of(prefix)), open(index_of(prefix), "rb") as file:
            data = file.read()
        try:
            self._table = read_table(data)
        except DataLossError as e:
            raise DataLossError(
                f'"{self.path}" is damaged, or no checkpoint: {e.message}'
            ) from None
        header = parse("BundleHeaderProto", self._table.pop(b"", b""), f'"{self.path}"')
        if header.endianness:
            raise UnimplementedError(f'"{self.path}" was written on a big-endian machine')
        if header.version.min_consumer > _PRODUCER:
            raise UnimplementedError(f'a newer TensorFlow wrote "{self.path}"')
        self._shards = header.num_shards
        keys = [key for key in self._table if not key.startswith(b"\0")]
        self._entries = {key.decode(errors="replace"): self._entry(key) for key in keys}
        self._names = set(self._entries)

    def _entry(self, key: bytes) -> Any:
        if key not in self._table:
            raise DataLossError(f'"{self.path}" lacks a part of a tensor')
        return parse("BundleEntryProto", self._table[key], f'"{self.path}"')

    def shape(self, name: str) -> list[int]:
        """Returns the shape of the array of this name."""
        return list(self._dims(name, self._entries[name]))

    def dtype(self, name: str) -> DType:
        """Returns the dtype of the array of this name."""
        return dtype_of(self._entries[name].dtype)

    def read(self, name: str, offset: Sequence[int] | None, shape: Sequence[int] | None) -> Array:
        """Returns an array, or the part of it from `offset` on that has the shape `shape`."""
        if name not in self._names:
            raise NotFoundError(f'there is no "{name}" in the checkpoint "{self.path}"')
        entry = self._entries[name]
        whole = self._joined(name, entry) if entry.slices else self._array(name, entry)
        if offset is None or shape is None:
            return whole[()]
        return np.array(whole[tuple([slice(o, o + n) for o, n in zip(offset, shape, strict=True)])])

    def _dims(self, name: str, entry: Any) -> tuple[int, ...]:
        dims = dims_of(entry.shape)
        if dims is None or None in dims or math.prod(d or 0 for d in dims) >= 1 << 48:
            raise self._damaged(name, "its shape is not known")
        return tuple([d for d in dims if d is not None])

    def _joined(self, name: str, entry: Any) -> Any:
        """Returns an array that was written in parts."""
        dims, dtype = self._dims(name, entry), dtype_of(entry.dtype)
        parts = []
        for written in entry.slices:
            extents = [
                (e.start, e.length if e.WhichOneof("has_length") else -1) for e in written.extent
            ]
            part = self._entry(slice_key(name, extents))
            full = [(s, n if n >= 0 else d - s) for (s, n), d in zip(extents, dims, strict=False)]
            sizes = tuple([n for _, n in full])
            fits = len(extents) == len(dims) and all(
                s >= 0 and s + n <= d for (s, n), d in zip(full, dims, strict=True)
            )
            if not fits or self._dims(name, part) != sizes or part.dtype != entry.dtype:
                raise self._damaged(name, "a part of it does not fit")
            parts.append((tuple([slice(s, s + n) for s, n in full]), part))
        filled = sum(math.prod(self._dims(name, part)) for _, part in parts)
        if filled != math.prod(dims) or sum(p.size for _, p in parts) > self._file_bytes():
            raise self._damaged(name, "its parts are not the whole")
        arrays = [(place, self._array(name, part)) for place, part in parts]
        out = np.zeros(dims, dtype.np_dtype)
        for place, array in arrays:
            out[place] = array
        return out

    def _array(self, name: str, entry: Any) -> Any:
        dims, dtype = self._dims(name, entry), dtype_of(entry.dtype)
        if dtype.kind in "rv":
            raise UnimplementedError(f'"{name}" in "{self.path}" is of type {dtype}')
        data = self._bytes(name, entry)
        if dtype is string:
            return self._strings(name, data, entry.crc32c, dims)
        if masked_crc32c(data) != entry.crc32c:
            raise self._damaged(name, "its bytes are not those that were written")
        if len(data) != math.prod(dims) * dtype.size:
            raise self._damaged(name, f"expected {math.prod(dims)} elements of {dtype}")
        kind = np.dtype(dtype.np_dtype).newbyteorder("<")
        return np.frombuffer(bytearray(data), kind).view(dtype.np_dtype).reshape(dims)

    def _bytes(self, name: str, entry: Any) -> bytes:
        if not 0 <= entry.shard_id < self._shards or entry.size < 0 or entry.offset < 0:
            raise self._damaged(name, "the place of its bytes does not exist")
        path = shard_of(self.path, entry.shard_id, self._shards)
        try:
            with open(path, "rb") as file:
                if entry.offset + entry.size > os.fstat(file.fileno()).st_size:
                    raise self._damaged(name, "the file ends before it")
                file.seek(entry.offset)
                return file.read(entry.size)
        except FileNotFoundError:
            raise _missing(path) from None
        except OSError as e:
            raise os_error(e, path) from e

    def _file_bytes(self) -> int:
        """How many bytes the files of arrays have together."""
        paths = [shard_of(self.path, i, self._shards) for i in range(min(self._shards, 99_999))]
        try:
            return sum(os.stat(path).st_size for path in paths)
        except FileNotFoundError as e:
            raise _missing(e.filename) from None

    def _strings(self, name: str, data: bytes, expected_sum: int, dims: tuple[int, ...]) -> Any:
        count = math.prod(dims)
        lengths, at = [], 0
        for _ in range(count if count <= len(data) else 0):
            value, shift = 0, 0
            while at < len(data) and data[at] & 0x80 and shift < 63:
                value |= (data[at] & 0x7F) << shift
                at, shift = at + 1, shift + 7
            if at >= len(data):
                break
            lengths.append(value | data[at] << shift)
            at += 1
        if len(lengths) != count or at + 4 + sum(lengths) != len(data):
            raise self._damaged(name, f"expected {count} strings")
        head = b"".join(map(_as_number, lengths))
        if int.from_bytes(data[at : at + 4], "little") != masked_crc32c(head):
            raise self._damaged(name, "the lengths of its strings are not those that were written")
        if masked_crc32c(head + data[at:]) != expected_sum:
            raise self._damaged(name, "its bytes are not those that were written")
        out = np.empty(count, object)
        at += 4
        for i, length in enumerate(lengths):
            out[i] = data[at : at + length]
            at += length
        return out.reshape(dims)

    def _damaged(self, name: str, why: str) -> OpError:
        return DataLossError(f'"{name}" in "{self.path}" cannot be read: {why}')


def shard_of(prefix: str, shard: int, count: int) -> str:
    """Returns the path of one of the files that have a checkpoint's bytes."""
    return f"{prefix}.data-{shard:05d}-of-{count:05d}"


def _missing(path: str) -> OpError:
    return DataLossError(f'"{path}" is missing, a part of a checkpoint')


def _as_number(length: int) -> bytes:
    """Returns a length as checksums count it."""
    return length.to_bytes(4 if length < 1 << 32 else 8, "little")


def write_bundle(prefix: str, arrays: Mapping[str, Array]) -> str:
    """Writes arrays as a checkpoint of TensorFlow's; returns the path of its index.

    The index comes last: a checkpoint without one does not exist.

    Raises:
        ResourceExhaustedError: if the disk is full.
        PermissionDeniedError: if the folder may not be written to.
        InvalidArgumentError: if no file can have this path, or a name is empty.
    """
    header = message_class("BundleHeaderProto")(num_shards=1)
    header.version.producer = _PRODUCER
    table = {b"": header.SerializeToString()}
    at = 0
    with replaced(shard_of(prefix, 0, 1)) as file:
        for name, value in sorted(arrays.items()):
            if not name or name.startswith("\0"):
                raise expected("the name of a tensor of a checkpoint", repr(name))
            array = np.asarray(boxed(value))
            dtype = as_dtype(array.dtype)
            data, checksum = _written(array, dtype)
            entry = message_class("BundleEntryProto")(
                dtype=dtype.as_datatype_enum, offset=at, size=len(data), crc32c=checksum
            )
            for size in array.shape:
                entry.shape.dim.add(size=size)
            table[name.encode()] = entry.SerializeToString()
            file.write(data)
            at += len(data)
    path = index_of(prefix)
    with replaced(path) as file:
        file.write(table_bytes(table))
    return path


def _written(array: Any, dtype: DType) -> tuple[bytes, int]:
    """Returns an array's bytes and their checksum."""
    if dtype is not string:
        data = np.ascontiguousarray(array, np.dtype(array.dtype).newbyteorder("<")).tobytes()
        return data, masked_crc32c(data)
    items = [bytes(item) for item in array.reshape(-1).tolist()]
    head = b"".join([_as_number(len(i)) for i in items])
    rest = masked_crc32c(head).to_bytes(4, "little") + b"".join(items)
    return b"".join([varint(len(i)) for i in items]) + rest, masked_crc32c(head + rest)


bundle_formats.append((BundleReader, write_bundle))

__all__ = ["BundleReader", "write_bundle"]
