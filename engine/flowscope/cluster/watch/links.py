"""How quick the links between the processes of a cluster are: measured when somebody asks.

A link has a latency - half of the quickest of some round trips - and takes so long for each byte:
arrays of growing sizes are sent until one takes long enough to tell. The client measures its links
with all workers; workers measure those among themselves, each those with workers of greater names,
for these it connects. What was measured is kept as long as both ends live.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.transport.peers import Address
from flowscope.cluster.transport.runs import Answers, LateAnswerError, PendingRun
from flowscope.cluster.watch.status import Health
from flowscope.errors import InternalError, OpError, UnavailableError
from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.runtime.devices.device import Device
from flowscope.runtime.devices.device_profiles import profile_of
from flowscope.runtime.waits.waiting import acquire

#: Round trips; the quickest counts.
_TRIPS = 5
#: What is sent, one after the other, until one takes long enough. The first opens the connection.
_SIZES = (1, 1 << 16, 1 << 19, 1 << 22)
_ENOUGH_S = 0.02
#: How often each is sent; the quickest counts, for others may hold up a process.
_TIMES = 3
#: So long a peer is waited for each time; one that takes longer is as slow as that.
_ANSWER_S = 2.0
#: So long workers may take together to measure the links among themselves.
_ALL_S = 30.0
#: What a worker that does not answer leads to; what ends the owner of the wait is none of these.
_NO_ANSWER = (UnavailableError, InternalError, LateAnswerError)

Run = Callable[[str, dict[str, Any], list[Any]], tuple[dict[str, Any], list[Any]]]


class LinkedTask(Protocol):
    """What is asked of a task: see `flowscope.cluster.membership.tasks.Task`."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def incarnation(self) -> int:
        """Which life of it this is."""


def unknown() -> Link:
    """The link that is assumed for processes that do not answer: two of one machine."""
    return Link(bytes_per_s=1.9e9, latency_s=50e-6)


def measured(endpoint: Endpoint, peer: str) -> Link:
    """Returns the link with a peer as it is now; takes some milliseconds.

    Raises:
        DeadlineExceededError, UnavailableError: if it does not answer, or is not connected.
    """
    trip = min(_seconds(lambda: endpoint.call(peer, {"kind": "clock"}, _ANSWER_S), _TRIPS))
    nbytes, took = 1, 0.0
    for nbytes in _SIZES:
        took = min(_seconds(partial(_send, endpoint, peer, nbytes), _TIMES))
        if nbytes > 1 and took - trip > _ENOUGH_S:
            break
    return Link(nbytes / max(took - trip, 1e-9), trip / 2)


def _seconds(ask: Callable[[], Any], count: int) -> list[float]:
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        ask()
        found.append(time.perf_counter() - begin)
    return found


def _send(endpoint: Endpoint, peer: str, nbytes: int) -> None:
    """Sends so many bytes, and waits for the answer."""
    run = endpoint.start_run(peer, {"kind": "link.probe"}, [np.zeros(nbytes, np.uint8)])
    try:
        run.wait(until=time.monotonic() + _ANSWER_S)
    except LateAnswerError:  # it is as slow as that
        run.abandon()
    except BaseException:
        run.abandon()
        raise


class Linked(Protocol):
    """A client's cluster: see `flowscope.cluster.client.membership.Cluster`."""

    endpoint: Endpoint

    @property
    def tasks(self) -> Sequence[LinkedTask]:
        """The tasks that there are now."""

    def ways(self, task: str) -> tuple[Address, str | None]:
        """Returns where a task is reached, and where if not there."""

    def health(self, task: str) -> tuple[Health, str]:
        """Returns how a task is, and why."""


