"""What lowering builds with: places that nodes are put into, and how values come into them.

A place is the step itself, a branch, or the condition or the body of a loop. A node of a place runs
if and only if the place does: it takes a value that the place's entry lets through, or waits for
the place's *pivot*. A value from outside is *brought in*: through a Switch into a branch, through a
constant Enter into a loop. Constants and handles are there everywhere, without a token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from flowscope.control.dynamic.primitives import Enter, Exit, Merge, Switch
from flowscope.control.lists import EmptyList
from flowscope.graph.constant import Const, Literal
from flowscope.graph.op import Op, Spec
from flowscope.graph.values.dtypes import DType, bool_, int32
from flowscope.ops.core.flow import Identity
from flowscope.plan.ir.memories import host_of
from flowscope.plan.ir.program import Node, Program, Value

#: What accesses to state are ordered by: a handle, or what several effects have in common.
Key = Hashable


def is_ambient(node: Node | None) -> bool:
    """Whether a node's value is there before the step: a constant's or a handle's."""
    if node is None or node.control or node.inputs:
        return False
    return isinstance(node.op, (Const, EmptyList)) or node.op.is_handle


class Accesses:
    """The latest accesses to each piece of state in a block, in program order."""

    def __init__(self) -> None:
        self._last: dict[Key, Node] = {}
        self._readers: dict[Key, list[Node]] = {}

    def before(self, key: Key, writes: bool) -> list[Node]:
        """The nodes that an access must wait for."""
        last = [self._last[key]] if key in self._last else []
        return [*last, *self._readers.get(key, ())] if writes else last

    def note(self, key: Key, node: Node, writes: bool) -> None:
        """Notes an access."""
        if writes:
            self._last[key] = node
            self._readers.pop(key, None)
        else:
            self._readers.setdefault(key, []).append(node)


