"""The static side of the executor: units with their slots and successors, worked out once.

Each unit stands in one static frame. An iteration of a frame has, per unit of it, a number of
tokens that are still to come and slots for its inputs. A slot of a constant or a handle is filled
from the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from flowscope.errors import GraphError
from flowscope.graph.operation import where
from flowscope.plan.executables.units import UnitBody
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.passes.lower import LoweredLoop


class UnitKind(IntEnum):
    """What becomes of a unit's tokens; from KERNEL on, the driver has something to run."""

    SWITCH = 0
    MERGE = 1
    ENTER = 2
    EXIT = 3
    NEXT_ITERATION = 4
    LOOP_COND = 5
    CONTROL_TRIGGER = 6
    KERNEL = 7
    BLOCKING = 8


_KINDS = {
    "Switch": UnitKind.SWITCH,
    "Merge": UnitKind.MERGE,
    "Enter": UnitKind.ENTER,
    "Exit": UnitKind.EXIT,
    "NextIteration": UnitKind.NEXT_ITERATION,
    "LoopCond": UnitKind.LOOP_COND,
    "ControlTrigger": UnitKind.CONTROL_TRIGGER,
}


class StaticFrame:
    """A loop of the program, or the step itself.

    Attributes:
        name: Unique; "" for the step.
        parent: The frame around it; None for the step.
        window: At most so many iterations are on their way at once.
        enters: How many Enters there are.
        units: Those that stand in it, by `Unit.at`.
        pending, slots: How iterations begin: tokens to come per unit, inputs.
        origins: The operations that the loop came from.
    """

    __slots__ = (
        "depth",
        "enters",
        "name",
        "origins",
        "parent",
        "pending",
        "slots",
        "units",
        "window",
    )

    def __init__(self, name: str, parent: StaticFrame | None, window: int, origins: Any) -> None:
        self.name = name
        self.parent = parent
        self.window = window
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.enters = 0
        self.units: list[Unit] = []
        self.pending: list[int] = []
        self.slots: list[Any] = []
        self.origins = origins

    def __repr__(self) -> str:
        return f"<StaticFrame {self.name or 'of the step'}>"


class Unit:
    """What runs as a whole: a primitive, an operation, or a region.

    Attributes:
        index: Its number in the graph.
        kind: What becomes of its tokens.
        move: The kind as a plain number, which is quicker.
        name: The name of its first node.
        body: Its nodes.
        frame: Where it stands.
        child: An Enter's frame.
        at: Its number in the frame.
        base, end: Its slots are those from `base` up to `end`.
        count: How many inputs it has.
        blank: What its slots become once they were read.
        is_constant: Whether it is a constant Enter.
        targets: Per output: (slot, at, unit) of those that take it, but for Merges.
        merges: Per output: (input, unit) of the Merges that take it; input as they tell it.
        controls: The units that wait for it without a value.
        fetched: (output, position among the fetches).
        has_more: Whether there are `merges`, `controls` or `fetched`.
        stops: Per output of a Switch: the Exits that take it, where nobody but Exits and
            NextIterations does; else None.
    """

    __slots__ = (
        "at",
        "base",
        "blank",
        "body",
        "child",
        "controls",
        "count",
        "end",
        "fetched",
        "frame",
        "has_more",
        "index",
        "is_constant",
        "kind",
        "merges",
        "move",
        "name",
        "stops",
        "targets",
    )  # fmt: skip

    def __init__(self, index: int, body: UnitBody, kind: UnitKind) -> None:
        self.index = index
        self.kind = kind
        self.move = int(kind)
        self.body = body
        self.name = body.nodes[0].name
        self.is_constant = kind is UnitKind.ENTER and body.nodes[0].op.is_constant  # type: ignore[attr-defined]
        self.frame: StaticFrame  # set once, when the graph is made
        self.child: StaticFrame | None = None
        self.at = self.base = self.end = 0
        self.count = len(body.inputs)
        self.blank: list[None] = []
        self.targets: tuple[tuple[tuple[int, int, Unit], ...], ...] = ()
        self.merges: tuple[tuple[tuple[np.int32, Unit], ...], ...] = ()
        self.controls: tuple[Unit, ...] = ()
        self.fetched: tuple[tuple[int, int], ...] = ()
        self.has_more = False
        self.stops: tuple[tuple[Unit, ...] | None, ...] = ()

    @property
    def node(self) -> Node:
        """Its first node."""
        return self.body.nodes[0]

    @property
    def inner(self) -> StaticFrame:
        """The frame that its outputs belong to; None's place for an Exit of the step."""
        if self.kind is UnitKind.ENTER:
            assert self.child is not None
            return self.child
        if self.kind is UnitKind.EXIT:
            assert self.frame.parent is not None
            return self.frame.parent
        return self.frame

    def __repr__(self) -> str:
        return f"<Unit {self.name} {self.kind.name}>"


