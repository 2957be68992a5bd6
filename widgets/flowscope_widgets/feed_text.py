"""Values to feed as they are typed in a view: a literal, or the name of a notebook's variable.

A literal is parsed and a name is looked up; nothing that is typed is ever executed.
"""

from __future__ import annotations

import ast
import difflib
import keyword
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from flowscope.errors import InvalidArgumentError, NotFoundError
from flowscope.live.watchers.bus import notebook

#: Longest text of a literal: what is longer is better made in a cell.
CHARS = 10_000
_LITERALS = ("True", "False", "None")


class FromNotebook(NamedTuple):
    """A value to feed: that of a variable of the notebook, at the time of the run.

    Attributes:
        name: The variable's name.
    """

    name: str


def parsed(text: str) -> Any:
    """Parses a typed text: gives a `FromNotebook`, or the value of a literal.

    Raises:
        InvalidArgumentError: if it is neither.
    """
    text = text.strip()
    if text.isidentifier() and text not in _LITERALS and not keyword.iskeyword(text):
        return FromNotebook(text)
    if len(text) > CHARS:
        raise InvalidArgumentError(
            f"expected at most {CHARS} characters, got {len(text)}: put the value into a variable "
            "in a cell and write its name"
        )
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        shown = text if len(text) <= 40 else f"{text[:39]}\u2026"
        raise InvalidArgumentError(
            f"write a literal, such as 0.5 or [[1, 2], [3, 4]], or the name of a variable; {shown} "
            f"would have to be computed: in a cell write value = {shown}, and here value"
        ) from None


def names_of_notebook() -> Mapping[str, Any]:
    """Returns the notebook's variables by name; none where nobody tells of them."""
    return {} if notebook.names is None else dict(notebook.names())


def looked_up(variable: FromNotebook) -> Any:
    """Returns the value of a variable of the notebook.

    Raises:
        NotFoundError: if there is none of that name.
        InvalidArgumentError: if nobody tells which variables there are.
    """
    if notebook.names is None:
        raise InvalidArgumentError(
            f'the notebook\'s variables are not known, "{variable.name}" neither: run '
            "%load_ext flowscope, or write a literal"
        )
    names = names_of_notebook()
    if variable.name in names:
        return names[variable.name]
    near = difflib.get_close_matches(variable.name, [n for n in names if n[:1] != "_"], 3)
    hint = (
        f"; did you mean {', '.join(near)}?" if near else ": make it in a cell, or write a literal"
    )
    raise NotFoundError(f"the notebook has no variable {variable.name}{hint}")


def described(value: Any) -> str:
    """The type of a value, e.g. "float64[10,784]", without running code of the value's."""
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__


__all__ = ["FromNotebook", "described", "looked_up", "names_of_notebook", "parsed"]
