"""Messages of control and of runs: a header and values, as bytes.

    prefix   bytes of the head (u32), bytes of all values (u64)
    head     msgpack: [header, [code, shape, bytes or their number], ...]
    values   the bytes of those that do not stand in the head, one after the other

Headers are plain data. Bytes that a peer sends are unpacked, never executed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgpack

from flowscope.cluster.transport.encoding.values import Data, decoded, empty, encoded, is_string
from flowscope.errors import DataLossError, InvalidArgumentError, OpError
from flowscope.graph.values.dtypes import uint8

_PREFIX = struct.Struct("<IQ")
#: So large a value stands in the head; larger ones are read into their place.
_INLINE_BYTES = 4096
_MOST_HEAD_BYTES = 1 << 28
#: The code of bytes.
_BYTES = int(uint8)
#: The extension type of integers of more than 64 bits.
_LONG = 1

Message = tuple[dict[str, Any], list[Any]]


def packed(header: dict[str, Any], values: Sequence[Any] = ()) -> list[Data]:
    """Returns the parts of a message; large arrays are not copied.

    Raises:
        InvalidArgumentError: if the header is no plain data, or a value no array.
    """
    told: list[Any] = [header]
    large: list[Data] = []
    for value in values:
        code, shape, data = encoded(value)
        is_inline = len(data) <= _INLINE_BYTES
        told.append((code, shape, bytes(data) if is_inline else len(data)))
        if not is_inline:
            large.append(data)
    try:
        head = msgpack.packb(told, default=_pack_long)
    except (TypeError, ValueError, OverflowError) as e:
        raise InvalidArgumentError(f"expected plain data in a message, got {e}") from e
    prefix = _PREFIX.pack(len(head), sum(map(len, large)))
    return [prefix + head, *large]


def _pack_long(value: Any) -> Any:
    if isinstance(value, int):
        size = value.bit_length() // 8 + 1
        return msgpack.ExtType(_LONG, value.to_bytes(size, "little", signed=True))
    raise TypeError(f"{type(value).__name__}: {value!r}")


def _unpack_long(code: int, data: bytes) -> int:
    if code != _LONG:
        raise ValueError(f"unknown extension {code}")
    return int.from_bytes(data, "little", signed=True)


class MessageReader:
    """Puts messages together from pieces as they come.

    Args:
        most_bytes: As long a head may be.
    """

    def __init__(self, most_bytes: int = _MOST_HEAD_BYTES) -> None:
        self._most = most_bytes
        #: The beginning of a message; bytes where it has come in one piece.
        self._buffer: bytes | bytearray = b""
        self._header: dict[str, Any] | None = None
        self._values: list[Any] = []
        #: Where the bytes of large values go that have not come: index, code, shape, bytes.
        self._strings: list[tuple[int, int, tuple[int, ...], Any]] = []
        self._views: list[memoryview] = []

    @property
    def target(self) -> memoryview | None:
        """What the next bytes are to be read into; None if `feed` takes them."""
        return self._views[0] if self._views else None

    def filled(self, count: int) -> None:
        """Notes that so many bytes of `target` have been written."""
        view = self._views[0]
        if count < len(view):
            self._views[0] = view[count:]
        else:
            del self._views[0]

    def feed(self, data: bytes) -> None:
        """Takes bytes that have come."""
        if self._views:
            data = self._fill(memoryview(data))
        if not self._buffer:
            self._buffer = data
            return
        if type(self._buffer) is bytes:
            self._buffer = bytearray(self._buffer)
        self._buffer += data

    def _fill(self, data: memoryview) -> bytes:
        while self._views and data:
            count = min(len(data), len(self._views[0]))
            self._views[0][:count] = data[:count]
            self.filled(count)
            data = data[count:]
        return bytes(data)

    def next(self) -> Message | None:
        """Returns the next message, if all of it has come.

        Raises:
            DataLossError: if the bytes are no message.
        """
        if self._header is None:
            self._begin()
        if self._header is None or self._views:
            return None
        for index, code, shape, data in self._strings:
            self._values[index] = decoded(code, shape, data)
        message = self._header, self._values
        self._header, self._values, self._strings = None, [], []
        return message

    def _begin(self) -> None:
        buffer = self._buffer
        if len(buffer) < _PREFIX.size:
            return
        size, nbytes = _PREFIX.unpack_from(buffer)
        if size > self._most:
            raise DataLossError(f"expected a message of at most {self._most} bytes, got {size}")
        end = _PREFIX.size + size
        if len(buffer) < end:
            return
        head, rest = bytes(buffer[_PREFIX.size : end]), bytes(buffer[end:])
        self._buffer = b""
        try:
            self._take_head(head, nbytes)
        except OpError:
            raise
        except Exception as e:  # msgpack raises many kinds of them
            raise DataLossError(f"expected a message, got bytes that are none: {e}") from e
        if rest:
            self.feed(rest)

    def _take_head(self, head: bytes, nbytes: int) -> None:
        header, *told = msgpack.unpackb(head, ext_hook=_unpack_long)
        if type(header) is not dict:
            raise DataLossError(f"expected a header, got {type(header).__name__}")
        values, strings, views = [], [], []
        for index, (code, shape, data) in enumerate(told):
            shape = tuple(shape)
            if type(data) is bytes:
                values.append(decoded(code, shape, data))
            elif is_string(code):
                text, view = empty(_BYTES, (data,), data)
                strings.append((index, code, shape, text))
                views.append(view)
                values.append(None)
            else:
                array, view = empty(code, shape, data)
                values.append(array)
                views.append(view)
        if views or nbytes:
            if sum(map(len, views)) != nbytes:
                got = sum(map(len, views))
                raise DataLossError(f"expected {nbytes} bytes of values, got {got}")
            self._strings, self._views = strings, [v for v in views if len(v)]
        self._header, self._values = header, values


__all__ = ["Message", "MessageReader", "packed"]