class ExecutorGraph:
    """The units of a program, ready to be executed any number of times.

    Args:
        program: The lowered program.
        bodies: Its nodes, but for constants and handles, as units.
        values: The values of constants; handles' are bound by `bound`.
        loops: The loop that each frame was made of, by the frame's name.

    Attributes:
        units: By index.
        root: The step's frame.
        frames: All, from the outermost.
        feeds: Per feed: (slot, unit) of those that take it, (input, Merge), positions of fetches.
        heads: The Merges that each NextIteration leads to.
        known: Fetches that are constants, with their positions.
        handles: (frame, slot, handle) of the slots that `bound` fills.
        sources: Units that wait for nothing.
        loops: The loop that each frame was made of, by the frame's name.

    Raises: GraphError if a value is used in another frame than its own.
    """

    def __init__(
        self,
        program: Program,
        bodies: Sequence[UnitBody],
        values: Mapping[Value, Any],
        loops: Mapping[str, LoweredLoop] | None = None,
    ) -> None:
        self.program = program
        self.loops = loops or {}
        self.units = [
            Unit(i, p, _KINDS.get(p.nodes[0].op.type, _plain(p))) for i, p in enumerate(bodies)
        ]
        self._made: dict[Value, tuple[Unit, int]] = {}
        self._of: dict[Node, Unit] = {}
        for unit in self.units:
            self._of.update((n, unit) for n in unit.body.nodes)
            self._made.update((v, (unit, i)) for i, v in enumerate(unit.body.outputs))
        self._fed = frozenset(program.feeds)
        self._before = {u: self._controls_of(u) for u in self.units}
        self.root = StaticFrame("", None, 1, ())
        self.frames = [self.root]
        _Frames(self).assign()
        self._lay_out(values)
        self._connect(program)
        self.sources = [
            u for u in self.units if u.frame is self.root and not self.root.pending[u.at]
        ]

    def bound(self, handles: Mapping[Node | None, Any]) -> ExecutorGraph:
        """Fills in what stands behind handles."""
        for frame, slot, node in self.handles:
            frame.slots[slot] = handles[node]
        return self

    def unit_of(self, node: Node) -> Unit:
        """Returns the unit that a node of the program belongs to."""
        return self._of[node]

    def before(self, unit: Unit) -> list[Unit]:
        """Returns the units that a unit takes tokens of."""
        makers = [self._made[v][0] for v in unit.body.inputs if v in self._made]
        return [*makers, *self._before[unit]]

    def _controls_of(self, unit: Unit) -> list[Unit]:
        found = {self._of[c]: None for n in unit.body.nodes for c in n.control if c in self._of}
        found.pop(unit, None)
        return list(found)

    def _lay_out(self, values: Mapping[Value, Any]) -> None:
        self.handles: list[tuple[StaticFrame, int, Node]] = []
        for unit in self.units:
            frame = unit.frame
            unit.at = len(frame.units)
            frame.units.append(unit)
            unit.base = len(frame.slots)
            if unit.kind is UnitKind.MERGE:
                unit.blank = [None, None]
                frame.slots += unit.blank
                frame.pending.append(1 + 2 * len(self._before[unit]))
            else:
                unit.blank = [None] * unit.count
                frame.slots += [values.get(v) for v in unit.body.inputs]
                self.handles += [
                    (frame, unit.base + i, v.node)
                    for i, v in enumerate(unit.body.inputs)
                    if v not in values and v not in self._made and v.node is not None
                    and is_ambient(v.node)
                ]  # fmt: skip
                taken = [v for v in unit.body.inputs if not self._is_there(v)]
                frame.pending.append(len(taken) + len(self._before[unit]))
            unit.end = len(frame.slots)

    def _is_there(self, value: Value) -> bool:
        return value not in self._made and is_ambient(value.node) and value not in self._fed

    def _connect(self, program: Program) -> None:
        targets: dict[Value, list[tuple[int, int, Unit]]] = {}
        merges: dict[Value, list[tuple[np.int32, Unit]]] = {}
        for unit in self.units:
            for i, value in enumerate(unit.body.inputs):
                if unit.kind is UnitKind.MERGE:
                    merges.setdefault(value, []).append((np.int32(i), unit))
                elif not self._is_there(value):
                    targets.setdefault(value, []).append((unit.base + i, unit.at, unit))
        fetched: dict[Value, list[int]] = {}
        for i, value in enumerate(program.fetches):
            fetched.setdefault(value, []).append(i)
        controls: dict[Unit, list[Unit]] = {}
        for unit, before in self._before.items():
            for b in before:
                controls.setdefault(b, []).append(unit)
        for unit in self.units:
            outputs = unit.body.outputs
            unit.targets = tuple(tuple(targets.get(v, ())) for v in outputs)
            unit.merges = tuple(tuple(merges.get(v, ())) for v in outputs)
            unit.controls = tuple(controls.get(unit, ()))
            unit.fetched = tuple((i, f) for i, v in enumerate(outputs) for f in fetched.get(v, ()))
        self.feeds = [
            (tuple(targets.get(v, ())), tuple(merges.get(v, ())), tuple(fetched.get(v, ())))
            for v in program.feeds
        ]
        self.heads = {
            u: tuple([m.node for _, m in u.merges[0]])
            for u in self.units if u.kind is UnitKind.NEXT_ITERATION
        }  # fmt: skip
        self._shorten()
        for unit in self.units:
            unit.has_more = bool(any(unit.merges) or unit.controls or unit.fetched)
            if unit.kind is UnitKind.SWITCH:
                unit.stops = tuple([_stops(unit, i) for i in range(len(unit.targets))])
        self.known = [
            (i, v) for i, v in enumerate(program.fetches)
            if v not in self._made and v not in self._fed
        ]  # fmt: skip

    def _shorten(self) -> None:
        """Lets tokens pass over primitives that would only hand them on.

        What a LoopCond takes goes to its Switches at once. So does what a NextIteration takes to
        those who take the Merge's value: in an iteration but the first nothing else comes to it.
        """
        for unit in self.units:
            unit.targets = tuple([
                tuple([t for target in targets for t in self._behind(target)])
                for targets in unit.targets
            ])  # fmt: skip
        for unit in self.units:
            if (
                unit.kind is not UnitKind.NEXT_ITERATION
                or unit.targets[0]
                or len(unit.merges[0]) != 1
            ):
                continue
            _, merge = unit.merges[0][0]
            if self._hands_on(merge):
                unit.targets, unit.merges = merge.targets[:1], merge.merges[:1]
                unit.controls = (*unit.controls, *merge.controls)

    def _behind(self, target: tuple[int, int, Unit]) -> Sequence[tuple[int, int, Unit]]:
        unit = target[2]
        has_more = any(unit.merges) or unit.controls or unit.fetched or self._before[unit]
        return [target] if unit.kind is not UnitKind.LOOP_COND or has_more else unit.targets[0]

    def _hands_on(self, merge: Unit) -> bool:
        """Whether a Merge takes an Enter and one value that goes back, and hands on no more."""
        makers = [self._made[v][0] for v in merge.body.inputs if v in self._made]
        kinds = [m.kind for m in makers if not m.is_constant]
        is_loops = sorted(kinds) == [UnitKind.ENTER, UnitKind.NEXT_ITERATION]
        has_index = any(merge.targets[1:]) or any(merge.merges[1:])
        return is_loops and not (has_index or merge.fetched or self._before[merge])


