"""Which cell of the notebook is running, for all graphs at once.

The notebook's extension calls `notebook.begin` and `notebook.end`; nothing here knows Jupyter.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from flowscope.cells.cell import CellReport
from flowscope.cells.interrupts import close_contexts, deferred, is_interrupt
from flowscope.cells.lookup import cells_of
from flowscope.cells.run import Run
from flowscope.graph.default import Stacks
from flowscope.graph.providers import load

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph

#: Returns something that is another value once a step has run on a graph; the runtime fills it.
steps_of: list[Callable[[Graph], object]] = []


class Notebook:
    """The running cell and the graphs that it may build in."""

    def __init__(self) -> None:
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
        self._running: Hashable | None = None
        self._runs: list[tuple[Run, Graph, list[object]]] = []
        self._names: Callable[[], Mapping[str, Any]] = dict
        self._has_new_graph = False
        self._forgotten: list[Hashable] = []
        #: The default graph and session before the running cell.
        self._defaults: Stacks | None = None

    def join(self, graph: Graph) -> None:
        """Lets a new graph take part, in the running cell too."""
        self._graphs.add(graph)
        if self._running is not None:
            self._has_new_graph = True
            self._start(graph)

    def begin(self, identity: Hashable, names: Callable[[], Mapping[str, Any]] = dict) -> None:
        """A cell starts to run. What ran before has ended.

        Args:
            identity: Tells the cell apart, and stays when it is edited and run again.
            names: Returns the user's variables by name.
        """
        with deferred():
            if self._running is not None:
                self.end()
            self._running, self._names = identity, names
            self._has_new_graph = False
            self._defaults = Stacks()
            for graph in list(self._graphs):
                self._start(graph)

    def _start(self, graph: Graph) -> None:
        assert self._running is not None
        if not graph.finalized and graph.run is None:
            if not steps_of:
                load("steps_of")
            run = cells_of(graph).begin(self._running, None, self._names)
            self._runs.append((run, graph, [f(graph) for f in steps_of]))

    def renew_gradient(self, name: str, run: Run) -> None:
        """Notes that the running cell has registered another gradient under a name.

        It counts for all graphs, as the registry does.
        """
        every = [one for one, *_ in self._runs]
        for one in every if run in every else [run]:
            one.renewed_gradients.add(name)

    def end(self, error: BaseException | None = None, label: str | None = None) -> list[CellReport]:
        """The cell has ended; returns what is news about the graphs, per graph.

        Args:
            error: What it raised, None if nothing.
            label: What people call it from now on: the number that it has got.
        """
        with deferred():
            return self._finish(error, label)

    def _finish(self, error: BaseException | None, label: str | None) -> list[CellReport]:
        runs, self._runs, self._running, self._names = self._runs, [], None, dict
        if is_interrupt(error):
            self._restore_defaults(error, has_run=any(_has_run(g, steps) for _, g, steps in runs))
        for run, *_ in runs if label is not None else ():
            run.cell.label = str(label)
        # What is built in another graph now is not missing in this one.
        moves = self._has_new_graph or any(run.has_built for run, *_ in runs)
        reports = [self._end(run, graph, steps, error, moves) for run, graph, steps in runs]
        reports = [report for report, (run, *_) in zip(reports, runs, strict=True) if _is_told(run)]
        forgotten, self._forgotten = self._forgotten, []
        for cell in forgotten:
            reports += self.forget(cell)
        return [r for r in reports if r.is_news]

    def _end(
        self,
        run: Run,
        graph: Graph,
        steps: list[object],
        error: BaseException | None,
        moves: bool,
    ) -> CellReport:
        if moves and run.is_again and not run.has_built:
            return cells_of(graph).end(run, "undone")
        if error is None:
            return cells_of(graph).end(run, "whole")
        how: Literal["broken off", "undone"] = "broken off" if _has_run(graph, steps) else "undone"
        return cells_of(graph).end(run, how, error)

    def _restore_defaults(self, error: BaseException | None, has_run: bool) -> None:
        """Makes the default graph and session those of before the cell, which was interrupted."""
        close_contexts(error)
        if self._defaults is not None:
            self._defaults.restore(with_base=not has_run)

    def forget(self, cell: Hashable) -> list[CellReport]:
        """Takes away what a cell has built, in all graphs, as if it were run again without code.

        While a cell is running it is only put down, and done when that one has ended.

        Args:
            cell: Its identity or its label.
        """
        if self._running is not None:
            self._forgotten.append(cell)
            return []
        reports = []
        for graph in list(self._graphs):
            found = cells_of(graph).find(cell)
            if found is not None and graph.run is None:
                run = cells_of(graph).begin(found.identity)
                reports.append(cells_of(graph).end(run, "whole"))
        return reports


def _has_run(graph: Graph, steps: list[object]) -> bool:
    """Whether a step has run on a graph since `steps` was asked for."""
    return steps != [f(graph) for f in steps_of]


def _is_told(run: Run) -> bool:
    return run.is_again or bool(run.renewed_gradients)


notebook = Notebook()


def forget_cell(cell: Hashable) -> list[CellReport]:
    """Takes away what a cell of the notebook has built, one that was deleted, for instance.

    What follows from it is stale then. In a notebook it is done when the running cell has ended.

    Args:
        cell: The number in front of the cell, or its identity.

    Returns:
        What was done at once, per graph.
    """
    return notebook.forget(cell)


__all__ = ["Notebook", "forget_cell", "notebook", "steps_of"]