class UniqueNames:
    """Unique names for what lowering adds, and all the nodes there are."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}
        self.nodes: list[Node] = []
        #: Per node the number of the place that it was put into.
        self.places: dict[Node, int] = {}
        self.count = 0

    def unique(self, name: str) -> str:
        """Returns the name, with a number where it is taken."""
        found = name
        while found in self._taken:
            self._counts[name] = self._counts.get(name, 0) + 1
            found = f"{name}_{self._counts[name]}"
        self._taken.add(found)
        return found


class LoweredPlace:
    """The step itself; base class of the other places.

    Attributes:
        owner: The branch or loop that it is a part of; None for the step.
        parent: The place around it.
        values: What stands here for values of the program that is lowered.
        accesses: Who has touched which state.
        entries: The nodes of the place around that bring values in.
    """

    def __init__(
        self, names: UniqueNames, parent: LoweredPlace | None = None, owner: Node | None = None
    ):
        self.names = names
        self.parent = parent
        self.owner = owner
        self.values: dict[Value, Value] = {}
        self.accesses = Accesses()
        self.entries: list[Node] = []
        self._members: set[Node] = set()
        self._gated: set[Value] = set()
        self._brought: dict[Value, Value] = {}
        self._number = names.count
        names.count += 1

    def get(self, value: Value) -> Value:
        """The lowered value of a value of the program."""
        found = self.values.get(value)
        if found is not None:
            return found
        if value.node in self._members or is_ambient(value.node) or self.parent is None:
            return value
        outer = self.parent.get(value)
        return outer if is_ambient(outer.node) else self.bring(outer)

    def bring(self, outer: Value) -> Value:
        """The value in this place of a value of the place around it."""
        found = self._brought.get(outer)
        if found is None:
            found = self._brought[outer] = self._enter(outer)
            found.stand_for(outer)
        return found

    def _enter(self, outer: Value) -> Value:
        return outer

    def let_stand(self, values: Iterable[Value], made: Iterable[Value]) -> None:
        """Notes what stands here for values of the program that is lowered."""
        for value, found in zip(values, made, strict=False):
            self.values[value] = found
            found.stand_for(value)

    def pivot(self) -> Node | None:
        """A node that runs whenever the place does; None for the step, which always runs."""
        return None

    def let(self, *values: Value) -> None:
        """Notes that values are alive only where the place runs."""
        self._gated.update(values)

    def add(self, node: Node) -> Node:
        """Puts a node here; it waits for the pivot if nothing else holds it back."""
        if not is_ambient(node):
            is_held = (
                isinstance(node.op, (Merge, Exit))
                or any(v in self._gated for v in node.inputs)
                or any(c in self._members for c in node.control)
            )
            pivot = None if is_held else self.pivot()
            if pivot is not None:
                node.control = (*node.control, pivot)
            self._gated.update(node.outputs)
        self._members.add(node)
        self.names.nodes.append(node)
        self.names.places[node] = self._number
        return node

    def make(
        self,
        op: Op,
        what: str,
        inputs: Sequence[Value],
        specs: Sequence[Spec],
        owner: Node | None = None,
        control: Sequence[Node] = (),
        steers: bool = False,
    ) -> Node:
        """Makes a node for a branch or loop, and puts it here: on the host if it steers that."""
        owner = owner or self.owner
        assert owner is not None
        name = self.names.unique(f"{owner.name}/{what}")
        node = Node(op, name, owner.order, tuple(inputs), specs, owner.requested, owner.origins)
        node.path = owner.path
        node.device = host_of(owner.device) if steers else owner.device
        node.reason = f'belongs to "{owner.name}"'
        node.control = tuple(dict.fromkeys(control))
        return self.add(node)

    def constant(self, value: Any, dtype: DType, what: str, owner: Node | None = None) -> Value:
        """Makes a scalar constant that steers a branch or loop."""
        return self.make(*_constant(value, dtype, what), owner, steers=True).outputs[0]

    def arrival(self, value: Value, owner: Node) -> Node:
        """A node of this place that has run once a value is there."""
        assert value.node is not None
        if value.node in self._members:
            return value.node
        return self.make(Identity(), "arrived", (value,), [value.spec], owner)

    def token(self, before: Sequence[Node], owner: Node) -> Value:
        """Makes a value that is there once what `owner` must wait for is done."""
        op, what, inputs, specs = _constant(np.True_, bool_, "order")
        return self.make(op, what, inputs, specs, owner, before).outputs[0]

    def start(self, key: Key, token: Value) -> None:
        """Begins the accesses of a part of a branch or loop, with the token that came in."""
        self.accesses.note(key, self.make(Identity(), "order", (token,), [token.spec]), True)

    def end(self, key: Key) -> Value:
        """Returns a token that is there once all accesses in this place are done."""
        first, *others = self.accesses.before(key, True)
        if not others and isinstance(first.op, (Identity, Merge)):
            return first.outputs[0]
        op, what, inputs, specs = _constant(np.True_, bool_, "order")
        return self.make(op, what, inputs, specs, None, (first, *others)).outputs[0]


def _constant(value: Any, dtype: DType, what: str) -> tuple[Op, str, tuple[()], list[Spec]]:
    return Const(Literal(value), dtype), what, (), [Spec(dtype, (), value)]


class Branch(LoweredPlace):
    """A branch: runs where `pred` is `taken`."""

    def __init__(self, parent: LoweredPlace, owner: Node, pred: Value, taken: bool) -> None:
        super().__init__(parent.names, parent, owner)
        self._pred = pred
        self._taken = taken
        self._pivot: Node | None = None

    def _enter(self, outer: Value) -> Value:
        assert self.parent is not None
        what = f"Switch_{'then' if self._taken else 'else'}"
        spec = Spec(outer.spec.dtype, outer.spec.shape, variable=outer.spec.variable)
        node = self.parent.make(Switch(), what, (outer, self._pred), [spec, spec], self.owner)
        self.entries.append(node)
        found = node.outputs[self._taken]
        self.let(found)
        return found

    def result(self, value: Value) -> Value:
        """Returns a value that the branch gives, dead where the branch was not taken."""
        found = self.get(value)
        return found if found in self._gated else self.bring(found)

    def pivot(self) -> Node:
        """A node that runs whenever the place does."""
        if self._pivot is None:
            chosen = self.bring(self._pred)
            self._pivot = self.make(Identity(), "pivot", (chosen,), [chosen.spec])
        return self._pivot


class LoweredFrame(LoweredPlace):
    """The part of a loop that every iteration runs: the variables as they come, the condition."""

    def __init__(
        self, parent: LoweredPlace, owner: Node, name: str, window: int, control: Sequence[Node]
    ) -> None:
        super().__init__(parent.names, parent, owner)
        self._name = name
        self._window = window
        self._control = control
        self._pivot: Node | None = None

    def _enter(self, outer: Value) -> Value:
        return self._make_enter(outer, True)

    def _make_enter(self, outer: Value, is_constant: bool) -> Value:
        assert self.parent is not None
        op = Enter(self._name, is_constant, self._window)
        spec = Spec(outer.spec.dtype, outer.spec.shape, variable=outer.spec.variable)
        node = self.parent.make(op, "Enter", (outer,), [spec], self.owner, self._control)
        self.entries.append(node)
        self.let(*node.outputs)
        return node.outputs[0]

    def variable(self, start: Value, spec: Spec) -> Node:
        """Returns the Merge of a variable; its second input is still to come."""
        entered = self._make_enter(start, False)
        merge = self.make(Merge(), "Merge", (entered,), [spec, Spec(int32, ())])
        self._pivot = self._pivot or merge
        return merge

    def pivot(self) -> Node | None:
        """A node that runs in every iteration; None until there is a variable."""
        return self._pivot


class LoweredBody(LoweredPlace):
    """The body of a loop: runs where the loop's condition holds."""

    def __init__(self, parent: LoweredFrame, owner: Node, test: Value) -> None:
        super().__init__(parent.names, parent, owner)
        self._test = test
        self._pivot: Node | None = None

    def pivot(self) -> Node:
        """A node that runs whenever the place does."""
        if self._pivot is None:
            assert self.parent is not None
            spec = self._test.spec
            switch = self.parent.make(Switch(), "Switch", (self._test, self._test), [spec, spec])
            self.let(switch.outputs[1])
            self._pivot = self.make(Identity(), "pivot", (switch.outputs[1],), [spec])
        return self._pivot


