"""What one graph knows of the cells that build it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from flowscope.cells.cell import Cell, CellReport
from flowscope.cells.interrupts import close_contexts, deferred, is_interrupt
from flowscope.cells.lookup import run_of
from flowscope.cells.notebook import notebook
from flowscope.cells.run import Run
from flowscope.cells.savepoint import SavedOperations
from flowscope.cells.stale import Derivation, refusal
from flowscope.errors import GraphError, StaleError
from flowscope.graph.building import PLACES
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.origins.observer import Observer

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph


class Cells(Observer):
    """The cells of a graph, and the run of one of them that builds it now.

    Attributes:
        derivations: Gradients and what they were made from.
        reshaped: What was inferred of the tensors whose shape was set by hand later.
        restarts: Handles of the variables whose shape or dtype a re-run has changed, by name.
        marked: Numbers of the operations that the latest cell has changed or added.
        has_rerun: Whether a cell was run again: then order of creation is not program order.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._cells: dict[Hashable, Cell] = {}
        self._positions: dict[int, Cell] = {}
        self._last_position = 0
        self._owners: weakref.WeakValueDictionary[Operation, Any] = weakref.WeakValueDictionary()
        self.derivations: list[Derivation] = []
        self.reshaped: dict[Tensor, Spec] = {}
        #: What the operations were when the latest run began.
        self.known: SavedOperations | None = None

    def attached(self) -> None:
        """Lets the graph take part in the cell that is running, and in later ones."""
        notebook.join(self._graph)

    def __iter__(self) -> Iterator[Cell]:
        return iter(list(self._cells.values()))

    # -- runs -----------------------------------------------------------------------------------

    def begin(
        self,
        identity: Hashable,
        label: str | None = None,
        names: Callable[[], Mapping[str, Any]] = dict,
    ) -> Run:
        """Starts a run of a cell; without a label it keeps the one that it has."""
        running = run_of(self._graph)
        if running is not None:
            raise GraphError(f"{running.cell} is being built: a cell cannot stand in another")
        with deferred():
            return self._begin(identity, label, names)

    def _begin(
        self, identity: Hashable, label: str | None, names: Callable[[], Mapping[str, Any]]
    ) -> Run:
        graph = self._graph
        cell = self._cells.get(identity)
        if cell is None:
            cell = Cell(identity, str(identity), self._new_position())
        if label is not None:
            cell.label = label
        graph._next_order = cell.position * PLACES
        graph._writes = {}
        graph.run = Run(graph, cell, names)
        return graph.run

    def end(
        self,
        run: Run,
        how: Literal["whole", "broken off", "undone"],
        error: BaseException | None = None,
    ) -> CellReport:
        """Ends a run; returns what it did.

        Args:
            how: "whole": the cell is now what it built. "broken off": so it is, and what it had
                built before and not yet made anew stays. "undone": it is what it was before; a
                first run only where it was interrupted, else the user has what it built.
            error: What the cell has raised.
        """
        with deferred():
            if is_interrupt(error):
                close_contexts(error)
                run.close_scopes()
            return self._end(run, how == "undone" and (run.is_again or is_interrupt(error)), how)

    def _end(self, run: Run, is_undone: bool, how: str) -> CellReport:
        graph, cell = self._graph, run.cell
        graph.run = None
        if is_undone:
            report = run.undo()
        else:
            self.has_rerun |= run.is_again
            report = run.finish(how == "whole")
            self._keep(cell)
            if run.is_again or run.has_built:
                self.marked = self._marked(run)
        graph._next_order = self._new_position() * PLACES
        graph._writes = {}
        if run.is_again or run.has_built:
            graph.touch()
            self.known = None  # it holds operations that may be gone now
        return report

    def _marked(self, run: Run) -> frozenset[int]:
        """Numbers of changed and added operations; none for the first run, where all are new."""
        marked = run.marked
        return marked if run.is_again or len(marked) < len(self._graph) else frozenset()

    def _keep(self, cell: Cell) -> None:
        if cell.has_content:
            self._cells[cell.identity] = self._positions[cell.position] = cell
        else:
            self._cells.pop(cell.identity, None)
            self._positions.pop(cell.position, None)

    def _new_position(self) -> int:
        self._last_position += 1
        return self._last_position

    # -- asking ---------------------------------------------------------------------------------

    def find(self, cell: Hashable) -> Cell | None:
        """Returns the cell of this identity or label."""
        named = (c for c in self._cells.values() if c.label == str(cell))
        return self._cells.get(cell) or next(named, None)

    def of(self, op: Operation) -> Cell | None:
        """Returns the cell that made an operation, None if none did."""
        return self._positions.get(op.order // PLACES)

    def position_now(self) -> int:
        """Returns the place among the cells of what is built now."""
        return self._graph._next_order // PLACES

    def refusal(self, thing: Operation | Tensor) -> StaleError:
        """Returns the error for using something stale."""
        op = thing.op if isinstance(thing, Tensor) else thing
        return refusal(self._graph, op, thing.name)

    def is_current(self, read: Operation, handle: Tensor) -> bool:
        """Whether a read of a variable can be shared: it would read the same if it were made now.

        Not if the variable was written since, or if the read stems from the run of the cell before
        this one and has not been made again.
        """
        graph = self._graph
        if read.stale is not None or read.order < graph.last_write(handle):
            return False
        return graph.run is None or not graph.run.is_unmade(read)

    def has(self, op: Operation) -> bool:
        """Whether an operation is there: neither gone nor still to be made again by its cell."""
        run = self._graph.run
        return op.stale is None and not (run is not None and run.is_unmade(op))

    def hold(self, op: Operation) -> None:
        """Keeps an operation that the cell has made in an earlier run, and goes on using."""
        run = run_of(self._graph)
        if run is not None and run.is_unmade(op):
            run.keep(op)

    # -- taking note ----------------------------------------------------------------------------

    def note_owner(self, op: Operation, owner: Any) -> None:
        """Notes that an object (a variable) stands for an operation, and others that it holds.

        Of two objects for one operation - the cell was run again - the earlier one shares from now
        on what the later one has.
        """
        earlier = self._owners.get(op)
        self._owners[op] = owner
        run = run_of(self._graph)
        if earlier is not None and run is not None:
            run.follow(earlier, owner)

    def owner(self, op: Operation) -> Any:
        """Returns the object that stands for an operation, None if there is none."""
        return self._owners.get(op)

    def companions(self, op: Operation) -> list[Operation]:
        """Returns the operations that belong to it: a variable's initializer, its first read."""
        owner = self._owners.get(op)
        if owner is None:
            return []
        held = [t.op if isinstance(t, Tensor) else t for t in vars(owner).values()
                if isinstance(t, Tensor | Operation)]  # fmt: skip
        return [o for o in held if o is not op]

    def note_value_read(self, tensor: Tensor) -> None:
        """Notes that building code has looked at a tensor's static value."""
        run = run_of(self._graph)
        if run is not None and self.of(tensor.op) is not run.cell:
            run.reads.setdefault(tensor, self._graph._next_order)

    def note_shape(self, tensor: Tensor) -> None:
        """Notes what was inferred of a tensor, before its shape is set by hand."""
        self.reshaped.setdefault(tensor, tensor.spec)

    @contextmanager
    def derived_from(self, sources: Callable[[], Iterable[Operation]]) -> Iterator[None]:
        """Notes that what is made in the block follows from looking at `sources`."""
        graph = self._graph
        if graph.run is None and not self._cells:
            yield
            return
        start = graph._next_order
        found = frozenset(sources())
        stale = [op for op in found if op.stale is not None]
        if stale:
            raise self.refusal(max(stale, key=lambda op: op.order))
        yield
        self.derivations.append(Derivation(start, graph._next_order, found))


__all__ = ["Cells"]
