"""A client's view of a cluster: its tasks, who comes and who goes.

Dask's scheduler says which workers there are; the registry (`cluster.servers.registry`) says which
tasks they are, by events. What a task does is asked of its host, over connections of our own.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from flowscope.cluster.membership.health import Heartbeat
from flowscope.cluster.membership.session_tasks import awaited, wished_tasks
from flowscope.cluster.membership.tasks import Task, Transport
from flowscope.cluster.membership.versions import Rounding, refusal
from flowscope.cluster.transport.endpoint import Address, Endpoint, Way
from flowscope.cluster.transport.runs import LateAnswerError
from flowscope.cluster.watch.losses import LifeEnd, Losses, removed_why, runs_here
from flowscope.cluster.watch.reports import status_report
from flowscope.cluster.watch.state_book import StateBook
from flowscope.cluster.watch.status import ClusterStatus
from flowscope.cluster.watch.watching import ClientPart, ClusterWatch
from flowscope.cluster.worker.host import CLIENT_PREFIX, answer, new_incarnation
from flowscope.cluster.worker.outcomes import Outcomes
from flowscope.cluster.worker.owners import Handler
from flowscope.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    NotFoundError,
    OpError,
    UnavailableError,
)
from flowscope.graph.summary import counted
from flowscope.runtime.session.engine import Engine, current
from flowscope.runtime.session.remote import START_S
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import join, wait_for

if TYPE_CHECKING:
    from flowscope.cluster.client.session import ClusterSession
    from flowscope.cluster.membership.members import Members
    from flowscope.runtime.config import ClusterDef, ConfigProto
    from flowscope.runtime.session.remote import Remote
    from flowscope.runtime.session.session import Session

#: What this process is in its sessions.
CLIENT_TASK = "/job:client/replica:0/task:0"
#: Control messages are answered within that.
CALL_S = 10.0
#: So long a client waits when it connects with a task.
_CONNECT_S = 5.0
#: So often it tries again to reach a task that Dask has and that cannot be reached.
_AGAIN_S = 0.5
#: So long what has ended a connection may take to be known.
_NOTED_S = 2.0


class Cluster:
    """A cluster that this process is connected with, as a client.

    `fs.cluster.connect` makes one; `with` closes it.

    Args:
        dask: The connection with Dask.
        jobs, config, transport: See `fs.cluster.connect`.
        until: When the scheduler is to have answered, by the monotonic clock.

    Attributes:
        target: What sessions find it by: the scheduler's address.
        endpoint: This process' end of the connections.
        uid: This client's number; no other has it.
        outcomes: How the update groups of its steps have ended.
        state_book: What its sessions have on tasks, and what of it was lost.
        handlers: What control messages lead to, by their kinds.
        sessions: The sessions that run on it.
        session_numbers, step_numbers: Count this client's sessions and steps.
        on_lost: Are told the name of a task that has died, hangs or has left, and why.
        dask: The connection with Dask.
        transport: What was asked for to carry the bytes of steps.
        watch: Asks all processes how they are.
        losses: Why tasks were lost.
    """

    def __init__(
        self,
        dask: Members,
        jobs: Mapping[str, Sequence[Any]] | None = None,
        config: ConfigProto | None = None,
        transport: Transport | None = None,
        until: float = math.inf,
    ) -> None:
        self.dask = dask
        self.transport = transport
        self.target = dask.address
        self.uid = new_incarnation()
        self.session_numbers: Iterator[int] = itertools.count()
        self.step_numbers: Iterator[int] = itertools.count(1)
        self.sessions: set[ClusterSession] = set()
        self.on_lost: list[Callable[[str, Exception], None]] = []
        self.handlers: dict[str, Handler] = {
            "host.leaving": self._leaving,
            "host.gave_up": self._given_up,
        }
        self._engine: Engine = current()
        self._lock = threading.Lock()
        #: Those who wait for tasks.
        self._waiting: set[Waiter] = set()
        self._tasks: dict[str, Task] = {}
        #: Tasks that Dask has, and those of them that were reached.
        self._known: dict[str, Task] = {}
        self._reasons: dict[str, str] = {}
        #: Those that were lost, as they were last; and those whose loss is being told to sessions.
        self._last: dict[str, Task] = {}
        self._losing: set[str] = set()
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        attached = dask.attach(jobs, config, self._events.put, until)
        #: The addresses of the tasks that are to be there, where a `ClusterSpec` says it.
        self._expected = dict(attached.expected)
        name = f"{CLIENT_PREFIX}{self.uid:x}"
        self.endpoint = Endpoint(
            name, new_incarnation(), attached.secret, host=attached.listen_at, tls=attached.tls
        )
        self.outcomes = Outcomes(self.endpoint, self.uid)
        self.state_book = StateBook()
        self.endpoint.on_call = lambda peer, message: answer(self.handlers, peer, message)
        self.endpoint.on_lost = self._connection_lost
        if attached.dial is not None:
            self.endpoint.dial = attached.dial
        self._heartbeat = Heartbeat(self)
        self._rounding = Rounding()
        self.losses = Losses(self._end_of)
        self.watch = ClusterWatch(self)
        try:
            self._join_all([Task.heard(host) for host in attached.hosts])
        except BaseException:
            self.close()
            raise
        self._thread = threading.Thread(target=self._follow, name="cluster membership", daemon=True)
        self._thread.start()
        self._heartbeat.start()
        self._engine.clusters[self.target] = self

    # -- tasks ----------------------------------------------------------------------------------

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that can be reached, by job and number."""
        found = list(self._tasks.values())
        return tuple(sorted(found, key=lambda task: (task.job, task.index)))

    def task(self, name: str) -> Task:
        """Returns a task.

        Raises:
            NotFoundError: if the cluster never had one of this name.
            UnavailableError: if it is lost, or hangs.
        """
        found = self._tasks.get(name)
        if found is None:
            reason = self._reasons.get(name)
            if reason is not None:
                raise UnavailableError(f"{name} is lost: {reason}")
            known = ", ".join(task.name for task in self.tasks) or "none"
            raise NotFoundError(f"expected a task of the cluster ({known}), got {name!r}")
        state, reason = self._heartbeat.health(name)
        if state == "hung":
            raise UnavailableError(f"{name} hangs: {reason}")
        return found

    def ways(self, task: str) -> tuple[Address, str | None]:
        """Returns where processes of this cluster reach a task, and where else if not there.

        Raises:
            NotFoundError, UnavailableError: as `task` does.
        """
        return self.task(task).ways(self.transport)

    def health(self, task: str) -> tuple[Literal["ok", "busy", "hung", "lost"], str]:
        """Returns how a task is, and why, in a sentence."""
        if task in self._tasks:
            return self._heartbeat.health(task)
        return "lost", self._reasons.get(task, "the cluster does not know it")

    def silent_s(self, task: str) -> float:
        """Returns for how many seconds nothing has come from a task."""
        return self._heartbeat.silent_s(task)

    @property
    def lost_tasks(self) -> dict[str, str]:
        """The tasks that were lost and have not come back, and why."""
        return {name: why for name, why in self._reasons.items() if name not in self._tasks}

    @property
    def known_tasks(self) -> tuple[Task, ...]:
        """The tasks, and those that were lost and have not come back, as they were last."""
        with self._lock:
            found = [*self._tasks.values(), *self._last.values()]
        return tuple(sorted(found, key=lambda task: (task.job, task.index)))

    @property
    def dashboard_link(self) -> str:
        """Where Dask's dashboard is; "" where there is none."""
        return self.dask.dashboard_link

    @property
    def scheduler_address(self) -> str:
        """The address of Dask's scheduler."""
        return self.dask.address

    def status(self) -> ClusterStatus:
        """Returns how all processes are, and what they wait for."""
        return self.watch.status()

    def client_part(self) -> ClientPart:
        """The client's own row of the cluster's status."""
        devices = (f"{CLIENT_TASK}/device:CPU:0",)
        steps = sum(session.steps for session in list(self._engine.sessions))
        running = sum(len(session.steps) for session in list(self.sessions))
        report = status_report(self.endpoint, steps=steps, running=running)
        return ClientPart(CLIENT_TASK, devices, socket.gethostname(), os.getpid(), report)

    # -- messages -------------------------------------------------------------------------------

    def call(self, task: str, message: dict[str, Any], timeout_s: float = CALL_S) -> dict[str, Any]:
        """Returns a task's answer to a control message.

        Raises:
            DeadlineExceededError: if it does not come in time.
            UnavailableError: if the task is lost.
        """
        try:
            return self.endpoint.call(self.task(task).name, message, timeout_s)
        except OpError as e:
            raise e.as_public() from e.__cause__

    def log(self, event: dict[str, Any]) -> None:
        """Writes an event to the log of Dask's scheduler; does not wait for it."""
        self.dask.log(event)

    def open(self, session: Session) -> Remote:
        """Returns a session's part in the cluster.

        Where a `ClusterSpec` says which tasks there are, it waits for those that the session's
        configuration lists, or else for those that its graph asks for; for all of them while it
        asks for none.

        Raises:
            DeadlineExceededError: if they do not come in time.
            InvalidArgumentError: if the configuration lists a task that there is not.
        """
        from flowscope.cluster.client.session import ClusterSession

        if self._expected:
            asked = {op.device for op in session.graph.get_operations() if op.device}
            timeout_s = session.config.operation_timeout_in_ms / 1e3 or START_S
            self.wait_for(awaited(session.config, asked, self._expected), timeout_s)
        self.warn()
        return ClusterSession(self, session)

    def narrowed(self, cluster_def: ClusterDef) -> Cluster:
        """Returns the cluster of the tasks that a session's `ClusterDef` lists.

        Servers of clusters of one task make a new one together, in which they have the names that
        it gives them.
        """
        return self.dask.joined(cluster_def) or self

    def reset(self, names: Iterable[str] | None = None) -> None:
        """Drops the values in the named containers of all tasks, in all of them for None."""
        message = {"kind": "container.reset", "names": None if names is None else list(names)}
        asked = [self.endpoint.ask(self.task(task.name).name, message) for task in self.tasks]
        until = time.monotonic() + CALL_S
        try:
            for question in asked:
                question.result(until)
        except OpError as e:
            raise e.as_public() from e.__cause__

    def wait_for(self, devices: Iterable[str], timeout_s: float) -> None:
        """Waits until the tasks are well that some devices belong to: those that were lost or hang,
        and those that a `ClusterSpec` says and that have not started.

        Args:
            devices: Devices' names, or wishes for some; what names no task asks for none.
            timeout_s: How long to wait.

        Raises:
            DeadlineExceededError: if they are not well in time; it names them.
        """
        asked = wished_tasks(devices)
        waiter = Waiter()
        self._waiting.add(waiter)
        try:
            are_there = wait_for(  # one that hangs may wake: that is looked at now and then
                lambda: not self._not_well(asked),
                waiter,
                what="for tasks",
                until=time.monotonic() + timeout_s,
            )
        finally:
            self._waiting.discard(waiter)
        if not are_there:
            missing = ", ".join(self._not_well(asked))
            raise DeadlineExceededError(
                f"these tasks are not there after {timeout_s:g} s: {missing}"
            )

    def _not_well(self, tasks: Iterable[str]) -> list[str]:
        """Returns those of some tasks that the cluster had and that are lost or hang, and why."""
        return [
            f"{name} ({self._why_not_well(name)})"
            for name in sorted(tasks)
            if (name not in self._tasks and (name in self._reasons or name in self._expected))
            or self._heartbeat.health(name)[0] == "hung"
        ]

    def _why_not_well(self, name: str) -> str:
        if name in self._tasks:
            return self._heartbeat.health(name)[1]
        reason = self._reasons.get(name, "it has not started")
        where = self._expected.get(name)
        return f"{reason}; it is to be at {where}" if where else reason

    def close(self) -> None:
        """Says goodbye to all tasks: what this client's sessions have there goes, but for what lies
        in named containers. Sessions on it cannot be run any more.
        """
        if self._engine.clusters.get(self.target) is self:
            del self._engine.clusters[self.target]
        self._heartbeat.close()
        self._events.put(None)
        for session in list(self.sessions):
            session.close()
        self.outcomes.flush()
        for name in list(self._tasks):
            with contextlib.suppress(OpError):  # it is gone
                self.endpoint.tell(name, {"kind": "client.leave"})
        self.endpoint.close()
        self._tasks.clear()
        self.dask.close()
        thread = getattr(self, "_thread", None)
        if thread is not None:
            join(thread, _CONNECT_S)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def __repr__(self) -> str:
        jobs: dict[str, int] = {}
        for task in self.tasks:
            jobs[task.job] = jobs.get(task.job, 0) + 1
        found = ", ".join(f"{counted(n, 'task')} of /job:{job}" for job, n in jobs.items())
        return f"<fs.cluster.Cluster {self.target}: {found or 'no tasks'}>"

    # -- who comes and goes -----------------------------------------------------------------------

    def _follow(self) -> None:
        """Does what the registry's events say; tries again to reach whom it has not reached."""
        while True:
            try:
                event = self._events.get(timeout=_AGAIN_S)
            except queue.Empty:
                event = {"event": "again"}
            if event is None:
                return
            self._take(event)
            missing = [t for t in list(self._known.values()) if t.name not in self._tasks]
            with contextlib.suppress(OpError):  # it is tried again
                self._join_all(missing)

    def _take(self, event: dict[str, Any]) -> None:
        if event["event"] == "ready":
            with contextlib.suppress(OpError):  # it is tried again
                self._join_all([Task.heard(event["host"])])
        elif event["event"] == "removed":
            known = self._known.get(event["task"])
            if known is not None and known.incarnation == event["incarnation"]:
                del self._known[known.name]
                is_here = known.host == socket.gethostname()
                why = removed_why(event, known.oom_kills if is_here else None)
                self._tell_why(known.name, known.incarnation, why, bool(event["limit_bytes"]))
                reason = why or "Dask's scheduler has lost or removed its worker"
                self.lose(known.name, known.incarnation, reason)  # the reason, before its end
                self.endpoint.disconnect(known.name, known.incarnation)
        elif event["event"] == "memory":
            self._tell_why(event["task"], event["incarnation"], removed_why(event, None), False)

    def _tell_why(self, task: str, incarnation: int, why: str, may_follow: bool) -> None:
        """Notes why a life of a task has ended, which its connections' end may have told before."""
        last = self._last.get(task)
        if why and task not in self._tasks and last is not None and last.incarnation == incarnation:
            self._reasons[task] = why
        self.losses.tell(task, incarnation, why, may_follow)

    def _join_all(self, tasks: Sequence[Task]) -> None:
        """Connects with tasks that have come, at the same time.

        Raises:
            UnavailableError, UnauthenticatedError: if one of them cannot be reached.
            FailedPreconditionError: if one of them has versions that do not fit.
        """
        new = []
        for task in tasks:
            self._check_versions(task)
            self._known[task.name] = task
            old = self._tasks.get(task.name)
            if old is not None and old.incarnation == task.incarnation:
                continue
            if old is not None:
                self.lose(task.name, old.incarnation, "it was started again")
            if task.name not in self._losing:  # else it is joined a little later
                new.append(task)
        ways = [Way(t.name, w[0], t.incarnation, w[1]) for t in new for w in [self._ways_to(t)]]
        failed = self.endpoint.connect_all(ways, _CONNECT_S)
        for task in [t for t in new if t.name not in failed]:
            self._heartbeat.hear(task.name)
            with self._lock:
                self._tasks[task.name] = task
                self._reasons.pop(task.name, None)
                self._last.pop(task.name, None)
        self._wake()
        for error in failed.values():
            raise error

    def _check_versions(self, task: Task) -> None:
        why = refusal(f"{task.name} (the worker at {task.dask_address})", task.versions)
        if why is not None:
            with self._lock:
                self._known.pop(task.name, None)
                self._reasons[task.name] = why
            raise FailedPreconditionError(why)
        self._rounding.take(task.name, task.versions)

    def warn(self) -> None:
        """Warns, at the user's line, of tasks that may round differently, once for each reason."""
        self._rounding.warn()

    def _wake(self) -> None:
        """Has those look again who wait for tasks."""
        for waiter in list(self._waiting):
            waiter.wake()

    def _ways_to(self, task: Task) -> tuple[Address, str | None]:
        return task.ways(self.transport)

    def _leaving(self, peer: str, message: dict[str, Any]) -> Callable[[], None]:
        known = self._known.get(peer)
        if known is not None and known.incarnation == message["incarnation"]:
            del self._known[peer]
        return lambda: self.lose(peer, message["incarnation"], message["reason"])

    def _given_up(self, peer: str, message: dict[str, Any]) -> Callable[[], dict[str, Any]]:
        """Ends the steps on a task that has taken this client for lost; it is joined again then."""
        incarnation = message["incarnation"]

        def end() -> dict[str, Any]:
            known = self._known.pop(peer, None)  # not to be joined by connections that end now
            self.lose(peer, incarnation, message["reason"])
            self.endpoint.disconnect(peer, incarnation)
            if known is not None:
                self._known.setdefault(peer, known)
            return {}

        return end

    def _end_of(self, task: str, incarnation: int) -> LifeEnd:
        if self.endpoint.is_connected(task, incarnation):
            return "connected"
        known = self._known.get(task)
        is_it = known is not None and known.incarnation == incarnation
        return "cut" if is_it and known is not None and runs_here(known) else "over"

    def _connection_lost(self, peer: str, incarnation: int, error: Exception) -> None:
        reason = f"its process has ended, or cannot be reached ({error})"
        self.lose(peer, incarnation, reason)

    def lose(self, task: str, incarnation: int, reason: str) -> None:
        """Notes that one life of a task is lost; tells those who want to know, once."""
        with self._lock:
            found = self._tasks.get(task)
            if found is None or found.incarnation != incarnation:
                return
            del self._tasks[task]
            self._reasons[task] = reason
            self._last[task] = found
            self._losing.add(task)
        try:
            self.tell_lost(task, reason)
        finally:
            self._told_lost(task)

    def tell_lost(self, task: str, reason: str) -> None:
        """Ends what runs on a task that is lost or hangs, and all that waits for its answers."""
        error, sessions = UnavailableError(reason), list(self.sessions)
        self.state_book.lose(task, reason)
        self.endpoint.end_waits(task, UnavailableError(f"{task} is lost: {reason}"))
        for tell in [*self.on_lost, *[session.lost for session in sessions]]:
            tell(task, error)
        self._told_lost(task)
        self.dask.log({"event": "lost", "task": task, "reason": reason})
        for session in sessions:  # this may wait for a thread that plans
            session.forget_plans(task)

    def _told_lost(self, task: str) -> None:
        self._losing.discard(task)
        self._wake()

    def note_losses(self, lives: Mapping[str, int], cut: Iterable[str] = ()) -> None:
        """Waits until it is known what has become of tasks whose connections have ended.

        Each connection of a task ends on a thread of its own. Whoever has heard of one that the
        task is lost finds it lost here, too, and in its sessions, when this returns.

        Args:
            lives: Tasks, and which lives of them are meant.
            cut: Those of them that have not answered, for the connection for it has ended.
        """
        until, gone, asked = time.monotonic() + _NOTED_S, set(cut) & lives.keys(), []
        for task in lives:
            if task in gone:
                self.endpoint.end_cut(task, lives[task])
            if task in gone or self._heartbeat.health(task)[0] != "ok":
                continue
            try:
                asked.append((task, self.endpoint.ask(task, {"kind": "clock"})))
            except UnavailableError:
                gone.add(task)
        for task, question in asked:
            try:
                question.result(until, owned_by=None)
            except LateAnswerError:  # it may hang
                continue
            except OpError:
                gone.add(task)
        waiter = Waiter()
        self._waiting.add(waiter)
        try:
            wait_for(
                lambda: all(self._is_noted(task, lives[task]) for task in gone),
                waiter,
                what="for losses to be noted",
                until=until,
                owned_by=None,
            )
        finally:
            self._waiting.discard(waiter)

    def _is_noted(self, task: str, incarnation: int) -> bool:
        """Whether it is known of a life of a task that it is lost or hangs."""
        if task in self._losing:
            return False
        found = self._tasks.get(task)
        is_there = found is not None and found.incarnation == incarnation
        return not is_there or self._heartbeat.health(task)[0] == "hung"


__all__ = ["CALL_S", "Cluster"]
