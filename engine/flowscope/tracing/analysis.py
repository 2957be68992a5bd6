"""What spans add up to: totals, the split of a step, its critical path."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.plan.program import Node
from flowscope.runtime.step_trace import StepTrace
from flowscope.tracing.nodes import PlanNodes
from flowscope.tracing.recording import Spans, Split

Array = Any


def with_inner(own: Array, parents: Array) -> Array:
    """Returns totals: a node's own time, and that of what it runs.

    Args:
        own: Per node.
        parents: Per node the position of the one around it, which comes before it; -1 for none.
    """
    total = own.copy()
    for i in reversed(np.flatnonzero(parents >= 0)):
        total[parents[i]] += total[i]
    return total


def split(trace: StepTrace, compute: int, python: int) -> Split:
    """Returns where the time of a step went.

    Args:
        trace: Its trace.
        compute: Nanoseconds in its nodes.
        python: Nanoseconds in the user's program before it.
    """
    copies = trace.fed - trace.planned + trace.done - trace.end
    waits = sum(w.end - w.begin for w in trace.waits)
    other = trace.done - trace.called - copies - waits - compute
    return Split(compute, copies, waits, python, max(0, other))


def critical_path(spans: Spans, nodes: PlanNodes) -> Array:
    """Returns the rows of the longest chain of operations that wait for each other, in order.

    Loops and branches count as a whole. Nodes that touch one variable wait for each other as the
    program has them.
    """
    rows = _outermost(spans, nodes)
    length: dict[int, int] = {}
    before: dict[int, int | None] = {}
    waits_for = _dependencies(nodes)
    for i, row in sorted(rows.items()):
        own = int(spans.end[row] - spans.begin[row])
        known = [j for j in waits_for[i] if j in length]
        before[i] = max(known, key=length.__getitem__, default=None)
        best = before[i]
        length[i] = own + (0 if best is None else length[best])
    at = max(length, key=length.__getitem__, default=None)
    path: list[int] = []
    while at is not None:
        path.append(rows[at])
        at = before[at]
    return np.array(path[::-1], np.int64)


def _outermost(spans: Spans, nodes: PlanNodes) -> dict[int, int]:
    """Returns the rows of the nodes that stand in no block, by position."""
    parents = np.array(nodes.parents, np.int64)
    found = np.flatnonzero(spans.node >= 0)
    found = found[parents[spans.node[found]] < 0] if len(found) else found
    return {int(spans.node[row]): int(row) for row in found}


def _dependencies(nodes: PlanNodes) -> list[list[int]]:
    """Returns for each node the positions of those that it waits for."""
    index = nodes.index
    latest: dict[Node, int] = {}
    found: list[list[int]] = []
    for i, node in enumerate(nodes.nodes):
        before = [v.node for v in node.inputs if v.node is not None] + list(node.control)
        waits = [index[n] for n in before if n in index]
        if nodes.parents[i] < 0:
            for handle in node.handles:
                if handle in latest:
                    waits.append(latest[handle])
                if node.writes_state:
                    latest[handle] = i
        found.append(waits)
    return found


__all__ = ["critical_path", "split", "with_inner"]