def copied(node: Node, stand_in: Callable[[Value], Value], control: Sequence[Node] = ()) -> Node:
    """Returns a copy of a node, and of its blocks, that takes other values from outside.

    Args:
        node: The node.
        stand_in: The substitute of a value.
        control: What the copy waits for.
    """
    inputs = tuple([stand_in(v) for v in node.inputs])
    specs = [v.spec for v in node.outputs]
    made = type(node)(
        node.op, node.name, node.order, inputs, specs, node.requested, node.origins, node.path
    )
    made.outputs = tuple(
        [Value(made, i, v.spec, "", v.identity) for i, v in enumerate(node.outputs)]
    )
    made.control = tuple(control)
    made.device, made.reason, made.group = node.device, node.reason, node.group
    made.blocks = tuple([_copied_block(b, stand_in) for b in node.blocks])
    return made


def _copied_block(block: Program, stand_in: Callable[[Value], Value]) -> Program:
    values: dict[Value, Value] = {v: v for v in block.feeds}
    nodes: dict[Node, Node] = {}

    def inside(value: Value) -> Value:
        return values.get(value) or stand_in(value)

    for node in block.nodes:
        if is_ambient(node):
            nodes[node] = node
        else:
            control = [nodes[c] for c in node.control if c in nodes]
            nodes[node] = copied(node, inside, control)
        values.update(zip(node.outputs, nodes[node].outputs, strict=True))
    fetches = tuple([inside(v) for v in block.fetches])
    return dataclasses.replace(block, nodes=tuple(nodes.values()), fetches=fetches)


__all__ = [
    "Accesses",
    "Branch",
    "Key",
    "LoweredBody",
    "LoweredFrame",
    "LoweredPlace",
    "UniqueNames",
    "copied",
    "is_ambient",
]
