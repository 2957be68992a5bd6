"""What can be seen of a machine: frames, iterations on their way, and where a step is.

A `StepPosition` is what a step hands to the gate: it tells where the step is, on the thread that
runs the machine, between any two events. All that it tells is counted when somebody looks, from
what is there: the machine keeps no books for it. Only what moves is told as it does, by
`Machine.watch`.

Operations are counted as the user made them: primitives and what lowering added are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from flowscope.executor.frames import Frame, Iteration
from flowscope.executor.machine import Machine
from flowscope.executor.raw_loops import entry, limit_of
from flowscope.executor.static import StaticFrame, Unit, UnitKind
from flowscope.executor.validate import frames_of
from flowscope.graph.lazy import frozen
from flowscope.graph.values.dtypes import resource
from flowscope.graph.values.host_values import beside
from flowscope.plan.analysis.locations import IterationAt, LoopAt, Moved, StepLocation, bytes_of
from flowscope.plan.analysis.saved_for_backward import most_trips
from flowscope.plan.ir.program import Node, Value, is_back_edge

#: A blocking operation that has begun and is not done: where it is, and what it waits for.
Wait = tuple[Unit, Iteration, str]


@frozen
class FrameView:
    """One loop that is running.

    Attributes:
        frame: The frame.
        iterations: Those on their way, the oldest first.
        holds: What holds the next iteration: "" (nothing), "window" (as many are on their way as
            may be), "entering" (values that come into the loop are missing), "edge" (no value that
            goes back has come).
        held: The same as a sentence.
    """

    frame: Frame
    iterations: tuple[IterationAt, ...]
    holds: str
    held: str


class StepPosition:
    """Where a step is: between two invocations.

    Args:
        machine: The machine.
        waits: Returns the blocking operations that have begun and are not done.
        take_sample: Has a sample take the operations that come next; None where nobody can.
    """

    is_op = True

    def __init__(
        self,
        machine: Machine,
        waits: Callable[[], Iterable[Wait]] = tuple,
        take_sample: Callable[[Any], None] | None = None,
    ) -> None:
        self.machine = machine
        self._take_sample = take_sample
        self._waits = waits
        self.is_breakpoint = False
        self._unit: Unit | None = None
        self._it: Iteration | None = None
        self._inputs: list[Any] = []
        #: What the unit has given; None before it runs.
        self._outputs: list[Any] | None = None
        self.is_changed = False
        #: How many iterations of each frame had ended, here and at the place before.
        self._ended: dict[Frame, int] = {}
        self._before: dict[Frame, int] | None = None
        self._weights: dict[StaticFrame, list[int]] = {}
        #: What stands for the loops that were made by hand.
        self._entries: dict[StaticFrame, Node] = {}
        #: Per list that is kept: what its newest pair was, and the bytes of all. A list only grows.
        self._counted: dict[tuple[str, str], tuple[int, int]] = {}

    # -- where the step is ----------------------------------------------------------------------

    def at(
        self, unit: Unit, it: Iteration, inputs: list[Any], outputs: list[Any] | None = None
    ) -> None:
        """Notes what runs next, after what ran since this was called before.

        With `outputs` it has run, and given these.
        """
        self.inside(unit, it, inputs)
        self._outputs = outputs
        self._before = self._ended or None
        ended = {f: f.started - len(f.iterations) for f in frames_of(self.machine)}
        self._ended = ended

    def inside(self, unit: Unit | None, it: Iteration | None, inputs: list[Any]) -> None:
        """Notes what runs now; None while the step waits."""
        self._unit, self._it, self._inputs, self._outputs = unit, it, inputs, None
        self.is_breakpoint = False

    def at_breakpoint(self) -> StepPosition:
        """Notes that it is at a breakpoint; returns itself."""
        self.is_breakpoint = True
        self.is_changed = False
        return self

    def forget(self) -> None:
        """Notes that the step goes on, and is not asked before each invocation any more."""
        self._ended = {}
        self._inputs = []

    @property
    def is_back_edge(self) -> bool:
        """Whether an iteration of a loop in which no other one runs has ended since before."""
        if self._before is None:
            return False
        return any(
            f.parent is not None and ended > self._before.get(f, 0) and _is_innermost(f)
            for f, ended in self._ended.items()
        )

    def sample(self, sample: Any) -> None:
        """Lets a sample take the operations that come next."""
        if self._take_sample is not None:
            self._take_sample(sample)

    @property
    def node(self) -> Node | None:
        """The node that comes next; None while the step waits."""
        return None if self._unit is None else self._unit.node

    def where(self) -> StepLocation:
        """Returns where the step is."""
        loops = tuple(
            LoopAt(node, it.number, self._limit(it.frame), 0, ())
            for node, it in self._loops(self._it)
        )
        node = None if self._unit is None else self._unit.node
        return StepLocation("tokens", loops, node, self._running())

    def moved(self, unit: Unit, it: Iteration, is_dead: bool) -> list[Moved]:
        """The report of a unit that gave its tokens."""
        loops = [(node, one.number) for node, one in self._loops(it)]
        if unit.kind is UnitKind.NEXT_ITERATION:
            return self._moved_back(unit, loops)
        around = tuple(loops)
        return [Moved(n, around, is_dead) for n in unit.body.nodes if _is_users(n)]

    def _moved_back(self, unit: Unit, loops: list[tuple[Node, int]]) -> list[Moved]:
        made = self.machine.graph.loops.get(unit.frame.name)
        node, number = loops[-1]
        around = (*loops[:-1], (node, number + 1))
        if made is None:
            return [Moved(m, around, False, True) for m in self.machine.graph.heads[unit]]
        backs = [m.inputs[1].node for m in made.variables]
        return [Moved(node, around, False, True, i) for i, n in enumerate(backs) if n is unit.node]

    def _loops(self, it: Iteration | None) -> list[tuple[Node, Iteration]]:
        """Returns the loops around, from the outermost."""
        found: list[tuple[Node, Iteration]] = []
        while it is not None and it.frame.parent is not None:
            found.insert(0, (self._node(it.frame.static), it))
            it = it.frame.parent
        return found

    def _node(self, frame: StaticFrame) -> Node:
        """Returns the loop of a frame; of one made by hand an Enter."""
        made = self.machine.graph.loops.get(frame.name)
        if made is not None:
            return made.node
        if frame not in self._entries:
            self._entries[frame] = entry(self.machine.graph, frame)
        return self._entries[frame]

    # -- values ---------------------------------------------------------------------------------

    def values(self) -> dict[object, Any]:
        """The live arrays: the tokens on their way, of the iterations around the unit.

        Of iterations that are on their way at the same time the unit's own comes first.
        """
        return {value.identity: place[i] for value, place, i in self._tokens()}

    def replace(self, identity: object, array: Any) -> bool:
        """Puts an array into the place of a value, for all who have not taken it yet."""
        found = [(place, i) for value, place, i in self._tokens() if value.identity is identity]
        for place, i in found:
            place[i] = beside(array, place[i])
        self.is_changed = self.is_changed or bool(found)
        return bool(found)

    def _tokens(self) -> Iterator[tuple[Value, list[Any], int]]:
        """Yields the tokens: which value, and where it lies."""
        it = self._it
        around: list[Iteration] = []
        while it is not None:
            around.insert(0, it)
            it = it.frame.parent
        for one in around or list(self.machine.root.iterations):
            for unit in one.frame.static.units:
                if unit.kind is UnitKind.MERGE:
                    continue
                for i, value in enumerate(unit.body.inputs):
                    if one.slots[unit.base + i] is not None and not _is_handle(value):
                        yield value, one.slots, unit.base + i
        if self._unit is not None:
            for i, value in enumerate(self._unit.body.inputs):
                if i < len(self._inputs) and not _is_handle(value):
                    yield value, self._inputs, i
            for i, value in enumerate(self._unit.body.outputs if self._outputs else ()):
                assert self._outputs is not None
                yield value, self._outputs, i

    # -- the frames -----------------------------------------------------------------------------

    def _running(self) -> tuple[tuple[LoopAt, ...], ...]:
        """Returns the running loops, each with those around it."""
        found: dict[Frame, tuple[LoopAt, ...]] = {self.machine.root: ()}
        for view in self.frames():
            parent = view.frame.parent
            assert parent is not None
            around = found.get(parent.frame)
            if around is None or _is_dead(view):
                continue
            if around:
                around = (*around[:-1], replace(around[-1], iteration=parent.number))
            found[view.frame] = (*around, self._loop_at(view))
        return tuple(path for path in found.values() if path)

    def _loop_at(self, view: FrameView) -> LoopAt:
        frame, window = view.frame, view.iterations
        return LoopAt(
            self._node(frame.static),
            max(0, frame.started - 1),
            self._limit(frame),
            window[-1].done if window else 0,
            (),
            window,
            view.held,
            self._kept_bytes(frame),
        )

    def frames(self) -> tuple[FrameView, ...]:
        """Returns the loops that are running, the outer ones first."""
        look = _Look(self.machine, list(self._waits()), self._unit, self._it)
        return tuple(self._view(look, f) for f in frames_of(self.machine) if f.parent is not None)

    def _view(self, look: _Look, frame: Frame) -> FrameView:
        weights = self._weights.get(frame.static)
        if weights is None:
            weights = [_weight(u) for u in frame.static.units]
            self._weights[frame.static] = weights
        its = tuple([look.iteration(it, weights) for it in frame.iterations])
        return FrameView(frame, its, *look.held(frame))

    def _limit(self, frame: Frame) -> int | None:
        """Returns how many iterations there will be at most, where that is known by now."""
        made = self.machine.graph.loops.get(frame.static.name)
        if made is None:
            return limit_of(self.machine.graph, frame)
        entered = {u.body.outputs[0]: v for u, v, is_dead in frame.constants if not is_dead}
        known = {v: entered[inside] for v, inside in made.limits if inside in entered}
        return most_trips(made.node, known)

    # -- what is kept ---------------------------------------------------------------------------

    def _kept_bytes(self, frame: Frame) -> int | None:
        """Returns the bytes of all that a frame has kept; None where it keeps nothing."""
        made = self.machine.graph.loops.get(frame.static.name)
        if made is None or not made.kept:
            return None
        return sum(self._counted_bytes(frame, merge) for merge in made.kept)

    def _counted_bytes(self, frame: Frame, merge: Node) -> int:
        key = frame.name, merge.name
        last, total = self._counted.get(key, (0, 0))
        head = at = self._newest(frame, merge)
        added = 0
        while at is not None and id(at) != last:
            added += bytes_of(at[0])
            at = at[1]
        if head is None:
            return total  # it is being added to
        total = added if at is None else total + added
        self._counted[key] = id(head), total
        return total

    def _newest(self, frame: Frame, merge: Node) -> Any:
        """Returns a list that is kept: its one token lies before a unit, or is parked."""
        unit, back = map(self.machine.graph.unit_of, (merge, _back(merge)))
        slots = [unit.base, back.base]
        for slot, _, taker in unit.targets[0]:
            slots.append(slot)
            if taker.kind is UnitKind.SWITCH:
                slots += [slot for slot, _, _ in taker.targets[1]]
        found: Any = None
        for it in frame.iterations:
            for slot in slots:
                found = it.slots[slot] or found
        if self._unit is not None and self._it is not None and self._it.frame is frame:
            for slot in slots:
                if self._unit.base <= slot < self._unit.base + len(self._inputs):
                    found = self._inputs[slot - self._unit.base] or found
        for parked, value in frame.parked:
            found = value if parked is back else found
        return found


class _Look:
    """What one look finds: what runs, and what waits for what.

    Args:
        machine: The machine.
        waits: Blocking operations on their way.
        unit, it: What runs next.
    """

    def __init__(
        self, machine: Machine, waits: list[Wait], unit: Unit | None, it: Iteration | None
    ) -> None:
        self._graph = machine.graph
        self._waits = waits
        self._blocked = {(u, one) for u, one, _ in waits}
        self._ready = list(machine.ready)
        if unit is not None and it is not None:
            self._ready.insert(0, (unit, it))
        self._at_work = {*self._ready}

    def iteration(self, it: Iteration, weights: list[int]) -> IterationAt:
        """Returns an iteration, by how many operations are where."""
        counts = {"waiting": 0, "running": 0, "done": 0, "dead": 0}
        for unit, weight in zip(it.frame.static.units, weights, strict=True):
            if weight:
                counts[self._state(unit, it)] += weight
        return IterationAt(it.number, **counts, is_busy=self.is_busy(it))

    def _state(self, unit: Unit, it: Iteration) -> str:
        if it.pending[unit.at] > 0 or (unit, it) in self._blocked:
            return "waiting"
        if it.dead[unit.at]:
            return "dead"
        return "running" if (unit, it) in self._at_work else "done"

    def is_busy(self, it: Iteration) -> bool:
        """Whether something runs in an iteration, and not only waits for others."""
        blocked = sum(one is it for _, one in self._blocked)
        if it.outstanding > blocked:
            return True
        children = (it.children or {}).values()
        return any(self.is_busy(one) for f in children for one in f.iterations)

    def held(self, frame: Frame) -> tuple[str, str]:
        """The reason why a frame's next iteration waits, in a word and as a sentence."""
        assert frame.parent is not None
        its = list(frame.iterations)
        if frame.parked:
            text = f"parallel_iterations = {frame.static.window} are in flight"
            cause = self._cause(its[0])
            text += f", the oldest waits for {cause}" if cause else ""
            return "window", text + self._follower(its)
        if frame.missing:
            cause = self._blocker(frame.parent)
            text = "values that enter the loop are missing"
            return "entering", text + (f": it waits for {cause}" if cause else "")
        if self.is_busy(its[-1]):
            return "", ""
        cause = next(filter(None, map(self._blocker, reversed(its))), "")
        edge = self._edge(its[-1])
        return ("edge", f"{edge} waits for {cause}") if cause and edge else ("", "")

    def _follower(self, its: list[Iteration]) -> str:
        """The reason why the second oldest iteration waits, where it waits for the oldest."""
        if len(its) < 2 or self.is_busy(its[1]) or self._blocker(its[1]):
            return ""
        edge = self._edge(its[0])
        return f"; iteration {its[1].number} waits for {edge}" if edge else ""

    def _edge(self, it: Iteration) -> str:
        """Returns the first back edge that no value has come along yet."""
        for unit in it.frame.static.units:
            if unit.kind is UnitKind.NEXT_ITERATION and it.pending[unit.at] > 0:
                return f'"{unit.node.inputs[0].label}" -> "{unit.name}"'
        return ""

    def _cause(self, it: Iteration) -> str:
        """The reason why an iteration waits: others, what runs in it, what is to run first."""
        found = self._blocker(it)
        if found:
            return found
        own = {id(one) for one in _below(it)}
        at_work = [u for u, one in self._ready if id(one) in own and _weight(u)]
        units = it.frame.static.units
        waiting = [u for u in units if it.pending[u.at] > 0 and _weight(u)]
        return next((f'"{u.name}"' for u in (*at_work, *waiting)), "")

    def _blocker(self, it: Iteration) -> str:
        """Returns the first operation of an iteration, or of loops in it, that waits for others."""
        own = {id(one) for one in _below(it)}
        return next((text for _, one, text in self._waits if id(one) in own), "")


