"""Edits of programs: how a pass makes a program from the one that it was given.

A pass looks at its program, notes in an `ProgramEdits` what is to be another way, in terms of that
program's nodes and values, and applies them. What nothing is changed of is shared by both programs;
a node that takes what has changed is made anew, in blocks too. The program before stays as it is.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from flowscope.control.dynamic.primitives import Merge
from flowscope.graph.op import Op, Spec
from flowscope.plan.ir.origins import OperationRef
from flowscope.plan.ir.program import Node, Program, Value, is_back_edge, outer_values


def explicit_inputs(node: Node) -> tuple[Value, ...]:
    """Returns a node's inputs without those that only its blocks use."""
    return node.inputs[: len(node.inputs) - len(outer_values(node.blocks))]


class ProgramEdits:
    """What is to change in a program and in its blocks, all told in terms of the program before.

    Attributes:
        same: Per value that is no longer used, what is used in its place.
        instead: Per node that goes, the nodes to wait for in its place: none where it is not here.
    """

    def __init__(self) -> None:
        self.same: dict[Value, Value] = {}
        self.instead: dict[Node, tuple[Node, ...]] = {}
        self._fields: dict[Node, Mapping[str, Any]] = {}
        #: Whether any of these are edges, blocks or outputs.
        self._has_edges = False
        self._before: dict[Node, list[Node]] = {}
        self._after: dict[Node, list[Node]] = {}
        #: What comes at the end of blocks, by the ids of these.
        self._ends: dict[int, tuple[Program, list[Node]]] = {}
        #: What was made of values and nodes so far.
        self._values: dict[Value, Value] = {}
        self._nodes: dict[Node, Node] = {}
        #: Nodes that take values of a back edge, as they were and as they are now.
        self._circles: list[tuple[Node, Node]] = []

    def change(self, node: Node, **fields: Any) -> None:
        """Changes fields of a node.

        Of a node with blocks, `inputs` are the explicit ones. `outputs` says which values its
        outputs stand for: some that the node has, or others. `specs` has the specs of outputs that
        are other values from now on.
        """
        self._fields[node] = {**self._fields.get(node, {}), **fields}
        self._has_edges = self._has_edges or not _EDGES.isdisjoint(fields)

    def change_all(self, nodes: Iterable[Node], fields: Mapping[str, Any]) -> None:
        """Changes fields of nodes of which nothing else is changed, and no edge."""
        self._fields.update(dict.fromkeys(nodes, fields))

    def drop(self, node: Node, by: Iterable[Node] = ()) -> None:
        """Leaves a node out; what waited for it waits for other nodes."""
        self.instead[node] = tuple(by)

    def insert(self, made: Iterable[Node], before: Node) -> None:
        """Puts new nodes before a node."""
        self._before.setdefault(before, []).extend(made)

    def append(self, made: Iterable[Node], after: Node) -> None:
        """Puts new nodes behind a node."""
        self._after.setdefault(after, []).extend(made)

    def append_to(self, block: Program, made: Iterable[Node]) -> None:
        """Puts new nodes at the end of a block: one of the program before, or one that is given."""
        self._ends.setdefault(id(block), (block, []))[1].extend(made)

    def move(self, node: Node, before: Node) -> None:
        """Puts a node of a block before the node whose block that is."""
        made = node.copy()
        self.insert([made], before)
        self.drop(node)
        self.same.update(zip(node.outputs, made.outputs, strict=True))

    def applied(self, program: Program) -> Program:
        """Returns the program in which all this is so: the same one where nothing is."""
        if not (self.same or self.instead or self._fields or self._before or self._after):
            if not self._ends:
                return program
        found = self._block(program)
        for node, made in self._circles:
            made.inputs = tuple([self.value(v) for v in node.inputs])
        return self._recorded(found)

    def _recorded(self, program: Program) -> Program:
        """Returns a program that knows what it uses in the place of values that are gone.

        All passes replace values by an `ProgramEdits`: so this is the one place that records it.
        """
        pairs = [(v.identity, self.value(v).identity) for v in self.same]
        same = [(was, now) for was, now in pairs if was is not now]
        return dataclasses.replace(program, same=(*program.same, *same)) if same else program

    def value(self, value: Value) -> Value:
        """The new value of a value of the program before."""
        while value in self.same:
            value = self.same[value]
        return self._values.get(value, value)

    def _block(self, block: Program) -> Program:
        nodes: list[Node] = []
        if self._before or self._after or self.instead:
            before, after, one = self._before, self._after, self._node
            for node in block.nodes:
                if node in before:
                    nodes += [one(n) for n in before[node]]
                if node not in self.instead:
                    nodes.append(one(node))
                if node in after:
                    nodes += [one(n) for n in after[node]]
        else:
            nodes = [self._node(node) for node in block.nodes]
        if id(block) in self._ends:
            nodes += [self._node(node) for node in self._ends[id(block)][1]]
        fetches, targets = self._all(block.fetches), self._awaited(block.targets)
        if fetches is block.fetches and targets is block.targets:
            if len(nodes) == len(block.nodes) and all(map(_is, nodes, block.nodes)):
                return block
        return dataclasses.replace(block, nodes=tuple(nodes), fetches=fetches, targets=targets)

    def _all(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The new values of values: the same tuple where nothing has changed."""
        same, known = self.same, self._values
        for v in values:
            if v in known or v in same:
                return tuple([self.value(v) if v in same else known.get(v, v) for v in values])
        return values

    def _awaited(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The control inputs in place of nodes."""
        found: dict[Node, None] = {}
        stack = [*reversed(nodes)]
        while stack:
            node = stack.pop()
            if node in self.instead:
                stack += reversed(self.instead[node])
            else:
                found[self._nodes.get(node, node)] = None
        return nodes if len(found) == len(nodes) and all(map(_is, found, nodes)) else tuple(found)

    def _node(self, node: Node) -> Node:
        """The new node of a node: the same one where nothing of it has changed."""
        fields = self._fields.get(node)
        given = node.inputs
        if node.blocks or type(node.op) is Merge:
            return self._changed(node, fields or _NOTHING)
        if fields and self._has_edges:
            if len(fields) > 1 or "inputs" not in fields:
                return self._changed(node, fields)
            given, fields = fields["inputs"], None  # nothing else: by far the most frequent
        inputs, control = self._all(given), node.control
        if control:
            control = self._awaited(control)
        if inputs is node.inputs and control is node.control and not fields:
            return node
        made = self._nodes[node] = node.copy()
        made.inputs, made.control = inputs, control
        if fields:
            for name, value in fields.items():
                setattr(made, name, value)
        for v, new in zip(node.outputs, made.outputs):
            self._values[v] = new
        return made

    def _changed(self, node: Node, fields: Mapping[str, Any]) -> Node:
        """The new node of a node with changed fields or with blocks."""
        control = fields.get("control", node.control)
        if control:
            control = self._awaited(control)
        blocks = node.blocks
        if blocks or "blocks" in fields:
            inputs, blocks = self._blocks(node, fields)
        else:
            inputs = self._all(fields.get("inputs", node.inputs))
        is_kept = inputs is node.inputs and control is node.control and blocks is node.blocks
        is_circle = type(node.op) is Merge and any(is_back_edge(v, node) for v in node.inputs)
        if is_kept and fields is _NOTHING and not is_circle:
            return node
        outputs = fields.get("outputs", node.outputs)
        made = self._nodes[node] = node.copy(outputs)
        specs = fields.get("specs", _NOTHING)
        for v, new in zip(outputs, made.outputs, strict=True):
            self._values[v] = new
            if v in specs:
                new.become(specs[v])
        for name, value in fields.items():
            if name not in _EDGES:
                setattr(made, name, value)
        made.inputs, made.control, made.blocks = inputs, control, blocks
        if is_circle:
            self._circles.append((node, made))
        return made

    def _blocks(
        self, node: Node, fields: Mapping[str, Any]
    ) -> tuple[tuple[Value, ...], tuple[Program, ...]]:
        """Returns the inputs and the blocks of a node that has blocks."""
        given: tuple[Program, ...] = fields.get("blocks", node.blocks)
        explicit = fields["inputs"] if "inputs" in fields else explicit_inputs(node)
        blocks = tuple([self._block(b) for b in given])
        now = self._all(explicit)
        if all(map(_is, blocks, node.blocks)) and now is explicit and "inputs" not in fields:
            return node.inputs, node.blocks
        return (*now, *outer_values(blocks)), blocks


#: No field is changed.
_NOTHING: Mapping[str, Any] = {}
#: Fields that are not set as they are given.
_EDGES = frozenset(("blocks", "control", "inputs", "outputs", "specs"))


def _is(a: object, b: object) -> bool:
    return a is b


def with_nodes(program: Program, nodes: Sequence[Node]) -> Program:
    """Returns a program with these nodes: the same one if it has them."""
    is_same = len(nodes) == len(program.nodes) and all(map(_is, nodes, program.nodes))
    return program if is_same else dataclasses.replace(program, nodes=tuple(nodes))


def replaced(program: Program, same: Mapping[Value, Value]) -> Program:
    """Returns a program that uses other values in the place of some."""
    edits = ProgramEdits()
    edits.same.update(same)
    return edits.applied(program)


def changed(program: Program, fields: Mapping[Node, Mapping[str, Any]]) -> Program:
    """Returns a program in which fields of some nodes, also of blocks, are others."""
    edits = ProgramEdits()
    for node, some in fields.items():
        edits.change(node, **some)
    return edits.applied(program)


def with_specs(program: Program, specs: Mapping[Value, Spec]) -> Program:
    """Returns a copy of a program, and of its blocks, in which values have other specs.

    Args:
        program: The program.
        specs: The specs by values: outputs of nodes, or what changes in the iterations of loops.
    """
    values: dict[Value, Value] = {}
    nodes: dict[Node, Node] = {}

    def now(given: Iterable[Value]) -> tuple[Value, ...]:
        return tuple([values.get(v, v) for v in given])

    def copied(block: Program) -> Program:
        for v in block.feeds:
            if v in specs:
                values[v] = Value(None, v.index, specs[v], v.name, v.identity)
        for node in block.nodes:
            made = nodes[node] = node.copy()
            for v, new in zip(node.outputs, made.outputs, strict=True):
                new.spec = specs.get(v, v.spec)
                values[v] = new
        for node in block.nodes:
            made = nodes[node]
            made.inputs = now(node.inputs)
            made.control = tuple([nodes.get(n, n) for n in node.control])
            made.blocks = tuple([copied(b) for b in node.blocks])
        return dataclasses.replace(
            block,
            nodes=tuple([nodes[n] for n in block.nodes]),
            feeds=now(block.feeds),
            fetches=now(block.fetches),
            targets=tuple([nodes.get(n, n) for n in block.targets]),
        )

    found = copied(program)
    tensors = tuple([(key, values.get(v, v)) for key, v in program.tensors])
    return dataclasses.replace(found, tensors=tensors)


def uses(program: Program) -> Counter[Value]:
    """Returns how often a program's nodes and fetches read each value."""
    return Counter([*(v for n in program.nodes for v in n.inputs), *program.fetches])


def in_order(nodes: Sequence[Node], before: Mapping[Node, Collection[Node]]) -> list[Node]:
    """Returns nodes behind those that they come after, and else in the order in which they are.

    Nodes that come after each other, and what follows from them, are left out.
    """
    position = {n: i for i, n in enumerate(nodes)}
    missing = {n: len(before[n]) for n in nodes}
    after: dict[Node, list[Node]] = {n: [] for n in nodes}
    for n in nodes:
        for earlier in before[n]:
            after[earlier].append(n)
    ready = [position[n] for n in nodes if not missing[n]]
    found: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        found.append(node)
        for n in after[node]:
            missing[n] -= 1
            if not missing[n]:
                heapq.heappush(ready, position[n])
    return found


def made_like(op: Op, like: Node, inputs: tuple[Value, ...]) -> Node:
    """Returns a new node with one output, in the place of another one."""
    spec: Any = op.infer(*[v.spec for v in inputs])
    return Node(op, f"{like.name}/{op.type}", like.order, inputs, [spec], like.requested,
                like.origins, like.path)  # fmt: skip


def origins_of(nodes: Iterable[Node | None]) -> tuple[OperationRef, ...]:
    """Returns the operations that nodes came from, each once."""
    return tuple(dict.fromkeys(o for n in nodes if n is not None for o in n.origins))


__all__ = [
    "ProgramEdits",
    "changed",
    "explicit_inputs",
    "in_order",
    "made_like",
    "origins_of",
    "replaced",
    "uses",
    "with_nodes",
    "with_specs",
]
