"""Why workers were lost, as far as Dask's scheduler and the system know it, and what they ran.

A nanny ends a worker that uses more memory than Dask lets it have, and tells the scheduler so; our
connections with the worker end at the same time. So an error that follows from their end waits a
moment for what the scheduler says of it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import psutil

from flowscope.cluster.membership.tasks import Task
from flowscope.cluster.shipping.plans import TaskPart
from flowscope.cluster.watch.status import bytes_text
from flowscope.errors import UnavailableError
from flowscope.graph.operation import where
from flowscope.ops.host.py_functions import called_function
from flowscope.plan.ir.program import Node
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import wait_for

#: So long an error waits at most for what the scheduler says of a worker.
TOLD_S = 1.0
#: So long it waits for the end of a process of this machine after its connections have ended: a
#: process that is told to end closes them first.
_ENDS_S = 0.3
#: So long it waits for the end of the other connections with a worker, after that of one.
_CUT_S = 0.2
#: So often it looks whether that process has ended.
_LOOK_S = 0.05
#: So much later than the end of a worker its nanny's word of it may come.
_NANNY_S = 0.3
#: So many operations of a lost worker are named.
_MOST = 3
_COUNTERS = "/proc/vmstat"

LifeEnd = Literal["connected", "cut", "over"]


class Losses:
    """Why tasks of a cluster were lost, by their lives.

    Args:
        end_of: How far a life of a task is from its end: "connected"; "cut", if its process is
            known to run but no connection is left; "over", if it is not known to run.
    """

    def __init__(self, end_of: Callable[[str, int], LifeEnd]) -> None:
        self._end_of = end_of
        self._told: dict[tuple[str, int], str] = {}
        #: Of which lives a nanny may still tell why they ended.
        self._open: set[tuple[str, int]] = set()
        self._waiting: set[Waiter] = set()

    def tell(self, task: str, incarnation: int, why: str, may_follow: bool) -> None:
        """Takes what is known of the end of a task; "" if only that it has ended.

        Args:
            task: Its name.
            incarnation: Which life of it.
            why: Why it has ended.
            may_follow: Whether its nanny may still tell that it has ended it.
        """
        self._told[task, incarnation] = why
        if may_follow and not why:
            self._open.add((task, incarnation))
        else:
            self._open.discard((task, incarnation))
        for waiter in list(self._waiting):
            waiter.wake()

    def explained(
        self, error: BaseException, lives: Mapping[str, int], parts: Iterable[TaskPart]
    ) -> str:
        """Returns why tasks of a step were lost, and what they ran of it; "" if none was.

        Args:
            error: What has ended the step.
            lives: The tasks, and which lives of them.
            parts: What they run of the step.
        """
        if not isinstance(error, UnavailableError):
            return ""
        self._wait(lives)
        lost = [life for life in lives.items() if life in self._told]
        why = [f"{task}: {self._told[task, life]}" for task, life in lost if self._told[task, life]]
        return "; ".join([*why, *ran(parts, [task for task, _ in lost])])

    def _wait(self, lives: Mapping[str, int]) -> None:
        """Waits for what the scheduler says, while it may be going to say something."""
        begin = time.monotonic()
        while not self._heard(lives, _LOOK_S):
            ends = {self._end_of(*life) for life in lives.items()}
            if "over" in ends:
                self._heard(lives, begin + TOLD_S - time.monotonic())
                break
            if time.monotonic() > begin + (_ENDS_S if "cut" in ends else _CUT_S):
                return
        self._until(lambda: not any(life in self._open for life in lives.items()), _NANNY_S)
        self._open.difference_update(lives.items())

    def _heard(self, lives: Mapping[str, int], timeout_s: float) -> bool:
        """Waits until the scheduler has said something of one of some tasks."""
        return self._until(lambda: any(life in self._told for life in lives.items()), timeout_s)

    def _until(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        waiter = Waiter()
        self._waiting.add(waiter)
        try:
            return wait_for(
                is_so,
                waiter,
                what="for what the scheduler says of a lost worker",
                until=time.monotonic() + timeout_s,
                owned_by=None,
            )
        finally:
            self._waiting.discard(waiter)


def removed_why(event: Mapping[str, Any], oom_kills: int | None) -> str:
    """Returns why a worker has gone, of what the registry tells of its end; "" if that is open.

    Args:
        event: What the registry tells.
        oom_kills: How many processes of its machine the system had killed when it was started; None
            where its machine is another one.
    """
    if event.get("used_bytes"):
        used, limit = bytes_text(event["used_bytes"]), event["limit_bytes"]
        of = f" of the {bytes_text(limit)} that Dask lets it have" if limit else ""
        return (
            f"it ran out of memory: its nanny has ended it when it used {used}{of}. Give workers "
            "more (memory_limit=), or have them hold less"
        )
    now = killed_for_memory()
    if oom_kills is not None and now is not None and now > oom_kills:
        return (
            "its machine has run out of memory since it was started, and the system has killed "
            "processes for it (oom_kill): let the workers of a machine hold less"
        )
    return ""


def runs_here(task: Task) -> bool:
    """Whether the process of a task is one of this machine, and has not ended."""
    if task.host != socket.gethostname():
        return False
    try:
        process = psutil.Process(task.pid)
        is_same = abs(process.create_time() - task.started) < 1.0
        return is_same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def killed_for_memory(path: str = _COUNTERS) -> int | None:
    """Returns how many processes this machine's system has killed because memory ran out.

    None where the system does not tell.

    Args:
        path: The file of the system's counters.
    """
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def ran(parts: Iterable[TaskPart], lost: Iterable[str]) -> list[str]:
    """Returns which operations lost tasks ran, as an error says it."""
    gone = set(lost)
    nodes = {
        part.task: [n for p in part.partitions for n in p.program.walk() if n.origins]
        for part in parts
        if part.task in gone
    }
    return [f"{task} ran {_named(found)}" for task, found in nodes.items() if found]


def _named(nodes: Sequence[Node]) -> str:
    """Returns the names and lines of some nodes' operations, functions of the user's first."""
    ordered = sorted(nodes, key=lambda n: called_function(n.op) is None)
    names = list(dict.fromkeys(_with_line(n) for n in ordered))
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def _with_line(node: Node) -> str:
    made = where(node.origins[0])["origin"]
    return f'"{node.name}"' + (f" (made in {made})" if made else "")


__all__ = ["TOLD_S", "LifeEnd", "Losses", "killed_for_memory", "ran", "removed_why", "runs_here"]
