"""Loops and branches of a program: nodes that run programs of their own, by what their parts are.

`passes.prune` and `passes.inline` make a `LoopNode` of every `Loop` operation and a `CondNode` of
every `Cond`. Passes, code generation and the executor ask these for the parts by name, and need to
know neither an op's type nor at which position an input stands.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.control.cond import Cond
from flowscope.control.loop import Loop
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Op
from flowscope.plan.ir.program import Node, Program, Value, outer_values


@frozen
class LoopOp(Op, abstract=True):
    """Runs a body again and again, as long as its condition is true or as often as it is told.

    What a plan knows of a `Loop`: its functions are the node's blocks, here are their names.
    """

    body: str
    cond: str | None
    variables: int
    lists: int
    has_count: bool
    parallel_iterations: int
    is_stateful: ClassVar[bool] = True
    type: ClassVar[str] = Loop.__name__

    @property
    def first(self) -> int:
        """Position of the first variable among the inputs."""
        return int(self.has_count)


@frozen
class CondOp(Op, abstract=True):
    """Runs one of two branches: `then` where the first input is true, else the other one.

    What a plan knows of a `Cond`: its functions are the node's blocks, here are their names.
    """

    then: str
    orelse: str
    is_stateful: ClassVar[bool] = True
    type: ClassVar[str] = Cond.__name__


class StructuredNode(Node):
    """A node that runs programs of its own, its blocks."""

    __slots__ = ()

    @property
    def explicit(self) -> tuple[Value, ...]:
        """Its inputs without those that only its blocks use."""
        return self.inputs[: len(self.inputs) - len(outer_values(self.blocks))]

    @property
    def captured(self) -> tuple[Value, ...]:
        """Values from outside that its blocks use."""
        return tuple(outer_values(self.blocks))


class CondNode(StructuredNode):
    """A branch: runs `then` or `orelse`."""

    __slots__ = ()
    op: CondOp

    @property
    def pred(self) -> Value:
        """The bool that decides."""
        return self.inputs[0]

    @property
    def then(self) -> Program:
        """What runs where the bool is true."""
        return self.blocks[0]

    @property
    def orelse(self) -> Program:
        """What runs where it is false."""
        return self.blocks[1]

    @property
    def block_names(self) -> tuple[str, ...]:
        """What the text form calls the blocks."""
        return "then", "else"


class LoopNode(StructuredNode):
    """A loop: runs its body as long as its condition holds, at most as often as its count says.

    Its blocks are the condition, if there is one, and the body. Its inputs are the count, if there
    is one, the starts of the variables, the lists that it takes elements of, and what its blocks
    capture. Its outputs are the variables at the end, the trip count, and the lists that it keeps.
    """

    __slots__ = ()
    op: LoopOp

    @property
    def variables(self) -> int:
        """How many variables it has."""
        return self.op.variables

    @property
    def lists(self) -> int:
        """How many lists it takes elements of."""
        return self.op.lists

    @property
    def body(self) -> Program:
        """What every iteration runs: parameters and elements to next values and kept values."""
        return self.blocks[-1]

    @property
    def condition(self) -> Program | None:
        """Tells whether there is another iteration; None where only the count does."""
        return self.blocks[0] if len(self.blocks) > 1 else None

    @property
    def conditions(self) -> tuple[Program, ...]:
        """The condition, or nothing."""
        return self.blocks[:-1]

    @property
    def count(self) -> Value | None:
        """The most iterations; None where the condition alone tells."""
        return self.inputs[0] if self.op.has_count else None

    @property
    def starts(self) -> tuple[Value, ...]:
        """The values of the variables before the first iteration."""
        first = self.op.first
        return self.inputs[first : first + self.op.variables]

    @property
    def taken(self) -> tuple[Value, ...]:
        """The lists that it takes an element of in every iteration."""
        first = self.op.first + self.op.variables
        return self.inputs[first : first + self.op.lists]

    @property
    def behind(self) -> tuple[Value, ...]:
        """The inputs behind the lists: what its blocks use from outside."""
        return self.inputs[self.op.first + self.op.variables + self.op.lists :]

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The variables inside of the body."""
        return self.body.feeds[: self.op.variables]

    @property
    def elements(self) -> tuple[Value, ...]:
        """What the body takes of the lists."""
        return self.body.feeds[self.op.variables :]

    @property
    def next_values(self) -> tuple[Value, ...]:
        """The values of the variables after an iteration."""
        return self.body.fetches[: self.op.variables]

    @property
    def kept_values(self) -> tuple[Value, ...]:
        """The values of the body that every iteration adds to the lists that it keeps."""
        return self.body.fetches[self.op.variables :]

    @property
    def results(self) -> tuple[Value, ...]:
        """The variables after the last iteration."""
        return self.outputs[: self.op.variables]

    @property
    def trip_count(self) -> Value:
        """The number of iterations that it has run."""
        return self.outputs[self.op.variables]

    @property
    def kept(self) -> tuple[Value, ...]:
        """The lists that it keeps, one per kept value."""
        return self.outputs[self.op.variables + 1 :]

    @property
    def block_names(self) -> tuple[str, ...]:
        """What the text form calls the blocks."""
        return ("cond", "body")[-len(self.blocks) :]


def loop_name(node: Node) -> str:
    """The name of a loop in errors: the one that its maker gave it."""
    return node.name.removesuffix("/Loop")


#: What nodes of an op are, where they run blocks.
_KINDS: dict[type, type[Node]] = {Loop: LoopNode, Cond: CondNode}


def kind_of(op: Op) -> type[Node]:
    """Returns the class of a program's nodes for operations of this op."""
    return _KINDS.get(type(op), Node)


def without_functions(op: Any) -> LoopOp | CondOp:
    """The op of a Loop or a Cond without its functions."""
    if isinstance(op, Cond):
        return CondOp(op.then.name, op.orelse.name)
    cond = None if op.cond is None else op.cond.name
    return LoopOp(op.body.name, cond, op.variables, op.lists, op.has_count, op.parallel_iterations)


__all__ = [
    "CondNode",
    "CondOp",
    "LoopNode",
    "LoopOp",
    "StructuredNode",
    "kind_of",
    "loop_name",
    "without_functions",
]
