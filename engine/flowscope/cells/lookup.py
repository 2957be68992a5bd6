"""From a graph to its cells, and to the run of the one that builds it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from flowscope.cells.cells import Cells
    from flowscope.cells.run import Run
    from flowscope.graph.graph import Graph


def cells_of(graph: Graph) -> Cells:
    """Returns the cells of a graph: its observer is what knows them."""
    return cast("Cells", graph.observer)


def run_of(graph: Graph) -> Run | None:
    """Returns the run of the cell that builds a graph now, None if none does."""
    return cast("Run | None", graph.run)


__all__ = ["cells_of", "run_of"]
