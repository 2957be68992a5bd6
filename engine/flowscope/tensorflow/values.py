"""Attributes in TensorFlow's messages."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.messages.tensor_arrays import Expansion, array_of, dims_of, dtype_of


@frozen
class FunctionRef:
    """A function of the library that an attribute names."""

    name: str


def value_of(attribute: Any, expansion: Expansion) -> Any:
    """Returns an AttrValue's value: text, number, dtype, shape, array, function, or a list.

    Raises:
        InvalidArgumentError: if it has none.
    """
    kind = attribute.WhichOneof("value")
    if kind == "list":
        found = attribute.list.ListFields()
        if not found:
            return []
        field, values = found[0]
        return [_plain(field.name, v, expansion) for v in values]
    if kind in (None, "placeholder"):
        raise InvalidArgumentError("expected the value of an attribute, got none")
    return _plain(kind, getattr(attribute, kind), expansion)


def _plain(kind: str, value: Any, expansion: Expansion) -> Any:
    if kind == "s":
        return value.decode(errors="surrogateescape")
    if kind == "type":
        return dtype_of(value)
    if kind == "shape":
        return dims_of(value)
    if kind == "tensor":
        return array_of(value, expansion)
    if kind == "func":
        return FunctionRef(value.name)
    return value


__all__ = ["FunctionRef", "value_of"]
