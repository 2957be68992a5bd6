"""What is another in two graphs: operations by name."""

from __future__ import annotations

from typing import Any

from flowscope.graph.graph import Graph
from flowscope.live.graphs.nodes import node_of


def difference(graph: Graph, other: Graph) -> dict[str, str]:
    """The differences of a graph from one that it is compared with.

    Args:
        graph: The graph.
        other: What it is compared with.

    Returns:
        By name of an operation: "added" for one that only `graph` has, "removed" for one that only
        `other` has, "altered" for one whose type, attributes, inputs, outputs or requested device
        are others. What follows from an altered operation is not altered itself.
    """
    mine, theirs = _described(graph), _described(other)
    found = {
        name: "added" if name not in theirs else "altered"
        for name, told in mine.items()
        if theirs.get(name) != told
    }
    return found | {name: "removed" for name in theirs if name not in mine}


def _described(graph: Graph) -> dict[str, Any]:
    nodes = [node_of(op, None) for op in graph.get_operations()]
    names = {node.id: node.name for node in nodes}
    return {
        node.name: (
            node.type,
            node.attributes,
            node.outputs,
            node.device,
            [(names.get(op), output) for op, output in node.inputs],
            sorted(names.get(op, "") for op in node.control),
        )
        for node in nodes
    }


__all__ = ["difference"]
