"""A session's part in a cluster: what it has on other tasks, and what it asks of them."""

from __future__ import annotations

import itertools
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.cluster.client.global_order import HeldStep, executable, refused
from flowscope.cluster.client.step import ClusterFunction, ClusterStep
from flowscope.cluster.membership.devices import RemoteDevice, task_of
from flowscope.cluster.membership.session_tasks import (
    is_seen,
    listed_tasks,
    tasks_of_session,
    wished_tasks,
)
from flowscope.cluster.shipping import failures
from flowscope.cluster.shipping.plans import restarted
from flowscope.cluster.shipping.sent_objects import Ask
from flowscope.cluster.transport.control import PendingAnswer
from flowscope.cluster.transport.runs import LateAnswerError
from flowscope.cluster.watch.links import unknown
from flowscope.cluster.watch.state_book import key_of
from flowscope.cluster.worker.owners import ClusterOwner, TaskFacts
from flowscope.errors import (
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    OpError,
    UnavailableError,
)
from flowscope.graph.current_step import current_step
from flowscope.ops.state.checkpoint_ops import RestoreV2
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.plan.analysis.device_profile import Link
from flowscope.plan.codegen.variants import Variant
from flowscope.plan.executables.back_ends import BackEnd, CodeTarget, Executable
from flowscope.plan.executables.units import PRIMITIVES
from flowscope.plan.ir.program import Node, Program, devices_of
from flowscope.plan.passes.regions import Region
from flowscope.plan.plan import Plan
from flowscope.runtime.devices.device import Device
from flowscope.runtime.planning.calls import PreparedCall
from flowscope.runtime.waits.predicates import Predicate
from flowscope.runtime.waits.waiting import OWN

if TYPE_CHECKING:
    from flowscope.runtime.session.session import Session

#: What the notebook's own process is in its sessions.
CLIENT_TASK = "/job:client/replica:0/task:0"
#: Control messages are answered within that, or the worker is said not to answer.
CALL_S = 10.0
#: The collection of all variables that a checkpoint has.
_VARIABLES = GraphKeys.GLOBAL_VARIABLES
#: Who only looks waits less.
LOOK_S = 2.0