def _stops(switch: Unit, output: int) -> tuple[Unit, ...] | None:
    takers = [unit for _, _, unit in switch.targets[output]]
    has_more = switch.merges[output] or any(i == output for i, _ in switch.fetched)
    if has_more or any(u.kind not in (UnitKind.EXIT, UnitKind.NEXT_ITERATION) for u in takers):
        return None
    return tuple([u for u in takers if u.kind is UnitKind.EXIT])


def _plain(body: UnitBody) -> UnitKind:
    return (
        UnitKind.BLOCKING
        if len(body.nodes) == 1 and body.nodes[0].op.is_blocking
        else UnitKind.KERNEL
    )


class _Frames:
    """Finds the frame of each unit, from what it takes its tokens of."""

    def __init__(self, graph: ExecutorGraph) -> None:
        self._graph = graph
        self._by_name: dict[tuple[StaticFrame, str], StaticFrame] = {}
        self._placed: set[Unit] = set()

    def assign(self) -> None:
        """Gives each unit its frame."""
        graph = self._graph
        after: dict[Unit, list[Unit]] = {}
        for unit in graph.units:
            for b in graph.before(unit):
                after.setdefault(b, []).append(unit)
        queue = deque(u for u in graph.units if not graph.before(u))
        for unit in queue:
            self._put(unit, graph.root)
        while queue:
            unit = queue.popleft()
            for later in after.get(unit, ()):
                if later not in self._placed:
                    self._put(later, unit.inner)
                    queue.append(later)
        for unit in graph.units:
            if unit not in self._placed:
                self._put(unit, graph.root)
        for unit in graph.units:
            for b in graph.before(unit):
                if b.inner is not unit.frame:
                    raise _misused(b, unit)

    def _put(self, unit: Unit, frame: StaticFrame) -> None:
        unit.frame = frame
        self._placed.add(unit)
        if unit.kind is UnitKind.EXIT and frame.parent is None:
            raise _located(GraphError(f'"{unit.name}" leaves a loop, but stands in none'), unit)
        if unit.kind is not UnitKind.ENTER:
            return
        op: Any = unit.node.op
        key = frame, op.frame_name
        child = self._by_name.get(key)
        if child is None:
            origins = unit.node.origins
            child = StaticFrame(op.frame_name, frame, op.parallel_iterations, origins)
            self._by_name[key] = child
            self._graph.frames.append(child)
        child.enters += 1
        unit.child = child


def _misused(maker: Unit, user: Unit) -> GraphError:
    of = maker.inner.name or "the step"
    used = user.frame.name or "the step"
    return _located(
        GraphError(
            f'"{user.name}" runs in the frame "{used}", but takes "{maker.name}", whose values '
            f'belong to "{of}": a value enters a loop by Enter and leaves it by Exit'
        ),
        user,
    )


def _located(error: GraphError, unit: Unit) -> GraphError:
    node = unit.node
    facts = where(node.origins[0]) if node.origins else {}
    return error.located(op=named(node.name, node.origins), op_type=node.op.type, **facts)


__all__ = ["ExecutorGraph", "StaticFrame", "Unit", "UnitKind"]
