"""The planner's own form of a graph: what one (fetches, feeds) needs, and nothing else.

A `Program` is made from Operations by `passes.prune`; every later pass takes one and returns one.
Programs are immutable: a pass that changes nothing returns the program that it was given, and one
that does makes new nodes, and shares the others with it (`plan.ir.rewriting`). Nodes remember the
operations they came from (`origins`), also where a pass merges several into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Self

from flowscope.control.dynamic.primitives import Merge, NextIteration
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Op, Spec
from flowscope.graph.values.dtypes import resource
from flowscope.plan.ir.origins import OperationRef

#: A tensor: its operation's id, its index, the calls and bodies that the operation is run in.
TensorKey = tuple[int, int, tuple[str, ...]]


class Value:
    """Output `index` of `node`, or a feed (`node` is None and `index` counts the feeds).

    What changes from one iteration of a loop to the next is a feed of the loop's blocks; it has a
    `name`.
    """

    __slots__ = ("_identity", "index", "name", "node", "spec")

    def __init__(
        self,
        node: Node | None,
        index: int,
        spec: Spec,
        name: str = "",
        identity: object | None = None,
    ) -> None:
        self.node = node
        self.index = index
        self.spec = spec
        self.name = name
        self._identity = identity

    @property
    def identity(self) -> object:
        """What this value and its copies in other programs have in common: they are equal."""
        found = self._identity
        if found is None:
            found = self._identity = object()
        return found

    def become(self, spec: Spec) -> None:
        """Makes it another value than those that it is a copy of, while its node is made."""
        self.spec = spec
        self._identity = None

    def stand_for(self, value: Value) -> None:
        """Makes it a copy of another value, while its node is made."""
        self._identity = value.identity

    @property
    def label(self) -> str:
        """How the text form names it."""
        if self.node is None:
            return self.name or f"feed{self.index}"
        return self.node.name if len(self.node.outputs) == 1 else f"{self.node.name}:{self.index}"


class Node:
    """One operation of a program. Whoever makes one completes it; after that it does not change.

    Attributes:
        op: The op with its attributes.
        name: The operation's name.
        order: Place in program order, by which side effects are ordered.
        inputs, outputs: Values.
        control: Nodes that must be finished before.
        requested: The device that the user asked for.
        device: The device that it was placed on, "" before `passes.place`.
        reason: Why it was placed there.
        origins: The operations it came from.
        group: The update group that a plan has put it into, "" for none.
        path: The function calls and bodies that it stands in, from the outermost; empty for most.
        blocks: The programs that it runs: branches, or a loop's condition and body. They use values
            of the programs around them; these are among the node's inputs.
    """

    __slots__ = (
        "blocks",
        "control",
        "device",
        "group",
        "inputs",
        "name",
        "op",
        "order",
        "origins",
        "outputs",
        "path",
        "reason",
        "requested",
    )

    def __init__(
        self,
        op: Op,
        name: str,
        order: Any,
        inputs: tuple[Value, ...],
        specs: Sequence[Spec],
        requested: str,
        origins: tuple[OperationRef, ...],
        path: tuple[str, ...] = (),
    ) -> None:
        self.op = op
        self.name = name
        self.order = order
        self.inputs = inputs
        self.outputs = tuple([Value(self, i, s) for i, s in enumerate(specs)])
        self.control: tuple[Node, ...] = ()
        self.requested = requested
        self.device = ""
        self.reason = ""
        self.origins = origins
        self.path = path
        self.group = ""
        self.blocks: tuple[Program, ...] = ()

    def copy(self, outputs: Sequence[Value] | None = None) -> Self:
        """Returns a node that is the same, to be completed; its outputs are its own.

        Args:
            outputs: What its outputs are like; None for those of this node.
        """
        made = object.__new__(type(self))
        made.op = self.op
        made.name = self.name
        made.order = self.order
        made.inputs = self.inputs
        like = self.outputs if outputs is None else outputs
        if len(like) == 1:
            made.outputs = (Value(made, 0, like[0].spec, "", like[0].identity),)
        else:
            made.outputs = tuple(
                [Value(made, i, v.spec, "", v.identity) for i, v in enumerate(like)]
            )
        made.control = self.control
        made.requested = self.requested
        made.device = self.device
        made.reason = self.reason
        made.origins = self.origins
        made.path = self.path
        made.group = self.group
        made.blocks = self.blocks
        return made

    @property
    def has_effect(self) -> bool:
        """Whether running it does something beyond its outputs."""
        return self._any("has_effect")

    @property
    def reads_state(self) -> bool:
        """Whether it, or what it runs, reads a variable."""
        return self._any("reads_state")

    @property
    def writes_state(self) -> bool:
        """Whether it, or what it runs, writes a variable."""
        return self._any("writes_state")

    def _any(self, fact: str) -> bool:
        if self.blocks:
            return any(getattr(n, fact) for block in self.blocks for n in block.nodes)
        return bool(getattr(self.op, fact))

    @property
    def update_group(self) -> str:
        """Writes of one non-empty group become visible together: no safepoint lies between them."""
        return getattr(self.op, "group", "") or self.group

    @property
    def update_groups(self) -> set[str]:
        """The update groups that it, or what it runs, writes for."""
        if self.blocks:
            return {g for block in self.blocks for n in block.nodes for g in n.update_groups}
        return {self.update_group} if self.op.writes_state and self.update_group else set()

    @property
    def handles(self) -> list[Node]:
        """The handles of the state that it, or what it runs, reads or writes.

        What waits for others is in no order with them: an op that puts something into a queue is
        said neither to read nor to write it.
        """
        if self.blocks:
            inside = [h for b in self.blocks for n in b.nodes for h in n.handles]
            return list(dict.fromkeys(inside))
        if not (self.op.reads_state or self.op.writes_state):
            return []
        return [v.node for v in self.inputs if v.spec.dtype is resource and v.node is not None]

    @property
    def block_names(self) -> tuple[str, ...]:
        """What the text form calls the blocks."""
        return ()

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.op.type}>"


@frozen
class Program:
    """Nodes in an order that respects all their dependencies, once `passes.order` has run."""

    nodes: tuple[Node, ...]
    #: One per feed, in the order of the feeds.
    feeds: tuple[Value, ...]
    #: One per fetched tensor, in the order of the fetches.
    fetches: tuple[Value, ...]
    #: Nodes that must run though nothing of theirs is fetched.
    targets: tuple[Node, ...] = ()
    #: What the passes want to tell the user, e.g. an op that soft placement moved.
    notes: tuple[str, ...] = field(default=())
    #: Of values that were replaced on the way to this program: their identity, and that of the
    #: value that is used in their place. See `flowscope.plan.ir.tensor_map`.
    same: tuple[tuple[object, object], ...] = field(default=(), compare=False, repr=False)
    #: What stands for tensors that no node of the program made of the graph gives: parameters of
    #: bodies, results of calls. By the operation's id, the output's index and the path of calls.
    tensors: tuple[tuple[TensorKey, Value], ...] = field(default=(), compare=False, repr=False)

    @property
    def device(self) -> str:
        """The device that it runs on, as a whole; "" where there is nothing to run."""
        return self.nodes[0].device if self.nodes else ""

    def walk(self) -> Iterator[Node]:
        """Yields the nodes, and those of the blocks that they run."""
        for node in self.nodes:
            yield node
            for block in node.blocks:
                yield from block.walk()

    @property
    def has_true_specs(self) -> bool:
        """Whether what was inferred of shapes and constants holds: no known value is fed anew."""
        return all(v.spec.constant is None and v.spec.dims is None for v in self.feeds)

    def text(self) -> str:
        """Returns one line per node: name, op, inputs, dtype and shape, control inputs, device.

        `v@2` is the handle of a variable after two writes of this step.
        """
        lines = [f"{v.label} = feed   {v.spec}" for v in self.feeds]
        lines += _lines(self.nodes)
        lines.append(
            "fetch " + ", ".join(v.label for v in self.fetches) if self.fetches else "fetch nothing"
        )
        return "\n".join(lines)


def is_back_edge(value: Value, node: Node) -> bool:
    """Whether a loop made by hand hands its next iteration a value here: where cycles close."""
    is_merge = isinstance(node.op, Merge)
    return is_merge and value.node is not None and isinstance(value.node.op, NextIteration)


def needed(program: Program) -> set[Node]:
    """Returns the nodes that fetches, targets and nodes with effects need."""
    roots = [v.node for v in program.fetches if v.node is not None]
    stack = [*roots, *program.targets, *(n for n in program.nodes if n.has_effect)]
    found = set(stack)
    while stack:
        node = stack.pop()
        for before in (*(v.node for v in node.inputs), *node.control):
            if before is not None and before not in found:
                found.add(before)
                stack.append(before)
    return found


def outer_values(blocks: Sequence[Program]) -> list[Value]:
    """Returns the values that blocks use and do not make, each once."""
    found: dict[Value, None] = {}
    for block in blocks:
        own = {v for n in block.nodes for v in n.outputs} | set(block.feeds)
        used = [v for n in block.nodes for v in n.inputs] + list(block.fetches)
        found.update((v, None) for v in used if v not in own)
    return list(found)


def devices_of(program: Program) -> set[str]:
    """Returns the devices of a program's nodes, in blocks too."""
    found = {n.device for n in program.nodes}
    for node in program.nodes:
        for block in node.blocks:
            found |= devices_of(block)
    return found