def _is_handle(value: Value) -> bool:
    return value.spec.dtype is resource


def _below(it: Iteration) -> Iterator[Iteration]:
    """Yields an iteration and those of the loops that run in it."""
    yield it
    for frame in (it.children or {}).values():
        for one in frame.iterations:
            yield from _below(one)


def _is_innermost(frame: Frame) -> bool:
    return not any(it.children for it in frame.iterations)


def _is_dead(view: FrameView) -> bool:
    """Whether only dead values have come into a loop so far: it does not run."""
    first = view.iterations[0]
    is_idle = not (first.number or first.done or first.running)
    return is_idle and any(view.frame.iterations[0].dead)


def _is_users(node: Node) -> bool:
    """Whether a node is an operation that the user made, and not a part of a branch or loop."""
    is_part = node.origins and node.origins[0].type in ("Cond", "Loop")
    return bool(node.blocks) or not is_part


def _weight(unit: Unit) -> int:
    """Returns how many of the user's operations a unit is."""
    return 0 if unit.kind < UnitKind.KERNEL else sum(map(_is_users, unit.body.nodes))


def _back(merge: Node) -> Node:
    """Returns the NextIteration that a loop's Merge takes."""
    return next(v.node for v in merge.inputs if v.node is not None and is_back_edge(v, merge))


__all__ = ["FrameView", "StepPosition", "Wait"]
