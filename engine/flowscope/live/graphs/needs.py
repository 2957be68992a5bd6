"""What a run of chosen fetches needs: the operations that run, and what must be fed for it.

It is the planner's own rule (`plan.passes.prune`), applied to the graph as written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from flowscope.control.calls import Call
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.live.graphs.blocks import blocks_of
from flowscope.ops.core.flow import Placeholder
from flowscope.ops.state.variable_ops import ReadVariableOp
from flowscope.plan.passes.prune import needed_operations


def would_run(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
) -> set[Operation]:
    """Returns the operations that a run needs, with those of the bodies that these run.

    Args:
        graph: The graph.
        fetches: Tensors whose values are wanted.
        targets: Operations that must run.
        feeds: Tensors whose values will be given.
    """
    needed = needed_operations(fetches, targets, feeds, ReadVariableOp)
    bodies = [name for op in needed for name in _bodies(op)]
    if not bodies:
        return needed
    inside: dict[str, list[Operation]] = defaultdict(list)
    for op in graph.get_operations():
        if op.block is not graph.root:
            inside[op.block.name].append(op)
    seen = set(bodies)
    while bodies:
        for op in inside[bodies.pop()]:
            needed.add(op)
            fresh = [name for name in _bodies(op) if name not in seen]
            seen.update(fresh)
            bodies += fresh
    return needed


def _bodies(op: Operation) -> tuple[str, ...]:
    if isinstance(op.definition, Call):
        return (op.definition.function.name,)
    return blocks_of(op).get("runs", ())


def unfed_placeholders(needed: Iterable[Operation], feeds: Sequence[Tensor]) -> list[Tensor]:
    """Returns the tensors that must be fed besides, in program order."""
    found = [op for op in needed if isinstance(op.definition, Placeholder)]
    found.sort(key=lambda op: op.order)
    return [op.outputs[0] for op in found if op.outputs[0] not in feeds]


def fed_for(
    needed: Iterable[Operation], fetches: Sequence[Tensor], feeds: Sequence[Tensor]
) -> list[Tensor]:
    """Returns the fed tensors that are asked for: all but placeholders that nothing takes."""
    taken = {t for op in needed for t in op.inputs} | set(fetches)
    return [t for t in feeds if t in taken or not isinstance(t.op.definition, Placeholder)]


def rows_of(needed: Iterable[Operation]) -> tuple[tuple[int, int], ...]:
    """Returns ids of operations as first and last of each row of consecutive numbers."""
    rows: list[tuple[int, int]] = []
    for number in sorted(op.id for op in needed):
        if rows and rows[-1][1] == number - 1:
            rows[-1] = (rows[-1][0], number)
        else:
            rows.append((number, number))
    return tuple(rows)


__all__ = ["fed_for", "rows_of", "unfed_placeholders", "would_run"]
