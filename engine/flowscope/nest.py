"""Nested structures: lists, tuples, named tuples and dicts of anything (TensorFlow 1's `nest`)."""

from __future__ import annotations

import typing as _typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flowscope.api.absent import refusal as _refusal
from flowscope.errors import DTypeError, InvalidArgumentError

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def is_nested(value: Any) -> bool:
    """Whether `value` is a list, a tuple or a dict."""
    return isinstance(value, list | tuple | Mapping)


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[k] for k in sorted(value)]
    return list(value)


def flatten(structure: Any) -> list[Any]:
    """Returns the leaves, dicts in the order of their sorted keys."""
    if not is_nested(structure):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """Returns the leaves of `flat_sequence` in the form of `structure`.

    Raises:
        InvalidArgumentError: if there are too few or too many.
    """
    leaves = list(flat_sequence)
    wanted = len(flatten(structure))
    if len(leaves) != wanted:
        raise InvalidArgumentError(f"the structure has {wanted} leaves, got {len(leaves)}")
    return _packed(structure, iter(leaves))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    if isinstance(structure, Mapping):
        made = {k: _packed(structure[k], leaves) for k in sorted(structure)}
        ordered = {k: made[k] for k in structure}
        return type(structure)(ordered)  # type: ignore[call-arg]
    children = [_packed(child, leaves) for child in structure]
    if hasattr(structure, "_fields"):
        return type(structure)(*children)
    return type(structure)(children)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Checks that both have the same form, and the same types of lists and dicts if asked.

    Raises:
        InvalidArgumentError: if the forms differ.
        DTypeError: a TypeError, if the types differ.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise InvalidArgumentError(f"structures differ: {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise DTypeError(f"structures differ: {type(nest1).__name__} and {type(nest2).__name__}")
    if isinstance(nest1, Mapping) and sorted(nest1) != sorted(nest2):
        raise InvalidArgumentError(f"keys differ: {sorted(nest1)} and {sorted(nest2)}")
    first, second = _children(nest1), _children(nest2)
    if len(first) != len(second):
        raise InvalidArgumentError(f"lengths differ: {len(first)} and {len(second)}")
    for a, b in zip(first, second, strict=True):
        assert_same_structure(a, b, check_types)


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """Returns `func` of the leaves of one or more structures of the same form, in that form."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    rows = zip(*map(flatten, structure), strict=True)
    return pack_sequence_as(structure[0], [func(*row) for row in rows])


if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
