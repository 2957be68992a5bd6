"""What a `Graph` can do about changes of what it has: note them, and build cells."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flowscope.graph.operation import Operation

if TYPE_CHECKING:
    from flowscope.graph.cells.cells import Cells
    from flowscope.graph.cells.run import Run


class Edits:
    """The part of `Graph` that notes changes of operations that were there.

    Attributes:
        version: Grows with every change.
        edits: How many changes of operations that were there have been noted: see `edited`.
    """

    cells: Cells
    run: Run | None

    def __init__(self) -> None:
        self.version = 0
        self.edits = 0
        self._edited: list[weakref.ref[Operation] | None] = []

    def touch(self) -> None:
        """Notes that something changed."""
        self.version += 1

    def edited(self, op: Operation) -> None:
        """Notes that an operation which was there is another one now: plans that use it are stale.

        Call it after a change of its definition, inputs, control inputs, device or presence. Plans
        that do not use it stay, and adding operations makes no plan stale.
        """
        self._edited.append(weakref.ref(op))
        self.edits = len(self._edited)
        self.touch()

    def edited_since(self, count: int) -> list[Operation]:
        """Returns the operations that were edited after the first `count` edits."""
        refs = [ref for ref in self._edited[count:] if ref is not None]
        found = [op for ref in refs if (op := ref()) is not None]
        return found if self.run is None else [op for op in found if self.run.is_edited(op)]

    def forget_edits(self, first: int, operations: set[Operation]) -> None:
        """Takes back the edits of these operations, from the edit with the number `first` on."""
        for i in range(first, self.edits):
            ref = self._edited[i]
            if ref is not None and ref() in operations:
                self._edited[i] = None

    @contextmanager
    def cell(
        self,
        identity: Any,
        label: str | None = None,
        names: Callable[[], Mapping[str, Any]] = dict,
    ) -> Iterator[Run]:
        """Builds a cell: run again, it replaces what it built before; a failed run is taken back.

            with graph.cell("a") as run:
                y = fs.exp(x)
            print(run.report)

        Args:
            identity: Tells the cell apart.
            label: What messages call it; the identity by default.
            names: Returns the variables by name that other cells use: where one stands for another
                tensor afterwards, what has taken the earlier one is stale.
        """
        run = self.cells.begin(identity, label, names)
        try:
            yield run
        except BaseException:
            self.cells.end(run, "undone")
            raise
        self.cells.end(run, "whole")


__all__ = ["Edits"]
