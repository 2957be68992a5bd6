"""One value to feed: given by Python, or typed in a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError, OpError
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import compatible, text as shape_text
from flowscope.runtime.planning.feeds import converter
from flowscope_widgets.feed_text import (
    FromNotebook,
    described,
    looked_up,
    names_of_notebook,
    parsed,
)

#: Values whose elements may be looked at while a cell is running.
_SMALL = (bool, int, float, complex, str, bytes, np.generic, Tensor)
_NOTHING = object()
#: Kinds of arrays that are offered to be fed, by kind of dtype.
_KINDS = {"f": "f", "i": "iu", "u": "iu", "c": "cf", "b": "b"}
#: Variables that are offered at most.
MOST_CANDIDATES = 12


@dataclass(frozen=True, eq=False)
class Fed:
    """One value to feed.

    Attributes:
        given: The value, or a `FromNotebook`.
        text: As it was typed; "" if Python has given it.
        problem: Why what was typed is no value.
    """

    given: Any
    text: str = ""
    problem: str = ""

    @classmethod
    def of(cls, value: Any) -> Fed:
        """Returns a value that Python gives."""
        return cls(value, value.name if isinstance(value, FromNotebook) else "")

    @classmethod
    def typed(cls, text: str) -> Fed:
        """The typed text, with its error."""
        if not text.strip():
            return cls(_NOTHING)
        try:
            return cls(parsed(text), text.strip())
        except InvalidArgumentError as e:
            return cls(_NOTHING, text.strip(), e.message)

    @property
    def is_missing(self) -> bool:
        """Whether there is no value."""
        return self.given is _NOTHING

    def value(self) -> Any:
        """Returns the value, which a variable of the notebook has now.

        Raises:
            NotFoundError: if there is no such variable.
        """
        return looked_up(self.given) if isinstance(self.given, FromNotebook) else self.given

    def told(self, tensor: Tensor) -> tuple[str, str, str]:
        """The typed text, the value's type, why it cannot be fed; "" for each that is absent."""
        if self.is_missing:
            return self.text, "", self.problem
        try:
            value = self.value()
            is_typed = not isinstance(self.given, FromNotebook)
            what = _what(tensor, value, is_typed and bool(self.text))
        except OpError as e:
            return self.text, "", e.message
        return self.text, what, ""


def candidates(tensor: Tensor) -> tuple[str, ...]:
    """Returns the names of the notebook's arrays that fit a tensor, those made last first."""
    spec = tensor.spec.variable or tensor.spec
    kinds = _KINDS.get(spec.dtype.kind, spec.dtype.kind)
    found = []
    for name, value in reversed(list(names_of_notebook().items())):
        is_array = isinstance(value, np.ndarray) and name[:1] != "_"
        if is_array and value.dtype.kind in kinds and compatible(spec.shape, value.shape):
            found.append(name)
    return tuple(found[:MOST_CANDIDATES])


def _what(tensor: Tensor, value: Any, is_literal: bool) -> str:
    """The type of a value; raises an error if it is known not to fit.

    Only what is small is converted: a large array is looked at, and converted when it is run.
    """
    spec = tensor.spec.variable or tensor.spec
    if isinstance(value, np.ndarray) and not compatible(spec.shape, value.shape):
        raise InvalidArgumentError(
            f"expected shape {shape_text(spec.shape)}, got {shape_text(value.shape)}"
        )
    if not (is_literal or isinstance(value, _SMALL)):
        return described(value)
    try:
        return described(np.asarray(converter(tensor)(value)))
    except OpError as e:
        raise type(e)(e.message.removeprefix(f'cannot feed "{tensor.name}": ')) from None


__all__ = ["Fed", "candidates"]
