"""What is known of a value of a program before it runs, and errors that lead to the user's line."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable
from typing import Any

import flowscope as fs
from flowscope.coconet.layouts import Dim, Layout, RankGroup, Replicated, shape_text
from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.origins.origin import Origin, is_ours


@frozen
class ValueType:
    """Element type, shape, layout and group of a value.

    Attributes:
        dtype: The element type.
        shape: The shape of the whole, also where ranks have parts of it.
        layout: How the values lie over the ranks.
        group: The ranks that have it; None for a scalar that all groups have.
    """

    dtype: fs.DType
    shape: tuple[Dim, ...]
    layout: Layout
    group: RankGroup | None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def with_layout(self, layout: Layout) -> ValueType:
        """The same with another layout."""
        return ValueType(self.dtype, self.shape, layout, self.group)

    def __str__(self) -> str:
        group = "" if self.group is None or self.group.name == "world" else f" on {self.group}"
        return f"{self.dtype.name}{shape_text(self.shape)} {self.layout}{group}"


#: What an operand is of which only the number is known: a Python number.
Number = int | float | bool


def refused(message: str, operands: Iterable[Any] = ()) -> InvalidArgumentError:
    """Returns the error for operands that do not fit; it lists them.

    Args:
        message: What was expected and what came.
        operands: Values of the program (`name`, `type` and `origin`), or numbers.
    """
    lines = [_line(x) for x in operands if not isinstance(x, int | float)]
    return InvalidArgumentError(message, inputs=lines)


def _line(x: Any) -> str:
    where = place_text(x.origin)
    return f"{x.name or 'a stage'}: {x.type}" + (f"   made in {where}" if where else "")


def place_text(origin: Origin | None) -> str:
    """The user's line as text, e.g. "cell 4, line 7"; "" where none is known."""
    place = origin.place if origin is not None else None
    return "" if place is None else str(place)


def source_text(origin: Origin | None) -> str:
    """The text of the user's line; "" where none is known."""
    place = origin.place if origin is not None else None
    return "" if place is None else linecache.getline(place.filename, place.line).strip()


#: Modules whose functions stand between the user's line and a stage.
_DOORS = ("flowscope.coconet.program", "flowscope.coconet.functions", __name__)


def assigned_variable(origin: Origin) -> str:
    """The variable that takes a stage on the user's line; "" where a function of ours makes it."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _DOORS:
        frame = frame.f_back
    is_users = frame is not None and not is_ours(frame.f_code.co_filename)
    return origin.variable if is_users else ""


def scalar_of(x: ValueType) -> ValueType:
    """A number of all elements of a value: it is local where the value is, else on all ranks."""
    layout = x.layout if not x.layout.is_sliced else Replicated
    return ValueType(x.dtype, (), layout, x.group)


__all__ = ["Number", "ValueType", "place_text", "refused"]
