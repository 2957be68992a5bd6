"""Sets of numbers or strings, under TensorFlow's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.sparse.sets import (
    set_difference as difference,
    set_difference as set_difference,
    set_intersection as intersection,
    set_intersection as set_intersection,
    set_size as set_size,
    set_size as size,
    set_union as set_union,
    set_union as union,
)

__all__ = [
    "difference",
    "intersection",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "size",
    "union",
]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