class Links:
    """The links of a cluster, as its client knows them.

    Args:
        cluster: The cluster.

    Attributes:
        profiles: How quick the workers' devices are, by their full names, as far as was told.
    """

    def __init__(self, cluster: Linked) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], Link] = {}
        #: The lives in which they were measured.
        self._lives: dict[str, int] = {}
        self.profiles: dict[str, DeviceProfile] = {}

    def between(self, one: str, other: str) -> Link | None:
        """Returns the link between two tasks, "" for the client; None where none was measured."""
        return self._found.get((min(one, other), max(one, other)))

    def measure(self) -> None:
        """Measures what is not known of the tasks that there are now."""
        acquire(self._lock, "for another thread that measures links")
        try:
            tasks = sorted(self._cluster.tasks, key=lambda task: task.name)
            lives = {task.name: task.incarnation for task in tasks}
            is_same = {n for n, life in lives.items() if self._lives.get(n) == life}
            kept = is_same | {""}
            self._found = {p: k for p, k in self._found.items() if kept.issuperset(p)}
            self._lives = lives
            for task in tasks:
                if ("", task.name) not in self._found:
                    self._measure_own(task.name)
            self._measure_others(tasks)
        finally:
            self._lock.release()

    def _measure_own(self, task: str) -> None:
        try:
            self._found["", task] = measured(self._cluster.endpoint, task)
        except _NO_ANSWER:
            self._check(task)

    def _check(self, task: str) -> None:
        """Raises UnavailableError if a task hangs; one that was lost is asked again next time."""
        state, reason = self._cluster.health(task)
        if state == "hung":
            raise UnavailableError(
                f"{task} hangs: {reason}; how quick its links are cannot be measured, by which "
                'placement="simulated" goes'
            )

    def _measure_others(self, tasks: Sequence[LinkedTask]) -> None:
        """Has workers measure their links with each other, all at the same time."""
        endpoint = self._cluster.endpoint
        runs: dict[PendingRun, str] = {}
        for task in tasks:
            peers = [t for t in tasks if t.name > task.name]
            unknown = [p for p in peers if (task.name, p.name) not in self._found]
            is_known = any(device.startswith(f"{task.name}/") for device in self.profiles)
            if ("", task.name) not in self._found or (is_known and not unknown):
                continue
            try:
                told = [[p.name, p.incarnation, *self._cluster.ways(p.name)] for p in unknown]
                run = endpoint.start_run(task.name, {"kind": "link.measure", "peers": told}, [])
            except _NO_ANSWER:
                self._check(task.name)
                continue
            runs[run] = task.name
        self._take_answers(runs)

    def _take_answers(self, runs: dict[PendingRun, str]) -> None:
        """Takes what workers have measured; who does not answer in time is asked another time."""
        answers, until = Answers(runs), time.monotonic() + _ALL_S
        try:
            while runs and (done := answers.next(until=until)) is not None:
                name = runs.pop(done)
                try:
                    self._take(name, done.answer()[0])
                except _NO_ANSWER:
                    self._check(name)
        finally:
            for run in runs:
                run.abandon()

    def _take(self, task: str, told: Mapping[str, Any]) -> None:
        for peer, bytes_per_s, latency_s in told.get("links", ()):
            self._found[task, peer] = Link(bytes_per_s, latency_s)
        for name, speed, call_s, link, memory_bytes in told.get("profiles", ()):
            made = DeviceProfile(speed, call_s, Link(*link) if link else None, memory_bytes)
            self.profiles[name] = made


def link_runs(
    endpoint: Endpoint, own: str, devices: Callable[[], Iterable[Device]]
) -> dict[str, Run]:
    """A host's handlers of runs that measure links, by the kinds of runs.

    Args:
        endpoint: The host's end.
        own: The host's task.
        devices: Returns its devices.
    """

    def measure(peer: str, header: dict[str, Any], values: list[Any]) -> Any:
        links = []
        for name, incarnation, way, instead in header["peers"]:
            try:
                if own < name:
                    address: Address = way if isinstance(way, str) else (way[0], way[1])
                    endpoint.connect(name, address, incarnation, instead=instead)
                found = measured(endpoint, name)
            except (OpError, OSError):  # what is not known is not told
                continue
            links.append([name, found.bytes_per_s, found.latency_s])
        return {"links": links, "profiles": [_told(device) for device in devices()]}, []

    return {"link.probe": lambda peer, header, values: ({}, []), "link.measure": measure}


def _told(device: Device) -> list[Any]:
    """Returns how quick a device is, as plain data."""
    profile = profile_of(device)
    link = profile.link
    told = None if link is None else [link.bytes_per_s, link.latency_s]
    return [device.name, profile.speed, profile.call_s, told, profile.memory_bytes]


__all__ = ["Links", "link_runs", "measured", "unknown"]
