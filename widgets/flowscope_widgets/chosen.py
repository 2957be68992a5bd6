"""What can be chosen in a view from Python: an operation or a scope, and an iteration."""

from __future__ import annotations

import difflib
import uuid
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from flowscope.errors import DTypeError, InvalidArgumentError, NotFoundError
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor

_GRAPH_KEYS: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()


def graph_key(graph: Graph) -> str:
    """Returns the name that a graph has in every page: no other graph of any kernel has it."""
    return _GRAPH_KEYS.setdefault(graph, uuid.uuid4().hex)


class ChosenIteration(NamedTuple):
    """An iteration of a running loop.

    Attributes:
        frame: The path of the loop's frame, as `session.frames()` has it: "outer:3/inner".
        number: From 0.
    """

    frame: str
    number: int


def iteration_from(value: Any) -> ChosenIteration | None:
    """The iteration that a request to choose one names.

    Raises:
        InvalidArgumentError: if it is neither None nor the path of a frame and a number.
    """
    match value:
        case None:
            return None
        case (str(frame), int(number)) if number >= 0 and frame:
            return ChosenIteration(frame, number)
    raise InvalidArgumentError(
        "expected the path of a frame and the number of an iteration, e.g. "
        f'("while", 12), or None for no iteration; got {value!r}'
    )


def selection_from(value: Any, graph: Graph) -> str | None:
    """Returns the name of what is to be selected: of an operation, or of a scope with a "/".

    Raises:
        DTypeError: if it is no operation, tensor or name.
        InvalidArgumentError: if it is of another graph.
        NotFoundError: if the graph has no such operation or scope.
    """
    if value is None:
        return None
    if isinstance(value, Tensor):
        value = value.op
    if isinstance(value, Operation):
        if value.graph is not graph:
            raise InvalidArgumentError(f'"{value.name}" is of another graph than the view shows')
        return value.name
    if not isinstance(value, str):
        raise DTypeError(
            "expected an operation, a tensor, the name of an operation, the path of a scope, or "
            f"None for nothing, to be selected; got {value!r}"
        )
    names = {op.name for op in graph.get_operations()}
    scopes = _scopes(names)
    if value in names or value in scopes:
        return value
    if f"{value}/" in scopes:
        return f"{value}/"
    near = difflib.get_close_matches(value, [*names, *scopes], 3)
    hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
    raise NotFoundError(f'there is no operation and no scope "{value}" in the graph{hint}')


def _scopes(names: set[str]) -> set[str]:
    """Returns the paths of all scopes, each with a "/" behind it."""
    found: set[str] = set()
    for name in names:
        end = name.rfind("/")
        while end > 0 and name[: end + 1] not in found:
            found.add(name[: end + 1])
            end = name.rfind("/", 0, end)
    return found


__all__ = ["ChosenIteration", "iteration_from", "selection_from"]
