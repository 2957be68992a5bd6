"""From a `GraphDef` to operations of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from flowscope.errors import DTypeError, GraphError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.devices import merged
from flowscope.graph.graph import Graph
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.providers import load, serializer, serializers
from flowscope.graph.serialization.check import Checked, CheckedBody, Sound, attributes_with, check
from flowscope.graph.serialization.definition import (
    GraphDef,
    NodeDef,
    as_graph_def,
    callees,
    split_input,
)
from flowscope.graph.serialization.export import counters, names_of
from flowscope.graph.serialization.formats import is_tensorflow
from flowscope.graph.unsupported import refuse

__all__ = ["import_graph_def"]


class FunctionMaker(Protocol):
    """Makes functions: the floor that has them fills `function_makers`."""

    def make(self, graph: Graph, name: str) -> Any:
        """Returns a new function of this name, with an empty `block`."""

    def fill(
        self, function: Any, parameters: list[Tensor], results: list[Tensor], kept: list[Tensor]
    ) -> None:
        """Gives it the tensors of its block that matter to callers."""

    def close(self, function: Any, captures: list[Tensor]) -> None:
        """Gives it the tensors outside that its last parameters stand for."""


function_makers: list[FunctionMaker] = []


class Imported:
    """Operations that were made from a GraphDef, found by the names they have in it."""

    def __init__(self, graph: Graph, operations: dict[str, Operation]) -> None:
        self.graph = graph
        self.operations = operations

    def find(self, name: str) -> Any:
        """Returns the operation "a" or the tensor "a:0".

        Raises:
            InvalidArgumentError: if there is none.
        """
        op_name, output = split_input(name)
        op = self.operations.get(op_name)
        if op is None:
            raise InvalidArgumentError(
                f"no operation is named {op_name!r} in the graph that is imported"
            )
        if name == op_name:
            return op
        if output >= len(op.outputs):
            raise InvalidArgumentError(
                f"{op_name!r} has {len(op.outputs)} outputs, there is no {name!r}"
            )
        return op.outputs[output]


def graph_of(graph_def: GraphDef) -> tuple[Graph, Imported]:
    """Returns a new graph that is as the GraphDef says, name by name."""
    graph = Graph()
    names = names_of(graph_def)
    builder = _Builder(graph, {n: n for n in names})
    imported = builder.build(check(graph_def, {}))
    used = counters(names) | graph_def.names
    graph._names.update({k: n for k, n in used.items() if n})
    graph.seed = graph_def.seed
    return graph, imported


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
        op_dict: Refused, if not None.
        producer_op_list: Refused, if not None.

    Returns:
        The operations and tensors that `return_elements` names; None if it is None.

    Raises:
        NotFoundError: if the GraphDef uses an op type that is not known.
        InvalidArgumentError: if the GraphDef does not hold together, lacks a name that `input_map`
            or `return_elements` names, or a tensor does not fit. The graph is then as it was.

    Example:
        >>> three = fs.constant(3.0, name="three")
        >>> definition = fs.get_default_graph().as_graph_def()
        >>> fs.import_graph_def(definition, name="copy")
        >>> fs.Session().run("copy/three:0")
        np.float32(3.0)
    """
    refuse("import_graph_def", op_dict=op_dict, producer_op_list=producer_op_list)
    as_graph_def(graph_def)
    names = _names(return_elements)
    _check_elements(graph_def, names or ())
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
        sound = check(graph_def, tensors)
        _check_colocation(graph, graph_def)
        full = _full_names(graph, names_of(graph_def))
        imported = _Builder(graph, full, tensors, waits).build(sound)
    _follow_colocation(graph, list(imported.operations.values()))
    return imported


def _full_names(graph: Graph, names: Sequence[str]) -> dict[str, str]:
    """Returns unique names in the current scope; one that no operation has is taken as it is.

    (A name scope that was opened, and holds no operation, does not count.)
    """
    scope = graph.get_name_scope()
    wanted = {n: f"{scope}/{n}" if scope else n for n in names}
    opened = {n for n, w in wanted.items() if w.lower() in graph._names}
    used = counters([*graph._by_name, *graph.functions]) if opened else {}
    free = {n for n in opened if wanted[n].lower() not in used}
    return {n: w if n in free else graph.unique_name(n) for n, w in wanted.items()}


def _check_colocation(graph: Graph, graph_def: GraphDef) -> None:
    known = {n.name for n in graph_def.all_nodes()}
    for node in graph_def.node:
        missing = [n for n in node.colocation if n not in known and n not in graph._by_name]
        if missing:
            raise InvalidArgumentError(
                f'"{node.name}" shares a device with "{missing[0]}", which the graph that is '
                "imported does not have"
            )


def _follow_colocation(graph: Graph, operations: list[Operation]) -> None:
    """Gives operations the device of those that they share one with."""
    for op in operations:
        if op.colocation:
            known = [graph._by_name.get(n) for n in op.colocation]
            devices = [other.device for other in known if other is not None]
            op.device = next((d for d in devices if d), "")


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
    nodes = {n.name: n for n in graph_def.node}
    used = {split_input(i) for n in graph_def.node for i in n.input}
    unknown = sorted(k for k in mapping if split_input(k) not in used and not _has(nodes, k))
    if unknown:
        raise InvalidArgumentError(
            f"input_map names {', '.join(unknown)}, and the graph that is imported has none of them"
        )