def versions(nodes: Iterable[Node]) -> dict[Node, tuple[int, ...]]:
    """Returns which write of each variable the nodes that touch state come after.

    Args:
        nodes: The nodes of a block in order. Counted are the writes of the block.

    Returns:
        Per node with handles: how many writes of each of its handles come before it.
    """
    writes: dict[Node, int] = {}
    found: dict[Node, tuple[int, ...]] = {}
    for node in nodes:
        if handles := node.handles:
            found[node] = tuple([writes.get(h, 0) for h in handles])
            if node.writes_state:
                writes.update((h, writes.get(h, 0) + 1) for h in handles)
    return found


def _lines(nodes: Sequence[Node]) -> list[str]:
    lines: list[str] = []
    comes_after = versions(nodes)
    for node in nodes:
        lines.append(_line(node, comes_after.get(node, ())))
        for name, block in zip(node.block_names, node.blocks, strict=False):
            takes = ", ".join(v.label for v in block.feeds)
            gives = ", ".join(v.label for v in block.fetches)
            lines.append(f"  {name}({takes}) -> ({gives}):")
            lines += [f"    {line}" for line in _lines(block.nodes)]
    return lines


def _line(node: Node, comes_after: tuple[int, ...]) -> str:
    inputs = ", ".join(_input(v, node, comes_after) for v in node.inputs)
    specs = ", ".join(str(v.spec) for v in node.outputs) or "()"
    control = " after " + ", ".join(c.name for c in node.control) if node.control else ""
    device = f" on {node.device}" if node.device else ""
    return f"{node.name} = {node.op.type}({inputs})   {specs}{control}{device}"


def _input(value: Value, node: Node, comes_after: tuple[int, ...]) -> str:
    if node.blocks or not comes_after or value.spec.dtype is not resource or value.node is None:
        return value.label
    version = comes_after[node.handles.index(value.node)]
    return f"{value.label}@{version}" if version else value.label
