"""Safepoints of generated code: where a step can be held, looked at, or taken over.

Generated code calls a safepoint with its local variables if the gate's flag is raised. The
gate may hold the step there. If it is to go on one operation at a time the code is left: what it
knew, by the names of its variables, becomes values by what they stand for in the program, and
`deopt` runs the rest of the step. So no code is ever entered in its middle.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.graph.lazy import frozen
from flowscope.plan.analysis.locations import (
    BlockLocation,
    DeoptState,
    LoopState,
    NestedRun,
    Part,
    StepLocation,
    loops_at,
    replace_in,
    values_in,
    where_in,
)
from flowscope.plan.ir.breakpoints import next_operation
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import Writer

#: How the file names of generated code begin.
FILENAME = "<flowscope plan"
#: Estimated seconds of work between two safepoints.
STRETCH_S = 200e-6
#: Runs the rest of a step: (gate, run, resources, left) -> the region's outputs.
Deopt = Callable[[Any, Any, tuple[Any, ...], DeoptState], Any]

_BOXES: dict[str, Callable[[Any], Any]] = {
    "int32": np.int32,
    "int64": np.int64,
    "float64": np.float64,
    "bool": np.bool_,
}


@frozen
class LoopNames:
    """The local variables that hold a loop's state."""

    node: LoopNode
    counter: str
    limit: str | None
    variables: tuple[str, ...]
    lists: tuple[str, ...]
    pushes: tuple[str, ...]


@frozen
class OsrEntry:
    """A loop that goes on in code of its own.

    Attributes:
        loop: The loop.
        count: The number of iterations that are done.
        pushes: What it has kept.
    """

    loop: LoopNode
    count: Value
    pushes: tuple[Value, ...]


@frozen
class NamedLocation:
    """A block around a safepoint: a `BlockLocation` with names in place of values."""

    program: Program
    index: int
    part: Part
    loop: LoopNames | None


class ValueVariables(dict[Value, str]):
    """Which variable holds each value at the line that is being written, and did at those before.

    A function has many safepoints, and many values may be alive at each. So they are not written
    down there: a safepoint notes how many changes there have been, which are made again when a step
    stands at it.

    Attributes:
        changes: Each value that got a variable, or lost it (None), in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[Value, str | None]] = []

    def __setitem__(self, value: Value, name: str) -> None:
        super().__setitem__(value, name)
        self.changes.append((value, name))

    def __delitem__(self, value: Value) -> None:
        super().__delitem__(value)
        self.changes.append((value, None))

    def assign(self, values: Iterable[Value], names: Iterable[str]) -> None:
        """Gives a variable to each value, as far as there are some."""
        for value, name in zip(values, names, strict=False):
            self[value] = name

    def take(self, value: Value) -> str:
        """Takes a value's variable away from it and returns it."""
        name = self[value]
        del self[value]
        return name

    def drop(self, value: Value) -> None:
        """Takes a value's variable away from it, if it has one."""
        if value in self:
            del self[value]

    def after(self, count: int) -> dict[Value, str]:
        """Returns the variables as they were after so many changes."""
        found: dict[Value, str] = {}
        for value, name in self.changes[:count]:
            if name is None:
                del found[value]
            else:
                found[value] = name
        return found


@frozen
class VariableNames:
    """What the variables of one function stand for.

    Attributes:
        places: The variables.
        unboxed: Values that are Python numbers.
        namespace: The function's globals, constants among them.
    """

    places: ValueVariables
    unboxed: Collection[Value]
    namespace: Mapping[str, Any]


