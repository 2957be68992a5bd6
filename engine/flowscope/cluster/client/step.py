"""Steps over several processes, as their client runs them.

Each task gets one message and gives one answer; the client's own part runs on the caller's thread.
The first failure ends the step everywhere; its cause is the error that the user sees.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.cluster.client.confirming import Confirming
from flowscope.cluster.client.unanswered import Unanswered
from flowscope.cluster.debug.paused_step import JointPlan
from flowscope.cluster.debug.pausing import PauseCoordinator
from flowscope.cluster.membership.devices import task_of
from flowscope.cluster.shipping import failures, plans
from flowscope.cluster.shipping.plans import (
    PlanPeer,
    Shipment,
    Takers,
    TaskPart,
    keys_of,
    restarted,
    shared_groups,
    stripped,
)
from flowscope.cluster.transport.channel import KeyTable, ProcessChannel, StepId
from flowscope.cluster.transport.encoding.messages import packed
from flowscope.cluster.transport.encoding.values import Data
from flowscope.cluster.transport.peers import Way
from flowscope.cluster.transport.runs import Answers, PendingRun
from flowscope.cluster.watch.state_book import Use, keys_of as keys_of_state
from flowscope.cluster.watch.waits import WaitSnapshot, explained, joined, wait_of
from flowscope.cluster.worker.sessions import as_bytes
from flowscope.errors import DeadlineExceededError, UnavailableError
from flowscope.graph.current_step import current_step
from flowscope.graph.graph import Graph
from flowscope.plan.executables.back_ends import Function
from flowscope.plan.ir.collector import paused_collector
from flowscope.plan.ir.memories import host_of
from flowscope.plan.partition.compiled_partitions import (
    CompiledPartition,
    compile_apart,
    reconcile_back_ends,
    takes_turns,
)
from flowscope.plan.partition.partitions import Partition
from flowscope.plan.passes.regions import handles_of, whole_region
from flowscope.plan.plan import Plan
from flowscope.runtime.state.shared_updates import SharedUpdates
from flowscope.runtime.step.split import DerivedError, SplitStep
from flowscope.runtime.trace.part_trace import ARRAYS, PartPlan, PartRecorder, PartTrace, unpacked
from flowscope.runtime.waits.gate import Gate
from flowscope.runtime.waits.rendezvous import Pending, Rendezvous, Waiter
from flowscope.runtime.waits.waiting import acquire, check_owner, wait_for

if TYPE_CHECKING:
    from flowscope.cluster.client.session import ClusterSession

#: So long a task may take to end a step that has failed elsewhere.
_ENDS_S = 2.0
#: So long it may take to come to rest, where others wait for that.
_RESTS_S = 1.0
#: So long tasks are asked what they wait for, before a step that ran out of time is ended.
_ASK_S = 0.3


class ClusterFunction:
    """Runs a plan on several tasks; same signature as generated code.

    Args:
        session: The session's part in the cluster.
        graph: The session's graph.
        plan: The plan.
        resources: What its handles stand for, in their order.
        is_handed_out: Whether its fetches go to the user.

    Attributes:
        tasks: The other tasks that have partitions of it.
        others: What these run.
        ships: How often it was sent to the tasks.
        plan, number: The plan, and its number in the session.
        table: The keys by which its partitions meet.
    """

    @paused_collector()
    def __init__(
        self,
        session: ClusterSession,
        graph: Graph,
        plan: Plan,
        resources: Sequence[Any],
        is_handed_out: bool,
    ) -> None:
        self.session = session
        self.ships = 0
        self._endpoint = session.cluster.endpoint
        self.plan = plan
        self.number = next(session.plan_numbers)
        partitions = reconcile_back_ends(plan.cut(host_of))
        by_task: dict[str, list[Partition]] = {}
        for one in partitions:
            by_task.setdefault(task_of(one.device) or session.task, []).append(one)
        own = by_task.pop(session.task, [])
        self.others = [TaskPart(t, found) for t, found in by_task.items()]
        self.tasks = frozenset(by_task)
        self._takers = Takers(by_task)
        self._keys = keys_of(partitions)
        self._windows = plans.windows_of(partitions)
        self.table = KeyTable(self._keys, self._process_of, self._windows)
        #: The update groups of several processes, by the tasks that write for them.
        self.groups = {
            task: names
            for task, found in [*by_task.items(), (session.task, own)]
            if (names := shared_groups(n for p in found for n in p.program.walk()))
        }
        #: The other tasks that do, and which life of them has the plan.
        self.agreeing = frozenset(self.groups) - {session.task}
        self.incarnations: dict[str, int] = {}
        #: Whether others than this session may want the variables of the groups.
        self.shares_state = any(getattr(h.op, "container", "") for h in plan.handles)
        self._parts = compile_apart(own, plan.handles, plan.compile_part, is_handed_out)
        self._is_handed_out = is_handed_out
        #: The partitions of this process, and what traces them.
        self._own = list(zip(own, self._parts, strict=True))
        self._part_plans: list[PartPlan] = []
        self._restarted = restarted(graph, handles_of(plan.program))
        #: Whether a step that was paused while it runs can be stepped through.
        self.takes_turns = takes_turns(partitions)
        found = [(t.task, i, p) for t in self.others for i, p in enumerate(t.partitions)]
        found += [(session.task, i, p) for i, p in enumerate(own)]
        self.joint_plan = JointPlan(plan.program, session.task, found)
        self._shipping = threading.Lock()
        self._is_shipped = False

    def _process_of(self, device: str) -> str:
        task = task_of(device)
        return self._endpoint.name if task == self.session.task else task

    def __call__(
        self, gate: Gate, run: Any, feeds: tuple[Any, ...], resources: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Runs one step; see `flowscope.plan.codegen.function` for the arguments."""
        if not self._is_shipped:
            self._ship()
        step = ClusterStep(self, gate, run)
        return step.run(self.others, self._parts, feeds, resources)

    def traced(self, traces: list[PartTrace]) -> Function:
        """Returns a function that runs one traced step; see `flowscope.runtime.session.remote`."""

        def run(gate: Gate, run: Any, feeds: Any, resources: Any) -> tuple[Any, ...]:
            if not self._is_shipped:
                self._ship()
            clocks = {task: self.session.cluster.watch.clock_of(task) for task in self.tasks}
            step = ClusterStep(self, gate, run, traces, clocks)
            return step.run(self.others, self._parts, feeds, resources)

        return run

    def recorder(self, number: int) -> PartRecorder:
        """Returns the recorder that traces a partition of this process in one step."""
        if not self._part_plans:
            self._part_plans = [self._part_plan(*pair) for pair in self._own]
        return PartRecorder(self._own[number][0].device, self._part_plans[number])

    def _part_plan(self, one: Partition, part: CompiledPartition) -> PartPlan:
        region = whole_region(one.program, self._is_handed_out)
        make = partial(self.plan.compile_part, one.back_end, region)
        return PartPlan(one.back_end, part.executable, make)

    # -- shipping -------------------------------------------------------------------------------

    def _ship(self) -> None:
        """Sends every task its part; they have made the code when this returns."""
        acquire(self._shipping, "for another thread that sends the plan")
        try:
            if not self._is_shipped:
                self._send()
                self.ships += 1
                self._is_shipped = True
                weakref.finalize(self, self.session.forget_plan, self.tasks, self.number)
        finally:
            self._shipping.release()

    def ship_again(self) -> None:
        """Has the plan be sent again before its next step: a task that had it was lost."""
        self._is_shipped = False

    def _send(self) -> None:
        """Sends all parts, and then waits until all of them are code."""
        ways = [self._way(one.task) for one in self.others]
        pending: dict[PendingRun, str] = {}
        uses: dict[PendingRun, Use] = {}
        try:
            for error in self._endpoint.connect_all(ways).values():
                raise error
            self._endpoint.prepare_runs([one.task for one in self.others])
            for one in self.others:
                use = self._use(one)
                run = self._sent(one, use)
                pending[run], uses[run] = one.task, use
                check_owner()
            answers = Answers(pending)
            while pending:
                done = answers.next()
                if done is None:
                    continue
                answer, _ = done.answer()
                del pending[done]
                if "error" in answer:
                    raise failures.of_answer(answer, self.plan.program.walk())
                uses[done].arrived(answer)
                self.shares_state |= answer.get("shares_values", False)
        except UnavailableError:
            cut = [task for run, task in pending.items() if run.is_cut]
            self.session.cluster.note_losses({w.peer: w.incarnation for w in ways}, cut)
            raise
        except DeadlineExceededError as e:
            late = ", ".join(pending.values())
            if not late:
                raise
            raise DeadlineExceededError(f"{e.message}; the plan was on its way to {late}") from None
        finally:
            for run in pending:
                run.abandon()

    def _way(self, name: str) -> Way:
        cluster = self.session.cluster
        way, instead = cluster.ways(name)
        return Way(name, way, cluster.task(name).incarnation, instead)

    def _use(self, one: TaskPart) -> Use:
        """Notes what a task's partitions use there."""
        keys = keys_of_state(n for p in one.partitions for n in p.program.walk())
        session = self.session
        return session.cluster.state_book.use(session.number, one.task, keys)

    def _sent(self, one: TaskPart, use: Use) -> PendingRun:
        session = self.session
        session.used.add(one.task)
        self.incarnations[one.task] = session.cluster.task(one.task).incarnation
        met = [self._way(name) for name in sorted(self._met_by(one.task))]
        shipment = Shipment(
            tuple([stripped(p) for p in one.partitions]),
            self._keys,
            tuple([PlanPeer(w.peer, w.incarnation, w.address, w.instead) for w in met]),
            ((session.task, self._endpoint.name),),
            self._windows,
            tuple([t.name for t in self.plan.request.feeds]),
            self._restarted,
        )
        header = {"kind": "plan.ship", "session": session.number, "plan": self.number}
        header |= use.header() | self._takers.header(one.task)
        data = shipment.dumps(session.asks(one.task))
        return self._endpoint.start_run(one.task, header, [as_bytes(data)])

    def _met_by(self, task: str) -> set[str]:
        """Returns the other workers that a task sends to or receives from."""
        found: set[str] = set()
        for route in self.table.routes.values():
            if task in (route.sender, route.receiver):
                found |= {route.sender, route.receiver}
        return (found | self._takers.met_by(task)) & self.tasks - {task}


