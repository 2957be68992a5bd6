"""Loops and branches made by hand, as `while_loop` and `cond`: for their gradients.

The primitives (see `control.dynamic.raw`) say where values go, not what a loop or a branch is. A
gradient needs to know. So what ys follow from is read backwards: an Exit leads to the loop that it
leaves, whose variables are the Merges of an Enter and a NextIteration; a Merge of values that
Switches of one predicate have let through, each on its own side, leads to a branch. Both are built
again from copies of their operations, in the structured form, and gradients go through that. What
the program itself runs stays as it was made by hand.

Only what computes without effects and without chance can be run twice; the rest is refused, as is
what does not have one of these forms. One side of a Switch, without a Merge behind it, is not
lifted: Switch and Merge have gradients of their own, for that.

Source: the forms are those of Yu et al. 2018, "Dynamic control flow in large-scale machine
learning", section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from flowscope.control.branches import cond
from flowscope.control.dynamic.frames import PrimitiveFrame, PrimitiveFrames, frames_of
from flowscope.control.dynamic.primitives import (
    Enter,
    Exit,
    LoopCond,
    Merge,
    Primitive,
    Switch,
)
from flowscope.control.while_loop import while_loop
from flowscope.errors import InvalidArgumentError, UnsupportedGradientError
from flowscope.graph.block import Block
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import mutable
from flowscope.graph.operation import Operation, Tensor, is_back_edge, where
from flowscope.graph.values.dtypes import int32
from flowscope.ops.core.casting import cast

#: A side of a branch: the predicate, and 1 where it is true.
Side = tuple[Tensor, int]


def lifted(ys: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """Returns the structured results in the place of those made by hand that ys follow from.

    Raises:
        UnsupportedGradientError: if what was made by hand has no form that is known, or does more
            than compute.
        InvalidArgumentError: if a y is a value of a single iteration.
    """
    same: dict[Tensor, Tensor] = {}
    lifter: _Lifter | None = None
    seen: set[Operation] = set()
    stack = list(ys)
    while stack:
        t = stack.pop()
        if isinstance(t.op.definition, Primitive) and t not in same:
            lifter = lifter or _Lifter(t.op.graph)
            same[t] = lifter.at_top(t)
        op = same.get(t, t).op
        if op not in seen:
            seen.add(op)
            stack += op.inputs
    return same


@mutable
class _Scope:
    """A body that is built from copies.

    Attributes:
        around: The scope around it, None for what is used as it is.
        block: Where the copies are made.
        frame: The frame of the loop whose body it is, or in which the branch stands.
        side: The branch's; None for a loop's body.
        values: The copies.
    """

    around: _Scope | None
    block: Block
    frame: PrimitiveFrame | None
    side: Side | None = None
    values: dict[Tensor, Tensor] = field(default_factory=dict)


@mutable
class _Loop:
    """What a loop by hand consists of.

    Attributes:
        frame: Its frame.
        variables: Per variable the Merge, with an Enter and a NextIteration behind it.
        pred: What the LoopCond takes.
        results: The variables at the end, once it is built.
    """

    frame: PrimitiveFrame
    variables: list[Operation]
    pred: Tensor
    results: list[Tensor] = field(default_factory=list)


class _Lifter:
    """Builds structured forms in one graph; each loop once per place in which it is needed."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._frames: PrimitiveFrames = frames_of(graph)
        self._sides: dict[Tensor, frozenset[Side]] = {}
        self._top = _Scope(None, graph.block, None)
        self._done: dict[Tensor, Tensor] = {}

    def at_top(self, tensor: Tensor) -> Tensor:
        """Returns the structured form of a result that stands in no loop and no branch."""
        op = tensor.op
        inside = self._frames.of(op)
        if inside is not None:
            raise InvalidArgumentError(
                f'"{tensor.name}" is a value of an iteration of the loop "{inside.path}", which '
                "was made by hand: take it out with fs.raw_ops.Exit to differentiate it"
            ).located(op=op, op_type=op.type, **where(op))
        is_branch = isinstance(op.definition, Switch | Merge)
        if is_branch and (isinstance(op.definition, Switch) or self._sides_of(tensor)):
            return tensor  # one side of a branch: its own gradient leads through it
        if self._sides_of(tensor):
            raise _refused(op, "it follows from one side of a Switch without a Merge behind it")
        if tensor not in self._done:
            graph, before = self._graph, len(self._graph)
            with graph.enter_block(op.block):
                self._top = _Scope(None, op.block, None)
                self._done[tensor] = self._special(tensor, self._top)
            for made in graph.operations_since(before):
                if made.block is op.block:
                    made.order = op.order  # what follows from it comes after, as from the other
        return self._done[tensor]

    # -- values ---------------------------------------------------------------------------------

    def _value(self, tensor: Tensor, scope: _Scope) -> Tensor:
        """The tensor in a scope of a tensor from outside."""
        if scope.around is None or tensor.op.definition.is_handle:
            return tensor
        found = scope.values.get(tensor)
        if found is not None:
            return found
        if not self._belongs(tensor, scope):
            with self._graph.enter_block(scope.around.block):
                return self._value(tensor, scope.around)
        special = isinstance(tensor.op.definition, Primitive)
        out = self._special(tensor, scope) if special else self._copy(tensor, scope)
        scope.values[tensor] = out
        return out

    def _belongs(self, tensor: Tensor, scope: _Scope) -> bool:
        if scope.side is not None:
            return scope.side in self._sides_of(tensor)
        return self._frames.of(tensor.op) is scope.frame

    def _copy(self, tensor: Tensor, scope: _Scope) -> Tensor:
        op = tensor.op
        definition = op.definition
        if definition.has_effect or definition.is_random or hasattr(definition, "functions"):
            why = "draws random numbers" if definition.is_random else "does more than compute"
            if hasattr(definition, "functions"):
                why = "is structured itself"
            raise _refused(op, f"{op.type} {why}")
        inputs = tuple([self._value(t, scope) for t in op.inputs])
        made = self._graph.add(definition, inputs, op.name.rpartition("/")[2])
        made.gradient = op.gradient
        scope.values.update(zip(op.outputs, made.outputs, strict=True))
        return made.outputs[tensor.value_index]

    def _special(self, tensor: Tensor, scope: _Scope) -> Tensor:
        op = tensor.op
        match op.definition:
            case Enter(is_constant=True):
                assert scope.around is not None
                return self._outside(op.inputs[0], scope)
            case LoopCond():
                return self._value(op.inputs[0], scope)
            case Switch() if _is_of_loop(op) and tensor.value_index == 1:
                return self._value(op.inputs[0], scope)
            case Switch() if scope.side == (op.inputs[1], tensor.value_index):
                return self._value(op.inputs[0], scope)
            case Exit():
                return self._left(op, scope)
            case Merge():
                return self._merged(tensor, scope)
        raise _refused(op, f'"{tensor.name}" is used where only the other side of a branch is')

    def _outside(self, tensor: Tensor, scope: _Scope) -> Tensor:
        """The tensor in a scope of one that comes into the loop around it."""
        frame = scope.frame
        while scope.around is not None and scope.frame is frame:
            scope = scope.around
        with self._graph.enter_block(scope.block):
            return self._value(tensor, scope)

    # -- loops ----------------------------------------------------------------------------------

    def _left(self, op: Operation, scope: _Scope) -> Tensor:
        """Returns the value with which a loop is left."""
        frame = self._frames.inside(op)
        assert frame is not None
        switch = op.inputs[0].op
        if not _is_of_loop(switch) or op.inputs[0].value_index != 0:
            raise _refused(op, "it does not leave the loop by the false side of a Switch")
        loop = self._loop(frame, switch, scope)
        after = self._body(loop.frame, scope, loop.variables, loop.results)
        return self._value(switch.inputs[0], after)

    def _loop(self, frame: PrimitiveFrame, switch: Operation, scope: _Scope) -> _Loop:
        variables = [op for op in self._graph.get_operations() if self._is_variable(op, frame)]
        loop = _Loop(frame, variables, switch.inputs[1].op.inputs[0])
        if not variables:
            raise _refused(switch, "no Merge of it has an Enter and a NextIteration")

        def condition(*values: Tensor) -> Tensor:
            return self._value(loop.pred, self._body(frame, scope, variables, values))

        def body(*values: Tensor) -> list[Tensor]:
            inner = self._body(frame, scope, variables, values)
            return [self._value(m.inputs[1].op.inputs[0], inner) for m in variables]

        found = while_loop(
            condition,
            body,
            [self._value(m.inputs[0].op.inputs[0], scope) for m in variables],
            shape_invariants=[m.outputs[0].shape for m in variables],
            parallel_iterations=frame.parallel_iterations,
            name=frame.name,
            return_same_structure=True,
        )
        loop.results = list(found)
        return loop

    def _is_variable(self, op: Operation, frame: PrimitiveFrame) -> bool:
        if not isinstance(op.definition, Merge) or self._frames.of(op) is not frame:
            return False
        first = op.inputs[0].op
        if not isinstance(first.definition, Enter) or op.stale is not None:
            return False
        if len(op.inputs) != 2 or not is_back_edge(op.inputs[1], op):
            raise _refused(op, "it has no value of the next iteration")
        return True

    def _body(
        self,
        frame: PrimitiveFrame,
        around: _Scope,
        variables: Sequence[Operation],
        values: Sequence[Tensor],
    ) -> _Scope:
        known = {m.outputs[0]: v for m, v in zip(variables, values, strict=True)}
        return _Scope(around, self._graph.block, frame, values=known)

    # -- branches -------------------------------------------------------------------------------

    def _merged(self, tensor: Tensor, scope: _Scope) -> Tensor:
        op = tensor.op
        if len(op.inputs) != 2:
            raise _refused(op, f"it merges {len(op.inputs)} values, a branch two")
        pred, first = self._branch_of(op)
        value = self._value(pred, scope)
        sides = [self._side(op.inputs[i], scope, (pred, first ^ i)) for i in (0, 1)]
        result = cond(value, sides[1 - first], sides[first], name="branch")
        is_true = cast(value, int32)
        scope.values[op.outputs[0]] = result
        scope.values[op.outputs[1]] = 1 - is_true if first else is_true
        return scope.values[tensor]

    def _side(self, tensor: Tensor, scope: _Scope, side: Side) -> Callable[[], Tensor]:
        def build() -> Tensor:
            inner = _Scope(scope, self._graph.block, scope.frame, side)
            return self._value(tensor, inner)

        return build

    def _branch_of(self, op: Operation) -> Side:
        """Returns the predicate that says which input a Merge gets, and when it is the first."""
        one, two = (self._sides_of(t) for t in op.inputs)
        found = [(p, side) for p, side in one if (p, 1 - side) in two]
        if len(found) != 1 or one - {found[0]} != two - {(found[0][0], 1 - found[0][1])}:
            raise _refused(op, "its inputs do not come from the two sides of one predicate")
        return found[0]

    def _sides_of(self, tensor: Tensor) -> frozenset[Side]:
        """Returns the sides of Switches from which a tensor follows, without those merged again."""
        stack = [tensor]
        while stack:
            t = stack[-1]
            if t in self._sides:
                stack.pop()
                continue
            before = [i for i in t.op.inputs if not is_back_edge(i, t.op)]
            missing = [i for i in before if i not in self._sides]
            if missing:
                stack += missing
                continue
            stack.pop()
            self._sides[t] = self._sides_here(t, before)
        return self._sides[tensor]

    def _sides_here(self, tensor: Tensor, before: Sequence[Tensor]) -> frozenset[Side]:
        op = tensor.op
        if not before:
            return frozenset()
        known = [self._sides[t] for t in before]
        if isinstance(op.definition, Merge) and len(before) == 2:
            both = [(p, s) for p, s in known[0] if (p, 1 - s) in known[1]]
            return known[0].union(known[1]) - {(p, s) for p, _ in both for s in (0, 1)}
        found = frozenset[Side]().union(*known)
        if isinstance(op.definition, Switch) and not _is_of_loop(op):
            found |= {(op.inputs[1], tensor.value_index)}
        return found


def _is_of_loop(switch: Operation) -> bool:
    """Whether a Switch lets values into a loop's next iteration, or out of the loop."""
    return isinstance(switch.definition, Switch) and isinstance(
        switch.inputs[1].op.definition, LoopCond
    )


def _refused(op: Operation, why: str) -> UnsupportedGradientError:
    message = (
        f'no gradient leads through "{op.name}", control flow that was made by hand: {why}; '
        "fs.while_loop and fs.cond have gradients"
    )
    return UnsupportedGradientError(message).located(op=op, op_type=op.type, **where(op))


__all__ = ["lifted"]
