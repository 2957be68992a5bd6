"""What replicas have: a value each, known to be equal or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from flowscope.errors import InvalidArgumentError


class PerReplica(tuple[Any, ...]):
    """One value per replica, in the order of the replicas. A session fetches it as such a tuple."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self))})"


class Mirrored(PerReplica):
    """One value per replica, the same bits on all."""

    __slots__ = ()


class ReduceOp(Enum):
    """How `Replicator.reduce` makes one value of the replicas' values."""

    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    ONLY_FIRST = "only_first"


def as_reduce_op(op: ReduceOp | str) -> ReduceOp:
    """Returns a reduction that is given as such, or by its name in any case.

    Raises:
        InvalidArgumentError: if there is none of this name.
    """
    try:
        return op if isinstance(op, ReduceOp) else ReduceOp(str(op).lower())
    except ValueError:
        names = ", ".join(known.name for known in ReduceOp)
        raise InvalidArgumentError(f"expected one of {names} as a reduction, got {op!r}") from None


def map_values(function: Callable[[Any], Any], structure: Any) -> Any:
    """Returns a nest with each of its leaves replaced; a `PerReplica` is a leaf.

    The order of the calls is that of `fs.nest.flatten`.

    Args:
        function: Returns the new leaf for a leaf.
        structure: The nest.
    """
    if isinstance(structure, PerReplica):
        return function(structure)
    if isinstance(structure, Mapping):
        made = {key: map_values(function, structure[key]) for key in sorted(structure)}
        return type(structure)({key: made[key] for key in structure})  # type: ignore[call-arg]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*[map_values(function, value) for value in structure])
    if isinstance(structure, list | tuple):
        return type(structure)([map_values(function, value) for value in structure])
    return function(structure)


__all__ = ["Mirrored", "PerReplica", "ReduceOp", "as_reduce_op", "map_values"]