class ClusterStep:
    """One step over several tasks, from the client's side.

    Args:
        function: What is run.
        gate: The session's gate.
        run: The run, for random operations.
        traces: Where what all partitions did is put; None where nobody wants that.
        clocks: How far the tasks' clocks are ahead then, and the error bounds, in seconds.

    Attributes:
        tasks: The other tasks that take part.
    """

    def __init__(
        self,
        function: ClusterFunction,
        gate: Gate,
        run: Any,
        traces: list[PartTrace] | None = None,
        clocks: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self._traces, self._clocks = traces, clocks or {}
        session = function.session
        self.tasks = function.tasks
        self._function, self._others = function, function.others
        self._session = session
        self._endpoint = session.cluster.endpoint
        self._gate, self._run = gate, run
        self._id = StepId(session.cluster.uid, next(session.cluster.step_numbers))
        # What meets nobody needs nothing of the transport.
        self._is_alone = not function.table.routes
        channel: Rendezvous = (
            Rendezvous() if self._is_alone else self._endpoint.open_step(self._id, function.table)
        )
        self._step = step = current_step()
        #: Tasks whose answers nobody waits for.
        self._lost: set[str] = set()
        takes_turns = function.takes_turns and traces is None
        self._split = SplitStep(step, channel, gate, run, self._tell, self._explained, takes_turns)
        #: What it took from queues of tasks.
        self._taken = Confirming(self._endpoint, self._split, self._id)
        #: What is done of it while it is paused.
        self.pausing = PauseCoordinator(session, self._id, self._split, function.joint_plan)
        self._rests: dict[str, dict[str, int]] = {}
        self._has_rested = Waiter()
        #: Who has told first that the step fails there.
        self._failed_at = ""
        self._unanswered = Unanswered(session.cluster)

    def run(
        self,
        others: Sequence[TaskPart],
        parts: Sequence[Any],
        feeds: tuple[Any, ...],
        resources: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """Returns the values of all fetches, or raises the cause of the step's end."""
        split = self._split
        self._session.steps[self._id.number] = self
        self._begin_updates()
        pending: dict[PendingRun, TaskPart] = {}
        fetched: dict[int, Any] = {}
        try:
            self._start(others, feeds, pending)
            recorders = []
            for number, part in enumerate(parts):
                call = part.executable.function
                if self._traces is not None:
                    recorders.append(self._function.recorder(number))
                    call = recorders[-1].function
                taken = tuple([feeds[i] for i in part.takes])
                states = tuple([resources[i] for i in part.handles])
                split.add(part, call, taken, states)
            self.pausing.begin()
            split.begin()
            if isinstance(split.channel, ProcessChannel):
                split.channel.flush()
            self._answers(pending, fetched)
            fetched |= split.finish()
            if self._taken.tasks:
                self._taken.confirm()
            if self._traces is not None:
                self._traces[:0] = [one.taken() for one in recorders]
            self._end_updates(has_failed=False)
        except BaseException:
            if self._taken.tasks:
                self._taken.give_back(self._lost, _ENDS_S)
            self._end_updates(has_failed=True)
            self._unanswered.note(self._function.incarnations)
            raise
        finally:
            self.pausing.end()
            del self._session.steps[self._id.number]
            if not self._is_alone:
                self._endpoint.close_step(self._id)
        return tuple([fetched[i] for i in range(len(fetched))])

    def _start(
        self,
        others: Sequence[TaskPart],
        feeds: tuple[Any, ...],
        pending: dict[PendingRun, TaskPart],
    ) -> None:
        """Sends each task its message."""
        header = {
            "kind": "run",
            "session": self._session.number,
            "plan": self._function.number,
            "client": self._id.client,
            "step": self._id.number,
            "run": list(self._run),
            "is_traced": self._traces is not None,
        }
        outcomes, start = self._session.cluster.outcomes, self._endpoint.start_packed
        #: Messages by the feeds that they have: most tasks get the same bytes.
        made: dict[tuple[int, ...], list[Data]] = {}
        task = ""
        try:
            for one in others:
                task, takes = one.task, one.takes
                news = outcomes.news(task)
                parts = None if news else made.get(takes)
                if parts is None:
                    parts = packed({**header, **news}, [feeds[i] for i in takes])
                    if not news:
                        made[takes] = parts
                pending[start(task, parts)] = one
        except BaseException as e:  # the task may be lost, or the step's owner be ended
            self._unanswered.add(task, e)
            self._split.failed(e)

    # -- its end --------------------------------------------------------------------------------

    def end(self, error: BaseException) -> None:
        """Ends it from outside, with an error."""
        self._split.end(error)

    def lost(self, task: str, error: BaseException) -> None:
        """Ends it because a task is lost or hangs, which is not waited for."""
        self._lost.add(task)
        self._split.end(error)

    def failed_at(self, task: str) -> None:
        """Notes that it fails at a task, whose answer will say why."""
        self._failed_at = self._failed_at or task
        self._split.end(DerivedError(f"the step has failed on {task}"))

    def _explained(self, error: BaseException, ended: Sequence[Pending]) -> str:
        """Says who waited for whom in it, over all processes, where that is why it ends."""
        if not isinstance(error, DeadlineExceededError | UnavailableError):
            return ""
        begin, losses = time.monotonic(), self._session.cluster.losses
        lost = losses.explained(error, self._function.incarnations, self._others)
        waits = explained(lambda: self._look(ended, begin), Waiter().sleep)
        return "; ".join(filter(None, [lost, waits]))

    def _look(self, ended: Sequence[Pending], since: float) -> WaitSnapshot:
        """Looks who waits in it, in all processes.

        Args:
            ended: The waits here that the error has ended: they count while nothing has come.
            since: When that was, by the monotonic clock.
        """
        told = self._session.cluster.watch.look(_ASK_S)
        channel = self._split.channel
        more = time.monotonic() - since
        boxes = [(one, channel.mailbox(one.key)) for one in ended]
        here = [
            Pending(one.key, one.seconds + more, one.is_producer, box.is_on_way())
            for one, box in boxes
            if box.lacks(one.is_producer)
        ]
        own = f"{self._id.client:x}", self._id.number
        waits = [w for w in told.waits if (w.client, w.step) == own]
        if self._is_alone:  # nobody tells of a channel that is in no other process
            here += channel.pending()
        waits += [wait_of(*own, one) for one in here]
        trips = [w.round_trip_s or 0.0 for w in told.workers if w.task in self.tasks]
        health = {w.task: (w.health, w.reason) for w in told.workers}
        return WaitSnapshot(joined(waits), health, max(trips, default=0.0))

    def _tell(self, error: BaseException) -> None:
        """Has all tasks end it."""
        self._tell_all("step.abort", self.tasks, agrees=bool(self._function.agreeing))
        self._gate.wake()

    def _tell_all(self, kind: str, tasks: Iterable[str], **facts: Any) -> None:
        message = {"kind": kind, "client": self._id.client, "step": self._id.number, **facts}
        for task in tasks:
            try:
                self._endpoint.tell(task, message)
            except UnavailableError:  # it does nothing for the step any more
                continue

    def rested(self, task: str, message: dict[str, Any]) -> None:
        """Notes how far update groups have come at a task, where nobody writes any more."""
        if message["incarnation"] == self._function.incarnations[task]:
            self._rests[task] = message["ended"]
        self._has_rested.wake()

    def _begin_updates(self) -> None:
        function, step = self._function, self._step
        if function.groups:
            step.updates = SharedUpdates(step, function.groups.get(self._session.task, ()))
            outcomes = self._session.cluster.outcomes
            outcomes.begin(self._id.number, function.groups, function.incarnations)

    def _end_updates(self, has_failed: bool) -> None:
        """Settles update groups, in all processes: a step that fails asks how far they have come.

        See `flowscope.runtime.state.shared_updates`.
        """
        updates, self._step.updates = self._step.updates, None
        if updates is None:
            return
        written = None
        function, outcomes = self._function, self._session.cluster.outcomes
        if has_failed:
            end = time.monotonic() + _RESTS_S
            wait_for(
                self._are_at_rest, self._has_rested, what="for tasks to rest", until=end,
                owned_by=None,
            )  # fmt: skip
            reports = {**self._rests, self._session.task: updates.written}
            written = outcomes.decide(self._id.number, reports, function.agreeing)
        else:
            is_urgent = function.shares_state or len(self._session.steps) > 1
            outcomes.commit(self._id.number, function.agreeing, is_urgent)
        updates.close()
        if updates.doubt is not None:
            updates.doubt.conclude(written)

    def _are_at_rest(self) -> bool:
        tasks = self._function.agreeing - self._rests.keys() - self._lost
        return not any(map(self._endpoint.is_connected, tasks))

    def _answers(self, pending: dict[PendingRun, TaskPart], fetched: dict[int, Any]) -> None:
        """Takes the answers of all tasks; ends the step where one has failed."""
        errors: dict[str, BaseException] = {}
        self._take_all(pending, fetched, errors)
        cause = self._unanswered.cause(errors, self._failed_at)
        if cause is not None:
            self._split.blame(cause)

    def _take_all(
        self,
        pending: dict[PendingRun, TaskPart],
        fetched: dict[int, Any],
        errors: dict[str, BaseException],
    ) -> None:
        split, step = self._split, self._step
        answers = Answers(pending)

        def is_over() -> bool:
            return split.is_ending

        while pending:
            try:
                done = answers.next(owned_by=step, is_over=is_over)
            except BaseException as e:
                split.failed(e)  # does nothing where it ends already
                done = None
            if done is None:
                self._wait_for_rest(answers, pending, fetched, errors)
                return
            self._take(done, pending.pop(done), fetched, errors)

    def _wait_for_rest(
        self,
        answers: Answers,
        pending: dict[PendingRun, TaskPart],
        fetched: dict[int, Any],
        errors: dict[str, BaseException],
    ) -> None:
        """Waits until all have ended the step; who does not answer is left alone."""
        end = time.monotonic() + _ENDS_S
        while self._is_awaited(pending):
            # A step that ends is not ended a second time: what is asked for now is for others.
            done = answers.next(
                owned_by=None, until=end, is_over=lambda: not self._is_awaited(pending)
            )
            if done is None:
                break
            self._take(done, pending.pop(done), fetched, errors)
        for run in pending:
            run.abandon()

    def _is_awaited(self, pending: dict[PendingRun, TaskPart]) -> bool:
        """Whether one of those that have not answered may do so."""
        return any(one.task not in self._lost for one in pending.values())

    def _take(
        self,
        run: PendingRun,
        one: TaskPart,
        fetched: dict[int, Any],
        errors: dict[str, BaseException],
    ) -> None:
        try:
            answer, values = run.answer()
        except UnavailableError as e:
            self._unanswered.add(one.task, e, run)
            self._split.failed(e)
            return
        if "error" not in answer:
            fetched.update(zip(one.gives, values, strict=False))
            if "took" in answer:
                self._taken.tasks.add(one.task)
            if self._traces is not None:
                self._take_traces(one.task, answer.get("traces", ()), values[len(one.gives) :])
            return
        self._failed_at = self._failed_at or one.task
        error = failures.of_answer(answer, self._function.plan.program.walk())
        if not answer["derived"]:
            errors[one.task] = error
        self._split.end(DerivedError(f"the step has failed on {one.task}"))

    def _take_traces(self, task: str, told: Sequence[Any], arrays: list[Any]) -> None:
        """Takes what a task has traced, by this process' clock."""
        assert self._traces is not None
        ahead_s, error_s = self._clocks[task]
        for i, one in enumerate(told):
            columns = arrays[i * ARRAYS : (i + 1) * ARRAYS]
            found = unpacked(one, columns, round(ahead_s * 1e9), round(error_s * 1e9))
            self._traces.append(found)


__all__ = ["ClusterFunction", "ClusterStep"]
