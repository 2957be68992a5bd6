"""What is known of a cell after it has run, and what is told of a run."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from flowscope.cells.build_state import Change
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor


@dataclass(eq=False)
class Cell:
    """A cell's build in one graph.

    Attributes:
        identity: Tells it apart from other cells, and stays when it is edited.
        label: What people call it: the notebook's execution count.
        position: Its place among the cells, by its first run.
        operations: What its latest run made.
        changes: What its latest run changed in names and builders' state.
        entries: What its latest run added to collections.
        reads: Tensors whose static values its code has read, with the place in program order.
    """

    identity: Hashable
    label: str
    position: int
    operations: list[Operation] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    entries: dict[Any, list[Any]] = field(default_factory=dict)
    reads: dict[Tensor, int] = field(default_factory=dict)

    @property
    def has_content(self) -> bool:
        """Whether it has built anything."""
        return bool(self.operations or self.changes or self.entries)

    def __str__(self) -> str:
        return f"cell {self.label}"


@frozen
class Restart:
    """A variable whose shape or dtype a re-run has changed: its value is lost."""

    name: str
    #: Dtype and shape, e.g. "float32[2]".
    before: str
    after: str

    def __str__(self) -> str:
        return f"variable {self.name} re-initialised ({self.before} -> {self.after})"


@frozen
class CellReport:
    """What a re-run of a cell did to the graph.

    Attributes:
        cell: The cell's label.
        kept, changed, new, removed: How many operations are as they were, have become another
            operation under their name, are new, are gone.
        restarts: Variables that lost their values.
        stale: Labels of other cells that must be re-run; None for code that no cell holds.
        failed: Whether the run failed and was taken back.
    """

    cell: str
    kept: int = 0
    changed: int = 0
    new: int = 0
    removed: int = 0
    restarts: tuple[Restart, ...] = ()
    stale: tuple[str | None, ...] = ()
    failed: bool = False

    @property
    def is_news(self) -> bool:
        """Whether anything but "the same again" happened."""
        counts = self.changed or self.new or self.removed
        return bool(self.failed or counts or self.restarts or self.stale)

    def __str__(self) -> str:
        if self.failed:
            return f"cell {self.cell} failed: what its earlier run built stands"
        told = [f"{self.kept} operation{'s' * (self.kept != 1)} kept"]
        counts = (("changed", self.changed), ("new", self.new), ("removed", self.removed))
        told += [f"{n} {what}" for what, n in counts if n]
        parts = [", ".join(told), *map(str, self.restarts)]
        if self.stale:
            parts.append(f"stale: {named(self.stale)}")
        gap = "\n  " if len(self.restarts) > 1 else "; "
        return f"cell {self.cell} again: {gap.join(parts)}"


def named(labels: tuple[str | None, ...]) -> str:
    """Returns "cell 3", "cells 3, 5", or with "code outside cells" where a label is None."""
    cells = [label for label in labels if label is not None]
    parts = [f"cell{'s' * (len(cells) > 1)} {', '.join(cells)}"] if cells else []
    return " and ".join([*parts, *["code outside cells"] * (None in labels)])


__all__ = ["Cell", "CellReport", "Restart", "named"]
