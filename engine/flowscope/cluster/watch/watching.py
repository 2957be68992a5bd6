"""Asks all processes of a cluster how they are, and puts together what they say."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from flowscope.cluster.transport.control import PendingAnswer
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.transport.peers import Address
from flowscope.cluster.transport.runs import LateAnswerError
from flowscope.cluster.watch.clocks import ClockOffset, ClockSample
from flowscope.cluster.watch.links import Links
from flowscope.cluster.watch.reports import clock
from flowscope.cluster.watch.state_book import StateBook
from flowscope.cluster.watch.status import (
    ClusterStatus,
    Health,
    LostState,
    QueueFill,
    WaitStatus,
    WorkerStatus,
)
from flowscope.cluster.watch.waits import (
    LONG_S,
    WaitSnapshot,
    by_gravity,
    findings,
    joined,
    proved,
    state_found,
    wait_of,
)
from flowscope.errors import InternalError, UnavailableError
from flowscope.graph.lazy import frozen
from flowscope.runtime.waits.rendezvous import Pending
from flowscope.runtime.waits.waiting import OWN, pause

#: A worker that is well answers in a few milliseconds.
ANSWER_S = 0.5
#: Round trips that a worker's clock is measured by before it is told; afterwards one each time.
_FIRST_SAMPLES = 4
#: What one that does not answer leads to.
_NO_ANSWER = (UnavailableError, InternalError, LateAnswerError)
#: A clock that was measured within that is not measured again for a trace.
_RECENT_S = 10.0


class WatchedDevice(Protocol):
    """A device of a task."""

    @property
    def name(self) -> str:
        """The full name."""


class WatchedTask(Protocol):
    """What is known of a worker without asking it: see `cluster.client.membership.Task`."""

    @property
    def name(self) -> str:
        """The task: "/job:worker/replica:0/task:3"."""

    @property
    def worker(self) -> str:
        """The worker's name in Dask."""

    @property
    def incarnation(self) -> int:
        """Which life of it."""

    @property
    def devices(self) -> Sequence[WatchedDevice]:
        """Its devices."""

    @property
    def pid(self) -> int:
        """Its process."""

    @property
    def host(self) -> str:
        """The machine that it runs on."""

    @property
    def memory_limit(self) -> int | None:
        """What Dask lets it use; None or 0 for no limit."""


@frozen
class ClientPart:
    """What the client tells of itself.

    Attributes:
        task: Its task in its sessions.
        devices: The full names of its devices.
        host, pid: Where it runs.
        report: What `flowscope.cluster.watch.reports.status_report` returns of it.
    """

    task: str
    devices: tuple[str, ...]
    host: str
    pid: int
    report: Mapping[str, Any]


class WatchedCluster(Protocol):
    """What is asked of a cluster: see `flowscope.cluster.client.membership.Cluster`."""

    endpoint: Endpoint
    target: str
    state_book: StateBook

    @property
    def tasks(self) -> Sequence[WatchedTask]:
        """The workers, in a stable order."""

    @property
    def dashboard_link(self) -> str:
        """Address of Dask's dashboard; "" where there is none."""

    @property
    def scheduler_address(self) -> str:
        """Address of Dask's scheduler."""

    @property
    def lost_tasks(self) -> Mapping[str, str]:
        """The tasks that were lost and have not come back, and why."""

    def ways(self, task: str) -> tuple[Address, str | None]:
        """Returns where a worker is reached, and where if not there."""

    def health(self, task: str) -> tuple[Health, str]:
        """Returns how a worker is, and why."""

    def client_part(self) -> ClientPart:
        """The client's own row of the status."""


class _Known:
    """What is known of one life of a worker.

    Attributes:
        clock: What is known of its clock.
        samples: How often it was measured.
        measured: When that was done last.
        report: What it said last.
        lost: What it had in earlier lives, and has not.
        answered: When that was; None before.
    """

    def __init__(self) -> None:
        self.clock = ClockOffset()
        self.samples = 0
        self.measured = 0.0
        self.report: Mapping[str, Any] = {}
        self.lost: tuple[LostState, ...] = ()
        self.answered: float | None = None


