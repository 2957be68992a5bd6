"""From a graph to a `GraphDef`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowscope.graph.block import Block
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.providers import serializers
from flowscope.graph.serialization.definition import (
    FunctionDef,
    FunctionName,
    GraphDef,
    NodeDef,
    callees_first,
    input_name,
)


def graph_def_of(graph: Graph) -> GraphDef:
    """Returns the graph as data: operations, functions, seed and what is known of used names."""
    nodes = _nodes(graph.root)
    functions = [_function(graph, f) for f in graph.functions.values() if _is_usable(f)]
    graph_def = GraphDef(nodes, graph.seed, {}, functions)
    if functions:
        for node in graph_def.all_nodes():
            node.attr = {k: _named(graph, v) for k, v in node.attr.items()}
        graph_def.functions = callees_first(functions)
    graph_def.names = _names(graph, graph_def)
    return graph_def


def _function(graph: Graph, function: Any) -> FunctionDef:
    return FunctionDef(
        function.name,
        _nodes(function.block),
        [_tensor(t) for t in function.captures],
        [_tensor(t) for t in function.results],
        [_tensor(t) for t in function.kept],
    )


def _is_usable(function: Any) -> bool:
    """Whether nothing that a function takes and gives is stale since a cell was run again."""
    ends = (*function.parameters, *function.captures, *function.results, *function.kept)
    return all(t.op.stale is None for t in ends)


def _nodes(block: Block) -> list[NodeDef]:
    """Returns a block's operations in program order, without those that cannot be used any more."""
    usable = [op for op in block.operations if op.stale is None]
    return [node_of(op) for op in sorted(usable, key=lambda op: op.order)]


def _tensor(tensor: Tensor) -> str:
    return input_name(tensor.op.name, tensor.value_index)


def _named(graph: Graph, value: Any) -> Any:
    """The written form of an attribute: its name for a function."""
    name = getattr(value, "name", None)
    is_function = isinstance(name, str) and graph.functions.get(name) is value
    return FunctionName(name) if is_function else value  # type: ignore[arg-type]


def node_of(op: Operation) -> NodeDef:
    """Returns one operation as data."""
    waits = [f"^{c.name}" for c in op.control_inputs if c.stale is None]
    return NodeDef(
        name=op.name,
        op=op.type,
        input=[*[_tensor(t) for t in op.inputs], *waits],
        device=op.device,
        attr=op.definition.attributes(),
        colocation=list(op.colocation),
        outputs=[(t.spec.dtype, t.spec.shape) for t in op.outputs],
        gradient=op.gradient,
        forward="" if op.forward is None else op.forward.name,
        origin=op.origin,
    )


def _names(graph: Graph, graph_def: GraphDef) -> dict[str, int]:
    """Returns the counters that do not follow from the operations' names (0: not used at all)."""
    expected = counters(names_of(graph_def))
    known = graph._names
    odd = {k: n for k, n in known.items() if expected.get(k) != n}
    odd |= {k: 0 for k in expected if k not in known}
    return dict(sorted(odd.items()))


def names_of(graph_def: GraphDef) -> list[str]:
    """Returns all names of operations and functions."""
    return [n.name for n in graph_def.all_nodes()] + [f.name for f in graph_def.functions]


def counters(names: Iterable[str]) -> dict[str, int]:
    """Returns the counters after these operations were added, each in the scopes it names."""
    found: dict[str, int] = {}
    for name in names:
        key = name.lower()
        while key and key not in found:
            found[key] = 1
            key = key[: max(key.rfind("/"), 0)]
    return found


serializers.update(graph_def_of=graph_def_of)
