"""What notebook cells build, replaced when they run again. The graph enters by observers.

In: `notebook.begin` and `notebook.end` from the notebook's extension, or `with graph.cell(...)`;
between them every operation that `Graph.add` makes. Out: a `CellReport`, and operations that know
whether they are stale. See docs/decisions/8-cells.md.
"""

from flowscope.cells.cell import Cell, CellReport, Restart
from flowscope.cells.cells import Cells
from flowscope.cells.notebook import forget_cell, notebook
from flowscope.cells.run import Run
from flowscope.cells.stale import Derivation
from flowscope.graph.origins.observer import Stale, observers

# Graphs that are made from now on tell these cells how they are built.
observers.append(Cells)

__all__ = [
    "Cell",
    "CellReport",
    "Cells",
    "Derivation",
    "Restart",
    "Run",
    "Stale",
    "forget_cell",
    "notebook",
]