def _check_elements(graph_def: GraphDef, names: Sequence[str]) -> None:
    nodes = {n.name: n for n in graph_def.all_nodes()}
    unknown = [n for n in names if not _has(nodes, n)]
    if unknown:
        raise InvalidArgumentError(
            f"return_elements names {', '.join(unknown)}, and the graph that is imported has none "
            "of them"
        )


def _has(nodes: Mapping[str, NodeDef], name: str) -> bool:
    """Whether there is an operation "a" or "^a", or a tensor "a:0", as far as it is written."""
    op, output = split_input(name)
    node = nodes.get(op)
    return node is not None and (node.outputs is None or name == op or output < len(node.outputs))


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
        scope = "_inputs" if graph.get_name_scope() else "inputs"
        with graph.name_scope(scope), graph.as_default():
            tensor = convert_to_tensor(value)
        if tensor.graph is not graph:
            raise GraphError(f'input_map: "{tensor.name}" belongs to another graph')
        tensors[f"{name}:{output}"] = tensor
    return tensors, waits


class _Builder:
    """Adds sound nodes and functions to a graph, under the full names that they are given."""

    def __init__(
        self,
        graph: Graph,
        names: Mapping[str, str],
        tensors: Mapping[str, Tensor] | None = None,
        waits: Mapping[str, Operation] | None = None,
    ) -> None:
        self._graph = graph
        self._names = names
        self._tensors = tensors or {}
        self._waits = waits or {}
        self._operations: dict[str, Operation] = {}
        self._functions: dict[str, Any] = {}
        self._scope = graph.get_name_scope()

    def build(self, sound: Sound) -> Imported:
        """Adds everything; returns the operations by their own names."""
        for body in sound.functions:
            self._add_function(body)
        self._add_nodes(sound.nodes)
        for body in sound.functions:
            captures = [self._find(n) for n in body.function.captures]
            function_makers[0].close(self._functions[body.function.name], captures)
        self._set_forward([*[at for b in sound.functions for at in b.nodes], *sound.nodes])
        return Imported(self._graph, self._operations)

    def _set_forward(self, nodes: list[Checked]) -> None:
        for at in nodes:
            if at.node.forward:
                op = self._operations[at.node.name]
                op.forward = self._operations.get(at.node.forward)

    def _add_function(self, body: CheckedBody) -> None:
        written = body.function
        if not function_makers:
            load("function_makers")
        maker = function_makers[0]
        function = maker.make(self._graph, self._names[written.name])
        self._functions[written.name] = function
        with self._graph.enter_block(function.block):
            self._add_nodes(body.nodes)
        lists = [[n.name for n in written.parameters], written.results, written.kept]
        maker.fill(function, *[[self._find(n) for n in names] for names in lists])

    def _find(self, name: str) -> Tensor:
        op, output = split_input(name)
        tensor = self._tensors.get(f"{op}:{output}")
        return self._operations[op].outputs[output] if tensor is None else tensor

    def _add_nodes(self, nodes: list[Checked]) -> None:
        made: dict[int, Operation] = {}
        for at in nodes:
            made[at.position] = self._operations[at.node.name] = self._add(at, made)
        for at in nodes:
            op = made[at.position]
            for place, (source, output) in at.later.items():
                op._update_input(place, made[source].outputs[output])
            known = [self._waits.get(n) or self._operations[n] for n in at.node.control_inputs]
            op.control_inputs = tuple(dict.fromkeys((*known, *op.control_inputs)))

    def _add(self, at: Checked, made: dict[int, Operation]) -> Operation:
        node = at.node
        full = self._names[node.name]
        inputs = [s if isinstance(s, Tensor) else made[s[0]].outputs[s[1]] for s in at.inputs]
        op = self._graph.add(self._definition(at, full), tuple(inputs), full + "/")
        if node.device:
            op.device = merged(op.device, node.device)
        if node.colocation:
            own = [self._names.get(n, n) for n in node.colocation]
            op.colocation = tuple(dict.fromkeys((*own, *op.colocation)))
        op.gradient = node.gradient or op.gradient
        op.origin = node.origin or op.origin
        op.outputs = op.outputs[: len(at.specs)]
        for tensor, spec in zip(op.outputs, at.specs, strict=True):
            tensor.spec = spec
        return op

    def _definition(self, at: Checked, full: str) -> Op:
        """Returns the op, with functions; what is named after operations follows the new names."""
        node = at.node
        changed = {} if full == node.name else self._renamed(at, full)
        if not changed and not callees([node]):
            return at.definition
        return type(at.definition)(**attributes_with(node, self._functions) | changed)

    def _renamed(self, at: Checked, full: str) -> dict[str, str]:
        """Returns attributes under new names: of states, of groups of writes, of loops."""
        node, changed = at.node, {}
        if node.attr.get("shared_name") == node.name:
            changed["shared_name"] = full
        if node.op == "Enter" and self._scope:
            changed["frame_name"] = f"{self._scope}/{node.attr['frame_name']}"
        group = node.attr.get("group")
        if at.definition.writes_state and isinstance(group, str) and group and self._scope:
            changed["group"] = f"{self._scope}/{group}"
        return changed


def read_graph_def(text: str | bytes) -> GraphDef:
    """The definition in a graph's JSON form or text form, or in one of TensorFlow's."""
    if is_tensorflow(text):
        return serializer("read_tensorflow")(text)  # type: ignore[no-any-return]
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            raise InvalidArgumentError("expected a graph's text or JSON form, got bytes") from None
    is_json = text.lstrip().startswith("{")
    return GraphDef.from_json(text) if is_json else GraphDef.from_text(text)


serializers.update(graph_of=graph_of)
