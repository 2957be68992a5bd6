"""What can be seen of a machine: frames, iterations on their way, and where a step is.

`frames(machine)` may be called between any two events, on the thread that runs the machine (the
gate holds it there). It returns one `FrameView` per loop that is running, the outer ones first:

    FrameView(id, name, loop, parent, parent_iteration, window, started, iterations, held, waits)
    IterationView(number, waiting, ready, done, dead)

`Machine.watch`, while it is set, is called with (unit, iteration, outputs) for each operation that
gave its tokens. `Position` is what a step hands to the gate: it tells where the step is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flowscope.executor.frames import Frame, Iteration
from flowscope.executor.invariants import frames_of
from flowscope.executor.machine import Machine
from flowscope.executor.static import Kind, Unit
from flowscope.graph.operation import Operation
from flowscope.plan.program import Node
from flowscope.plan.stops import IterationAt, LoopAt, Moved, Where


@dataclass(frozen=True)
class IterationView:
    """One iteration on its way, by how many operations are where.

    Attributes:
        number: From 0.
        waiting: Operations whose tokens have not all come.
        ready: Those that are ready or run.
        done: Those that have run.
        dead: Those that were not to run.
    """

    number: int
    waiting: int
    ready: int
    done: int
    dead: int


@dataclass(frozen=True)
class FrameView:
    """One loop that is running.

    Attributes:
        id: Its tag: the frames around and their iterations; the same in each run.
        name: The loop's name in the lowered program.
        loop: The operation that the loop came from; None for a loop of primitives made by hand.
        node: The node of the loop in the program before it was lowered; None likewise.
        parent: Tag of the frame around, "" for the step.
        parent_iteration: The iteration of that frame which it belongs to.
        window: At most so many iterations are on their way.
        started: How many iterations have begun.
        iterations: Those on their way, the oldest first.
        held: Why the next iteration has not begun: "" (nothing waits for it yet), "window" (as many
            are on their way as may be), "entering" (values that come into the loop are missing).
        waits: The first operation of the oldest iteration that waits for a value; "" for none.
    """

    id: str
    name: str
    loop: Operation | None
    node: Node | None
    parent: str
    parent_iteration: int
    window: int
    started: int
    iterations: tuple[IterationView, ...]
    held: str
    waits: str


def frames(machine: Machine) -> tuple[FrameView, ...]:
    """Returns the loops that are running, the outer ones first."""
    return tuple(_frame(machine, f) for f in frames_of(machine) if f.parent is not None)


def _frame(machine: Machine, frame: Frame) -> FrameView:
    static, parent = frame.static, frame.parent
    assert parent is not None
    held = "window" if frame.parked else "entering" if frame.missing else ""
    return FrameView(
        frame.name,
        static.name,
        static.origins[0] if static.origins else None,
        machine.graph.loops.get(static.name),
        parent.frame.name,
        parent.number,
        static.window,
        frame.started,
        tuple(_iteration(machine, it) for it in frame.iterations),
        held,
        _waits(frame),
    )


def _waits(frame: Frame) -> str:
    for it in list(frame.iterations)[:1]:
        for unit in frame.static.units:
            if unit.kind >= Kind.KERNEL and it.pending[unit.at] > 0:
                return unit.name
    return ""


def _iteration(machine: Machine, it: Iteration) -> IterationView:
    units = it.frame.static.units
    ready = sum(one is it for _, one in machine.ready)
    waiting = sum(1 for left in it.pending if left > 0)
    dead = sum(1 for u in units if it.pending[u.at] <= 0 and it.dead[u.at])
    at_work = max(ready, it.outstanding)
    return IterationView(
        it.number, waiting, at_work, max(0, len(units) - waiting - at_work - dead), dead
    )


class Position:
    """Where a step is: between two invocations."""

    __slots__ = ("_it", "_last", "_unit", "machine")
    is_op = True

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._unit: Unit | None = None
        self._it: Iteration | None = None
        self._last: Iteration | None = None

    def at(self, unit: Unit | None, it: Iteration | None) -> None:
        """Notes what runs next; None while the step waits."""
        self._last = self._it
        self._unit = unit
        self._it = it

    @property
    def is_back_edge(self) -> bool:
        """Whether what runs next belongs to a later iteration than what ran before."""
        last, it = self._last, self._it
        if last is None or it is None or last.frame is not it.frame:
            return False
        return it.number > last.number

    def where(self) -> Where:
        """Returns where the step is."""
        loops = tuple(
            LoopAt(node, it.number, None, _iteration(self.machine, it).done, ())
            for node, it in self._loops()
        )
        node = None if self._unit is None else self._unit.node
        return Where("tokens", loops, node, _running(self.machine))

    def moved(self) -> Moved:
        """Returns what is told of the operation that runs next, once it has run."""
        assert self._unit is not None
        return Moved(self._unit.node, tuple((node, it.number) for node, it in self._loops()))

    def _loops(self) -> list[tuple[Node, Iteration]]:
        """Returns the loops around, from the outermost, without those made by hand."""
        known = self.machine.graph.loops
        found: list[tuple[Node, Iteration]] = []
        it = self._it
        while it is not None and it.frame.parent is not None:
            node = known.get(it.frame.static.name)
            if node is not None:
                found.insert(0, (node, it))
            it = it.frame.parent
        return found


def _running(machine: Machine) -> tuple[tuple[LoopAt, ...], ...]:
    """Returns the running loops, each with those around it; without those made by hand."""
    found: dict[str, tuple[LoopAt, ...]] = {"": ()}
    for view in frames(machine):
        around = found.get(view.parent)
        if around is None or view.node is None:
            continue
        if around:
            around = (*around[:-1], replace(around[-1], iteration=view.parent_iteration))
        found[view.id] = (*around, _loop_at(view))
    return tuple(path for path in found.values() if path)


def _loop_at(view: FrameView) -> LoopAt:
    assert view.node is not None
    window = tuple(IterationAt(i.number, i.waiting, i.ready, i.done, i.dead)
                   for i in view.iterations)  # fmt: skip
    held = ""
    if view.held == "window":
        held = f"parallel_iterations = {view.window} are in flight"
        held += f', the oldest waits before "{view.waits}"' if view.waits else ""
    elif view.held == "entering":
        held = "values that enter the loop are missing"
    newest = max(0, view.started - 1)
    done = window[-1].done if window else 0
    return LoopAt(view.node, newest, None, done, (), window, held)


__all__ = ["FrameView", "IterationView", "Position", "frames"]
