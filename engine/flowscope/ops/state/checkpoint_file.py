"""Checkpoint files: arrays by name in one safetensors file, written whole or not at all.

A checkpoint is named by a prefix such as "model-1000"; its file is the prefix and ".safetensors".
What the format cannot hold is encoded, and the file's metadata says how ("flowscope": "1" is the
version of this encoding, "encoded" is JSON: per name the dtype and shape before it; "crc32" is
JSON: per name the CRC-32 of its bytes in the file, which is compared when they are read):

- complex numbers: pairs of floats along a new last axis;
- strings: bytes: the n + 1 offsets of n strings as little-endian uint64, then the strings.

Files are parsed, never executed. Files that others wrote are read as they are.

Source: the safetensors format, https://github.com/huggingface/safetensors
"""

from __future__ import annotations

import json
import math
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from zlib import crc32

import numpy as np

from flowscope.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from flowscope.graph.op import Array
from flowscope.graph.providers import load
from flowscope.graph.serialization.values import read_dtype, read_sizes
from flowscope.graph.serialization.whole_files import clear_leftovers, os_error, replaced
from flowscope.graph.values.dtypes import DType, as_dtype, string
from flowscope.graph.values.expected import expected_dtype
from flowscope.graph.values.string_values import boxed

SUFFIX = ".safetensors"
_VERSION = 1
#: The last bytes of a file of TensorFlow's.
_TABLE_END = (0xDB4775248B80FB57).to_bytes(8, "little")
#: safetensors' names of element types.
_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "C64": "complex64",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
}
_NAMES = {ours: theirs for theirs, ours in _DTYPES.items()}


def check_names(names: Sequence[str]) -> None:
    """Raises InvalidArgumentError for names that no array of a checkpoint can have."""
    for name in names:
        if name == "__metadata__" or not _is_utf8(name):
            raise InvalidArgumentError(f"no tensor of a checkpoint can be named {name!r}")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def file_of(prefix: str) -> str:
    """Returns the path of the file of the checkpoint `prefix`."""
    return prefix if prefix.endswith(SUFFIX) else prefix + SUFFIX


def index_of(prefix: Any) -> str:
    """Returns the path of the index of the checkpoint `prefix`, if TensorFlow wrote it."""
    return os.fsdecode(prefix) + ".index"


def is_bundle(prefix: Any) -> bool:
    """Whether the checkpoint of this prefix has TensorFlow's form."""
    path = os.fsdecode(prefix)
    return not os.path.isfile(file_of(path)) and os.path.isfile(index_of(path))


#: What reads and what writes checkpoints of TensorFlow's form; a higher floor fills it.
bundle_formats: list[tuple[type[CheckpointReader], Callable[[str, Mapping[str, Array]], str]]] = []


def bundle_format() -> tuple[type[CheckpointReader], Callable[[str, Mapping[str, Array]], str]]:
    """The reader and the writer of TensorFlow's form."""
    if not bundle_formats:
        load("bundle_formats")
    return bundle_formats[0]


def is_written_here(prefix: str) -> bool:
    """Whether there is a checkpoint of this prefix, and flowscope wrote it."""
    try:
        return CheckpointReader(prefix).is_written_here
    except OpError:
        return False


# -- writing ----------------------------------------------------------------------------------


def write_checkpoint(prefix: str, arrays: Mapping[str, Array]) -> str:
    """Writes arrays to the checkpoint `prefix`, and its folder if it is missing; returns the path.

    An older file of this name is there, whole, until the new one is. What processes that were
    killed while they wrote have left in the folder is deleted.

    Raises:
        ResourceExhaustedError: if the disk is full.
        PermissionDeniedError: if the folder may not be written to.
        InvalidArgumentError: if no file can have this path.
    """
    path = file_of(prefix)
    clear_leftovers(os.path.dirname(path))
    encoded: dict[str, Any] = {}
    plain = {name: _encoded(name, a, encoded) for name, a in arrays.items()}
    # Large elements first: then each array lies at a multiple of its element's size.
    plain = dict(sorted(plain.items(), key=lambda item: (-item[1].itemsize, item[0])))
    head = _head(plain, encoded)
    with replaced(path) as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for array in plain.values():
            file.write(_bytes_of(array))
    return path