class ClusterWatch:
    """Asks the workers of one cluster; keeps what they said last, for those that say nothing.

    Attributes:
        links: How quick the links of its processes are, as far as somebody has asked.
    """

    def __init__(self, cluster: WatchedCluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], _Known] = {}
        self._begun = clock()
        self.links = Links(cluster)
        #: What was told of workers last, and when they answered.
        self._told: dict[str, WorkerStatus] = {}
        self._heard: dict[str, float] = {}

    def status(self, timeout_s: float = ANSWER_S) -> ClusterStatus:
        """Returns how the cluster is.

        It asks twice where steps seem to wait for each other: see `cluster.watch.waits.proved`.

        Args:
            timeout_s: So long each worker is waited for; all are asked at the same time.
        """
        seen, circle_s = proved(lambda: self.look(timeout_s), pause, LONG_S)
        found = findings(seen.waits, seen.health, circle_s=circle_s)
        without = [
            state_found(w.task, w.lost) for w in seen.workers if w.lost and w.health != "lost"
        ]
        return ClusterStatus(
            target=self._cluster.target,
            scheduler=self._cluster.scheduler_address,
            dashboard=self._cluster.dashboard_link,
            workers=seen.workers,
            waits=tuple(seen.waits),
            findings=by_gravity([*found, *without]),
        )

    def look(self, timeout_s: float) -> WaitSnapshot:
        """Asks once who waits, and how the workers are; see `status`."""
        cluster = self._cluster
        were_lost = dict(cluster.lost_tasks)
        tasks = list(cluster.tasks)
        known = self._remembered(tasks)
        is_fresh = self._ask(tasks, known, timeout_s)
        health = {task.name: cluster.health(task.name) for task in tasks}
        lost: dict[str, tuple[Health, str]] = {
            name: ("lost", why)
            for name, why in (were_lost | dict(cluster.lost_tasks)).items()
            if name not in health  # one that has come back meanwhile was lost when this began
        }
        own = cluster.client_part()
        said = [own.report, *[k.report for k, fresh in zip(known, is_fresh, strict=True) if fresh]]
        waits = joined([wait for report in said for wait in waits_in(report)])
        workers = [self._worker(*pair, health) for pair in zip(tasks, known, strict=True)]
        workers += self._gone(workers, lost)
        trips = [worker.round_trip_s or 0.0 for worker in workers]
        return WaitSnapshot(
            waits=waits,
            health=health | lost,
            round_trip_s=max(trips, default=0.0),
            workers=(_client(own), *sorted(workers, key=lambda worker: _natural(worker.task))),
        )

    def clock_of(self, task: str) -> tuple[float, float]:
        """Returns how far a worker's clock is ahead of this one, in seconds, and the error bound.

        It is measured again where it was measured long ago.

        Raises:
            UnavailableError: if it is not known and the worker says nothing.
        """
        tasks = list(self._cluster.tasks)
        lives = zip(tasks, self._remembered(tasks), strict=True)
        known = next((known for one, known in lives if one.name == task), _Known())
        now = clock()
        if known.samples and now - known.measured < _RECENT_S:
            return known.clock.best(now) or (0.0, 0.0)
        self._measure({task: known}, time.monotonic() + ANSWER_S, OWN)
        if not known.samples:
            raise UnavailableError(f"{task} does not tell its clock, by which its trace is told")
        return known.clock.best(clock()) or (0.0, 0.0)

    def _gone(
        self, workers: Sequence[WorkerStatus], lost: Mapping[str, tuple[Health, str]]
    ) -> list[WorkerStatus]:
        """Returns the workers that are lost, as they were told last."""
        gone = [self._told[name] for name in lost if name in self._told]
        self._told |= {worker.task: worker for worker in workers}
        since = clock()
        return [
            replace(worker, health="lost", reason=lost[worker.task][1], running=0,
                    silent_s=since - self._heard.get(worker.task, since))
            for worker in gone
        ]  # fmt: skip

    def _remembered(self, tasks: Sequence[WatchedTask]) -> list[_Known]:
        """The record of each worker; forgets those of earlier lives."""
        lives = [(task.name, task.incarnation) for task in tasks]
        with self._lock:
            self._known = {life: self._known.get(life) or _Known() for life in lives}
            return [self._known[life] for life in lives]

    def _ask(
        self, tasks: Sequence[WatchedTask], known: Sequence[_Known], timeout_s: float
    ) -> list[bool]:
        """Asks workers, all at the same time; returns which of them have answered."""
        until = time.monotonic() + timeout_s
        asked: list[tuple[str, _Known, PendingAnswer]] = []
        in_question = {}
        for task, one in zip(tasks, known, strict=True):
            with suppress(UnavailableError):  # why it does not answer, health says
                had = in_question[task.name] = self._cluster.state_book.in_question(task.name)
                message = {"kind": "status", **({"had": had} if had else {})}
                question = self._cluster.endpoint.ask(task.name, message)
                asked.append((task.name, one, question))
        # Most have answered when the last has been asked: then their clocks are measured.
        is_fresh = set()
        for name, one, question in asked:
            with suppress(*_NO_ANSWER):
                one.report = question.result(until, None)
                one.answered = self._heard[name] = clock()
                self._cluster.state_book.look(name, in_question[name], one.report.get("gone", ()))
                lost = dict.fromkeys(in_question[name][i][1] for i in one.report.get("gone", ()))
                one.lost = tuple([LostState(key.kind, key.name) for key in lost])
                is_fresh.add(name)
        living = {name: one for name, one, _ in asked if name in is_fresh}
        self._measure(living, time.monotonic() + timeout_s, None)
        return [task.name in is_fresh for task in tasks]

    def _measure(self, lives: Mapping[str, _Known], until: float, owned_by: Any) -> None:
        """Measures the clocks of workers: where none was measured yet, several times."""
        for trip in range(_FIRST_SAMPLES):
            asked: list[tuple[_Known, float, PendingAnswer]] = []
            for name, known in lives.items():
                if trip and known.samples > trip:
                    continue
                with suppress(UnavailableError):
                    sent = clock()
                    question = self._cluster.endpoint.ask(name, {"kind": "clock"})
                    asked.append((known, sent, question))
            for known, sent, question in asked:
                with suppress(*_NO_ANSWER):
                    there = float(question.result(until, owned_by)["now"])
                    known.clock.add(ClockSample(sent, there, question.answered))
                    known.samples += 1
                    known.measured = question.answered

    def _worker(
        self, task: WatchedTask, known: _Known, health: Mapping[str, tuple[Health, str]]
    ) -> WorkerStatus:
        now = clock()
        state, reason = health[task.name]
        measured = known.clock.best(now)
        link = self.links.between("", task.name)
        return WorkerStatus(
            task=task.name,
            worker=task.worker,
            incarnation=f"{task.incarnation:x}",
            host=task.host,
            pid=task.pid,
            devices=tuple(device.name for device in task.devices),
            health=state,
            reason=reason,
            silent_s=now - (self._begun if known.answered is None else known.answered),
            memory_limit=task.memory_limit or None,
            clock_ahead_s=measured and measured[0],
            clock_error_s=measured and measured[1],
            round_trip_s=2 * link.latency_s if link else known.clock.quickest_s,
            bytes_per_s=link.bytes_per_s if link else None,
            lost=known.lost,
            **_reported(known.report),
        )


