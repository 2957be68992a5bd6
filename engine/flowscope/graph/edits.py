"""What a `Graph` can do about changes of what it has: note them, and build cells."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flowscope.graph.operation import Operation

if TYPE_CHECKING:
    from flowscope.graph.origins.observer import BuildRun, Observer


class Edits:
    """The part of `Graph` that notes changes of operations that were there.

    Attributes:
        version: Grows with every change.
        edits: How many changes of operations that were there have been noted: see `edited`.
    """

    observer: Observer
    run: BuildRun | None

    def __init__(self) -> None:
        self.version = 0
        self.edits = 0
        #: By the number of an operation: that of its latest edit, in this order, and itself.
        self._edited: dict[int, tuple[int, weakref.ref[Operation]]] = {}

    def touch(self) -> None:
        """Notes that something changed."""
        self.version += 1

    def edited(self, op: Operation) -> None:
        """Notes that an operation which was there is another one now: plans that use it are stale.

        Call it after a change of its definition, inputs, control inputs, device or presence. Plans
        that do not use it stay, and adding operations makes no plan stale.
        """
        self.edits += 1
        self._edited.pop(op.id, None)  # what is put in anew stands last
        self._edited[op.id] = self.edits, weakref.ref(op)
        self.touch()

    def edited_since(self, count: int) -> list[Operation]:
        """Returns the operations that were edited after the first `count` edits."""
        marks = list(self._edited.values())  # at once: views ask on a thread of their own
        first = len(marks)
        while first and marks[first - 1][0] > count:
            first -= 1
        found = [op for _, ref in marks[first:] if (op := ref()) is not None]
        return found if self.run is None else [op for op in found if self.run.is_edited(op)]

    def forget_edits(self, operations: Iterable[Operation], known: Mapping[int, Any]) -> None:
        """Takes back the latest edits of these operations.

        Args:
            operations: The operations.
            known: The edits that stand, as `edit_marks` has returned them.
        """
        marks, forgotten = dict(self._edited), [op.id for op in operations]
        for i in forgotten:
            marks.pop(i, None)
        marks |= {i: known[i] for i in forgotten if i in known}
        in_order = sorted(marks.items(), key=_number)
        self._edited = {i: mark for i, mark in in_order if mark[1]() is not None}

    def edit_marks(self) -> Mapping[int, Any]:
        """Returns which edits are noted now, one per operation, for `forget_edits`."""
        return dict(self._edited)

    @contextmanager
    def cell(
        self,
        identity: Any,
        label: str | None = None,
        names: Callable[[], Mapping[str, Any]] = dict,
    ) -> Iterator[Any]:
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
        run = self.observer.begin(identity, label, names)
        try:
            yield run
        except BaseException as e:
            self.observer.end(run, "undone", e)
            raise
        self.observer.end(run, "whole")


def _number(entry: tuple[int, tuple[int, Any]]) -> int:
    return entry[1][0]


__all__ = ["Edits"]
