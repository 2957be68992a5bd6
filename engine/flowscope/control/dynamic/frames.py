"""Which loop's iterations an operation belongs to, in graphs with primitives made by hand.

In such a graph nothing but Enter leads into a loop's frame, and nothing but Exit out of it; only
constants, and what stands for variables and queues, can be used everywhere. Whoever uses a tensor
of one frame in another is told so at the line that does it, not when the step runs: which loop,
which variable, and what is allowed instead.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flowscope.control.dynamic.primitives import Enter, Exit, LoopCond, Merge, NextIteration, Switch
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Const
from flowscope.graph.graph import Graph
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation, Tensor, input_replacer, is_back_edge, where


@dataclass(eq=False)
class PrimitiveFrame:
    """The frame of a loop: what its Enter operations of one name, from one frame, lead into.

    Attributes:
        name: Their frame_name.
        parent: The frame around it, None for what stands in no loop.
        parallel_iterations: How many iterations may overlap.
        enters: The operations that lead into it.
        conds: The operation that says whether there is another iteration, if it is there.
    """

    name: str
    parent: PrimitiveFrame | None
    parallel_iterations: int
    enters: list[Operation]
    conds: list[Operation] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The names of the frames around it, and its own."""
        return f"{self.parent.path}/{self.name}" if self.parent else self.name


class PrimitiveFrames:
    """The frames of one graph; it looks at every operation that is added."""

    def __init__(self) -> None:
        self._known: dict[tuple[PrimitiveFrame | None, str], PrimitiveFrame] = {}
        #: The frames of operations; what stands in no loop is not here.
        self._of: weakref.WeakKeyDictionary[Operation, PrimitiveFrame] = weakref.WeakKeyDictionary()

    def of(self, op: Operation) -> PrimitiveFrame | None:
        """Returns the frame in which the operation's outputs are used: for Enter the one inside."""
        return self._of.get(op)

    def inside(self, op: Operation) -> PrimitiveFrame | None:
        """Returns the frame in which the operation runs: for Exit the one that it leads out of."""
        return self._common(op)

    def __call__(self, op: Operation) -> None:
        """Notes the frame of an operation that is added.

        Raises:
            InvalidArgumentError: if its inputs stand in different frames, or none for an Exit.
        """
        frame = self._common(op)
        definition = op.definition
        if isinstance(definition, Enter):
            frame = self._entered(op, definition, frame)
        elif isinstance(definition, (Exit, NextIteration)) and frame is None:
            raise _located(
                op,
                f'"{op.inputs[0].name}" stands in no loop, so {op.type} has nowhere to lead: a '
                "loop begins with fs.raw_ops.Enter",
            )
        elif isinstance(definition, Exit):
            assert frame is not None
            frame = frame.parent
        elif isinstance(definition, LoopCond) and frame is not None:
            self._add_cond(op, frame)
        if frame is not None:
            self._of[op] = frame

    def check_input(self, op: Operation, tensor: Tensor) -> None:
        """Raises InvalidArgumentError if a tensor may not become an input of the operation."""
        if self.of(tensor.op) is not self._common(op):
            raise self._refusal(op, tensor, op.inputs[0])

    def _common(self, op: Operation) -> PrimitiveFrame | None:
        """Returns the frame of the inputs, which must be one."""
        first: Tensor | Operation | None = None
        frame: PrimitiveFrame | None = None
        inputs = [t for t in op.inputs if not is_back_edge(t, op)]
        things: list[Tensor | Operation] = [*inputs, *op.control_inputs]
        for thing in things:
            source = thing.op if isinstance(thing, Tensor) else thing
            if _is_everywhere(source):
                continue
            if first is None:
                first, frame = thing, self.of(source)
            elif self.of(source) is not frame:
                raise self._refusal(op, thing, first)
        return frame

    def _entered(
        self, op: Operation, definition: Enter, parent: PrimitiveFrame | None
    ) -> PrimitiveFrame:
        key = (parent, definition.frame_name)
        limit = definition.parallel_iterations
        frame = self._known.setdefault(
            key, PrimitiveFrame(definition.frame_name, parent, limit, [])
        )
        if frame.parallel_iterations != limit and any(_stays(e, op) for e in frame.enters):
            raise _located(
                op,
                f'the loop "{frame.path}" has parallel_iterations={frame.parallel_iterations} '
                f"elsewhere, got {limit}: all Enter operations of one loop say the same",
            )
        frame.parallel_iterations = limit
        frame.enters.append(op)
        return frame

    def _add_cond(self, op: Operation, frame: PrimitiveFrame) -> None:
        other = next((c for c in frame.conds if _stays(c, op)), None)
        if other is not None:
            raise _located(
                op,
                f'the loop "{frame.path}" has a LoopCond already, "{other.name}": a loop has one; '
                "another loop has a frame_name of its own",
            )
        frame.conds.append(op)

    def _refusal(
        self, op: Operation, a: Tensor | Operation, b: Tensor | Operation
    ) -> InvalidArgumentError:
        ends = [(t, self.of(t.op if isinstance(t, Tensor) else t)) for t in (a, b)]
        ends.sort(key=lambda end: _depth(end[1]))
        (outer, outer_frame), (inner, inner_frame) = ends
        assert inner_frame is not None
        lines = [f'"{t.name}" stands {_place(f)}{_variable(t)}' for t, f in ends]
        ways = []
        if _encloses(outer_frame, inner_frame):
            if isinstance(outer, Tensor):
                ways.append(
                    f'to use "{outer.name}" in the loop, bring it in with fs.raw_ops.Enter('
                    f'data=..., frame_name="{inner_frame.name}", is_constant=True)'
                )
            else:
                ways.append(
                    f'to run after "{outer.name}", let the loop\'s Enter operations wait for it'
                )
        ways.append(
            f'to use "{inner.name}" behind the loop, make it a variable of the loop and take its '
            "last value out with fs.raw_ops.Exit, or collect all of them in a TensorArray"
        )
        ways.append("fs.while_loop does the first by itself")
        return _located(op, f"inputs from different frames: {'; '.join(ways)}", lines)


