"""Which variables objects have, by paths: what object-based checkpoints are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from flowscope.graph.values.expected import expected_dtype
from flowscope.layers.base import Layer
from flowscope.ops.state.partitioned_variable import PartitionedVariable
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.slots import Slots

#: What TensorFlow writes behind the path of a variable.
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Trackable:
    """Base of objects that name the objects they hold: `fs.train.Checkpoint` is one."""

    def tracked(self) -> Mapping[str, Any]:
        """Returns the objects that it holds, by name."""
        raise NotImplementedError


def check_trackable(name: str, value: Any) -> None:
    """Raises DTypeError for an object whose variables cannot be found."""
    if not isinstance(
        value,
        Variable | PartitionedVariable | Slots | Layer | Trackable | list | tuple | Mapping,
    ):
        raise expected_dtype(
            f"a variable, an optimizer, a layer, a Checkpoint, or a list or dict of them as {name}",
            repr(value),
        )


def variables_by_path(root: Trackable) -> dict[str, Any]:
    """Returns all variables that an object holds by TensorFlow's names in checkpoints.

    One that is held twice has the shortest path. An optimizer's slots stand beside their variables.
    """
    found: dict[str, Any] = {}
    paths: dict[Any, str] = {}
    slots: list[tuple[str, Slots]] = []
    waiting: deque[tuple[str, Any]] = deque([("", root)])
    seen: set[int] = set()
    while waiting:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Variable | PartitionedVariable):
            if value not in paths:
                found[path + VALUE] = value
                paths |= dict.fromkeys([value, *_parts(value)], path)
        else:
            waiting.extend((_joined(path, n), v) for n, v in _children(value))
        if isinstance(value, Slots):
            slots.append((path, value))
    for path, owner in slots:
        found |= {
            f"{paths[v]}/.OPTIMIZER_SLOT/{path}/{name}{VALUE}": slot
            for name, v, slot in owner.tracked_slots()
            if v in paths and isinstance(found.get(paths[v] + VALUE), Variable)
        }
    return found


def _parts(value: Any) -> list[Variable]:
    return list(value) if isinstance(value, PartitionedVariable) else []


def _joined(path: str, name: str) -> str:
    # TensorFlow's escapes: "/" separates names, and what begins with "." is its own.
    name = name.replace(".", "..").replace("/", ".S")
    return f"{path}/{name}" if path else name


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields what an object holds that may have variables, by name."""
    if isinstance(value, Trackable):
        held: Any = value.tracked().items()
    elif isinstance(value, Slots):
        held = value.tracked_non_slots().items()
    elif isinstance(value, Mapping):
        held = [(str(k), v) for k, v in value.items()]
    elif isinstance(value, list | tuple):
        held = [(str(i), v) for i, v in enumerate(value)]
    elif isinstance(value, Layer):
        held = vars(value).items()
    else:
        held = ()
    yield from held


__all__ = ["VALUE", "Trackable", "check_trackable", "variables_by_path"]
