"""Checkpoint files: arrays by name in one safetensors file, written whole or not at all.

A checkpoint is named by a prefix such as "model-1000"; its file is the prefix and ".safetensors".
What the format cannot hold is encoded, and the file's metadata says how ("flowscope": "1" is the
version of this encoding, "encoded" is JSON: per name the dtype and shape before it):

- complex numbers: pairs of floats along a new last axis;
- strings: bytes: the n + 1 offsets of n strings as little-endian uint64, then the strings.

Files are parsed, never executed. Files that others wrote are read as they are.

Source: the safetensors format, https://github.com/huggingface/safetensors
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from flowscope.errors import (
    DataLossError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from flowscope.graph.dtypes import DType, as_dtype, string
from flowscope.graph.op import Array
from flowscope.graph.string_values import boxed

SUFFIX = ".safetensors"
_VERSION = 1
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


def file_of(prefix: str) -> str:
    """Returns the path of the file of the checkpoint `prefix`."""
    return prefix if prefix.endswith(SUFFIX) else prefix + SUFFIX


# -- writing ----------------------------------------------------------------------------------


def write_checkpoint(prefix: str, arrays: Mapping[str, Array]) -> str:
    """Writes arrays to the checkpoint `prefix`, and its folder if it is missing; returns the path.

    An older file of this name is there, whole, until the new one is.

    Raises:
        ResourceExhaustedError: if the disk is full.
        PermissionDeniedError: if the folder may not be written to.
    """
    path = file_of(prefix)
    encoded: dict[str, Any] = {}
    plain = {name: _encoded(name, a, encoded) for name, a in arrays.items()}
    metadata = {"flowscope": str(_VERSION), "encoded": json.dumps(encoded)}
    with replaced(path) as temporary:
        _save(plain, temporary, metadata)
    return path


def _save(arrays: dict[str, Any], path: str, metadata: dict[str, str]) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(arrays, path, metadata)
    except SafetensorError as e:
        raise UnknownError(f'cannot write "{path}": {e}') from e


@contextmanager
def replaced(path: str) -> Iterator[str]:
    """Yields the path of a temporary file that takes the place of `path` once it is on disk."""
    folder = os.path.dirname(path) or "."
    with _os_errors(path):
        os.makedirs(folder, exist_ok=True)
        unique = f".{os.path.basename(path)}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
        temporary = os.path.join(folder, unique)
        try:
            yield temporary
            _sync(temporary, os.O_RDWR)
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        if hasattr(os, "O_DIRECTORY"):
            _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: str, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise _os_error(e, path) from e


def _os_error(error: OSError, path: str) -> OpError:
    text = f'"{path}": {error.strerror or error}'
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"{text}: there is no such checkpoint")
    if isinstance(error, PermissionError):
        return PermissionDeniedError(text)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ResourceExhaustedError(text)
    return UnknownError(text)


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
    """Reads arrays by name from a checkpoint.

    Args:
        prefix: What `Saver.save` returned, or the path of a safetensors file.

    Raises:
        NotFoundError: if there is no such checkpoint.
        DataLossError: if the file is damaged or no safetensors file.
    """

    def __init__(self, prefix: str) -> None:
        self.path = file_of(os.fspath(prefix))
        self._file = _opened(self.path)
        self._names = set(self._file.keys())
        self._encoded = _encodings(self.path, self._file.metadata() or {}, self._names)

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
        if name in self._encoded or 0 in shape or not block:
            return self._whole(name)[block]
        with self._damage(name):
            return np.array(self._file.get_slice(name)[block])

    def _whole(self, name: str) -> Any:
        with self._damage(name):
            # A copy: what the library returns may lie in the file.
            array = np.array(self._file.get_tensor(name))
            known = self._encoded.get(name)
            return array if known is None else _decoded(array, *known)

    @contextmanager
    def _damage(self, name: str) -> Iterator[None]:
        from safetensors import SafetensorError

        try:
            yield
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
    except OSError as e:
        raise _os_error(e, path) from None
    except SafetensorError as e:
        raise DataLossError(f'"{path}" is damaged, or no checkpoint: {e}') from e


def _encodings(
    path: str, metadata: Mapping[str, str], names: set[str]
) -> dict[str, tuple[DType, tuple[int, ...]]]:
    if "flowscope" not in metadata:
        return {}
    if metadata["flowscope"] != str(_VERSION):
        raise UnimplementedError(
            f'"{path}" has version {metadata["flowscope"]} of the encoding, expected {_VERSION}: '
            "a newer flowscope wrote it"
        )
    try:
        found = json.loads(metadata["encoded"])
        return {
            name: (as_dtype(facts["dtype"]), tuple([int(d) for d in facts["shape"]]))
            for name, facts in found.items()
            if name in names
        }
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise DataLossError(f'"{path}" has damaged metadata: {e!r}') from e


def _decoded(array: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    """Returns what `_encoded` was given; raises ValueError if that cannot be."""
    if dtype is not string:
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
