"""`fs.train.ClusterSpec`: which jobs a cluster has, and where their tasks are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.runtime.config import ClusterDef, JobDef


class ClusterSpec:
    """Jobs by name, and the addresses of their tasks by number.

        ClusterSpec({"ps": ["a:2222"], "worker": {1: "b:2222"}})

    Args:
        cluster: A dict of lists of addresses, or of dicts from task numbers to addresses; a
            `ClusterDef`; another ClusterSpec; or a connected `fs.cluster.Cluster`, for its tasks
            now.

    Raises:
        DTypeError: if it is none of these, or an address is no string.
        InvalidArgumentError: if a task's number is none.
    """

    def __init__(self, cluster: Any) -> None:
        self._jobs: dict[str, dict[int, str]]
        if isinstance(cluster, ClusterSpec):
            self._jobs = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
        elif isinstance(cluster, ClusterDef):
            self._jobs = {job.name: _tasks(job.name, job.tasks) for job in cluster.job}
        elif isinstance(cluster, Mapping):
            self._jobs = {_text("job name", job): _tasks(job, t) for job, t in cluster.items()}
        elif isinstance(getattr(cluster, "tasks", None), tuple):
            self._jobs = {}
            for task in cluster.tasks:
                host, port = task.address
                self._jobs.setdefault(task.job, {})[task.index] = f"{host}:{port}"
        else:
            raise DTypeError(
                "expected a dict from job names to lists of addresses, a ClusterDef, a ClusterSpec "
                f"or a connected fs.cluster.Cluster, got {cluster!r}"
            )

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Returns jobs as a dict: lists of addresses where numbers count from 0, else dicts."""
        return {
            job: [tasks[i] for i in range(len(tasks))] if _is_dense(tasks) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> ClusterDef:
        """Returns jobs as a message: sorted by their names, and tasks by their numbers."""
        jobs = [JobDef(name=n, tasks=dict(sorted(t.items()))) for n, t in self._jobs.items()]
        return ClusterDef(job=sorted(jobs, key=lambda job: job.name))

    def num_tasks(self, job_name: str) -> int:
        """Returns how many tasks a job has."""
        return len(self._of(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Returns the numbers of a job's tasks, sorted."""
        return sorted(self._of(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Returns the address of a task."""
        tasks = self._of(job_name)
        if task_index not in tasks:
            raise InvalidArgumentError(
                f'expected a task of the job "{job_name}" ({sorted(tasks)}), got {task_index!r}'
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Returns the addresses of a job's tasks by their numbers; None where there is none."""
        tasks = self._of(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def _of(self, job: str) -> dict[int, str]:
        if job not in self._jobs:
            known = ", ".join(f'"{name}"' for name in self._jobs) or "none"
            raise InvalidArgumentError(f"expected a job of the cluster ({known}), got {job!r}")
        return self._jobs[job]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(tuple([(j, tuple(sorted(t.items()))) for j, t in sorted(self._jobs.items())]))

    def __repr__(self) -> str:
        return f"ClusterSpec({dict(sorted(self.as_dict().items()))})"


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, list | tuple):
        tasks = dict(enumerate(tasks))
    if not isinstance(tasks, Mapping):
        raise DTypeError(
            f"expected the tasks of the job {job!r} as a list of addresses or a dict from numbers "
            f"to addresses, got {tasks!r}"
        )
    return {_index(i): _text("task address", address) for i, address in tasks.items()}


def _index(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"expected a number as task index, got {value!r}") from None


def _text(what: str, value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(value, str):
        raise DTypeError(f"expected a str as {what}, got {value!r}")
    return value


def _is_dense(tasks: Mapping[int, str]) -> bool:
    return sorted(tasks) == list(range(len(tasks)))


__all__ = ["ClusterSpec"]
