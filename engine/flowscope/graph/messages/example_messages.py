"""Examples as messages: `Example`, `SequenceExample` and what is inside of them.

Names, fields and numbers are those of TensorFlow's messages. A message inside of another one
is made when it is first used: `example.features.feature["x"].int64_list.value.append(3)`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from flowscope.errors import DTypeError
from flowscope.graph.messages.message import repeated
from flowscope.graph.messages.protobuf import (
    BYTES,
    FLOAT,
    INT,
    LENGTH,
    STRING,
    MessageList,
    Wire,
    WireMessage,
    field,
    fields,
    message,
    varint,
)

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]


class _ListMessage(WireMessage):
    """Base of lists of values: their one field is `value`."""

    def _converted(self, name: str, value: Any) -> Any:
        try:
            return self._checked(value)
        except (TypeError, ValueError, OverflowError):
            kind = type(self).__name__
            raise DTypeError(f"expected {kind}.value of {self._WHAT}, got {value!r}") from None

    _WHAT: ClassVar[str] = ""

    def _checked(self, value: Any) -> list[Any]:
        raise NotImplementedError

    def _payload(self) -> bytes:
        """The values, packed."""
        raise NotImplementedError

    def SerializeToString(self) -> bytes:
        """Returns the message as bytes."""
        payload = self._payload() if self.value else b""  # type: ignore[attr-defined]
        return field(1, LENGTH, payload) if payload else b""


class BytesList(_ListMessage):
    """Strings of bytes: `value` is a list of `bytes`."""

    value: list[bytes] = repeated()

    WIRE: ClassVar[Wire] = {"value": (1, BYTES)}
    _WHAT: ClassVar[str] = "bytes"

    def _checked(self, value: Any) -> list[Any]:
        if isinstance(value, str | bytes):
            raise TypeError
        return [bytes(memoryview(v)) for v in value]

    def SerializeToString(self) -> bytes:
        """Returns the message as bytes."""
        return b"".join([field(1, LENGTH, v) for v in self._checked(self.value)])


class FloatList(_ListMessage):
    """Numbers of 32 bits: `value` is a list of floats."""

    value: list[float] = repeated()

    WIRE: ClassVar[Wire] = {"value": (1, FLOAT)}
    _WHAT: ClassVar[str] = "numbers"

    def _checked(self, value: Any) -> list[Any]:
        with np.errstate(over="ignore"):
            found: list[Any] = np.asarray([float(v) for v in value], np.float32).tolist()
        return found

    def _payload(self) -> bytes:
        with np.errstate(over="ignore"):
            return np.asarray(self.value, "<f4").tobytes()


class Int64List(_ListMessage):
    """Integers of 64 bits: `value` is a list of them."""

    value: list[int] = repeated()

    WIRE: ClassVar[Wire] = {"value": (1, INT)}
    _WHAT: ClassVar[str] = "integers of 64 bits"

    def _checked(self, value: Any) -> list[Any]:
        found = [operator.index(v) for v in value]
        np.array(found, np.int64)  # or they do not fit
        return found

    def _payload(self) -> bytes:
        values = self.value
        if max(values) < 128 and min(values) >= 0:
            return bytes(values)
        return b"".join([varint(operator.index(v)) for v in values])


_KINDS: dict[str, tuple[int, type[_ListMessage]]] = {
    "bytes_list": (1, BytesList),
    "float_list": (2, FloatList),
    "int64_list": (3, Int64List),
}


class Feature(WireMessage):
    """Values of one kind: one of `bytes_list`, `float_list` and `int64_list` is set."""

    bytes_list: Any = None
    float_list: Any = None
    int64_list: Any = None

    WIRE: ClassVar[Wire] = {name: (n, message(cls)) for name, (n, cls) in _KINDS.items()}
    ONEOFS: ClassVar[dict[str, str]] = {"kind": "bytes_list float_list int64_list"}

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        for name in _KINDS:
            if vars(self).get(name, self) is None:
                del vars(self)[name]  # `__getattr__` makes it

    def __getattr__(self, name: str) -> Any:
        if name not in _KINDS:
            raise AttributeError(self._unknown(name))
        made = vars(self)[name] = _KINDS[name][1]()
        return made

    def _converted(self, name: str, value: Any) -> Any:
        kind = _KINDS[name][1]
        if not isinstance(value, kind):
            raise DTypeError(f"expected Feature.{name} of type {kind.__name__}, got {value!r}")
        for other in _KINDS:
            vars(self).pop(other, None)
        vars(value)["_is_set"] = True
        return value

    def HasField(self, field_name: str) -> bool:
        """Whether this list is the one that is set."""
        if field_name not in _KINDS:
            return super().HasField(field_name)
        found = vars(self).get(field_name)
        return found is not None and bool(found.value or vars(found).get("_is_set"))

    def MergeFrom(self, other: Self) -> None:
        """Takes over the list that is set in another feature; one of the same kind gets longer."""
        kind = other.WhichOneof("kind")
        if kind is not None:
            before = vars(self)[kind].value if self.HasField(kind) else []
            made = _KINDS[kind][1](value=[*before, *vars(other)[kind].value])
            setattr(self, kind, made)

    def ClearField(self, field_name: str) -> None:
        """Sets a field to what it is at first."""
        if self.HasField(field_name):
            del vars(self)[field_name]

    def SerializeToString(self) -> bytes:
        """Returns the message as bytes."""
        name = self.WhichOneof("kind")
        if name is None:
            return b""
        return field(_KINDS[name][0], LENGTH, vars(self)[name].SerializeToString())

    def __eq__(self, other: object) -> bool:
        if type(other) is not Feature:
            return NotImplemented
        kind = self.WhichOneof("kind")
        if kind is None or other.WhichOneof("kind") != kind:
            return kind is other.WhichOneof("kind")
        return bool(vars(self)[kind].value == vars(other)[kind].value)

    __hash__ = None  # type: ignore[assignment]


for _name in _KINDS:
    delattr(Feature, _name)  # so that `__getattr__` is asked where a feature has no such list


class _MessageMap(dict[str, Any]):
    """Messages by names; the first use of a name makes its message."""

    def __init__(self, make: Callable[[], WireMessage], given: Mapping[Any, Any]) -> None:
        super().__init__()
        self._make = make
        for key, value in given.items():
            name = key.decode() if isinstance(key, bytes) else key
            if not isinstance(name, str) or type(value) is not make:
                what = getattr(make, "__name__", "a message")
                raise DTypeError(f"expected {what} by names, got {value!r} for {key!r}")
            self[name] = value

    def __missing__(self, key: str) -> Any:
        made = self[key] = self._make()
        return made


class _MapMessage(WireMessage):
    """Base of messages whose one field, with number 1, is a map of messages."""

    _MAP: ClassVar[str] = ""
    _VALUE: ClassVar[Any] = None

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        vars(self).setdefault(self._MAP, None)
        if not isinstance(vars(self)[self._MAP], _MessageMap):
            vars(self)[self._MAP] = _MessageMap(self._VALUE, {})

    def _converted(self, name: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise DTypeError(f"expected {type(self).__name__}.{name} as a dict, got {value!r}")
        return _MessageMap(self._VALUE, value)

    def SerializeToString(self) -> bytes:
        """Returns the message as bytes."""
        out = []
        for name, value in getattr(self, self._MAP).items():
            entry = field(1, LENGTH, name.encode()) + field(2, LENGTH, value.SerializeToString())
            out.append(field(1, LENGTH, entry))
        return b"".join(out)

    @classmethod
    def FromString(cls, s: bytes) -> Self:
        """Returns the message that bytes hold; see `WireMessage.FromString`."""
        found: dict[str, Any] = {}
        for number, wire_type, entry in fields(s):
            if (number, wire_type) != (1, LENGTH):
                continue
            parts = {n: part for n, kind, part in fields(entry) if kind == LENGTH}
            found[STRING.decode(parts.get(1, b""))] = cls._VALUE.FromString(parts.get(2, b""))
        return cls(**{cls._MAP: found})


class Features(_MapMessage):
    """Features by names: `feature` is a dict."""

    feature: dict[str, Any] = {}  # noqa: RUF012 - a default, as all fields of messages have

    _MAP: ClassVar[str] = "feature"
    _VALUE: ClassVar[Any] = Feature


class FeatureList(WireMessage):
    """What one name has in the steps of a sequence: `feature` is a list of `Feature`."""

    feature: list[Any] = repeated()

    WIRE: ClassVar[Wire] = {"feature": (1, message(Feature))}
    LISTS: ClassVar[dict[str, Any]] = {"feature": Feature}

    def _converted(self, name: str, value: Any) -> Any:
        return MessageList(Feature, value)


class FeatureLists(_MapMessage):
    """Lists of features by names: `feature_list` is a dict."""

    feature_list: dict[str, Any] = {}  # noqa: RUF012 - see `Features`

    _MAP: ClassVar[str] = "feature_list"
    _VALUE: ClassVar[Any] = FeatureList


class _Outer(WireMessage):
    """Base of messages whose fields are messages that are there from the beginning."""

    _PARTS: ClassVar[dict[str, Any]] = {}

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for name, make in self._PARTS.items():
            if vars(self)[name] is None:
                vars(self)[name] = make()

    def SerializeToString(self) -> bytes:
        """Returns the message as bytes."""
        out = []
        for name, (number, kind) in self.WIRE.items():
            payload = kind.encode(getattr(self, name))
            out.append(field(number, LENGTH, payload) if payload else b"")
        return b"".join(out)

    def HasField(self, field_name: str) -> bool:
        """Whether the field has anything in it."""
        if field_name not in self._PARTS:
            return super().HasField(field_name)
        return bool(getattr(self, field_name).SerializeToString())


class Example(_Outer):
    """One example: `features` by their names."""

    features: Any = None

    WIRE: ClassVar[Wire] = {"features": (1, message(Features))}
    _PARTS: ClassVar[dict[str, Any]] = {"features": Features}


class SequenceExample(_Outer):
    """A sequence: `context` features of all of it, and `feature_lists` of its steps."""

    context: Any = None
    feature_lists: Any = None

    WIRE: ClassVar[Wire] = {
        "context": (1, message(Features)),
        "feature_lists": (2, message(FeatureLists)),
    }
    _PARTS: ClassVar[dict[str, Any]] = {"context": Features, "feature_lists": FeatureLists}
