"""From the nodes of a file to operations of a graph.

Nodes are made in an order in which their inputs exist; what a loop made by hand hands to its next
iteration comes last. Functions are made where they are called: a body is built once for each
combination of dtypes, shapes and variables that it is called with.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from flowscope.control.function import function
from flowscope.errors import InvalidArgumentError, NotFoundError, OpError, ResourceExhaustedError
from flowscope.graph.default import get_default_graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.scopes import control_dependencies, device, name_scope
from flowscope.graph.values.dtypes import resource
from flowscope.ops.core.flow import identity, identity_n
from flowscope.tensorflow import calls as _calls, tensor_lists as _tensor_lists  # fill the table
from flowscope.tensorflow.op_table import VARIABLES, OpUse, is_known, make, read_variable
from flowscope.tensorflow.signatures import signature
from flowscope.tensorflow.values import FunctionRef

_TABLES = (_calls, _tensor_lists)

#: How deep functions of a file may call each other.
MAX_DEPTH = 64


@frozen
class ForeignNode:
    """A node of a file.

    Attributes:
        name: Its name.
        op: Its op type.
        inputs: What it takes: "a", "a:1", in functions "a:output:0"; "^a" is waited for.
        device: The device that was asked for, "" for none.
        attributes: Its attributes by name.
        colocation: Names of nodes that it shares a device with.
    """

    name: str
    op: str
    inputs: list[str]
    device: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    colocation: list[str] = field(default_factory=list)


@frozen
class ForeignFunction:
    """A function of a file.

    Attributes:
        name: Its name.
        parameters: Names of its inputs.
        nodes: Its nodes.
        results: What it returns, as nodes name their inputs.
        waits: Nodes that run with every call.
    """

    name: str
    parameters: list[str]
    nodes: list[ForeignNode]
    results: list[str]
    waits: list[str]


#: The outputs of a node: tensors, None where an output does not exist here; and the operation.
Made = tuple[list[Tensor | None], Operation | None]


class Importer:
    """Makes operations of a file's nodes and functions, in the default graph.

    Args:
        bodies: The file's functions by name.
        most: How many nodes may be made, with those of functions as often as they are built.
    """

    def __init__(self, bodies: Mapping[str, ForeignFunction], most: int) -> None:
        self._bodies = bodies
        self._left = most
        self._depth = 0
        self._traced: dict[Any, Callable[..., Any]] = {}
        #: Variables of TensorFlow 1: what takes one gets its value, or the variable itself.
        self.variables: set[Tensor] = set()

    def add(self, nodes: Sequence[ForeignNode]) -> dict[str, Made]:
        """Adds the operations of a graph's nodes; returns what was made by name.

        Raises:
            NotFoundError: if op types or functions are not known: all of them.
            InvalidArgumentError: if a node does not fit.
        """
        check_known([*nodes, *[n for b in self._used(nodes) for n in b.nodes]])
        scope = _Nodes(self, nodes, {})
        scope.add()
        return scope.made

    def _used(self, nodes: Sequence[ForeignNode]) -> list[ForeignFunction]:
        """The functions that nodes use, and those that these use."""
        found: dict[str, ForeignFunction] = {}
        waiting = list(nodes)
        while waiting:
            for name in functions_of(waiting.pop()):
                if name in self._bodies and name not in found:
                    found[name] = self._bodies[name]
                    waiting += found[name].nodes
        return list(found.values())

    def call(self, ref: FunctionRef, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Adds a call of a function; returns its results."""
        body = self._body(ref)
        handles = {i: t for i, t in enumerate(inputs) if t.spec.dtype is resource}
        key = (ref.name, tuple(handles.items()))
        traced = self._traced.get(key)
        if traced is None:

            def run(*given: Tensor) -> list[Tensor]:
                left = iter(given)
                full = [handles[i] if i in handles else next(left) for i in range(len(inputs))]
                return self.body(ref, full)

            traced = self._traced[key] = function(run, name=_scope_name(body.name))
        return list(traced(*[t for i, t in enumerate(inputs) if i not in handles]))

    def body(self, ref: FunctionRef, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Adds the operations of a function to the current block; returns its results."""
        body = self._body(ref)
        if len(inputs) != len(body.parameters):
            raise InvalidArgumentError(
                f'the function "{body.name}" has {len(body.parameters)} inputs, got {len(inputs)}'
            )
        if self._depth >= MAX_DEPTH:
            raise InvalidArgumentError(f"functions call each other more than {MAX_DEPTH} deep")
        self._depth += 1
        try:
            given: dict[str, Made] = {
                n: ([t], None) for n, t in zip(body.parameters, inputs, strict=True)
            }
            scope = _Nodes(self, body.nodes, given)
            scope.add()
            return [scope.tensor(r) for r in body.results]
        finally:
            self._depth -= 1

    def _body(self, ref: FunctionRef) -> ForeignFunction:
        found = self._bodies.get(ref.name)
        if found is None:
            raise NotFoundError(f'the file has no function "{ref.name}"')
        return found

    def count(self) -> None:
        """Notes that a node is made.

        Raises:
            ResourceExhaustedError: if there are too many.
        """
        self._left -= 1
        if self._left < 0:
            raise ResourceExhaustedError(
                "the file's functions are built too often: they use each other many times over"
            )


def functions_of(node: ForeignNode) -> set[str]:
    """Returns the names of the functions that a node's attributes name."""
    flat: list[Any] = []
    for value in node.attributes.values():
        flat += value if isinstance(value, list) else [value]
    return {v.name for v in flat if isinstance(v, FunctionRef)}


def check_known(nodes: Iterable[ForeignNode]) -> None:
    """Raises NotFoundError with all op types that are not known, and a node of each."""
    unknown: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for node in nodes:
        if not is_known(node.op):
            unknown.setdefault(node.op, node.name)
            counts[node.op] += 1
    if unknown:
        lines = [f'  {op}: {counts[op]} times, as in "{name}"' for op, name in unknown.items()]
        raise NotFoundError("these op types of the file are not known:\n" + "\n".join(lines))


class _Nodes:
    """The nodes of a graph or a function while operations are made of them."""

    def __init__(
        self, importer: Importer, nodes: Sequence[ForeignNode], given: Mapping[str, Made]
    ) -> None:
        self._importer = importer
        self._nodes = {n.name: n for n in nodes}
        if len(self._nodes) < len(nodes):
            twin = next(n for n, count in Counter(n.name for n in nodes).items() if count > 1)
            raise InvalidArgumentError(f'two nodes are named "{twin}"')
        self.made: dict[str, Made] = dict(given)

    def add(self) -> None:
        """Makes operations of all nodes."""
        later: list[tuple[Tensor, int, str]] = []
        for node in _ordered(list(self._nodes.values()), self.made):
            try:
                self._add(node, later)
            except OpError as e:
                raise e.located(op=node.name, op_type=node.op) from None
            except (RecursionError, MemoryError):
                raise ResourceExhaustedError("the node is too large").located(
                    op=node.name, op_type=node.op
                ) from None
            except Exception as e:  # functions that are called with what a file says
                raise InvalidArgumentError(f"the node does not fit: {e}").located(
                    op=node.name, op_type=node.op
                ) from e
        for tensor, place, name in later:
            tensor.op._update_input(place, self.tensor(name))

    def _add(self, node: ForeignNode, later: list[tuple[Tensor, int, str]]) -> None:
        self._importer.count()
        waits: list[Operation | None] = []
        inputs: list[Tensor] = []
        backward: list[tuple[int, str]] = []
        for name in node.inputs:
            if name.startswith("^"):
                waits.append(self._operation(name[1:]))
            elif node.op == "Merge" and _node_name(name) not in self.made:
                backward.append((len(inputs), name))
                inputs.append(inputs[0])
            else:
                inputs += self._tensors(name)
        inputs = self._values(node, inputs)
        use = OpUse(node.op, node.name, inputs, node.attributes, self._importer)
        with control_dependencies([w for w in waits if w is not None]), device(node.device or None):
            made = self.made[node.name] = _outputs(make(use), node.name)
        if node.op in VARIABLES:
            self._importer.variables |= {t for t in made[0] if t is not None}
        later += [(made[0][0], place, name) for place, name in backward if made[0][0] is not None]

    def _values(self, node: ForeignNode, inputs: list[Tensor]) -> list[Tensor]:
        """The inputs; a variable of TensorFlow 1 is read where its value is wanted."""
        known, variables = signature(node.op), self._importer.variables
        if known is None or variables.isdisjoint(inputs):
            return inputs
        wanted = [a.is_variable for a in known.inputs for _ in range(a.length(node.attributes))]
        return [
            read_variable(t) if t in variables and not is_variable else t
            for t, is_variable in zip(inputs, wanted, strict=True)
        ]

    def _operation(self, name: str) -> Operation | None:
        """The operation that stands for a node that is waited for."""
        tensors, op = self._made(name)
        return op or next((t.op for t in tensors if t is not None), None)

    def _made(self, name: str) -> Made:
        if name not in self.made:
            raise InvalidArgumentError(f'there is no node "{name}"')
        return self.made[name]

    def tensor(self, name: str) -> Tensor:
        """Returns the tensor that a name stands for.

        Raises:
            InvalidArgumentError: if there is none.
        """
        found = self._tensors(name)
        if len(found) != 1:
            raise InvalidArgumentError(f"expected one tensor named {name!r}, got {len(found)}")
        return found[0]

    def _tensors(self, name: str) -> list[Tensor]:
        """Returns the tensors that "a", "a:1", "a:output" or "a:output:1" stands for."""
        node, *rest = name.split(":")
        tensors, _ = self._made(node)
        if not rest:
            places = range(1)
        elif len(rest) == 1 and rest[0].isdecimal() and len(rest[0]) < 8:
            places = range(int(rest[0]), int(rest[0]) + 1)
        else:
            places = self._places(node, rest)
        found = [tensors[i] if i < len(tensors) else None for i in places]
        if None in found:
            raise InvalidArgumentError(f"there is no tensor {name!r}: the op has no such output")
        return found  # type: ignore[return-value]

    def _places(self, name: str, rest: list[str]) -> range:
        node = self._nodes.get(name)
        known = None if node is None else signature(node.op)
        if node is not None and known is not None:
            at = 0
            for output in known.outputs:
                count = output.length(node.attributes)
                if output.name == rest[0] and len(rest) == 1:
                    return range(at, at + count)
                if output.name == rest[0] and rest[1].isdecimal() and len(rest[1]) < 8:
                    place = int(rest[1])
                    if place < count:
                        return range(at + place, at + place + 1)
                at += count
        raise InvalidArgumentError(f"there is no tensor {':'.join([name, *rest])!r}")


def _outputs(found: Any, name: str) -> Made:
    """The tensors and the operation that stand for a node, from the result of its maker."""
    if found is None or isinstance(found, Operation):
        return [], found
    values = list(found) if isinstance(found, tuple | list) else [found]
    tensors = [v for v in values if v is None or isinstance(v, Tensor)]
    if len(tensors) < len(values):
        tensors = [None if v is None else get_default_graph().as_graph_element(v) for v in values]
    return tensors, None


def _node_name(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


def _scope_name(name: str) -> str:
    return name.strip("_") or "function"


def _ordered(nodes: list[ForeignNode], given: Mapping[str, Any]) -> list[ForeignNode]:
    """Returns the nodes in an order in which they can be made, as written where possible.

    Raises:
        InvalidArgumentError: if a node waits for itself, or for one that there is not.
    """
    places = {n.name: i for i, n in enumerate(nodes)}
    users: list[list[int]] = [[] for _ in nodes]
    missing = [0] * len(nodes)
    for i, node in enumerate(nodes):
        for name in {_node_name(one) for one in node.inputs}:
            at = places.get(name)
            if at is None and name not in given:
                raise InvalidArgumentError(f'"{node.name}" takes "{name}", which the file lacks')
            if at is None or (node.op == "Merge" and nodes[at].op == "NextIteration"):
                continue
            users[at].append(i)
            missing[i] += 1
    ready = [i for i, n in enumerate(missing) if n == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        at = heapq.heappop(ready)
        order.append(nodes[at])
        for user in users[at]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        stuck = next(n.name for i, n in enumerate(nodes) if missing[i])
        raise InvalidArgumentError(f'"{stuck}" waits for itself: its inputs lead in a circle')
    return order


def named(name: str, made: Made) -> Operation | None:
    """Returns the operation that has a node's outputs in their order; adds one where none has.

    Returns None where a node has neither outputs nor an operation.
    """
    tensors, op = made
    if op is not None or not tensors:
        return op
    first = tensors[0]
    if first is not None and all(
        t is None or (t.op is first.op and t.value_index == i) for i, t in enumerate(tensors)
    ):
        return first.op
    known = [t for t in tensors if t is not None]
    with name_scope(None):
        one = identity(known[0], name) if len(known) == 1 else identity_n(known, name)[0]
    return one.op


__all__ = ["ForeignFunction", "ForeignNode", "Importer", "functions_of", "named"]