class ClusterSession:
    """A session's part in its cluster; implements `flowscope.runtime.session.remote.Remote`.

    Args:
        cluster: The cluster.
        session: The session.
    """

    task = CLIENT_TASK

    def __init__(self, cluster: ClusterOwner, session: Session) -> None:
        self.cluster = cluster
        self.number = next(cluster.session_numbers)
        self.devices: Sequence[Device] = [
            RemoteDevice(d.name, task.incarnation, d.memory_limit)
            for task in tasks_of_session(session.config, _members(cluster, session))
            for d in task.devices
            if is_seen(session.config, d.name)
        ]
        self.plan_numbers = itertools.count()
        #: The tasks that have something of this session.
        self.used: set[str] = set()
        #: Those that had something and were lost: it is gone.
        self.lost_tasks: set[str] = set()
        #: Its steps on their way, by their numbers.
        self.steps: dict[int, ClusterStep] = {}
        #: Those that run one operation at a time.
        self.held_steps: set[HeldStep] = set()
        #: The numbers of values on tasks, from what nobody needs any more, by the tasks.
        self._next_number = 0
        self._numbering = threading.Lock()
        self._drops: dict[str, deque[int]] = {}
        self._session = weakref.ref(session)
        session.gate.follower = self._follow
        cluster.sessions.add(self)
        failed = _told_of_step(cluster, lambda s, p, _: s.failed_at(p))
        # It ends the step here, and may wait for who looks at one that is held.
        cluster.handlers["step.failed"] = lambda *told: partial(failed, *told)
        cluster.handlers["step.rest"] = _told_of_step(
            cluster, lambda s, p, message: s.rested(p, message)
        )
        cluster.handlers["step.ask"] = cluster.outcomes.asked

    def back_ends(self, own: Mapping[str, BackEnd]) -> dict[str, BackEnd]:
        """Returns code back ends that run programs of several tasks one operation at a time."""
        return {name: _BackEnd(self, back_end) for name, back_end in own.items()}

    def is_elsewhere(self, device: str) -> bool:
        """Whether a device belongs to another task."""
        return bool(device) and task_of(device) != self.task

    def function(
        self, plan: Plan, resources: Sequence[Any], is_handed_out: bool
    ) -> ClusterFunction:
        """The function of a plan that has partitions on other tasks."""
        session = self._session()
        if session is None:
            raise InternalError("the session of a plan is gone")
        return ClusterFunction(self, session.graph, plan, resources, is_handed_out)

    def links(self) -> Callable[[str, str], Link]:
        """A function from two devices to the link between their hosts, measured on first use."""
        links = self.cluster.watch.links
        links.measure()
        for device in self.devices:
            if isinstance(device, RemoteDevice) and device.name in links.profiles:
                device.is_like(links.profiles[device.name])

        def link_of(one: str, other: str) -> Link:
            ends = [t if (t := task_of(d)) != self.task else "" for d in (one, other)]
            return links.between(*ends) or unknown()

        return link_of

    def state(self, handle: Any, device: str) -> Any:
        """A proxy of a variable or queue of another task."""
        if isinstance(handle, VarHandleOp):
            return RemoteVariable(self, handle, task_of(device))
        return RemoteState(handle.shared_name, task_of(device))

    def facts(self, variables: Sequence[Any]) -> list[tuple[bool, int, int, int | None] | str]:
        """Facts of variables on other tasks; each task is asked once."""
        by_task: dict[str, list[int]] = {}
        for i, one in enumerate(variables):
            by_task.setdefault(one.task, []).append(i)
        told: list[Any] = [None] * len(variables)
        keys = {task: [variables[i].key for i in rows] for task, rows in by_task.items()}
        asked = {task: self._asked(task, found) for task, found in keys.items()}
        until = time.monotonic() + LOOK_S
        for task, rows in by_task.items():
            try:
                found = self._told(task, keys[task], asked[task], until)
            except UnavailableError as e:
                found = [e.message] * len(rows)
            for i, one in zip(rows, found, strict=True):
                told[i] = one if isinstance(one, str) else tuple(one)
        return told

    def told_of(self, task: str, keys: Sequence[tuple[str, str]], timeout_s: float) -> list[Any]:
        """Facts of a task's variables, by their containers and names.

        Raises:
            UnavailableError: if it does not answer.
        """
        return self._told(task, keys, self._asked(task, keys), time.monotonic() + timeout_s)

    def _asked(self, task: str, keys: Sequence[tuple[str, str]]) -> PendingAnswer | OpError:
        """Asks a task what it knows of variables; returns why not if it cannot be asked."""
        self.used.add(task)
        message = self.headed(task, {"kind": "variables", "names": [list(k) for k in keys]})
        try:
            self.cluster.task(task)  # it may hang
            return self.cluster.endpoint.ask(task, message)
        except OpError as e:
            return e

    def _told(
        self,
        task: str,
        keys: Sequence[tuple[str, str]],
        asked: PendingAnswer | OpError,
        until: float,
    ) -> list[Any]:
        """A task's answer to a question about variables."""
        try:
            if isinstance(asked, OpError):
                raise asked
            answer = asked.result(until)
        except (UnavailableError, NotFoundError, InternalError, LateAnswerError) as e:
            names = ", ".join(f'"{name}"' for _, name in keys[:3])
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            what = f"{names}{more} {'is' if len(keys) == 1 else 'are'}"
            raise UnavailableError(f"{what} on {task}, which does not answer: {e.message}") from e
        return list(answer["variables"])

    def lost(self, task: str, error: Exception) -> None:
        """Ends the steps that a task takes part in; `forget_plans` follows."""
        if task in self.used:  # whoever learns of it by a step finds it here
            self.lost_tasks.add(task)
            self.used.discard(task)
        steps: list[ClusterStep | HeldStep] = [*self.steps.values(), *self.held_steps]
        for step in steps:
            if task in step.tasks:
                step.lost(task, UnavailableError(f"{task} is lost: {error}"))
        self._drops.pop(task, None)

    def forget_plans(self, task: str) -> None:
        """Forgets the plans that a lost task had; waits for another thread that plans."""
        session = self._session()
        if session is not None:
            planner = session.planner
            with planner.lock:
                planner.calls.forget(lambda call: _is_on(call, task) is not None)
                for function in [_is_on(call, task) for call in planner.stages]:
                    if function is not None:
                        function.ship_again()

    def tell(self, message: dict[str, Any]) -> None:
        """Sends a message to all tasks that have something of the session."""
        for task in list(self.used):
            try:
                self.cluster.endpoint.tell(task, {**message, "session": self.number})
            except UnavailableError:  # with it went what it had
                self.used.discard(task)

    def headed(self, task: str, header: dict[str, Any]) -> dict[str, Any]:
        """Returns the header of a message to a task: with its session, and news of outcomes."""
        return {**header, "session": self.number, **self.cluster.outcomes.news(task)}

    def ask(
        self, task: str, header: dict[str, Any], values: Sequence[Any] = (), owned_by: Any = OWN
    ) -> list[Any]:
        """Runs something on a task outside of a step; returns the values of its answer.

        Args:
            task: The task.
            header, values: What it is to do.
            owned_by: See `flowscope.runtime.waits.waiting.wait_for`.
        """
        answer, found = self._run(task, header, values, owned_by)
        if "error" in answer:
            raise failures.of_answer(answer, ())
        return list(found)

    def _run(
        self, task: str, header: dict[str, Any], values: Sequence[Any], owned_by: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        """Has a task do something; returns what it answers."""
        header = self.headed(task, header)
        life = self.cluster.task(task).incarnation  # it may hang
        cut: list[str] = []
        try:
            pending = self.cluster.endpoint.start_run(task, header, values)
            try:  # a task that is lost or hangs ends the wait, too
                return pending.wait(owned_by, until=math.inf)
            finally:
                cut = [task] if pending.is_cut else []
                pending.abandon()  # does nothing to one that is done
        except UnavailableError:
            self.cluster.note_losses({task: life}, cut)
            raise

    # -- steps that run one operation at a time -------------------------------------------------

    def ask_in_step(
        self, task: str, header: dict[str, Any], values: Sequence[Any]
    ) -> dict[str, Any]:
        """Runs something on a task within a step, which a stop, a deadline or a signal ends."""
        answer, _ = self._run(task, header, values, OWN)
        if "error" in answer:
            raise failures.of_answer(answer, current_step().plan.program.walk())
        return answer

    def asks(self, task: str) -> Ask:
        """A function that asks a task which modules it lacks, and logs what is sent."""

        def ask(header: dict[str, Any]) -> Mapping[str, Any]:
            answer, _ = self._run(task, header, (), OWN)
            if "error" in answer:
                raise failures.of_answer(answer, ())
            if wanted := answer["wanted"]:
                self.cluster.log({"event": "modules sent", "task": task, "modules": wanted})
            return answer

        return ask

    def take_numbers(self, count: int) -> int:
        """Returns the first of so many numbers for values."""
        with self._numbering:
            first = self._next_number
            self._next_number += count
            return first

    def drops(self, task: str) -> deque[int]:
        """Returns the numbers of values of a task that nobody needs any more."""
        return self._drops.setdefault(task, deque())

    def taken_drops(self, task: str) -> list[int]:
        """Returns them, and forgets them: a message tells the task."""
        found, taken = self.drops(task), []
        with suppress(IndexError):  # other threads take some too
            while True:
                taken.append(found.popleft())
        return taken

    def held_step(self) -> HeldStep:
        """Returns the step of this thread, which runs one operation at a time."""
        step = current_step()
        return next(held for held in list(self.held_steps) if held.step.includes(step))

    def send_drops(self, held: int) -> None:
        """Tells all tasks what nobody needs any more, at the end of a held step of a number."""
        for task in list(self.used):
            message = {"kind": "op.drop", "session": self.number, "held": held}
            with suppress(UnavailableError):  # with it went what it had
                self.cluster.endpoint.tell(task, {**message, "numbers": self.taken_drops(task)})

    def forget_plan(self, tasks: Iterable[str], number: int) -> None:
        """Has tasks drop a plan that the client has dropped."""
        message = {"kind": "plan.forget", "session": self.number, "plan": number}
        for task in set(tasks) & self.used:
            with suppress(UnavailableError):  # with it went the plan
                self.cluster.endpoint.tell(task, message)

    def restarted(self, nodes: Iterable[Node]) -> frozenset[str]:
        """Returns the variables, of some nodes' handles, that a notebook cell has made anew."""
        session = self._session()
        return frozenset() if session is None else restarted(session.graph, nodes)

    def begins_anew(self, plan: Plan) -> bool:
        """Whether a plan restores a checkpoint, or initialises all global variables."""
        if any(isinstance(n.op, RestoreV2) for n in plan.program.nodes):
            return True
        session = self._session()
        variables = [] if session is None else session.graph.get_collection(_VARIABLES)
        found = [getattr(v, "initializer", None) for v in variables]
        return bool(found) and all(op is not None and op.id in plan.operations for op in found)

    def begin_anew(self) -> None:
        """Has queues and locks that were lost with their tasks be made anew when they are used."""
        self.cluster.state_book.begin_anew(self.number)

    def close(self) -> None:
        """Ends the session on all tasks."""
        self.cluster.sessions.discard(self)
        self.tell({"kind": "session.close"})
        self.cluster.state_book.forget(self.number)
        self.used.clear()

    def _follow(self, request: str | Predicate) -> None:
        steps = list(self.steps.values())
        if request == "rearm":
            for step in steps:
                step.pausing.rearm()
        elif isinstance(request, Predicate):
            if not all(step.pausing.can_be_stepped for step in steps):
                raise FailedPreconditionError(
                    "a step runs on several workers that has queues, locks or primitives of "
                    "control flow, or is traced: it can go on or be stopped, and not be stepped "
                    "through"
                )
        elif request in ("resume", "stop"):  # a stop ends a pause
            self.tell({"kind": "gate", "request": "resume"})
        elif request in ("pause", "step"):
            if request == "pause" or any(not step.pausing.is_joined for step in steps):
                self.tell({"kind": "gate", "request": "pause"})
            for step in steps:
                step.pausing.join()


def _is_on(call: PreparedCall, task: str) -> ClusterFunction | None:
    """The function of a call that has partitions on a task; None if it has none there."""
    function = call.elsewhere
    is_there = isinstance(function, ClusterFunction) and task in function.tasks
    return function if is_there else None  # type: ignore[return-value]


def _members(cluster: ClusterOwner, session: Session) -> list[TaskFacts]:
    """Returns the tasks of a cluster as a new session finds them: those that are there, and what is
    known of those that are away and that it asks for, for these may come back.
    """
    known, there = cluster.known_tasks, {task.name for task in cluster.tasks}
    if len(known) == len(there):
        return list(known)
    asked = wished_tasks({op.device for op in session.graph.get_operations() if op.device})
    asked |= set(listed_tasks(session.config.cluster_def))
    return [task for task in known if task.name in there or task.name in asked]


def _told_of_step(
    cluster: ClusterOwner, tell: Callable[[ClusterStep, str, dict[str, Any]], None]
) -> Callable[[str, dict[str, Any]], None]:
    """A handler of the tasks' messages about steps; it finds the step's session."""

    def told(peer: str, message: dict[str, Any]) -> None:
        for session in list(cluster.sessions):
            step = session.steps.get(message["step"])
            if step is not None:
                tell(step, peer, message)

    return told


class RemoteState:
    """Stands here for a queue or a lock of another task.

    Attributes:
        name: Its name.
        task: The task that has it.
    """

    def __init__(self, name: str, task: str) -> None:
        self.name = name
        self.task = task


class RemoteVariable(RemoteState):
    """Stands here for a variable of another task; its value is there."""

    is_lost = False

    def __init__(self, session: ClusterSession, handle: VarHandleOp, task: str) -> None:
        super().__init__(handle.shared_name, task)
        self._remote = session
        self._container = handle.container
        self._state = key_of(handle)
        dims = handle.shape
        self._dims = None if dims is None else list(dims)

    @property
    def key(self) -> tuple[str, str]:
        """Its container and name: what its task knows it by."""
        return self._container, self.name

    @property
    def refusal(self) -> str:
        """Why its value is gone, as an error says it; "" where it may be there."""
        book = self._remote.cluster.state_book
        return book.refusal(self._remote.number, self.task, self._state)

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        return bool(self._told()[0])

    @property
    def writes(self) -> int:
        """How many writes there were."""
        return int(self._told()[1])

    @property
    def nbytes(self) -> int:
        """Bytes of its value; 0 if it has none."""
        return int(self._told()[2])

    @property
    def value(self) -> Any:
        """Its value, brought here; None if it has none."""
        return self.read() if self.is_initialized else None

    def read(self) -> Any:
        """Returns its value, brought here."""
        return self._remote.ask(self.task, {"kind": "variable.read", **self._facts()})[0]

    current = read

    def assign(self, value: Any) -> Any:
        """Sets its value; returns the new one."""
        header = {"kind": "variable.assign", **self._facts()}
        use = self._remote.cluster.state_book.use(self._remote.number, self.task, [self._state])
        self._remote.ask(self.task, header, [value])
        use.arrived({})
        return value

    adopt = assign

    @property
    def rank(self) -> int:
        """Its place in the order in which variables are kept: behind those of this process."""
        return int.from_bytes(f"{self.task};{self._state}".encode()) << 64

    @property
    def state_key(self) -> tuple[str, str]:
        """What its task knows it by, in a kernel's arguments."""
        return self._container, self.name

    def keep(self) -> bool:
        """Has its task keep the value for the held step; returns whether it did not do so yet."""
        return self._remote.held_step().keep(self.task, self.key, self._facts())

    def settle(self) -> None:
        """Lets go of what was kept: what was written stays."""
        self._remote.held_step().settle(self.task, self.key)

    def drop(self) -> None:
        """Takes the value away."""
        self._remote.ask(self.task, {"kind": "variable.drop", **self._facts()})

    def _facts(self) -> dict[str, Any]:
        self._remote.used.add(self.task)
        facts = {"container": self._container, "name": self.name, "dims": self._dims}
        refusal = self.refusal
        return {**facts, "refusal": refusal} if refusal else facts

    def _told(self) -> Any:
        return self._remote.told_of(self.task, [self.key], CALL_S)[0]


class _BackEnd:
    """A code back end for programs of this process; of others it runs one operation at a time.

    Args:
        session: The session's part in the cluster.
        back_end: Makes the code of programs of this process.
    """

    def __init__(self, session: ClusterSession, back_end: BackEnd) -> None:
        self._session = session
        self._back_end = back_end

    def compile(self, region: Region, target: CodeTarget, variant: Variant) -> Executable:
        """The executable of a region."""
        devices = devices_of(Program(region.nodes, (), ()))
        if all(not d or task_of(d) == CLIENT_TASK for d in devices):
            return self._back_end.compile(region, target, variant)
        nodes = Program(region.nodes, (), ()).walk()
        if any(n.op.is_blocking or n.op.type in PRIMITIVES for n in nodes):
            return refused()
        return executable(self._session, region, target)


__all__ = ["CLIENT_TASK", "ClusterSession", "RemoteVariable"]
