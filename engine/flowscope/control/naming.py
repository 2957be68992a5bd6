"""How loop variables are called: as the arguments of the functions that take them.

A name is read by people: in the graph, in errors, beside a running loop, in a plan's text. What the
body's function calls its argument is what they wrote; a structure's leaves are called after their
places in it. Where Python tells no name - a built-in function, `lambda _: ...` - the tensor at the
start gives its own, unless that says nothing either.
"""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowscope import nest
from flowscope.control.tracing import parts
from flowscope.graph.constant import Const
from flowscope.graph.operation import Tensor

#: What the tensors of slices and of sparse tensors are called, in the order of `parts`.
_PARTS = ("values", "indices", "dense_shape")
#: What names of operations cannot contain.
_FOREIGN = re.compile(r"[^A-Za-z0-9_]+")


def variable_names(functions: Sequence[Callable[..., Any]], variables: Sequence[Any]) -> list[str]:
    """Returns a name for each tensor of the variables.

    Args:
        functions: Those that take the variables, the one whose names count first.
        variables: Structures of tensors.
    """
    given = [_argument_names(f, len(variables)) for f in functions]
    found: list[str] = []
    for i, variable in enumerate(variables):
        names = [name for name in (one[i] for one in given) if name]
        found += _names_in(variable, names[0] if names else "", i)
    return found


def _argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's first arguments, "" for one without."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function, say
        return [""] * count
    found: list[str] = []
    for a in arguments:
        if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD):
            found.append(_cleaned(a.name))
        elif a.kind is a.VAR_POSITIONAL:
            name = _cleaned(a.name)
            found += [f"{name}_{i}" if name else "" for i in range(count - len(found))]
    return [*found, *[""] * count][:count]


def _names_in(structure: Any, name: str, number: int) -> list[str]:
    """Returns the names of the tensors of a structure that is called `name`, if it is."""
    if not nest.is_nested(structure):
        tensors = parts(structure)
        names = [name or _own_name(t, number) for t in tensors]
        if len(tensors) == 1:
            return names
        return [f"{n}_{part}" for n, part in zip(names, _PARTS, strict=False)]
    found: list[str] = []
    for key, child in _items(structure):
        cleaned = _cleaned(str(key))
        found += _names_in(child, f"{name or f'var_{number}'}_{cleaned}", number)
    return found


def _items(structure: Any) -> list[tuple[Any, Any]]:
    if isinstance(structure, Mapping):
        return [(k, structure[k]) for k in sorted(structure)]
    keys = getattr(structure, "_fields", range(len(structure)))
    return list(zip(keys, structure, strict=True))


def _own_name(tensor: Tensor, number: int) -> str:
    if isinstance(tensor.op.definition, Const):
        return f"var_{number}"
    return tensor.op.name.rpartition("/")[2]


def _cleaned(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _FOREIGN.sub("_", plain).strip("_")


__all__ = ["variable_names"]
