"""Where the nodes of a program come from: operations, as plain data.

A program knows its operations by `OperationRef`, so that it can be sent to another process and
holds no graph. Who needs the operation itself finds it by its id in `Plan.operations`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

from flowscope.graph.operation import Operation


class RecordedPlace(NamedTuple):
    """One line of the user's code, as it was when it was written down."""

    filename: str
    cell: int | None
    line: int
    text: str
    #: How errors name it.
    label: str
    function: str = ""

    def __str__(self) -> str:
        return self.label


class RecordedOrigin(NamedTuple):
    """The user's lines that made an operation, innermost first, as plain strings and numbers."""

    places: tuple[RecordedPlace, ...]

    @property
    def place(self) -> RecordedPlace | None:
        """The user's innermost line."""
        return self.places[0] if self.places else None

    @property
    def variable(self) -> str:
        """Not recorded: only views of the graph ask for it."""
        return ""


class OperationRef:
    """An operation that a node came from, as data. Immutable; one object per operation of a plan.

    Attributes:
        id: The operation's number in its graph.
        name: Its name.
        type: Its op type.
        block: Name of the block that it stands in, "" for the graph's own.
        colocation: Names of the operations that it shall share a device with.
        passed_over: See `Operation.passed_over`.
        origin: The user's lines that made it; they are read when somebody asks, or when the
            reference is pickled.
        forward: The operation whose gradient it was made for, None for most.
    """

    __slots__ = (
        "_operation",
        "block",
        "colocation",
        "forward",
        "id",
        "name",
        "origin",
        "passed_over",
        "type",
    )

    def __init__(
        self,
        id: int,
        name: str,
        type: str,
        block: str,
        colocation: tuple[str, ...],
        origin: Any,
        forward: OperationRef | None,
        passed_over: str = "",
    ) -> None:
        self.id = id
        self.name = name
        self.type = type
        self.block = block
        self.colocation = colocation
        self.origin = origin
        self.forward = forward
        self.passed_over = passed_over
        self._operation: weakref.ref[Operation] | None = None

    @classmethod
    def to(cls, op: Operation, forward: OperationRef | None) -> OperationRef:
        """Returns the reference to an operation."""
        facts = (op.id, op.name, op.type, op.block.name, op.colocation)
        made = cls(*facts, op.origin, forward, op.passed_over)
        made._operation = weakref.ref(op)
        return made

    @property
    def operation(self) -> Operation | None:
        """The operation, where the program was made and as long as its graph has it; else None."""
        return None if self._operation is None else self._operation()

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced({})

    def reduced(self, origins: dict[tuple[int, ...], RecordedOrigin]) -> tuple[Any, ...]:
        """The constructor and its arguments, for pickle.

        Args:
            origins: The origins that were written down already, by `Origin.key`.
        """
        origin = self.origin
        if not isinstance(origin, RecordedOrigin):
            found = origins.get(origin.key)
            if found is None:
                found = origins[origin.key] = _recorded(origin)
            origin = found
        facts = (self.id, self.name, self.type, self.block, self.colocation)
        return OperationRef, (*facts, origin, self.forward, self.passed_over)

    def __repr__(self) -> str:
        return f"<OperationRef {self.id} {self.name} {self.type}>"


class PlannedOperations(dict[int, Operation]):
    """The operations that a plan is made from, by id, and the references to them."""

    def __init__(self) -> None:
        super().__init__()
        self._refs: dict[int, OperationRef] = {}

    def ref(self, op: Operation) -> OperationRef:
        """Returns the reference to an operation; notes the operation."""
        self[op.id] = op
        return self._made(op)

    def _made(self, op: Operation) -> OperationRef:
        found = self._refs.get(op.id)
        if found is None:
            forward = None if op.forward is None else self._made(op.forward)
            found = self._refs[op.id] = OperationRef.to(op, forward)
        return found


def named(name: str, refs: Iterable[OperationRef]) -> Operation | str:
    """Returns the operation of this name, for an error; the name itself if there is none."""
    found = next((ref.operation for ref in refs if ref.name == name), None)
    return found or name


def _recorded(origin: Any) -> RecordedOrigin:
    places = [
        RecordedPlace(p.filename, p.cell, p.line, p.text, str(p), p.function) for p in origin.places
    ]
    return RecordedOrigin(tuple(places))


__all__ = ["OperationRef", "PlannedOperations", "named"]
