"""Inline: calls of functions are replaced by the functions' bodies.

Branches and loops stay nodes, and get their bodies as programs of their own, `Node.blocks`. These
use values of the programs around them as they are; what a block captures is an input of its node,
so that every later pass sees what the node waits for.

A body's nodes stand at the call's place in program order, in the body's own order, so their effects
on variables fall where the call stands. What controls the call controls every node of the body;
what the call controls waits for all of them. What waits for a parameter waits for what came in for
it. A node remembers the operation of the body and the call; the path of calls tells random ops of
different calls apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from flowscope.control.blocks import Parameter
from flowscope.control.calls import Call
from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.values.dtypes import resource
from flowscope.ops.core.flow import Identity
from flowscope.plan.ir.origins import PlannedOperations
from flowscope.plan.ir.program import (
    Node,
    Program,
    TensorKey,
    Value,
    is_back_edge,
    needed,
    outer_values,
)
from flowscope.plan.ir.structured import LoopNode, kind_of, without_functions

#: Plans the function of a node apart: (node, with its inputs) -> the node's op, with a program.
PlanFunction = Callable[[Node], Any]


def inline(
    program: Program, read: type, operations: PlannedOperations, plan_function: PlanFunction
) -> Program:
    """Returns the program without calls, and without what only unused results needed.

    Args:
        program: What `prune` returned.
        read: The op that reads a variable: of a fed variable it is the feed.
        operations: Those that nodes come from; it adds those of bodies.
        plan_function: Plans a function that runs apart, see `plan.partition.element_functions`.
    """
    if not any(
        isinstance(n.op, Call) or _functions(n) or has_own_function(n.op) for n in program.nodes
    ):
        return program
    inliner = _Inliner(read, operations, plan_function)
    for node in program.nodes:
        inliner.add(inliner.own(node), node.order)
    for node in inliner.nodes:
        if any(is_back_edge(v, node) for v in node.inputs):
            node.inputs = tuple([inliner.now(v) for v in node.inputs])
    fetches = tuple([inliner.now(v) for v in program.fetches])
    targets = tuple(inliner.standing(program.targets))
    whole = dataclasses.replace(
        program, nodes=tuple(inliner.nodes), fetches=fetches, targets=targets,
        tensors=tuple([(key, inliner.now(v)) for key, v in (
            *program.tensors, *inliner.tensors.items()
        )]),
    )  # fmt: skip
    alive = needed(whole)
    return dataclasses.replace(whole, nodes=tuple([n for n in whole.nodes if n in alive]))


#: So many branches and loops stand in each other at most: passes, and what runs them, recurse.
MOST_NESTED = 128

#: A node of a body, and its place in program order.
_Inner = tuple[Node, tuple[object, ...]]


class _Inliner:
    """Walks through nodes and bodies; `same` maps values that were replaced."""

    def __init__(
        self, read: type, operations: PlannedOperations, plan_function: PlanFunction, depth: int = 0
    ) -> None:
        self._read = read
        self._operations = operations
        self._plan_function = plan_function
        self._depth = depth
        self.nodes: list[Node] = []
        self._own: set[Node] = set()
        self.same: dict[Value, Value] = {}
        #: What stands for tensors that no node gives.
        self.tensors: dict[TensorKey, Value] = {}
        self._instead: dict[Node, tuple[Node, ...]] = {}
        #: Per value from outside this program, what is there once it is.
        self._ready: dict[Value, Node] = {}

    def add(self, node: Node, order: tuple[object, ...]) -> None:
        """Adds a node, or the body that it calls, at a place in program order.

        Bodies that call others are on a stack here, not on Python's: calls nest as deep as they do.
        """
        stack = [self._added(node, order)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(self._added(*inner))

    def _added(self, node: Node, order: tuple[object, ...]) -> Iterator[_Inner]:
        """Adds a node; yields the nodes of the body that it calls, which are to be added then."""
        node.order = order
        node.inputs = tuple([self.now(v) for v in node.inputs])
        node.control = self.standing(node.control)
        if isinstance(node.op, Call):
            yield from self._add_body(node, order)
            self._note_outputs(node)
        elif self._is_fed(node):
            self._note_outputs(node)
            self.same[node.outputs[0]] = node.inputs[0]
            self._instead[node] = ()
        elif _functions(node):
            self._add_blocks(node)
        else:
            if has_own_function(node.op):
                node.op = self._plan_function(node)
            self._append(node)

    def own(self, node: Node) -> Node:
        """Returns a copy of a node that this pass may change; the node itself if it need not."""
        is_changed = (
            isinstance(node.op, Call)
            or bool(_functions(node))
            or has_own_function(node.op)
            or self._is_fed(node)
            or any(v in self.same or is_back_edge(v, node) for v in node.inputs)
            or any(n in self._instead for n in node.control)
        )
        if not is_changed:
            return node
        made = node.copy()
        self.same.update(zip(node.outputs, made.outputs, strict=True))
        self._instead[node] = (made,)
        return made

    def now(self, value: Value) -> Value:
        """Returns the value that stands for `value` now."""
        while value in self.same:
            value = self.same[value]
        return value

    def _note_outputs(self, node: Node) -> None:
        """Notes what the tensors are of an operation that is no node any more."""
        op = node.origins[0].id
        self.tensors.update(((op, v.index, node.path), v) for v in node.outputs)

    def _append(self, node: Node) -> None:
        self.nodes.append(node)
        self._own.add(node)

    def standing(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Returns the nodes that stand for `nodes` now."""
        found: dict[Node, None] = {}
        stack = [*reversed([*nodes])]
        while stack:
            node = stack.pop()
            if node in self._instead:
                stack += reversed(self._instead[node])
            else:
                found[node] = None
        return tuple(found)

    def awaited(
        self,
        op: Operation,
        node: Node,
        order: tuple[object, ...],
        nodes: Mapping[Operation, Node],
        values: Mapping[Tensor, Value],
    ) -> tuple[Node, ...]:
        """The nodes that a node of a body waits for, the arrival of parameters among them.

        Args:
            op: The operation of the body.
            node: Its node.
            order: The body's place in program order.
            nodes: The body's nodes so far.
            values: What stands for the body's tensors, its parameters among them.
        """
        found: list[Node | None] = []
        for c in op.control_inputs:
            if c in nodes:
                found.append(nodes[c])
            elif isinstance(c.definition, Parameter) and c.outputs[0] in values:
                found.append(self._arrival(self.now(values[c.outputs[0]]), c, order, node))
        return tuple([n for n in found if n is not None])

    def _arrival(
        self, value: Value, parameter: Operation, order: tuple[object, ...], user: Node
    ) -> Node | None:
        """A node that has run once a parameter has its value; None if it always has it.

        What comes from outside this program, and a loop's variable in each iteration, is taken by
        an Identity, for it comes when it comes.
        """
        if value.node in self._own:
            return value.node
        if value.spec.dtype is resource or (value.node is None and not self._depth):
            return None
        if value not in self._ready:
            name = f"{user.name}/{parameter.name.rpartition('/')[2]}"
            spec = Spec(value.spec.dtype, value.spec.shape, variable=value.spec.variable)
            origins = (self._operations.ref(parameter), *user.origins[1:])
            place = (*order, parameter.order)
            self._ready[value] = Node(
                Identity(), name, place, (value,), [spec], user.requested, origins, user.path
            )
            self._append(self._ready[value])
        return self._ready[value]

    def _is_fed(self, node: Node) -> bool:
        return type(node.op) is self._read and self.now(node.inputs[0]).node is None

    def _add_blocks(self, node: Node) -> None:
        op: Any = node.op
        node.op = without_functions(op)
        if isinstance(node, LoopNode):
            counts = [node.variables] * (len(op.functions) - 1) + [node.variables + node.lists]
            explicit = node.op.first + counts[-1]
        else:
            counts, explicit = [0, 0], 1
        captured = list(node.inputs[explicit:])
        blocks = []
        for i, (function, carried) in enumerate(zip(op.functions, counts, strict=True)):
            feeds = _carried(function, carried)
            count = len(function.captures)
            given, captured = captured[:count], captured[count:]
            path = (*node.path, f"{node.name}:{i}")
            blocks.append(self._block(node, function, feeds, given, path))
        node.blocks = tuple(blocks)
        node.inputs = (*node.inputs[:explicit], *outer_values(node.blocks))
        self._append(node)

    def _block(
        self,
        owner: Node,
        function: Any,
        feeds: list[Value],
        captured: list[Value],
        path: tuple[str, ...],
    ) -> Program:
        if self._depth == MOST_NESTED:
            raise InvalidArgumentError(
                f"expected at most {MOST_NESTED} branches and loops in each other, got more: "
                "what repeats is a loop, or calls of a function"
            ).located(op=owner.name, op_type=owner.op.type, **where(owner.origins[0]))
        inner = _Inliner(self._read, self._operations, self._plan_function, self._depth + 1)
        inner.same, inner.tensors = self.same, self.tensors
        given = [*feeds, *captured]
        values: dict[Tensor, Value] = {}
        nodes: dict[Operation, Node] = {}
        is_renamed = owner.name != owner.origins[0].name
        for op in function.block.operations:
            if isinstance(op.definition, Parameter):
                value = values[op.outputs[0]] = given[op.definition.index]
                self.tensors[op.id, 0, path] = value
                continue
            name = f"{owner.name}/{op.name.rpartition('/')[2]}" if is_renamed else op.name
            node = nodes[op] = self._copy(op, owner, name, path, values)
            node.control = inner.awaited(op, node, (), nodes, values)
            values.update(zip(op.outputs, node.outputs, strict=True))
            inner.add(node, (op.order,))
        fetches = [values[t] for t in function.outputs]
        return Program(tuple(inner.nodes), tuple(feeds), tuple([self.now(v) for v in fetches]))

    def _add_body(self, call: Node, order: tuple[object, ...]) -> Iterator[_Inner]:
        function = call.op.function  # type: ignore[attr-defined]
        values: dict[Tensor, Value] = {}
        nodes: dict[Operation, Node] = {}
        first = len(self.nodes)
        path = (*call.path, call.name)
        for op in function.block.operations:
            if isinstance(op.definition, Parameter):
                value = values[op.outputs[0]] = call.inputs[op.definition.index]
                self.tensors[op.id, 0, path] = value
                continue
            name = f"{call.name}/{op.name.rpartition('/')[2]}"
            node = nodes[op] = self._copy(op, call, name, path, values)
            node.control = (*call.control, *self.awaited(op, node, order, nodes, values))
            values.update(zip(op.outputs, node.outputs, strict=True))
            yield node, (*order, op.order)
        for result, value in zip(function.outputs, call.outputs, strict=False):
            self.same[value] = self.now(values[result])
        self._instead[call] = tuple(self.nodes[first:]) or call.control

    def _copy(
        self,
        op: Operation,
        call: Node,
        name: str,
        path: tuple[str, ...],
        values: dict[Tensor, Value],
    ) -> Node:
        specs = [t.spec for t in op.outputs]
        inputs = tuple([values[t] for t in op.inputs[: op.definition.kernel_inputs]])
        origins = (self._operations.ref(op), *call.origins)
        device = op.device or self._inherited(call)
        kind = kind_of(op.definition)
        return kind(op.definition, name, (), inputs, specs, device, origins, path)

    def _inherited(self, call: Node) -> str:
        """Returns the device that operations of a body ask for which ask for none themselves.

        A function's are asked for where its call is; those of a branch or a loop stood in the same
        scopes, and ask for themselves, unless the branch or loop stands in a function's body.
        """
        is_call = isinstance(call.op, Call)
        return "" if self._operations[call.origins[0].id].device and not is_call else call.requested


def _functions(node: Node) -> tuple[Any, ...]:
    """Returns the functions whose bodies are blocks of a node: of a branch or a loop."""
    return getattr(node.op, "functions", ())


def has_own_function(op: Any) -> bool:
    """Whether an op runs a function by itself, as often as it likes: it is planned apart."""
    return getattr(op, "plans_function", False) and hasattr(op.function, "block")


def _carried(function: Any, count: int) -> list[Value]:
    """Returns stand-ins for what changes from one iteration of a loop to the next."""
    made = []
    for i, t in enumerate(function.parameters[:count]):
        spec = Spec(t.spec.dtype, t.spec.shape, variable=t.spec.variable)
        made.append(Value(None, i, spec, t.op.name.rpartition("/")[2]))
    return made


__all__ = ["has_own_function", "inline"]
