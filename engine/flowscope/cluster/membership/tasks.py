"""Tasks: the processes of a cluster under TensorFlow's names, and which worker is which task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from flowscope.cluster.membership.versions import Versions
from flowscope.cluster.transport.endpoint import Address
from flowscope.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from flowscope.graph.lazy import frozen

#: Jobs that TensorFlow's programs have; a worker's name or resource may say them.
KNOWN_JOBS = ("chief", "evaluator", "master", "ps", "worker")
#: What carries the bytes of steps: sockets of their own, or connections over Dask's ports.
Transport = Literal["sockets", "dask"]
_NAMED = re.compile(rf"({'|'.join(KNOWN_JOBS)})[-_](\d+)")
_JOB = re.compile(r"[a-zA-Z][0-9a-zA-Z_]*")
_TASK = re.compile(rf"/job:({_JOB.pattern})/replica:0/task:(\d+)")


@frozen
class DeviceInfo:
    """A device of a task.

    Attributes:
        name: Its full name, such as "/job:worker/replica:0/task:3/device:CPU:0".
        device_type: Such as "CPU".
        memory_limit: Bytes of memory that it has; 0 where that is not known.
    """

    name: str
    device_type: str
    memory_limit: int


@frozen
class Task:
    """A process of a cluster, in one of its lives.

    Attributes:
        name: Such as "/job:worker/replica:0/task:3".
        job, index: The parts of the name.
        worker: The name of the Dask worker.
        dask_address: Where that worker is reached, by Dask.
        address: Where the task listens, host and port.
        incarnation: Which life of the worker it is: it has another one when it was restarted.
        devices: Its devices.
        pid: The process.
        started: When the process was started, by its machine's clock.
        host: The name of its machine.
        memory_limit: Bytes that Dask lets it use; 0 for no limit.
        versions: What it computes with, see `flowscope.cluster.membership.versions`.
        oom_kills: How many processes its machine's system had killed by then for want of memory;
            None where that is not known.
    """

    name: str
    job: str
    index: int
    worker: str
    dask_address: str
    address: tuple[str, int]
    incarnation: int
    devices: tuple[DeviceInfo, ...]
    pid: int
    started: float
    host: str
    memory_limit: int
    versions: Versions
    oom_kills: int | None

    def ways(self, transport: Transport | None) -> tuple[Address, str | None]:
        """Returns where it is reached, and where else if not there.

        Args:
            transport: What is wanted; None for Dask's where that speaks UCX, else for sockets, and
                Dask's ports if these do not reach it.
        """
        has_ucx = self.dask_address.startswith("ucx")
        if transport == "dask" or (transport is None and has_ucx):
            return self.dask_address, None
        return self.address, (self.dask_address or None) if transport is None else None

    def told(self) -> dict[str, Any]:
        """Returns it as plain data."""
        facts = {name: getattr(self, name) for name in Task.__annotations__}
        devices = [[d.name, d.device_type, d.memory_limit] for d in self.devices]
        told = {"address": list(self.address), "devices": devices, "versions": dict(self.versions)}
        return facts | told

    @staticmethod
    def heard(facts: Mapping[str, Any]) -> Task:
        """Returns the task that `told` has told."""
        host, port = facts["address"]
        devices = tuple([DeviceInfo(*d) for d in facts["devices"]])
        return Task(**{**facts, "address": (host, port), "devices": devices})


class WorkerFacts(NamedTuple):
    """What Dask tells of a worker: its name, where it is, what resources it has."""

    name: str
    address: str
    resources: Mapping[str, float]


def task_name(job: str, index: int) -> str:
    """Returns the name of a task."""
    return f"/job:{job}/replica:0/task:{index}"


class TaskNumbers:
    """Which worker is which task: by its name, once and for all its lives.

    A worker's job is the one that `jobs` names it in; else the one of its name ("ps-0"); else the
    one that it has as a resource (`dask worker --resources "ps=1"`); else "worker". A worker that
    has a task's name ("/job:ps/replica:0/task:0") is that task. Its number is
    the one of its name, where that is free; else the next of its job.

    Args:
        jobs: The names of workers by jobs.
    """

    def __init__(self, jobs: Mapping[str, Sequence[str]] | None = None) -> None:
        self._jobs: dict[str, tuple[str, int]] = {}
        self._tasks: dict[str, tuple[str, int]] = {}
        self.assign(jobs or {})

    def assign(self, jobs: Mapping[str, Sequence[str]]) -> None:
        """Says which workers belong to which jobs, in the order of their numbers.

        Raises:
            FailedPreconditionError: if one of them is a task of another name already.
        """
        for job, workers in jobs.items():
            for index, worker in enumerate(workers):
                task = self._tasks.get(worker)
                if task is not None and task != (job, index):
                    raise FailedPreconditionError(
                        f'the worker "{worker}" is {task_name(*task)} of this cluster already: '
                        f"expected it as that in jobs, got {task_name(job, index)}; workers keep "
                        "their tasks as long as the scheduler runs"
                    )
        self._jobs |= {w: (j, i) for j, names in jobs.items() for i, w in enumerate(names)}

    def add(self, workers: Iterable[WorkerFacts]) -> None:
        """Gives tasks to workers that have none; first to those whose names say numbers."""

        def order(worker: WorkerFacts) -> tuple[bool, list[tuple[int, str]]]:
            return self._wish(worker)[1] is None, _natural(worker)

        for worker in sorted(workers, key=order):
            self.task_of(worker)

    def task_of(self, worker: WorkerFacts) -> tuple[str, int]:
        """Returns the job and number of a worker."""
        found = self._tasks.get(worker.name)
        if found is None:
            job, wanted = self._wish(worker)
            taken = {i for j, i in self._tasks.values() if j == job}
            taken |= {
                i for j, i in self._jobs.values() if j == job and i is not None and i != wanted
            }
            index = wanted if wanted is not None and wanted not in taken else _next_free(taken)
            found = self._tasks[worker.name] = job, index
        return found

    def _wish(self, worker: WorkerFacts) -> tuple[str, int | None]:
        given = self._jobs.get(worker.name)
        if given is not None:
            return given
        named = _NAMED.fullmatch(worker.name)
        named = named or _TASK.fullmatch(worker.name)
        if named is not None:
            return named[1], int(named[2])
        for job in KNOWN_JOBS:
            if worker.resources.get(job):
                return job, None
        return "worker", None


def check_jobs(jobs: Any) -> dict[str, list[str]]:
    """Returns jobs as they were given, names as strings; None stands for none.

    Raises:
        DTypeError: if it is no dict of lists.
        InvalidArgumentError: if a job has no name of one, or a worker has two.
    """
    if jobs is None:
        return {}
    if not isinstance(jobs, Mapping) or any(
        isinstance(names, str | bytes) or not isinstance(names, Iterable) for names in jobs.values()
    ):
        raise DTypeError(f'expected jobs as {{"ps": ["a worker\'s name", ...]}}, got {jobs!r}')
    found = {job: [str(name) for name in names] for job, names in jobs.items()}
    for job in found:
        if not isinstance(job, str) or not _JOB.fullmatch(job) or job == "client":
            raise InvalidArgumentError(
                f'expected a job of letters, digits and "_" that is not "client", got {job!r}'
            )
    names = [name for some in found.values() for name in some]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgumentError(f"expected each worker once in jobs, got {twice} twice")
    return found


def _next_free(taken: set[int]) -> int:
    return next(i for i in range(len(taken) + 1) if i not in taken)


def _natural(worker: WorkerFacts) -> list[tuple[int, str]]:
    """Orders "worker-2" before "worker-10"."""
    parts = re.split(r"(\d+)", worker.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


__all__ = [
    "DeviceInfo",
    "Task",
    "TaskNumbers",
    "Transport",
    "WorkerFacts",
    "check_jobs",
    "task_name",
]
