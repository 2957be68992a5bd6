"""When the operations of a traced step could begin: the last of what they wait for had ended."""

from __future__ import annotations

from collections.abc import Iterator

from flowscope.plan.ir.program import Value
from flowscope.plan.ir.structured import LoopNode
from flowscope.tracing.decoding import StepSpans
from flowscope.tracing.nodes import PlanNodes


def scheduled(found: StepSpans, nodes: PlanNodes, begin: int) -> list[int]:
    """Returns for each span when what it waits for had ended, by the clock; never after its begin.

    What waits for nothing could begin with the step. In a loop an operation waits for what the same
    iteration makes, for what the one before has made of the loop's variables, and for what is
    outside.

    Args:
        found: The spans of the step, by their ends.
        nodes: The nodes of its plan.
        begin: When the step began.
    """
    spans, made = found.spans, _carried(nodes)
    waits = [node.waits_for for node in nodes.traced]
    ended: dict[tuple[int, int, int], int] = {}
    told: list[int] = []
    rows = (spans.node, spans.frame, spans.iteration, spans.begin, spans.end)
    for node, frame, iteration, start, end in zip(*(r.tolist() for r in rows), strict=True):
        if node < 0:
            told.append(start)
            continue
        keys = [key for w in waits[node] for key in _places(found, w, frame, iteration)]
        keys += [(w, frame, iteration - 1) for w in made[node]]
        could = max([begin, *[ended[key] for key in keys if key in ended]])
        told.append(min(could, start))
        ended[node, frame, iteration] = end
    return told


def _places(
    found: StepSpans, node: int, frame: int, iteration: int
) -> Iterator[tuple[int, int, int]]:
    """Yields a node in an iteration of a frame, and in those around it."""
    while frame >= 0:
        yield node, frame, iteration
        frame, iteration = int(found.frames.parent[frame]), int(found.frames.iteration[frame])
    yield node, -1, -1


def _carried(nodes: PlanNodes) -> list[list[int]]:
    """Returns for each node what makes the loop variables that it reads, an iteration before."""
    after: dict[Value, Value] = {}
    for node in nodes.nodes:
        if isinstance(node, LoopNode):
            after.update(zip(node.parameters, node.next_values, strict=True))
    found: list[list[int]] = []
    for node in nodes.nodes:
        makers = [after[v].node for v in node.inputs if v in after]
        found.append([nodes.index[m] for m in makers if m is not None and m in nodes.index])
    return found


__all__ = ["scheduled"]
