"""Which tasks of a cluster a session works on: those that its configuration says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from flowscope.cluster.membership.tasks import task_name
from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec

if TYPE_CHECKING:
    from flowscope.runtime.config import ClusterDef, ConfigProto


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def listed_tasks(cluster_def: ClusterDef) -> dict[str, str]:
    """Returns the addresses of the tasks that a `ClusterDef` lists, by their names.

    Raises:
        InvalidArgumentError: if it lists a job twice.
    """
    names = [job.name for job in cluster_def.job]
    if len(names) != len(set(names)):
        raise InvalidArgumentError(f"expected each job once in cluster_def, got {names}")
    jobs = cluster_def.job
    return {task_name(job.name, i): where for job in jobs for i, where in job.tasks.items()}


def wished_tasks(devices: Iterable[str]) -> set[str]:
    """Returns the tasks that devices' names, or wishes for some, name."""
    wishes = [(s.job, s.task) for s in map(DeviceSpec.from_string, devices)]
    return {task_name(job, task) for job, task in wishes if job and task is not None}


def awaited(config: ConfigProto, asked: Iterable[str], expected: Mapping[str, str]) -> list[str]:
    """Returns the tasks that a session waits for when it is made.

    Args:
        config: The session's.
        asked: The devices that its graph asks for.
        expected: The tasks that the cluster is to have.
    """
    if config.cluster_def.job:
        return list(listed_tasks(config.cluster_def))
    return [device for device in asked or expected if is_seen(config, device)]


def tasks_of_session(config: ConfigProto, tasks: Iterable[T]) -> list[T]:
    """Returns those of a cluster's tasks that a session works on.

    Raises:
        InvalidArgumentError: if `config.cluster_def` lists one that the cluster does not have.
    """
    tasks, listed = list(tasks), listed_tasks(config.cluster_def)
    missing = sorted(set(listed) - {task.name for task in tasks})
    if missing:
        known = ", ".join(task.name for task in tasks) or "none"
        raise InvalidArgumentError(
            f"expected config.cluster_def to list tasks of the cluster ({known}), got "
            f"{', '.join(missing)}"
        )
    wanted = [task for task in tasks if not listed or task.name in listed]
    return [task for task in wanted if is_seen(config, task.name)]


def is_seen(config: ConfigProto, name: str) -> bool:
    """Whether `config.device_filters` leave a task or a device; each may name parts of it only."""
    if not config.device_filters:
        return True
    parts = {k: v for k, v in DeviceSpec.from_string(name).parts().items() if v is not None}
    for text in config.device_filters:
        wished = DeviceSpec.from_string(text).parts()
        if all(wished[k] in (None, v) for k, v in parts.items()):
            return True
    return False


__all__ = ["awaited", "is_seen", "listed_tasks", "tasks_of_session", "wished_tasks"]
