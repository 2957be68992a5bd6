"""A step of several processes that was paused while it ran, and is stepped through from there.

Each partition stays where it stands, with its values. The client gives turns: the partition that
is least far in the order of the plan runs one operation. Whoever is behind has what it waits for,
for all others have sent it already; so turns never wait for each other, and after some of them
all stand at one place of the order. When the pause ends all go on by themselves, as code.

While there are breakpoints that were set after the step had begun, it goes on by turns in any case:
the client asks at each place (`flowscope.cluster.debug.paused_breakpoints`). What is in loops
without any runs as code.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.cluster.debug.held_partitions import (
    STANDS_S,
    HeldParts,
    LoopStand,
    PartitionPosition,
    State,
    values_of,
)
from flowscope.cluster.debug.partition_order import PartOrder, Position, least
from flowscope.cluster.debug.paused_breakpoints import JointTests, PlanNumbers
from flowscope.cluster.shipping.remote_values import called_there
from flowscope.errors import OpError
from flowscope.graph.current_step import steps_of_threads
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.analysis.locations import Moved, StepLocation
from flowscope.plan.ir.breakpoints import BreakTests
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.partition.partitions import Partition
from flowscope.runtime.session.remote import RemoteValue
from flowscope.runtime.step.split import SplitStep
from flowscope.runtime.step.step import Step
from flowscope.runtime.waits.predicates import END_OF_STEP
from flowscope.runtime.waits.waiting import LOOK_S, join

if TYPE_CHECKING:
    from flowscope.cluster.debug.pausing import PauseCoordinator

#: While one runs, tasks are asked again so often.
_LOOK_S = 0.001
#: Who waits longer than that for a value that was sent lets another one have the turn.
_PATIENCE_S = 0.05


class JointPlan:
    """What is known of a plan's partitions before a step is paused.

    Args:
        program: The plan's program.
        task: The client's task.
        partitions: Its partitions, each with its task and its number there.

    Attributes:
        task: As above.
        places: Of each partition its task and its number there.
    """

    def __init__(
        self, program: Program, task: str, partitions: Sequence[tuple[str, int, Partition]]
    ) -> None:
        self.task = task
        self.places = [(task, number) for task, number, _ in partitions]
        self._program = program
        self._programs = [p.program for *_, p in partitions]

    @cached_property
    def orders(self) -> list[PartOrder]:
        """Where the nodes of each partition are in the order of the plan."""
        return [PartOrder(self._program, p) for p in self._programs]

    @cached_property
    def numbers(self) -> PlanNumbers:
        """The nodes of the plan by the numbers of places."""
        return PlanNumbers(self._program, self.orders[0].numbers)

    @cached_property
    def values(self) -> list[list[Value]]:
        """The values of each partition by their numbers."""
        return [values_of(p) for p in self._programs]

    @property
    def own(self) -> list[Program]:
        """The programs of the client's partitions."""
        pairs = zip(self.places, self._programs, strict=True)
        return [p for (task, _), p in pairs if task == self.task]


