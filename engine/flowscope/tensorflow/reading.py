"""TensorFlow's binary and text forms of graphs, read: `serializers["read_tensorflow"]`.

The parts of a graph are read one by one, and each is forgotten when its values are taken: memory
holds the file and its arrays, and little else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from flowscope.errors import DataLossError, InvalidArgumentError
from flowscope.graph.graph import Graph
from flowscope.graph.messages.protobuf import LENGTH, field, fields
from flowscope.graph.messages.tensor_arrays import Expansion
from flowscope.graph.messages.tensorflow_schema import parse, parse_text
from flowscope.graph.providers import serializers
from flowscope.graph.serialization.definition import GraphDef, NodeDef, input_name, split_input
from flowscope.graph.serialization.export import graph_def_of
from flowscope.graph.serialization.formats import is_binary
from flowscope.tensorflow.importer import ForeignFunction, ForeignNode, Importer, named
from flowscope.tensorflow.saver_ops import without_saving
from flowscope.tensorflow.values import value_of

#: How many nodes may be made per node of a file, and how many in any case.
_PER_NODE, _AT_LEAST = 64, 1 << 14

_GRAPH_DEF_NODE, _GRAPH_DEF_LIBRARY = 1, 2
_LIBRARY_FUNCTION = 1
_SAVED_MODEL_META_GRAPH, _META_GRAPH_GRAPH = 2, 2


def read_tensorflow(data: str | bytes) -> GraphDef:
    """The definition in a GraphDef as TensorFlow serializes it, binary or text.

    Raises:
        DataLossError: if the bytes are damaged.
        NotFoundError: if it uses op types that are not known: all of them are named.
        InvalidArgumentError: if it does not hold together.
    """
    expansion = Expansion(len(data))
    if isinstance(data, bytes) and not is_binary(data):
        data = data.decode(errors="replace")
    if isinstance(data, str):
        message = parse_text("GraphDef", data, "the graph")
        nodes = [_node(n, expansion) for n in message.node]
        bodies = [_body(f, expansion) for f in message.library.function]
    else:
        nodes, bodies = _parts(data, expansion)
    return graph_def(nodes, bodies)


def read_meta_graphs(data: bytes) -> Iterator[tuple[Any, Callable[[], GraphDef]]]:
    """Yields the graphs of a SavedModel's file.

    Each is a `MetaGraphDef` without its graph, and a function that returns that: without what
    writes checkpoints.

    Raises:
        DataLossError: if the bytes are damaged.
    """
    for number, meta_graph in _messages(data):
        if number != _SAVED_MODEL_META_GRAPH:
            continue
        graph, rest = memoryview(b""), b""
        for inner, part in _messages(meta_graph):
            if inner == _META_GRAPH_GRAPH:
                graph = part
            else:
                rest += field(inner, LENGTH, bytes(part))
        yield parse("MetaGraphDef", rest, "the model"), functools.partial(_for_use, graph)


def _for_use(data: memoryview) -> GraphDef:
    nodes, bodies = _parts(data, Expansion(len(data)))
    return graph_def(without_saving(nodes, bodies), bodies)


def _parts(
    data: bytes | memoryview, expansion: Expansion
) -> tuple[list[ForeignNode], list[ForeignFunction]]:
    nodes: list[ForeignNode] = []
    bodies: list[ForeignFunction] = []
    for number, part in _messages(data):
        if number == _GRAPH_DEF_NODE:
            nodes.append(_node(parse("NodeDef", bytes(part), "the graph"), expansion))
        elif number == _GRAPH_DEF_LIBRARY:
            bodies += [
                _body(parse("FunctionDef", bytes(one), "the graph"), expansion)
                for inner, one in _messages(part)
                if inner == _LIBRARY_FUNCTION
            ]
    return nodes, bodies


def _messages(data: Any) -> Iterator[tuple[int, Any]]:
    """Yields number and bytes of the messages in a message, without copies."""
    try:
        for number, wire_type, part in fields(memoryview(data)):  # type: ignore[arg-type]
            if wire_type == LENGTH:
                yield number, part
    except InvalidArgumentError as e:
        raise DataLossError(f"the graph is damaged: {e.message}") from None


def _node(message: Any, expansion: Expansion) -> ForeignNode:
    attributes = {
        name: value_of(value, expansion)
        for name, value in message.attr.items()
        if not name.startswith("_") and value.WhichOneof("value") not in (None, "placeholder")
    }
    classes = message.attr["_class"].list.s if "_class" in message.attr else ()
    places = [
        c.decode(errors="replace").removeprefix("loc:@") for c in classes if c[:5] == b"loc:@"
    ]
    return ForeignNode(
        message.name, message.op, list(message.input), message.device, attributes, places
    )


def _body(message: Any, expansion: Expansion) -> ForeignFunction:
    known = message.signature
    results = []
    for output in known.output_arg:
        if output.name not in message.ret:
            raise InvalidArgumentError(
                f'the function "{known.name}" does not say what it returns as {output.name}'
            )
        results.append(message.ret[output.name])
    return ForeignFunction(
        known.name,
        [a.name for a in known.input_arg],
        [_node(n, expansion) for n in message.node_def],
        results,
        list(message.control_ret.values()),
    )


def graph_def(nodes: list[ForeignNode], bodies: list[ForeignFunction]) -> GraphDef:
    """Returns a graph of a file's nodes and functions, under the names that they have there."""
    total = len(nodes) + sum(len(b.nodes) for b in bodies)
    importer = Importer({b.name: b for b in bodies}, max(_AT_LEAST, _PER_NODE * total))
    graph = Graph()
    with graph.as_default():
        made = importer.add(nodes)
        operations = {name: named(name, one) for name, one in made.items()}
    found = graph_def_of(graph)
    _rename(found, {op.name: name for name, op in operations.items() if op is not None})
    _colocate(found, nodes)
    return found


def _rename(found: GraphDef, wanted: dict[str, str]) -> None:
    """Gives operations the names of the file; others that have one of these get another."""
    names = {n.name for n in found.all_nodes()}
    taken = set(wanted.values())
    change = dict(wanted)
    for name in names - wanted.keys():
        if name in taken:
            count = 1
            while f"{name}_{count}" in names or f"{name}_{count}" in taken:
                count += 1
            change[name] = f"{name}_{count}"
            taken.add(change[name])
    change = {old: new for old, new in change.items() if old != new}
    for node in found.all_nodes():
        node.origin = None
        if change:
            node.name = change.get(node.name, node.name)
            node.input = [_renamed(i, change) for i in node.input]
            node.forward = change.get(node.forward, node.forward)
    for function in found.functions:
        for names_of in (function.captures, function.results, function.kept):
            names_of[:] = [_renamed(n, change) for n in names_of]
    found.names = {}


def _renamed(name: str, change: dict[str, str]) -> str:
    if name.startswith("^"):
        return "^" + change.get(name[1:], name[1:])
    op, index = split_input(name)
    return input_name(change.get(op, op), index)


def _colocate(found: GraphDef, nodes: list[ForeignNode]) -> None:
    known: dict[str, NodeDef] = {n.name: n for n in found.node}
    for node in nodes:
        places = [p for p in node.colocation if p in known and p != node.name]
        if places and node.name in known:
            known[node.name].colocation = places


serializers.update(read_tensorflow=read_tensorflow)

__all__ = ["graph_def", "read_meta_graphs", "read_tensorflow"]