def _head(plain: Mapping[str, Any], encoded: Mapping[str, Any]) -> bytes:
    """Returns the file's header: JSON, filled up with blanks to a multiple of 8 bytes."""
    sums = {name: f"{crc32(_bytes_of(array)):08x}" for name, array in plain.items()}
    facts: dict[str, Any] = {
        "__metadata__": {
            "flowscope": str(_VERSION),
            "encoded": json.dumps(encoded),
            "crc32": json.dumps(sums),
        }
    }
    at = 0
    for name, array in plain.items():
        end = at + array.nbytes
        kind = _NAMES[str(as_dtype(array.dtype))]
        facts[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(facts, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def _bytes_of(array: Any) -> Any:
    """Returns an array's bytes, row by row, without a copy."""
    if sys.byteorder == "big":
        array = array.byteswap()
    return array.reshape(-1).view(np.uint8).data if array.size else b""


def _encoded(name: str, value: Array, encoded: dict[str, Any]) -> Any:
    """Returns an array as the format can hold it; notes in `encoded` what it was."""
    array = np.asarray(boxed(value))
    if array.dtype.kind not in "cO":
        return np.asarray(array, order="C")
    encoded[name] = {"dtype": str(as_dtype(array.dtype)), "shape": list(array.shape)}
    if array.dtype.kind == "c":
        real = np.dtype(f"f{array.dtype.itemsize // 2}")
        return np.ascontiguousarray(array).view(real).reshape(*array.shape, 2)
    items = [bytes(item) for item in array.reshape(-1).tolist()]
    offsets = np.cumsum([0, *map(len, items)], dtype="<u8")
    return np.frombuffer(offsets.tobytes() + b"".join(items), np.uint8)


# -- reading ----------------------------------------------------------------------------------


class CheckpointReader:
    """Reads arrays by name from a checkpoint, ours or TensorFlow's.

    Args:
        prefix: What `Saver.save` returned, here or in TensorFlow, or the path of a safetensors
            file.

    Raises:
        NotFoundError: if there is no such checkpoint.
        DataLossError: if the file is damaged or no checkpoint.
        FailedPreconditionError: if it is TensorFlow's and protobuf is not installed.
    """

    def __new__(cls, prefix: Any) -> CheckpointReader:
        """Chooses the reader of TensorFlow's form where the checkpoint has it."""
        is_path = isinstance(prefix, str | bytes | os.PathLike)
        chosen = (
            bundle_format()[0] if cls is CheckpointReader and is_path and is_bundle(prefix) else cls
        )
        return super().__new__(chosen)

    def __init__(self, prefix: Any) -> None:
        if not isinstance(prefix, str | bytes | os.PathLike):
            raise expected_dtype("a checkpoint's prefix", repr(prefix))
        self.path = file_of(os.fsdecode(prefix))
        self._file = _opened(self.path)
        self._data = _Data(self.path)
        self._names = set(self._file.keys())
        metadata = self._file.metadata() or {}
        #: Whether flowscope wrote it.
        self.is_written_here = "flowscope" in metadata
        self._encoded, self._sums = _metadata(self.path, metadata, self._names)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Returns the shapes by name."""
        return {name: self.shape(name) for name in sorted(self._names)}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Returns the dtypes by name."""
        return {name: self.dtype(name) for name in sorted(self._names)}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is an array of this name."""
        return tensor_str in self._names

    def get_tensor(self, tensor_str: str) -> Array:
        """Returns an array, or a NumPy scalar for rank 0.

        Raises:
            NotFoundError: if there is none of this name.
            DataLossError: if it is damaged.
        """
        return self.read(tensor_str, None, None)

    def read(self, name: str, offset: Sequence[int] | None, shape: Sequence[int] | None) -> Array:
        """Returns an array, or the part of it from `offset` on that has the shape `shape`."""
        if name not in self._names:
            raise NotFoundError(f'there is no "{name}" in the checkpoint "{self.path}"')
        if offset is None or shape is None:
            return self._whole(name)[()]
        block = tuple([slice(o, o + n) for o, n in zip(offset, shape, strict=True)])
        # A checksum is of the whole, and compared once.
        if name in self._encoded or name in self._sums or 0 in shape or not block:
            return np.array(self._whole(name)[block])
        with self._damage(name):
            return np.array(self._file.get_slice(name)[block])

    def _whole(self, name: str) -> Any:
        self.dtype(name)  # says which types are not known here
        part = self._file.get_slice(name)
        dtype = as_dtype(_DTYPES[part.get_dtype()]).np_dtype
        with self._damage(name):
            array = self._data.read(name, dtype, part.get_shape(), self._sums.get(name))
            self._sums.pop(name, None)
            encoding = self._encoded.get(name)
            return array if encoding is None else _decoded(array, *encoding)

    @contextmanager
    def _damage(self, name: str) -> Iterator[None]:
        from safetensors import SafetensorError

        try:
            yield
        except OSError as e:
            raise os_error(e, self.path) from e
        except (SafetensorError, ValueError) as e:
            raise DataLossError(f'"{name}" in "{self.path}" cannot be read: {e}') from e

    def shape(self, name: str) -> list[int]:
        """Returns the shape of the array of this name."""
        if name in self._encoded:
            return list(self._encoded[name][1])
        return list(self._file.get_slice(name).get_shape())

    def dtype(self, name: str) -> DType:
        """Returns the dtype of the array of this name."""
        if name in self._encoded:
            return self._encoded[name][0]
        theirs = self._file.get_slice(name).get_dtype()
        if theirs not in _DTYPES:
            raise UnimplementedError(f'"{name}" in "{self.path}" is of type {theirs}')
        return as_dtype(_DTYPES[theirs])

    def debug_string(self) -> bytes:
        """Returns one line per array: name, dtype and shape."""
        shapes = self.get_variable_to_shape_map()
        lines = [f"{name} ({self.dtype(name)}) {shape}" for name, shape in shapes.items()]
        return "\n".join(lines).encode()

    def __repr__(self) -> str:
        return f"<fs.train.CheckpointReader: {len(self._names)} tensors, {self.path}>"


def _opened(path: str) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(path, framework="np")
    except FileNotFoundError:
        _refuse_first_version(path.removesuffix(SUFFIX))
        raise NotFoundError(f'there is no checkpoint "{path}"') from None
    except OSError as e:
        raise os_error(e, path) from None
    except SafetensorError as e:
        raise DataLossError(f'"{path}" is damaged, or no checkpoint: {e}') from e


def _refuse_first_version(path: str) -> None:
    """Raises UnimplementedError if a file is a checkpoint of TensorFlow's version 1."""
    with suppress(OSError), open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        if file.read() == _TABLE_END:
            raise UnimplementedError(
                f'"{path}" is a checkpoint of TensorFlow\'s version 1: version 2 is read, which '
                "TensorFlow's tf.train.Saver writes by default"
            )


#: Bytes that are read and summed at a time: they stay in the processor's cache.
_CHUNK = 1 << 18


class _Data:
    """The bytes of a file's arrays. The library that has checked the file copies each array twice.

    Args:
        path: The path of a file whose header is sound.
    """

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        try:
            size = int.from_bytes(self._file.read(8), "little")
            self._start = 8 + size
            self._facts = json.loads(self._file.read(size))
        except ValueError as e:  # another file since then
            raise DataLossError(f'"{path}" is damaged, or no checkpoint: {e}') from e

    def read(self, name: str, dtype: Any, shape: Sequence[int], known: int | None) -> Any:
        """Returns an array; raises ValueError if its bytes are missing or their CRC-32 differs."""
        array = np.empty(shape, dtype)
        begin, end = self._facts[name]["data_offsets"] if name in self._facts else (0, -1)
        if end - begin != array.nbytes:
            raise ValueError("the file was replaced while it was opened")
        view = array.reshape(-1).view(np.uint8).data
        found = 0
        at = 0
        while at < end - begin:
            part = view[at : at + _CHUNK]
            count = _read_into(self._file, part, self._start + begin + at)
            if not count:
                raise ValueError("the file ends before it")
            if known is not None:
                found = crc32(part[:count], found)
            at += count
        if known is not None and found != known:
            raise ValueError("its bytes are not those that were written")
        return array.byteswap() if sys.byteorder == "big" else array


def _read_into(file: Any, view: memoryview, offset: int) -> int:
    """Fills a part of memory from a place of a file; returns how many bytes came."""
    if hasattr(os, "preadv"):  # several threads may read
        return os.preadv(file.fileno(), [view], offset)
    file.seek(offset)
    return int(file.readinto(view))


#: What arrays of a checkpoint were before they were encoded, by name.
Encodings = dict[str, tuple[DType, tuple[int, ...]]]


def _metadata(
    path: str, metadata: Mapping[str, str], names: set[str]
) -> tuple[Encodings, dict[str, int]]:
    """Returns how arrays are encoded, and their checksums, from a file's metadata."""
    if "flowscope" not in metadata:
        return {}, {}
    if metadata["flowscope"] != str(_VERSION):
        raise UnimplementedError(
            f'"{path}" has version {metadata["flowscope"]} of the encoding, expected {_VERSION}: '
            "a newer flowscope wrote it"
        )
    try:
        encoded = json.loads(metadata["encoded"])
        encodings = {n: _encoding(facts) for n, facts in encoded.items() if n in names}
        sums = json.loads(metadata.get("crc32", "{}"))
        return encodings, {n: int(text, 16) for n, text in sums.items() if n in names}
    except (KeyError, TypeError, ValueError, AttributeError, OpError, RecursionError) as e:
        raise DataLossError(f'"{path}" has damaged metadata: {e!r}') from e


def _encoding(facts: Any) -> tuple[DType, tuple[int, ...]]:
    dtype = read_dtype(facts["dtype"])
    if dtype.kind not in "cs":
        raise ValueError(f"{dtype} is not encoded")
    return dtype, read_sizes(facts["shape"])


def _decoded(array: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    """The array that `_encoded` was given; raises ValueError for other bytes."""
    if dtype is not string:
        if array.dtype.kind != "f" or array.shape != (*shape, 2):
            raise ValueError(f"expected pairs of floats for {dtype}{list(shape)}")
        return array.view(dtype.np_dtype).reshape(shape)
    count = math.prod(shape)
    head = 8 * (count + 1)
    data = array.tobytes()
    if array.dtype != np.uint8 or len(data) < head:
        raise ValueError(f"expected {count} strings")
    offsets = np.frombuffer(data[:head], "<u8").astype(np.int64)
    if offsets[0] or head + offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ValueError("the offsets of strings do not fit")
    out = np.empty(count, object)
    ends = offsets.tolist()
    out[:] = [data[head + a : head + b] for a, b in zip(ends, ends[1:])]
    return out.reshape(shape)
