"""The wire format of protocol buffers, for the few messages that files of events are made of.

A message is a `Message` with a table of its fields, `WIRE`: by name, the field's number and its
`FieldKind`. A field that is a list is repeated; numbers of a list are packed. A field that is at
its default is left out, as proto3 says; where the default is None, 0 is written too.

Source: the encoding's specification, protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from flowscope.errors import InvalidArgumentError
from flowscope.graph.messages.message import Message

M = TypeVar("M", bound=Message)

#: Wire types.
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


class FieldKind(NamedTuple):
    """How values of one type are written: the wire type, and bytes from a value and back."""

    wire_type: int
    encode: Callable[[Any], bytes]
    decode: Callable[[Any], Any]


#: The fields of a message: number and kind by name.
Wire = dict[str, tuple[int, FieldKind]]


def varint(value: int) -> bytes:
    """Returns an integer in groups of seven bits, lowest first; a negative one as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, wire_type: int, payload: bytes) -> bytes:
    """Returns a field: its key, the length where the wire type has one, and the payload."""
    length = varint(len(payload)) if wire_type == LENGTH else b""
    return varint(number << 3 | wire_type) + length + payload


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yields (number, wire type, value) of each field; an integer for a varint, else bytes.

    Raises:
        InvalidArgumentError: if the bytes are no message.
    """
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        value: Any
        if key & 7 == VARINT:
            value, at = read_varint(data, at)
        else:
            size, at = _size(data, at, key & 7)
            value, at = data[at : at + size], at + size
        if at > len(data):
            raise _malformed()
        yield key >> 3, key & 7, value


def _size(data: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Returns how many bytes a value has, and where they begin."""
    if wire_type == LENGTH:
        return read_varint(data, at)
    if wire_type not in (FIXED64, FIXED32):
        raise _malformed()
    return (8 if wire_type == FIXED64 else 4), at


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Reads an unsigned number of at most ten bytes: the number, and where it was read to.

    Raises:
        InvalidArgumentError: if it does not end.
    """
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _malformed()


def _malformed() -> InvalidArgumentError:
    return InvalidArgumentError("expected a serialized message, got other bytes or a part of one")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _fixed(wire_type: int, form: str) -> FieldKind:
    packer = struct.Struct(form)
    return FieldKind(wire_type, packer.pack, lambda data: packer.unpack(data)[0])


INT = FieldKind(VARINT, varint, _signed)
UINT = FieldKind(VARINT, varint, int)
DOUBLE = _fixed(FIXED64, "<d")
FLOAT = _fixed(FIXED32, "<f")
BYTES = FieldKind(LENGTH, bytes, bytes)
STRING = FieldKind(LENGTH, str.encode, lambda data: data.decode(errors="replace"))


class MessageList(list[Any]):
    """A field that is a list of messages; `add` makes one more."""

    def __init__(self, make: Callable[..., Any], values: Any = ()) -> None:
        super().__init__(values)
        self._make = make

    def add(self, **fields: Any) -> Any:
        """Appends a new message with these fields, and returns it."""
        self.append(self._make(**fields))
        return self[-1]


class WireMessage(Message):
    """Base of messages that have a serialized form."""

    #: Number and kind of each field by its name.
    WIRE: ClassVar[Wire] = {}
    #: The class of the messages in a field that is a list of them.
    LISTS: ClassVar[dict[str, Any]] = {}
    #: Names of the fields of which one is set, by group.
    ONEOFS: ClassVar[dict[str, str]] = {}

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        for name, make in self.LISTS.items():
            vars(self)[name] = MessageList(make, vars(self)[name])

    def SerializeToString(self) -> bytes:
        """Returns the message as bytes."""
        return encode(self, self.WIRE)

    @classmethod
    def FromString(cls, s: bytes) -> Self:
        """Returns the message that bytes hold; fields that are not known are passed over.

        Raises:
            InvalidArgumentError: if the bytes are no such message.
        """
        return decode(cls(), cls.WIRE, s)

    def ParseFromString(self, serialized: bytes) -> int:
        """Takes over the fields that bytes hold; returns how many bytes these are."""
        self.CopyFrom(self.FromString(serialized))
        return len(serialized)

    def WhichOneof(self, oneof_group: str) -> str | None:
        """Returns the field of the group that is set; None if none is.

        Raises:
            InvalidArgumentError: if there is no such group.
        """
        names = self.ONEOFS.get(oneof_group)
        if names is None:
            raise InvalidArgumentError(
                f"{type(self).__name__} has no group {oneof_group!r}; "
                f"it has {', '.join(self.ONEOFS) or 'none'}"
            )
        return next((n for n in names.split() if self.HasField(n)), None)


def message(cls: type[WireMessage]) -> FieldKind:
    """Returns the kind of a field that holds a message."""
    return FieldKind(LENGTH, lambda value: value.SerializeToString(), cls.FromString)


def encode(value: Message, wire: Wire) -> bytes:
    """Returns the fields of a message as bytes, in the table's order."""
    out = []
    for name, (number, kind) in wire.items():
        given, default = getattr(value, name), value._defaults[name]
        if isinstance(given, list):
            out.append(_repeated(number, kind, given))
        elif given is not None:
            payload = kind.encode(given)
            if default is None or payload != kind.encode(default):
                out.append(field(number, kind.wire_type, payload))
    return b"".join(out)


def _repeated(number: int, kind: FieldKind, values: list[Any]) -> bytes:
    payloads = [kind.encode(v) for v in values]
    if kind.wire_type == LENGTH:
        return b"".join([field(number, LENGTH, p) for p in payloads])
    return field(number, LENGTH, b"".join(payloads)) if payloads else b""


def decode(value: M, wire: Wire, data: bytes) -> M:
    """Puts the fields that bytes hold into a message and returns it."""
    known = {number: (name, kind) for name, (number, kind) in wire.items()}
    for number, wire_type, payload in fields(data):
        if number not in known:
            continue
        name, kind = known[number]
        if isinstance(value._defaults[name], list):
            getattr(value, name).extend(_unpacked(kind, wire_type, payload))
        elif wire_type == kind.wire_type:
            setattr(value, name, kind.decode(payload))
        else:
            raise _malformed()
    return value


def _unpacked(kind: FieldKind, wire_type: int, payload: Any) -> list[Any]:
    if wire_type == kind.wire_type:
        return [kind.decode(payload)]
    if wire_type != LENGTH:
        raise _malformed()
    if kind.wire_type == VARINT:
        return _varints(kind, payload)
    size = 8 if kind.wire_type == FIXED64 else 4
    if len(payload) % size:
        raise _malformed()
    return [kind.decode(payload[i : i + size]) for i in range(0, len(payload), size)]


def _varints(kind: FieldKind, payload: bytes) -> list[int]:
    out, at = [], 0
    while at < len(payload):
        value, at = read_varint(payload, at)
        out.append(kind.decode(value))
    return out


__all__ = [
    "BYTES",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LENGTH",
    "STRING",
    "UINT",
    "FieldKind",
    "MessageList",
    "Wire",
    "WireMessage",
    "decode",
    "encode",
    "field",
    "fields",
    "message",
    "read_varint",
    "varint",
]