def _stays(earlier: Operation, op: Operation) -> bool:
    """Whether an operation is there beside one that is added: no re-run of a cell replaces it."""
    graph = op.graph
    is_listed = graph._by_name.get(earlier.name) is earlier and earlier.name != op.name
    return is_listed and not (graph.run is not None and graph.run.is_unmade(earlier))


def _is_everywhere(op: Operation) -> bool:
    """Whether it is the same in every frame: what stands for a variable, and a constant."""
    return op.definition.is_handle or (isinstance(op.definition, Const) and not op.control_inputs)


def _located(op: Operation, message: str, lines: Sequence[str] = ()) -> InvalidArgumentError:
    facts = where(op)
    return InvalidArgumentError(message).located(op=op.name, op_type=op.type, inputs=lines, **facts)


def _depth(frame: PrimitiveFrame | None) -> int:
    return 0 if frame is None else 1 + _depth(frame.parent)


def _encloses(outer: PrimitiveFrame | None, inner: PrimitiveFrame | None) -> bool:
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


def _place(frame: PrimitiveFrame | None) -> str:
    if frame is None:
        return "outside of all loops"
    made = where(frame.enters[0])["origin"] if frame.enters else None
    return f'in the loop "{frame.path}"' + (f" (begun in {made})" if made else "")


def _is(tensor: Tensor, kind: type[Op]) -> bool:
    return isinstance(tensor.op.definition, kind)


def _variable(thing: Tensor | Operation) -> str:
    """Returns which loop variable it is, where that is plain to see."""
    op = thing.op if isinstance(thing, Tensor) else thing
    if isinstance(op.definition, (Switch, LoopCond)) and _is(op.inputs[0], Merge):
        op = op.inputs[0].op
    if isinstance(op.definition, Merge) and _is(op.inputs[0], Enter):
        return f', the variable that "{op.inputs[0].op.inputs[0].name}" begins'
    return ""


def frames_of(graph: Graph) -> PrimitiveFrames:
    """Returns the frames of a graph, which are looked after from now on."""
    for check in graph.checks:
        if isinstance(check, PrimitiveFrames):
            return check
    found = PrimitiveFrames()
    for op in graph.get_operations():
        found(op)
    graph.checks += (found,)
    return found


def replace_input(op: Operation, index: int, tensor: Tensor) -> None:
    """Gives a Merge its value of the next iteration, in the place of what stands for it so far.

    Args:
        op: The Merge.
        index: Which input.
        tensor: The output of a NextIteration.

    Raises:
        InvalidArgumentError: if it is something else, or does not fit.
    """
    if not isinstance(op.definition, Merge) or not isinstance(tensor.op.definition, NextIteration):
        raise _located(
            op,
            "only an input of a Merge can be replaced, by what NextIteration returns; got "
            f'"{tensor.name}" for an input of "{op.name}"',
        )
    if not 0 <= index < len(op.inputs):
        raise _located(op, f"expected an input among {len(op.inputs)}, got number {index}")
    if tensor.op.block is not op.block or tensor.op.stale is not None or op.stale is not None:
        raise _located(op, f'"{tensor.name}" does not stand in the block of "{op.name}"')
    known, new = op.outputs[0].spec, tensor.spec
    if new.dtype is not known.dtype or not _is_within(new.shape, known.shape):
        raise _located(
            op,
            f'the loop variable that "{op.inputs[0].name}" begins is {known} at its entry and '
            f"{new} after an iteration: give fs.raw_ops.Enter a tensor of a shape that holds in "
            "all iterations, e.g. from fs.placeholder_with_default(x, [None])",
        )
    frames_of(op.graph).check_input(op, tensor)
    op.inputs = (*op.inputs[:index], tensor, *op.inputs[index + 1 :])
    op.graph.edited(op)


input_replacer.append(replace_input)


def _is_within(dims: Any, wider: Any) -> bool:
    if wider is None:
        return True
    if dims is None or len(dims) != len(wider):
        return False
    return all(w is None or d == w for d, w in zip(dims, wider))


__all__ = ["PrimitiveFrame", "PrimitiveFrames", "frames_of", "replace_input"]