def _client(own: ClientPart) -> WorkerStatus:
    return WorkerStatus(
        task=own.task,
        worker="",
        incarnation="",
        host=own.host,
        pid=own.pid,
        devices=own.devices,
        health="ok",
        reason="",
        silent_s=0.0,
        memory_limit=None,
        clock_ahead_s=None,
        clock_error_s=None,
        round_trip_s=None,
        bytes_per_s=None,
        **_reported(own.report),
    )


def _reported(report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a `WorkerStatus` that the worker tells itself."""
    sent, received = report.get("traffic", (None, None))
    return {
        "memory_bytes": report.get("memory"),
        "held_bytes": report.get("held", 0),
        "steps": report.get("steps", 0),
        "running": report.get("running", 0),
        "sent_bytes": sent,
        "received_bytes": received,
        "transport": " and ".join(report.get("transports", ())),
        "is_encrypted": report.get("encrypted", False),
        "queues": tuple(QueueFill(*queue) for queue in report.get("queues", ())),
    }


def _natural(task: str) -> list[tuple[str, int]]:
    """A sort key of tasks, by job and number."""
    parts = [part.partition(":") for part in task.split("/")]
    return [(name, int(value)) if value.isdigit() else (value, 0) for name, _, value in parts]


def waits_in(report: Mapping[str, Any]) -> list[WaitStatus]:
    """Returns who waits in a process, by what it said of itself."""
    found = [
        wait_of(client, step, Pending(*told)) for client, step, *told in report.get("waits", ())
    ]
    return found + [
        WaitStatus(client, step, device, "", queue, "queue", seconds)
        for client, step, device, queue, seconds in report.get("queue_waits", ())
    ]


__all__ = ["ClientPart", "ClusterWatch", "WatchedCluster", "waits_in"]
