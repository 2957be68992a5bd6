"""From a `GraphDef` to operations of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowscope.errors import DTypeError, GraphError, InvalidArgumentError, NotFoundError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.written.check import Checked, check
from flowscope.graph.written.definition import GraphDef, as_graph_def, split_input
from flowscope.graph.written.export import counters

__all__ = ["import_graph_def"]


class Imported:
    """Operations that were made from a GraphDef, found by the names they have in it."""

    def __init__(self, graph: Graph, operations: dict[str, Operation]) -> None:
        self.graph = graph
        self.operations = operations

    def find(self, name: str) -> Any:
        """Returns the operation "a" or the tensor "a:0".

        Raises:
            NotFoundError: if there is none.
        """
        op_name, output = split_input(name)
        op = self.operations.get(op_name)
        if op is None:
            raise NotFoundError(f"no operation is named {op_name!r} in the graph that is imported")
        if name == op_name:
            return op
        if output >= len(op.outputs):
            raise NotFoundError(f"{op_name!r} has {len(op.outputs)} outputs, there is no {name!r}")
        return op.outputs[output]


def graph_of(graph_def: GraphDef) -> tuple[Graph, Imported]:
    """Returns a new graph that is as the GraphDef says, name by name."""
    graph = Graph()
    operations = _add(graph, check(graph_def, {}), {}, {n.name: n.name for n in graph_def.node})
    names = counters(n.name for n in graph_def.node) | graph_def.names
    graph._names.update({k: n for k, n in names.items() if n})
    graph.seed = graph_def.seed
    return graph, Imported(graph, operations)


def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the operations of a GraphDef to the default graph.

    Devices, control dependencies and blocks around the call hold for them too. A variable whose
    state has the variable's own name gets a state of its new name: it is a variable of its own.

    Args:
        graph_def: What `Graph.as_graph_def` or `fs.io.read_graph` returned.
        input_map: What takes the place of tensors of the GraphDef: tensors (or values) by names
            like "x:0" or "x"; and operations or tensors by names like "^x", to be waited for in
            place of x.
        return_elements: Names, in the GraphDef, of operations ("y") and tensors ("y:0") to return.
        name: Name scope of what is added; "import" by default.
        op_dict: Not used.
        producer_op_list: Not used.

    Returns:
        The operations and tensors that `return_elements` names; None if it is None.

    Raises:
        NotFoundError: if the GraphDef lacks a name that `input_map` or `return_elements` names, or
            uses an op type that is not known.
        InvalidArgumentError: if the GraphDef does not hold together or a tensor does not fit. The
            graph is then as it was.
    """
    del op_dict, producer_op_list
    as_graph_def(graph_def)
    names = _names(return_elements)
    imported = import_nodes(graph_def, _mapping(input_map), "import" if name is None else name)
    return None if names is None else [imported.find(n) for n in names]


def import_nodes(graph_def: GraphDef, mapping: Mapping[str, Any], scope: str) -> Imported:
    """Adds the operations of a GraphDef to the default graph, in a name scope ("": the top)."""
    graph = get_default_graph()
    if graph.finalized:
        raise GraphError("the graph is finalized: nothing can be added to it")
    _check_keys(graph_def, mapping)
    with graph.name_scope(scope):
        tensors, waits = _replacements(graph, mapping)
        checked = check(graph_def, tensors)
        full = {n.name: graph.unique_name(n.name) for n in graph_def.node}
        return Imported(graph, _add(graph, checked, waits, full))


def _names(return_elements: Any) -> list[str] | None:
    if return_elements is None:
        return None
    if isinstance(return_elements, str) or not all(isinstance(n, str) for n in return_elements):
        raise DTypeError(f"expected return_elements to be a list of names, got {return_elements!r}")
    return list(return_elements)


def _mapping(input_map: Any) -> dict[str, Any]:
    if input_map is None:
        return {}
    if isinstance(input_map, Mapping) and all(isinstance(k, str) for k in input_map):
        return dict(input_map)
    raise DTypeError(f"expected input_map to be a dict by names, got {input_map!r}")


def _check_keys(graph_def: GraphDef, mapping: Mapping[str, Any]) -> None:
    known = {n.name for n in graph_def.node}
    used = {split_input(i)[0] for n in graph_def.node for i in n.input}
    unknown = sorted(k for k in mapping if split_input(k)[0] not in known | used)
    if unknown:
        raise NotFoundError(
            f"input_map names {', '.join(unknown)}, and the graph that is imported has none of them"
        )


def _replacements(
    graph: Graph, mapping: Mapping[str, Any]
) -> tuple[dict[str, Tensor], dict[str, Operation]]:
    """Returns the tensors by "name:index" and the operations by name that are put in."""
    tensors, waits = {}, {}
    for key, value in mapping.items():
        name, output = split_input(key)
        if output < 0:
            found = graph.as_graph_element(value)
            waits[name] = found.op if isinstance(found, Tensor) else found
            continue
        with graph.name_scope("_inputs"), graph.as_default():
            tensor = convert_to_tensor(value)
        if tensor.graph is not graph:
            raise GraphError(f'input_map: "{tensor.name}" belongs to another graph')
        tensors[f"{name}:{output}"] = tensor
    return tensors, waits


def _add(
    graph: Graph, nodes: list[Checked], waits: Mapping[str, Operation], names: dict[str, str]
) -> dict[str, Operation]:
    """Adds sound nodes under their full names; returns the operations by their own names."""
    made: dict[int, Operation] = {}
    for at in nodes:
        made[at.position] = _add_one(graph, at, made, names)
    by_name = {at.node.name: made[at.position] for at in nodes}
    for at in nodes:
        op = made[at.position]
        control = [waits.get(n) or by_name[n] for n in at.node.control_inputs]
        op.control_inputs = tuple(dict.fromkeys((*control, *op.control_inputs)))
    return by_name


def _add_one(
    graph: Graph, at: Checked, made: dict[int, Operation], names: dict[str, str]
) -> Operation:
    node = at.node
    full = names[node.name]
    inputs = [s if isinstance(s, Tensor) else made[s[0]].outputs[s[1]] for s in at.inputs]
    op = graph.add(_renamed(at, full), tuple(inputs), full + "/")
    if node.device:
        outer, inner = DeviceSpec.from_string(op.device), DeviceSpec.from_string(node.device)
        op.device = outer.merged(inner).to_string()
    if node.colocation:
        own = [names.get(n, n) for n in node.colocation]
        op.colocation = tuple(dict.fromkeys((*own, *op.colocation)))
    op.gradient = node.gradient or op.gradient
    op.origin = node.origin or op.origin
    for tensor, spec in zip(op.outputs, at.specs, strict=True):
        tensor.spec = spec
    return op


def _renamed(at: Checked, full: str) -> Any:
    """Returns the op; state that was named after its operation follows the new name."""
    definition = at.definition
    if full != at.node.name and at.node.attr.get("shared_name") == at.node.name:
        return type(definition)(**at.node.attr | {"shared_name": full})
    return definition


def read_graph_def(text: str | bytes) -> GraphDef:
    """Returns what a graph's JSON form or text form says."""
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            raise InvalidArgumentError("expected a graph's text or JSON form, got bytes") from None
    is_json = text.lstrip().startswith("{")
    return GraphDef.from_json(text) if is_json else GraphDef.from_text(text)
