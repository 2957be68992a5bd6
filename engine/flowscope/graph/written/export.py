"""From a graph to a `GraphDef`."""

from __future__ import annotations

from collections.abc import Iterable

from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation
from flowscope.graph.written.definition import GraphDef, NodeDef, input_name


def graph_def_of(graph: Graph) -> GraphDef:
    """Returns the graph as data: operations, seed and what is known of used names."""
    operations = graph.get_operations()
    return GraphDef([node_of(op) for op in operations], graph.seed, _names(graph, operations))


def node_of(op: Operation) -> NodeDef:
    """Returns one operation as data."""
    inputs = [input_name(t.op.name, t.value_index) for t in op.inputs]
    inputs += [f"^{c.name}" for c in op.control_inputs]
    return NodeDef(
        name=op.name,
        op=op.type,
        input=inputs,
        device=op.device,
        attr=op.definition.attributes(),
        colocation=list(op.colocation),
        outputs=[(t.spec.dtype, t.spec.shape) for t in op.outputs],
        gradient=op.gradient,
        origin=op.origin,
    )


def _names(graph: Graph, operations: list[Operation]) -> dict[str, int]:
    """Returns the counters that do not follow from the operations' names (0: not used at all)."""
    expected = counters(op.name for op in operations)
    known = graph._names
    odd = {k: n for k, n in known.items() if expected.get(k) != n}
    return odd | {k: 0 for k in expected if k not in known}


def counters(names: Iterable[str]) -> dict[str, int]:
    """Returns the counters after these operations were added, each in the scopes it names."""
    found: dict[str, int] = {}
    for name in names:
        key = name.lower()
        while key and key not in found:
            found[key] = 1
            key = key[: max(key.rfind("/"), 0)]
    return found
