"""Growth: a graph that gets new operations from the same line between runs, again and again.

`sess.run(a[0])` in a loop adds an operation each time, and each run plans anew. Sessions
look only when they have to plan, at what was added since one of the graph's last did.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from flowscope.errors import GraphGrowthWarning
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation

#: So often may one line add operations between runs until it is warned about.
PATIENCE = 20


class GrowthWarner:
    """Counts, per call site, between how many runs it has added operations to the graph."""

    def __init__(self) -> None:
        self._seen: int | None = None
        self._counts: dict[tuple[int, ...], int] = {}

    def look(self, graph: Graph) -> None:
        """Looks at what was added since the last look; warns at the line that repeats itself."""
        size = len(graph)
        if self._seen is None or size <= self._seen:
            if self._seen is not None and size < self._seen:
                self._counts.clear()  # a cell was run again: its operations were taken back
            self._seen = size
            return
        added = graph.operations_since(self._seen)
        self._seen = size
        sites: dict[tuple[int, ...], list[Operation]] = {}
        for op in added:
            sites.setdefault(op.origin.key, []).append(op)
        for site, ops in sites.items():
            count = self._counts[site] = self._counts.get(site, 0) + 1
            if count == PATIENCE:
                _warn(ops, count, size)


def _warn(ops: Sequence[Operation], count: int, size: int) -> None:
    place = ops[0].origin.place
    if place is None:
        return
    listed = ", ".join(f'"{op.name}" ({op.type})' for op in ops[:3])
    more = f" and {len(ops) - 3} more" if len(ops) > 3 else ""
    if any(op.definition.writes_state for op in ops):
        advice = (
            "make the assignment once, before the loop, with a placeholder for the value, "
            "and feed it; or use v.load(value, session)"
        )
    else:
        advice = "make them once, before the loop, and run the same tensor each time"
    text = f"\n  {place.text}" if place.text else ""
    warnings.warn_explicit(
        f"the graph grows in a loop: {place} has added operations between {count} runs, "
        f"the last time {listed}{more}; the graph has {size} operations now, and each such run "
        f"plans anew: {advice}{text}",
        GraphGrowthWarning,
        place.filename,
        place.line,
    )


__all__ = ["GrowthWarner"]
