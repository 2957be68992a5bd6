"""Messages: plain objects with the fields of TensorFlow's messages of the same names.

A field is an annotated class attribute whose value is its default. What is set must be of the
default's kind, and a field that a message does not have is an error.
"""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Iterable
from typing import Any, ClassVar, Self, TypeVar

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.unsupported import REFUSED, refuse

T = TypeVar("T", bound="Message")


def repeated() -> list[Any]:
    """Returns the default of a field that is a list."""
    return []


class Repeated(list[T]):
    """The value of a field that is a list of messages, which `add` makes longer.

    Args:
        kind: The type of the messages.
        values: The messages.

    Raises:
        TypeError: if one of them is of another type.
    """

    def __init__(self, kind: type[T], values: Iterable[T] = ()) -> None:
        super().__init__(values)
        self.kind = kind
        for value in self:
            if not isinstance(value, kind):
                raise TypeError(f"expected a list of {kind.__name__}, got {value!r} in it")

    def add(self, **fields: Any) -> T:
        """Returns a new message of these fields, which it has appended."""
        message = self.kind(**fields)
        self.append(message)
        return message


class Message:
    """Base class of messages: the annotated attributes of a subclass are its fields.

    Args:
        fields: Values by field name.

    Raises:
        InvalidArgumentError: if there is no field of a name.
        DTypeError: if a value is of another kind than the field.
        UnimplementedError: if a value asks for what is refused: see `flowscope.graph.unsupported`.
    """

    #: Defaults by field.
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {
            name: cls.__dict__[name]
            for name, kind in inspect.get_annotations(cls).items()
            if not str(kind).startswith("ClassVar") and name in cls.__dict__
        }
        cls._defaults = {**cls._defaults, **own}

    def __init__(self, **fields: Any) -> None:
        for name, default in self._defaults.items():
            is_shared = isinstance(default, dict | list | Message)
            vars(self)[name] = copy.deepcopy(default) if is_shared else default
        for name, value in fields.items():
            if name not in self._defaults:
                raise InvalidArgumentError(self._unknown(name))
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            raise AttributeError(self._unknown(name))
        refused = REFUSED.get(type(self).__name__, {})
        if name in refused:
            refuse(type(self).__name__, **{name: value})
        vars(self)[name] = self._converted(name, value)

    def _converted(self, name: str, value: Any) -> Any:
        default = self._defaults[name]
        try:
            return _AS[type(default)](value) if type(default) in _AS else self._part(name, value)
        except (TypeError, ValueError):
            wanted = f"type {type(default).__name__}"
            if isinstance(default, Repeated):
                wanted = f"type list of {default.kind.__name__}"
            raise DTypeError(
                f"expected {type(self).__name__}.{name} of {wanted}, got {value!r}"
            ) from None

    def _part(self, name: str, value: Any) -> Any:
        default = self._defaults[name]
        if isinstance(default, Repeated):
            return Repeated(default.kind, value)
        if isinstance(default, Message) and not isinstance(value, type(default)):
            raise TypeError
        return value

    def check_refused(self) -> None:
        """Raises UnimplementedError if a list or dict that was changed in place asks for what is
        refused.
        """
        refused = REFUSED.get(type(self).__name__, {})
        for name in self._defaults:
            value = getattr(self, name)
            if name in refused:
                refuse(type(self).__name__, **{name: value})
            elif isinstance(value, Message):
                value.check_refused()

    def _unknown(self, name: str) -> str:
        known = ", ".join(self._defaults)
        return f"{type(self).__name__} has no field {name!r}; it has {known}"

    def HasField(self, field_name: str) -> bool:
        """Whether the field is set: it is not what it is at first."""
        if field_name not in self._defaults:
            raise InvalidArgumentError(self._unknown(field_name))
        return bool(getattr(self, field_name) != self._defaults[field_name])

    def ListFields(self) -> list[tuple[str, Any]]:
        """Returns the fields that are set, each with its value."""
        return [(n, getattr(self, n)) for n in self._defaults if self.HasField(n)]

    def CopyFrom(self, other: Self) -> None:
        """Takes over all fields of a message of the same type."""
        self.Clear()
        self.MergeFrom(other)

    def MergeFrom(self, other: Self) -> None:
        """Takes over the fields that are set in a message of the same type; lists get longer."""
        if type(other) is not type(self):
            raise DTypeError(f"expected a {type(self).__name__}, got {other!r}")
        for name, value in other.ListFields():
            mine = getattr(self, name)
            if isinstance(mine, Message):
                mine.MergeFrom(value)
            elif isinstance(mine, dict):
                mine.update(value)
            elif isinstance(mine, list):
                mine.extend(copy.deepcopy(value))
            else:
                setattr(self, name, value)

    def Clear(self) -> None:
        """Sets all fields to what they are at first."""
        self.__init__()  # type: ignore[misc]

    def ClearField(self, field_name: str) -> None:
        """Sets a field to what it is at first."""
        if field_name not in self._defaults:
            raise InvalidArgumentError(self._unknown(field_name))
        vars(self)[field_name] = copy.deepcopy(self._defaults[field_name])

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "".join(_lines(name, value) for name, value in self.ListFields())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


#: What makes a value one of the default's type; it raises TypeError or ValueError if it cannot.
_AS: dict[type, Any] = {
    bool: lambda value: bool(operator.index(value)),
    int: operator.index,
    float: float,
    str: lambda value: value if isinstance(value, str) else _text(memoryview(value)),
    dict: dict,
    list: lambda value: [*value],
}


def _lines(name: str, value: Any) -> str:
    """Returns a field as lines of text, as messages are written."""
    if isinstance(value, Message):
        inner = repr(value).splitlines()
        return "".join([f"{name} {{\n", *[f"  {line}\n" for line in inner], "}\n"])
    if isinstance(value, list):
        return "".join(_lines(name, v) for v in value)
    if isinstance(value, dict):
        entries = [(_lines("key", k), _lines("value", v)) for k, v in value.items()]
        return "".join(f"{name} {{\n  {key}  {value}}}\n" for key, value in entries)
    if isinstance(value, bool):
        return f"{name}: {str(value).lower()}\n"
    return f'{name}: "{value}"\n' if isinstance(value, str) else f"{name}: {value}\n"
