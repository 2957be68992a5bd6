"""The machine: frames, iterations and dead tokens, without threads, clocks or kernels (C6-C16).

A machine executes one step. `start` gives it the feeds. `next` returns an *invocation* to run - a
unit, the iteration it runs in, its inputs - or None while there is none; `done` tells what came out
of one. Invocations may be done in any order. All else happens in here: primitives move tokens,
iterations begin and end, dead tokens travel past operations that do not run. Where nobody holds,
looks or tells a story, `advance` does the same in one loop, and calls what computes a unit itself.

How a token arrives at a unit: its slot is filled, one token less is to come, and a unit that waits
for no more is ready. Any dead token makes a unit dead, but for a Merge: it is ready with its first
live token, and dead once all are, or the one from an Enter is, for then nothing will come around.

An iteration ends when nothing of it is ready or runs, no loop inside it does, and the one before it
has ended - for the first: when all Enters came. A frame ends with its last iteration; then the
Exits that were dead in that one are told to the iteration around. At most `window` iterations are
on their way; what would begin one more is parked until the oldest ends.

Source: Yu et al. 2018, "Dynamic control flow in large-scale machine learning", and the behaviour of
TensorFlow 1's executor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from flowscope.executor.event_log import Story
from flowscope.executor.frames import Frame, Iteration
from flowscope.executor.static import ExecutorGraph, Unit, UnitKind

#: A unit, the iteration that it runs in, its inputs.
ReadyUnit = tuple[Unit, Iteration, list[Any]]

#: What runs a unit other than a plain one: (host, unit, iteration, inputs) -> outputs, or None if
#: it has begun and will be `done` later.
Special = Callable[[Any, Unit, Iteration, list[Any]], Any]

_KERNEL = UnitKind.KERNEL
#: What is still to come for a Merge that is dead: it takes nothing any more.
_DEAD = -2


class Flag(Protocol):
    """What tells that somebody wants something."""

    @property
    def raised(self) -> bool:
        """Whether somebody does."""


class MachineHost(Protocol):
    """The driver of a machine: it lets it `advance`."""

    @property
    def gate(self) -> Flag:
        """While it is raised, nothing more is run."""

    @property
    def finished(self) -> deque[Any]:
        """Not empty once something that had begun is to be `done`."""

    @property
    def plain(self) -> Sequence[Callable[..., Any] | None]:
        """Per unit what computes its one output of its inputs; None for those that are special."""

    @property
    def special(self) -> Sequence[Special]:
        """Per unit what runs it; called with the host."""


class Machine:
    """Executes one step of a graph.

    Args:
        graph: The units.
        story: Where events are noted; None for nowhere.

    Attributes:
        results: The fetched values, once the step is finished.
        is_finished: Whether nothing is left to run.
        backlog: What is ready, in the order in which it became so.
        dead_fetches: Positions of fetches whose values are dead.
        failed: The unit, iteration and inputs that `advance` raised an error of.
        watch: Called with (unit, iteration, whether they are dead) as a unit that is run or a
            NextIteration gives its tokens; None while nobody looks.
    """

    __slots__ = (
        "backlog", "dead_fetches", "failed", "graph", "is_finished", "results", "root", "story",
        "watch",
    )  # fmt: skip

    def __init__(self, graph: ExecutorGraph, story: Story | None = None) -> None:
        self.graph = graph
        self.story = story
        self.watch: Any = None
        self.failed: ReadyUnit | None = None
        self.results: list[Any] = [None] * len(graph.program.fetches)
        self.dead_fetches: list[int] = []
        self.is_finished = False
        self.root = Frame(graph.root, None)
        self.backlog: deque[tuple[Unit, Iteration]] = deque()

    @property
    def ready(self) -> tuple[tuple[Unit, Iteration], ...]:
        """What is ready and waits for its turn."""
        return tuple(self.backlog)

    # -- events ---------------------------------------------------------------------------------

    def start(self, feeds: tuple[Any, ...]) -> None:
        """Begins the step with the values of the feeds."""
        if self.story is not None:
            self.story.note_start(feeds)
        it = self.root.iterations[0]
        it.outstanding += 1
        for unit in self.graph.sources:
            self.backlog.append((unit, it))
        it.outstanding += len(self.graph.sources)
        for value, (targets, merges, fetched) in zip(feeds, self.graph.feeds, strict=True):
            for slot, at, unit in targets:
                self._arrive(it, slot, at, unit, value)
            for index, unit in merges:
                self._arrive_at_merge(it, unit, index, value)
            for position in fetched:
                self.results[position] = value
        it.outstanding -= 1
        if not it.outstanding:
            self._retire(it)

    def next(self) -> ReadyUnit | None:
        """The next unit to run; None if none is ready.

        Nothing may be ready while invocations are on their way; else the step is finished.
        """
        ready = self.backlog
        while ready:
            unit, it = ready.popleft()
            move = self._primitives[unit.move]
            if move is not None:
                move(self, unit, it)
            elif it.dead[unit.at]:
                self._give_dead(unit, it)
            else:
                slots = it.slots
                base, end = unit.base, unit.end
                inputs = slots[base:end]
                slots[base:end] = unit.blank
                if self.story is not None:
                    self.story.note_run(unit, it)
                return unit, it, inputs
            it.outstanding -= 1
            if not it.outstanding:
                self._retire(it)
        if self.story is not None:
            self.story.note_idle()
        return None

    def advance(self, host: MachineHost) -> None:
        """Runs what is ready, until nothing is or somebody wants something of the host.

        The order is that of `next` and `done`. If a unit fails, `failed` tells which.
        """
        ready, primitives = self.backlog, self._primitives
        popleft, append = ready.popleft, ready.append
        gate, finished, plain, special = host.gate, host.finished, host.plain, host.special
        while ready and not finished and not gate.raised:
            unit, it = popleft()
            move = primitives[unit.move]
            born = 0
            if move is not None:
                move(self, unit, it)
            elif it.dead[unit.at]:
                self._give_dead(unit, it)
            else:
                slots, base, end = it.slots, unit.base, unit.end
                inputs = slots[base:end]
                slots[base:end] = unit.blank
                index = unit.index
                function = plain[index]
                try:
                    if function is None:
                        outputs = special[index](host, unit, it, inputs)
                    else:
                        value = function(*inputs)
                except Exception:  # goes on up; who catches it asks where it was
                    self.failed = unit, it, inputs
                    raise
                if function is None:
                    if outputs is None:
                        continue  # it has begun, and will be `done`
                    self.give(unit, it, outputs)
                else:
                    pending = it.pending
                    for slot, at, target in unit.targets[0]:
                        slots[slot] = value
                        pending[at] = left = pending[at] - 1
                        if not left:
                            append((target, it))
                            born += 1
                    if unit.has_more:
                        self._give_more(unit, it, (value,))
            if born != 1:
                it.outstanding += born - 1
                if not it.outstanding:
                    self._retire(it)

    def done(self, unit: Unit, it: Iteration, outputs: Any) -> None:
        """Takes the outputs of an invocation: a sequence with one value per output."""
        if self.story is not None:
            self.story.note_done(unit, it, outputs)
        if self.watch is not None:
            self.watch(unit, it, False)
        self.give(unit, it, outputs)
        it.outstanding -= 1
        if not it.outstanding:
            self._retire(it)

    def move(self, unit: Unit, it: Iteration) -> None:
        """Does what a primitive does, or hands on that a unit is dead."""
        move = self._primitives[unit.move]
        if move is not None:
            move(self, unit, it)
        else:
            self._give_dead(unit, it)

    def release(self, it: Iteration) -> None:
        """Notes that one thing less is to be done in an iteration."""
        it.outstanding -= 1
        if not it.outstanding:
            self._retire(it)

    # -- tokens ---------------------------------------------------------------------------------

    def give(self, unit: Unit, it: Iteration, outputs: Any) -> None:
        """Sends live tokens to all that take a unit's outputs, in an iteration."""
        ready = self.backlog
        pending, slots = it.pending, it.slots
        count = 0
        for value, targets in zip(outputs, unit.targets, strict=True):
            for slot, at, target in targets:
                slots[slot] = value
                pending[at] = left = pending[at] - 1
                if not left:
                    ready.append((target, it))
                    count += 1
        it.outstanding += count
        if unit.has_more:
            self._give_more(unit, it, outputs)

    def _give_more(self, unit: Unit, it: Iteration, outputs: Any) -> None:
        """Sends live tokens to Merges, fetches, and those that wait without a value."""
        for value, merges in zip(outputs, unit.merges, strict=True):
            for index, target in merges:
                self._arrive_at_merge(it, target, index, value)
        for output, position in unit.fetched:
            self.results[position] = outputs[output]
        if unit.controls:
            self._control(unit, it, False)

    def _give_one(self, unit: Unit, it: Iteration, index: int, value: Any) -> None:
        """Sends one live output."""
        ready = self.backlog
        pending, slots = it.pending, it.slots
        for slot, at, target in unit.targets[index]:
            slots[slot] = value
            pending[at] = left = pending[at] - 1
            if not left:
                ready.append((target, it))
                it.outstanding += 1
        if unit.has_more:
            for position, target in unit.merges[index]:
                self._arrive_at_merge(it, target, position, value)
            for output, place in unit.fetched:
                if output == index:
                    self.results[place] = value

    def _give_dead(self, unit: Unit, it: Iteration) -> None:
        """Sends dead tokens to all that take anything of a unit."""
        if self.story is not None:
            self.story.note_dead(unit, it)
        if self.watch is not None and unit.kind >= _KERNEL:
            self.watch(unit, it, True)
        for base in range(unit.base, unit.end):
            it.slots[base] = None
        for index in range(len(unit.targets)):
            self._give_one_dead(unit, it, index)
        if unit.controls:
            self._control(unit, it, True)

    def _give_one_dead(self, unit: Unit, it: Iteration, index: int) -> None:
        for _, at, target in unit.targets[index]:
            kind = target.kind
            if kind is UnitKind.EXIT or kind is UnitKind.NEXT_ITERATION:
                self._stop_here(target, it)
                continue
            it.dead[at] += 1
            it.pending[at] = left = it.pending[at] - 1
            if not left:
                self.backlog.append((target, it))
                it.outstanding += 1
        if unit.has_more:
            for _, target in unit.merges[index]:
                self._arrive_dead_at_merge(it, target, unit)
            self.dead_fetches += [place for output, place in unit.fetched if output == index]

    def _control(self, unit: Unit, it: Iteration, is_dead: bool) -> None:
        """Tells those that wait for a unit without a value."""
        for target in unit.controls:
            at, kind = target.at, target.kind
            if kind is UnitKind.MERGE:
                it.pending[at] = left = it.pending[at] - 2
                if left == 1 and it.dead[at] >= target.count:
                    it.pending[at] = left = _DEAD
                if not left or left == _DEAD:
                    self.backlog.append((target, it))
                    it.outstanding += 1
                continue
            if is_dead and kind is not UnitKind.CONTROL_TRIGGER:
                if kind is UnitKind.EXIT or kind is UnitKind.NEXT_ITERATION:
                    self._stop_here(target, it)
                    continue
                it.dead[at] += 1
            it.pending[at] = left = it.pending[at] - 1
            if not left:
                self.backlog.append((target, it))
                it.outstanding += 1

    def _stop_here(self, unit: Unit, it: Iteration) -> None:
        """Notes that an Exit or a NextIteration is dead: it does not run, so a loop can end."""
        exits = it.frame.dead_exits
        if unit.kind is UnitKind.EXIT and it.next is None and unit not in exits:
            exits.append(unit)

    def _arrive(self, it: Iteration, slot: int, at: int, unit: Unit, value: Any) -> None:
        it.slots[slot] = value
        it.pending[at] = left = it.pending[at] - 1
        if not left:
            self.backlog.append((unit, it))
            it.outstanding += 1

    def _arrive_at_merge(self, it: Iteration, unit: Unit, index: Any, value: Any) -> None:
        at = unit.at
        left = it.pending[at]
        if not left & 1:
            return  # a live one has come already
        it.pending[at] = left = left - 1
        it.slots[unit.base] = value
        it.slots[unit.base + 1] = index
        if not left:
            self.backlog.append((unit, it))
            it.outstanding += 1

    def _arrive_dead_at_merge(self, it: Iteration, unit: Unit, source: Unit) -> None:
        at = unit.at
        it.dead[at] += unit.count if source.kind is UnitKind.ENTER else 1
        if it.pending[at] == 1 and it.dead[at] >= unit.count:
            it.pending[at] = _DEAD
            self.backlog.append((unit, it))
            it.outstanding += 1

    # -- primitives -----------------------------------------------------------------------------

    def _switch(self, unit: Unit, it: Iteration) -> None:
        if it.dead[unit.at]:
            self._give_dead(unit, it)
            return
        slots, base = it.slots, unit.base
        value, taken = slots[base], 1 if slots[base + 1] else 0
        slots[base] = slots[base + 1] = None
        self._give_one(unit, it, taken, value)
        stops = unit.stops[1 - taken]
        if stops is None:
            self._give_one_dead(unit, it, 1 - taken)
        elif it.next is None:
            exits = it.frame.dead_exits
            exits += [exit for exit in stops if exit not in exits]
        if unit.controls:
            self._control(unit, it, False)

    def _merge(self, unit: Unit, it: Iteration) -> None:
        if it.pending[unit.at]:
            self._give_dead(unit, it)
            return
        slots, base = it.slots, unit.base
        outputs = slots[base : base + 2]
        slots[base : base + 2] = unit.blank
        self.give(unit, it, outputs[: len(unit.targets)])

    def _enter(self, unit: Unit, it: Iteration) -> None:
        static = unit.child
        assert static is not None
        if it.children is None:
            it.children = {}
        frame = it.children.get(static)
        if frame is None:
            frame = it.children[static] = Frame(static, it)
        is_dead = bool(it.dead[unit.at])
        value = it.slots[unit.base]
        it.slots[unit.base] = None
        if unit.is_constant:
            frame.constants.append((unit, value, is_dead))
            for one in frame.iterations:
                self._deliver(unit, one, value, is_dead)
        else:
            self._deliver(unit, frame.iterations[0], value, is_dead)
        frame.missing -= 1
        if not frame.missing and not frame.iterations[0].outstanding:
            self._retire(frame.iterations[0])

    def _deliver(self, unit: Unit, it: Iteration, value: Any, is_dead: bool) -> None:
        """Sends what an Enter or a NextIteration has, live or dead, to an iteration."""
        if is_dead:
            self._give_one_dead(unit, it, 0)
            self._control(unit, it, True)
        else:
            self.give(unit, it, (value,))

    def _exit(self, unit: Unit, it: Iteration) -> None:
        value = it.slots[unit.base]
        it.slots[unit.base] = None
        parent = it.frame.parent
        assert parent is not None
        self.give(unit, parent, (value,))

    def _next_iteration(self, unit: Unit, it: Iteration) -> None:
        value = it.slots[unit.base]
        it.slots[unit.base] = None
        if self.watch is not None:
            self.watch(unit, it, False)
        after = it.next
        if after is None:
            frame = it.frame
            if len(frame.iterations) >= frame.static.window:
                frame.parked.append((unit, value))
                return
            after = self._begin(frame, it)
        self.give(unit, after, (value,))

    def _loop_cond(self, unit: Unit, it: Iteration) -> None:
        if it.dead[unit.at]:
            self._give_dead(unit, it)
            return
        value = it.slots[unit.base]
        it.slots[unit.base] = None
        self.give(unit, it, (value,))

    def _control_trigger(self, unit: Unit, it: Iteration) -> None:
        self.give(unit, it, ())

    _primitives = (
        _switch, _merge, _enter, _exit, _next_iteration, _loop_cond, _control_trigger, None, None,
    )  # fmt: skip

    # -- frames and iterations ------------------------------------------------------------------

    def _begin(self, frame: Frame, newest: Iteration) -> Iteration:
        """Begins the iteration of a frame after its newest one."""
        it = newest.next = Iteration(frame, frame.started)
        frame.iterations.append(it)
        frame.started += 1
        frame.dead_exits.clear()
        for unit, value, is_dead in frame.constants:
            self._deliver(unit, it, value, is_dead)
        return it

    def _retire(self, it: Iteration) -> None:
        """Ends iterations of a frame in which nothing is left to do, and what waits for that."""
        frame = it.frame
        iterations = frame.iterations
        while iterations:
            oldest = iterations[0]
            if oldest.outstanding or oldest.children or frame.missing:
                return
            newest = iterations[-1]
            iterations.popleft()
            if frame.parked:
                after = self._begin(frame, newest)
                parked, frame.parked = frame.parked, []
                for unit, value in parked:
                    self.give(unit, after, (value,))
        self._end(frame)

    def _end(self, frame: Frame) -> None:
        """Ends a frame: tells the iteration around which Exits were dead."""
        parent = frame.parent
        if parent is None:
            self.is_finished = True
            return
        assert parent.children is not None
        del parent.children[frame.static]
        for unit in frame.dead_exits:
            self._give_one_dead(unit, parent, 0)
            self._control(unit, parent, True)
        if not parent.outstanding:
            self._retire(parent)

    # -- looking --------------------------------------------------------------------------------

    def validate(self) -> None:
        """Checks all invariants.

        Raises: InternalError naming what does not hold.
        """
        from flowscope.executor.validate import check

        check(self)


__all__ = ["Machine", "MachineHost", "ReadyUnit", "Special"]
