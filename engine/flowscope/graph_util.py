"""GraphDefs made smaller: parts of them, without training, with variables as constants."""

from __future__ import annotations

import typing as _typing
from collections.abc import Iterable
from typing import Any

from flowscope.api.absent import refusal as _refusal
from flowscope.errors import DTypeError, FailedPreconditionError, NotFoundError
from flowscope.graph.constant import Literal
from flowscope.graph.serialization.definition import (
    GraphDef,
    NodeDef,
    as_graph_def,
    callees,
    copied,
    split_input,
)
from flowscope.graph.values.dtypes import of_numpy

__all__ = ["convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes"]


def extract_sub_graph(graph_def: GraphDef, dest_nodes: Iterable[str]) -> GraphDef:
    """Returns the operations that `dest_nodes` need, and themselves.

    Args:
        graph_def: The graph.
        dest_nodes: Names of operations.

    Raises:
        NotFoundError: if there is no operation of such a name.
    """
    nodes = {n.name: n for n in as_graph_def(graph_def).node}
    wanted = _names(dest_nodes, nodes, "dest_nodes")
    needed = set(wanted)
    while wanted:
        for text in nodes[wanted.pop()].input:
            name = split_input(text)[0]
            if name not in needed:
                needed.add(name)
                wanted.append(name)
    return _with_nodes(graph_def, [copied(n) for n in graph_def.node if n.name in needed])


def remove_training_nodes(
    input_graph: GraphDef, protected_nodes: Iterable[str] | None = None
) -> GraphDef:
    """Returns the graph without operations that only training needs: identities and stops.

    What takes the output of such an operation takes its input instead. One that waits for others,
    or is waited for, stays.

    Args:
        input_graph: The graph.
        protected_nodes: Names of operations that stay.
    """
    nodes = {n.name: n for n in as_graph_def(input_graph).node}
    kept = set(_names(protected_nodes or (), None, "protected_nodes"))
    kept |= {i[1:] for n in nodes.values() for i in n.input if i.startswith("^")}
    instead = {
        n.name: n.input[0]
        for n in nodes.values()
        if n.op in _ONLY_FOR_TRAINING and n.name not in kept and len(n.input) == 1
    }
    out = [copied(n) for n in input_graph.node if n.name not in instead]
    for node in out:
        node.input = [_past(i, instead) for i in node.input]
        node.colocation = [n for n in node.colocation if n not in instead]
    return _with_nodes(input_graph, out)


_ONLY_FOR_TRAINING = frozenset(("Identity", "StopGradient", "PreventGradient", "CheckNumerics"))


def _past(text: str, instead: dict[str, str]) -> str:
    name, index = split_input(text)
    while name in instead and index == 0:
        text = instead[name]
        name, index = split_input(text)
    return text


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: GraphDef,
    output_node_names: Iterable[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> GraphDef:
    """The graph that the outputs need, with constants in place of variables.

    Args:
        sess: A session of the graph, in which the variables have values.
        input_graph_def: The graph.
        output_node_names: Names of the operations that are asked for.
        variable_names_whitelist: Names of the variables to convert; all by default.
        variable_names_blacklist: Names of variables that stay.

    Raises:
        NotFoundError: if there is no operation of such a name.
        FailedPreconditionError: if an operation changes a variable that is to be converted, or one
            has no value.

    Example:
        >>> w = fs.Variable(2.0, name="w")
        >>> y = fs.multiply(w, 3.0, name="y")
        >>> sess = fs.Session()
        >>> sess.run(w.initializer)
        >>> graph_def = sess.graph.as_graph_def()
        >>> frozen = fs.graph_util.convert_variables_to_constants(sess, graph_def, ["y"])
        >>> sorted({node.op for node in frozen.node})
        ['Const', 'Identity', 'Mul']
    """
    part = extract_sub_graph(input_graph_def, output_node_names)
    allowed = None if variable_names_whitelist is None else set(variable_names_whitelist)
    refused = set(variable_names_blacklist or ())
    handles = {
        n.name
        for n in part.node
        if n.op == "VarHandleOp"
        and (allowed is None or n.name in allowed)
        and n.name not in refused
    }
    values = _values(sess, part, handles)
    for node in part.node:
        if node.name in handles:
            _become_constant(node, values[node.name])
        elif node.op == "ReadVariableOp" and node.data_inputs[0] in handles:
            node.op = "Identity"
    return part


def _values(sess: Any, graph_def: GraphDef, handles: set[str]) -> dict[str, Any]:
    reads: dict[str, str] = {}
    for node in graph_def.node:
        for name in handles.intersection(node.data_inputs):
            if node.op != "ReadVariableOp":
                raise FailedPreconditionError(
                    f'"{node.name}" ({node.op}) does more to the variable "{name}" than to read '
                    "it, so it cannot become a constant"
                )
            reads.setdefault(name, node.name)
    order = sorted(reads)
    found = dict(zip(order, sess.run([f"{reads[n]}:0" for n in order]), strict=True))
    return found


def _become_constant(node: NodeDef, value: Any) -> None:
    dtype = of_numpy(value.dtype)
    node.op = "Const"
    node.attr = {"value": Literal(value), "dtype": dtype}
    node.outputs = [(dtype, value.shape)]


def _names(names: Any, known: Any, argument: str) -> list[str]:
    if isinstance(names, str):
        raise DTypeError(f"expected {argument} to be a list of names, got {names!r}")
    found = list(names)
    missing = [n for n in found if known is not None and n not in known]
    if missing:
        raise NotFoundError(f"there is no operation named {', '.join(missing)} in the graph")
    return found


def _with_nodes(graph_def: GraphDef, nodes: list[NodeDef]) -> GraphDef:
    """Returns a graph of these nodes, with the functions that they call."""
    functions = {f.name: f for f in graph_def.functions}
    homes = {n.name: f.name for f in graph_def.functions for n in f.node}
    wanted, needed = callees(nodes), set()
    while wanted:
        name = wanted.pop()
        if name not in needed and name in functions:
            needed.add(name)
            wanted += functions[name].callees
            captured = [split_input(c)[0] for c in functions[name].captures]
            wanted += [homes[c] for c in captured if c in homes]
    kept = {n.name for n in nodes}
    for node in nodes:
        node.colocation = [n for n in node.colocation if n in kept]
    out = GraphDef(nodes, graph_def.seed)
    out.functions = [f for f in graph_def.functions if f.name in needed]
    return out


if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