class PausedClusterStep(Step):
    """Stands for a step of several processes while that is paused, on a thread of its own.

    Args:
        pausing: Asks the tasks.
        split: The client's part of the step.
        plan: Its partitions.
    """

    is_joint = True

    def __init__(self, pausing: PauseCoordinator, split: SplitStep, plan: JointPlan) -> None:
        whole = split.step
        super().__init__(whole.call, whole, whole.gate, whole.host_threads, -1)
        self.number, self.feeds, self.queues = whole.number, whole.feeds, None
        self._pausing = pausing
        self._split = split
        self._plan = plan
        self._task = plan.task
        self._own = HeldParts(whole.gate, whole, plan.own, lambda: split)
        self._stands: list[PartitionPosition] = []
        self._tests = JointTests(plan.numbers)
        #: The breakpoints for which the latest turns last until a loop has ended; None for others.
        self._passed: BreakTests | None = None
        self._ends = False
        #: Until how few loops are around the latest turns last; None for one operation.
        self._depth: int | None = None
        self._thread = threading.Thread(target=self._work, name="flowscope-joint", daemon=True)

    def start(self) -> None:
        """Begins to wait for all partitions to stand; then the step is held."""
        self._thread.start()

    def keep_turns(self) -> None:
        """Has all partitions go on by turns alone, from now on."""
        self._own.keep_turns(True)
        told = {"kind": "parts.stand", "turns": (), "depth": None, "keeps": True}
        tasks = {task for task, _ in self._plan.places} - {self._task}
        with suppress(OpError):  # the step ends: whoever waits for it is told
            for pending in [self._pausing.start(task, told) for task in tasks]:
                self._pausing.result(pending)

    def _let_go(self) -> None:
        """Has all partitions go on by themselves, if they kept to their turns."""
        if not self.whole.keeps_turns:
            return
        self._own.keep_turns(False)
        told = {"kind": "parts.stand", "turns": (), "depth": None, "keeps": False}
        for task in {task for task, _ in self._plan.places} - {self._task}:
            with suppress(OpError):
                self._pausing.result(self._pausing.start(task, told))

    def end(self) -> None:
        """Ends it: the step is over."""
        self._ends = True
        while self._thread.is_alive():
            self.gate.stop_step(self)
            join(self._thread, LOOK_S)

    # -- its thread -----------------------------------------------------------------------------

    def _work(self) -> None:
        me = self.thread = get_ident()
        steps_of_threads[me] = self
        try:
            turns: Sequence[int] = ()
            while self._settle(turns) and self._holds():
                turns = self._due(is_late=False)
        except Exception as e:  # it was stopped, a worker is lost, a function has raised something
            if not self._ends:
                self._split.end(e)
        finally:
            self._let_go()
            self.has_ended = True
            del steps_of_threads[me]
            self.gate.left(self)
            self._pausing.joint_ended(is_left=self._ends)

    def _holds(self) -> bool:
        """Holds the step where it stands; returns whether a turn is wanted then."""
        gate, stands = self.gate, self._stands
        if all(s.state == "ended" for s in stands):
            self._leave_to_its_end()
            return False
        if not self._is_held_at_breakpoint() and not self._is_at_end():
            gate.hold(0, _Here(self))
        if self._asks:
            return True
        sought = gate.sought
        if sought is not None and sought.is_met is END_OF_STEP.is_met and self._pausing.is_alone:
            self._leave_to_its_end()
            return False
        return gate.state == "stepping"

    def _is_at_end(self) -> bool:
        """Whether all partitions stand behind their last operations, or have ended."""
        positions = [p for p in self._positions if p is not None]
        return all(p == self._plan.orders[0].end for p in positions)

    @property
    def _asks(self) -> bool:
        return self._pausing.asks

    def _is_held_at_breakpoint(self) -> bool:
        """Holds the step once for each breakpoint that it has come to; returns whether for any."""
        found = self._least()
        if not self._asks or not found or self.gate.state == "stopping":
            return False
        first = found[0]
        at = self._plan.orders[first].position(self._stands[first])
        is_held = False
        for _ in self._tests.met(self.call.tests, at, lambda: self.values(first)):
            is_held = True
            self.gate.hold(0, _Here(self, is_breakpoint=True))
        return is_held

    def _leave_to_its_end(self) -> None:
        """Lets all partitions go on by themselves; if it is stepped, it is held at its end."""
        self._ends = True
        for one in self._split.runs:
            if one.step is not None:
                one.step.takes_turns = False
        self.gate.seek_end(self)
        self._pausing.let_go()

    @property
    def whole(self) -> Step:
        """The step that it stands for."""
        return self._split.step

    def _come_to_rest(self, turns: Sequence[int] = ()) -> bool:
        """Waits until all partitions stand; returns whether the pause goes on."""
        while True:
            self._stands = self._asked(turns)
            turns = self._called_back()
            is_held = self.gate.state in ("pausing", "paused", "stepping", "stopping")
            if self._ends or not (is_held or self._asks):
                return False
            is_at_rest = not turns and all(s.state != "runs" for s in self._stands)
            if self.gate.state == "stopping" or is_at_rest:
                return True
            self.gate.wait_until(lambda: self._ends, _LOOK_S)

    def _called_back(self) -> Sequence[int]:
        """Returns the partitions that run out of a loop and are to stand at once, as it seems now.

        Somebody holds the step, or has set another breakpoint.
        """
        passed = self._passed
        if passed is None or (self.gate.state == "open" and self.call.tests is passed):
            return ()
        self._passed = self._depth = None
        return [i for i, s in enumerate(self._stands) if s.state == "runs"]

    def _asked(self, turns: Sequence[int]) -> list[PartitionPosition]:
        """Gives turns; returns where all partitions stand, or that they run still."""
        places = self._plan.places
        keeps = self._asks
        by_task: dict[str, list[int]] = {task: [] for task, _ in places}
        for part in turns:
            by_task[places[part][0]].append(places[part][1])
        pending = {
            task: self._pausing.start(
                task,
                {"kind": "parts.stand", "turns": numbers, "depth": self._depth, "keeps": keeps},
            )
            for task, numbers in by_task.items()
            if task != self._task
        }
        self._own.keep_turns(keeps)
        for number in by_task.get(self._task, ()):
            self._own.turn(number, self._depth)
        told = {task: self._told(task, self._pausing.result(p)[0]) for task, p in pending.items()}
        if self._task in by_task:
            told[self._task] = self._own.stands(STANDS_S)
        return [told[task][number] for task, number in places]

    def _told(self, task: str, answer: dict[str, Any]) -> list[PartitionPosition]:
        found = [
            PartitionPosition(state, node, tuple([LoopStand(*s) for s in loops]))
            for state, node, loops in answer["stands"]
        ]
        if found:
            return found
        state: State = "ended" if answer["is_over"] else "runs"
        return [PartitionPosition(state)] * sum(t == task for t, _ in self._plan.places)

    def _settle(self, turns: Sequence[int]) -> bool:
        """Gives turns until the step may be held; returns whether the pause goes on.

        Args:
            turns: The partitions that come next; none before the first move.
        """
        since = time.monotonic()
        while True:
            for part in turns if self._depth is None else ():
                self._note(part)
            if not self._come_to_rest(turns):
                return False
            if self._is_at_stop() or self.gate.state == "stopping":
                return True
            now = time.monotonic()
            since = now if turns else since
            turns = self._due(is_late=now > since + _PATIENCE_S)

    def _due(self, is_late: bool) -> list[int]:
        """Returns the partitions that come next; none while one of them waits for a value.

        Args:
            is_late: Whether that has lasted long: then the others come next.
        """
        stands, sought = self._stands, self.gate.sought
        self._depth = self._passed = None
        if begins := [i for i, s in enumerate(stands) if s.state == "begins"]:
            return begins
        if sought is not None and sought.depth is not None:  # all go on until they are out of it
            are_there = [i for i, s in enumerate(stands) if s.state in ("held", "waits")]
            if inside := [i for i in are_there if len(stands[i].loops) >= sought.depth]:
                self._depth = sought.depth
                return inside
        if sought is None and self._asks and (inside := self._in_silent_loop()):
            return inside
        return [i for i in self._least(is_late) if stands[i].state == "held"]

    def _in_silent_loop(self) -> list[int]:
        """Returns the partitions in the outermost loop around that has no breakpoint in it.

        They run out of it; () where there is none.
        """
        names = {name for side in self.call.tests.names for name in side}
        found = self._least()
        if not found:
            return []
        around = self._positions[found[0]] or ()
        inner = self._plan.numbers.inner
        for depth, (number, _, _) in enumerate(around[:-1], 1):
            if names.isdisjoint(inner[number]):
                self._depth, self._passed = depth, self.call.tests
                loop = around[:depth]
                return [i for i, p in enumerate(self._positions) if p and _is_inside(p, loop)]
        return []

    def _least(self, is_late: bool = False) -> list[int]:
        """Returns those of the partitions, held or waiting, that are least far."""
        late = [s.state == "waits" and is_late for s in self._stands]
        pairs = zip(self._positions, late, strict=True)
        return least([None if is_left else position for position, is_left in pairs])

    @property
    def _positions(self) -> list[Position | None]:
        """Where the partitions stand that are held or wait; None of others."""
        orders = zip(self._plan.orders, self._stands, strict=True)
        return [o.position(s) if s.state in ("held", "waits") else None for o, s in orders]

    def _is_at_stop(self) -> bool:
        """Whether the step may be held where it stands: not before a Recv, which is no operation.

        All partitions have ended, or an operation comes next that somebody would want to see.
        """
        stands = self._stands
        if any(s.state in ("blocked", "runs", "begins") for s in stands):
            return False
        found = self._least()
        if not found:
            return True
        first = found[0]
        node = self._plan.orders[first].node(stands[first])
        is_recv = node is not None and isinstance(node.op, Recv)
        return stands[first].state == "held" and not is_recv

    def _note(self, part: int) -> None:
        """Tells views of an operation that runs."""
        order, stand = self._plan.orders[part], self._stands[part]
        node = order.node(stand)
        if node is not None and not isinstance(node.op, Send | Recv):
            loops = tuple([(at.node, at.iteration) for at in order.loops(stand)])
            self.gate.moves.append(Moved(node, loops))

    # -- where it stands ------------------------------------------------------------------------

    def stand(self, is_breakpoint: bool = False) -> tuple[Node | None, StepLocation]:
        """Returns the operation that comes next, and where it is; at a breakpoint no transfer."""
        found = self._least()
        if not found:
            return None, StepLocation("compiled", (), None, is_stepped=True)
        order, stand = self._plan.orders[found[0]], self._stands[found[0]]
        node = order.node(stand)
        if is_breakpoint and node is not None and isinstance(node.op, Send):
            node = self._plan.numbers.following[order.position(stand)[-1][0]]
        return node, StepLocation("compiled", order.loops(stand), node, is_stepped=True)

    def values(self, first: int | None = None) -> dict[object, Any]:
        """The live values of all partitions, by their identities.

        Args:
            first: The partition whose values come first, where others have some of them, too.
        """
        found: dict[object, Any] = {}
        places = [*enumerate(self._plan.places)]
        for part, (task, number) in sorted(places, key=lambda p: p[0] == first):
            values = self._plan.values[part]
            for i, is_array in self._alive(task, number):
                identity = values[i].identity
                if task == self._task:
                    found[identity] = self._own.value(number, i)
                elif part == first or identity not in found:
                    found[identity] = _PartValue(self._pausing, task, number, i, is_array)
        return found

    def _alive(self, task: str, number: int) -> Sequence[tuple[int, bool]]:
        if task == self._task:
            return self._own.alive(number)
        with suppress(OpError):  # it has ended there
            header = {"kind": "parts.alive", "part": number}
            return list(self._pausing.result(self._pausing.start(task, header))[0]["values"])
        return ()

    def replace(self, identity: object, array: Any) -> bool:
        """Puts an array into the place of a value, in all partitions that have it."""
        is_there = False
        for part, (task, number) in enumerate(self._plan.places):
            values = self._plan.values[part]
            for i, _ in self._alive(task, number):
                if values[i].identity is not identity:
                    continue
                if task == self._task:
                    is_there |= self._own.replace(number, i, array)
                    continue
                header = {"kind": "parts.replace", "part": number, "number": i}
                answer = self._pausing.result(self._pausing.start(task, header, [array]))[0]
                is_there |= bool(answer["is_there"])
        return is_there