class Safepoint:
    """One safepoint of a generated function; calling it returns None to go on with the code.

    It is given the function's local variables by name, and empties the mapping: what stays in it
    would live as long as the call.

    Args:
        index: Position of the region's node that it stands before or in.
        locations: The blocks around, from the outermost.
        names: What the function's variables stand for.
        deopt: Runs the rest of a step.
    """

    def __init__(
        self, index: int, locations: tuple[NamedLocation, ...], names: VariableNames, deopt: Deopt
    ) -> None:
        self.index = index
        self.is_back_edge = locations[-1].part == "back"
        self._locations = locations
        self._names = names
        self._changes = len(names.places.changes)
        self._deopt = deopt

    @cached_property
    def _values(self) -> list[tuple[str, Value, Callable[[Any], Any] | None]]:
        """Local variables with the values that they hold, and what makes NumPy's of them."""
        raw = self._names.unboxed
        return [
            (n, v, _BOXES[v.spec.dtype.name] if v in raw else None)
            for v, n in self._names.places.after(self._changes).items()
            if n[0] in "sf"
        ]

    @cached_property
    def _constants(self) -> dict[Value, Any]:
        namespace, places = self._names.namespace, self._names.places.after(self._changes)
        return {v: namespace[n] for v, n in places.items() if n[0] == "c"}

    def __call__(
        self,
        gate: Any,
        run: Any,
        resources: tuple[Any, ...],
        live: dict[str, Any],
        is_breakpoint: bool = False,
    ) -> tuple[Any, ...] | None:
        """Lets the step be held; returns None, or the region's outputs if the code is left."""
        try:
            here = _Here(self, live, run, is_breakpoint)
            if not gate.hold(self.index, here) and not here.is_changed:
                return None
            state = self.deopt_state(live, is_breakpoint)
        finally:
            live.clear()
        result: tuple[Any, ...] = self._deopt(gate, run, resources, state)
        return result

    def here(self, run: Any, live: dict[str, Any]) -> _Here:
        """The location of a step that waits for other partitions here."""
        return _Here(self, live, run, False)

    def leave(self, live: dict[str, Any]) -> DeoptState:
        """The state from which the interpreter goes on where the code cannot."""
        state = self.deopt_state(live)
        live.clear()
        return state

    def enter(
        self,
        function: Callable[..., Any],
        gate: Any,
        run: Any,
        resources: tuple[Any, ...],
        live: dict[str, Any],
        inputs: tuple[Any, ...],
    ) -> tuple[bool, Any]:
        """Runs the function of the node that comes next; returns whether the code is left.

        With it comes what the code has to return then, else the node's outputs.
        """
        here = self.leave(live)
        around = tuple([s.loop for s in here.locations if s.loop is not None])
        node = here.locations[-1].program.nodes[here.locations[-1].index]
        found = function(gate, NestedRun(run, around, node, here.values), inputs, resources)
        if not isinstance(found, DeoptState):
            return False, found
        values = {**here.values, **found.values}
        state = DeoptState((*here.locations, *found.locations[1:]), values, found.is_breakpoint)
        return True, self._deopt(gate, run, resources, state)

    def deopt_state(self, live: Mapping[str, Any], is_breakpoint: bool = False) -> DeoptState:
        """The state from which the interpreter goes on."""
        values = dict(self._constants)
        for name, value, box in self._values:
            values[value] = live[name] if box is None else box(live[name])
        return DeoptState(self.locations(live), values, is_breakpoint)

    @cached_property
    def variables(self) -> dict[str, Value]:
        """The local variables that hold values."""
        return {n: v for n, v, _ in self._values}

    def locations(self, live: Mapping[str, Any]) -> tuple[BlockLocation, ...]:
        """Returns the blocks around, with the loops' states."""
        return tuple(
            BlockLocation(
                v.program, v.index, v.part, None if v.loop is None else _state(v.loop, live)
            )
            for v in self._locations
        )

    def where(self, live: Mapping[str, Any], run: Any, is_breakpoint: bool = False) -> StepLocation:
        """Returns where the step is; at a breakpoint, before an operation of the graph."""
        locations = self.locations(live)
        innermost = locations[-1]
        nodes, at = innermost.program.nodes, innermost.index
        if is_breakpoint:
            at = next_operation(nodes, at)
        node = nodes[at] if innermost.part != "back" and at < len(nodes) else None
        loops = [s.loop for s in locations if s.loop is not None]
        own = loops_at(loops, node, self.deopt_state(live).values)
        return where_in(run, StepLocation("compiled", own, node))


def to_caller(gate: Any, run: Any, resources: tuple[Any, ...], state: DeoptState) -> DeoptState:
    """What a function returns if it is left, where whoever called it goes on."""
    del gate, run, resources
    return state


class _Here:
    """A step at a safepoint of its code."""

    __slots__ = ("_live", "_point", "_run", "is_breakpoint", "is_changed")
    is_op = False

    def __init__(
        self, point: Safepoint, live: dict[str, Any], run: Any, is_breakpoint: bool
    ) -> None:
        self.is_breakpoint = is_breakpoint
        self.is_changed = False
        self._point = point
        self._live = live
        self._run = run

    @property
    def is_back_edge(self) -> bool:
        """Whether an iteration of a loop has just ended."""
        return self._point.is_back_edge

    @property
    def node(self) -> Node | None:
        """The node that comes next; None at the end of an iteration."""
        return self.where().node

    def where(self) -> StepLocation:
        """Returns where it is."""
        return self._point.where(self._live, self._run, self.is_breakpoint)

    def values(self) -> dict[object, Any]:
        """The live arrays, by the identities of their values."""
        return values_in(self._run, self._point.deopt_state(self._live).values)

    def replace(self, identity: object, array: Any) -> bool:
        """Puts an array into the place of a value; the code is left then."""
        is_there = replace_in(self._run, self._live, self._point.variables, identity, array)
        self.is_changed = self.is_changed or is_there
        return is_there

    def sample(self, sample: Any) -> None:
        """Lets a sample trace the lines that come next."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not frame.f_code.co_filename.startswith(FILENAME):
            frame = frame.f_back
        if frame is not None:
            sample.begin_lines(frame, self.where(), self.is_back_edge)


def _state(loop: LoopNames, named: Mapping[str, Any]) -> LoopState:
    n = len(loop.variables)
    variables = [named.get(name) for name in loop.variables]
    for i, feed in enumerate(loop.node.blocks[-1].feeds[:n]):
        box = _BOXES.get(feed.spec.dtype.name)
        if box is not None and type(variables[i]) in (int, float, bool):
            variables[i] = box(variables[i])
    return LoopState(
        loop.node,
        named[loop.counter],
        None if loop.limit is None else named[loop.limit],
        variables,
        [named[name] for name in loop.lists],
        [named[name] for name in loop.pushes],
    )


def safepoint(writer: Writer, is_back: bool) -> Safepoint:
    """Returns the safepoint for the place that a writer has come to.

    Args:
        writer: The writer.
        is_back: Whether an iteration ends here.
    """
    scopes = writer.scopes
    parts: list[Part] = [f.part for f in scopes]
    if is_back:
        parts[-1] = "back"
    locations = tuple(
        NamedLocation(f.program, f.index, p, f.loop) for f, p in zip(scopes, parts, strict=True)
    )
    return Safepoint(scopes[0].index, locations, writer.names, writer.deopt)