def _is_inside(position: Position, loop: Position) -> bool:
    """Whether a place is in an iteration of a loop, whichever: not at the loop itself."""
    depth = len(loop)
    is_there = position[: depth - 1] == loop[:-1] and len(position) > depth
    return is_there and position[depth - 1][:2] == loop[-1][:2]


class _Here:
    """Where a step of several processes stands: at the least of its partitions' places."""

    is_changed = False

    def __init__(self, step: PausedClusterStep, is_breakpoint: bool = False) -> None:
        self._step = step
        self.is_breakpoint = is_breakpoint
        self.node, self._where = step.stand(is_breakpoint)

    @property
    def is_op(self) -> bool:
        """Whether an operation comes next."""
        return self.node is not None

    @property
    def is_back_edge(self) -> bool:
        """Whether an iteration of a loop has just ended."""
        return self.node is None and bool(self._where.loops)

    def where(self) -> StepLocation:
        """Returns where it is."""
        return self._where

    def sample(self, sample: Any) -> None:
        """Does nothing: a step over processes is traced whole or not at all."""

    def values(self) -> dict[object, Any]:
        """The live values, by their identities."""
        return self._step.values()

    def replace(self, identity: object, array: Any) -> bool:
        """Puts an array into the place of a value; returns whether that is alive."""
        return self._step.replace(identity, array)


class _PartValue(RemoteValue):
    """A value of a partition on another task, as long as the step stands there."""

    def __init__(
        self, pausing: PauseCoordinator, task: str, part: int, number: int, is_array: bool
    ) -> None:
        self.is_array = is_array
        self._pausing = pausing
        self._task = task
        self._facts = {"part": part, "number": number}

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """Calls a function with the value on its task; only the result is transferred."""
        header = {"kind": "parts.apply", **self._facts}
        start = partial(self._pausing.start, self._task, header)

        def ask(header: dict[str, Any]) -> dict[str, Any]:
            return self._pausing.result(self._pausing.start(self._task, header))[0]

        return called_there(function, ask, lambda sent: self._pausing.result(start(sent))[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        header = {"kind": "parts.fetch", **self._facts}
        return np.asarray(
            self._pausing.result(self._pausing.start(self._task, header))[1][0], dtype
        )


__all__ = ["JointPlan", "PausedClusterStep"]
