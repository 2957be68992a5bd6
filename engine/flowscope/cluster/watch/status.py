"""What is told of a cluster: its workers, what they hold, and what each waits for.

Plain records: a view is told them as they are (`live.protocol.cluster_schema`), so their fields
are numbers, texts and tuples of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, get_args

from flowscope.graph.summary import counted

#: "ok": it answers. "busy": it does not, and uses its processor: a kernel may hold the interpreter.
#: "hung": it does not, and does nothing. "lost": its process has ended, or it has left the cluster.
Health = Literal["ok", "busy", "hung", "lost"]
#: What containers hold.
Kind = Literal["variable", "queue", "lock", "table", "staging area", "accumulator", "reader"]

_HEAD = (
    "task", "worker", "host", "pid", "devices", "memory", "held", "steps", "transport", "health"
)  # fmt: skip
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class QueueFill:
    """How full a queue or an accumulator of a worker is."""

    name: str
    size: int
    capacity: int
    #: Operations that wait for space, and those that wait for elements.
    enqueues: int
    dequeues: int
    #: Of an accumulator, whose capacity is the number of gradients that whoever takes them needs:
    #: its time stamp, and how many stale gradients it has dropped.
    stamp: int | None = None
    dropped: int = 0


@dataclass(frozen=True)
class LostState:
    """Something that sessions of this client had on a worker, and that was lost with it."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class WaitStatus:
    """A device waits for another one, or for a queue, within a step."""

    #: Whose step it is, and which: two clients may count alike.
    client: str
    step: int
    #: The device that waits.
    device: str
    #: The device that it waits for; "" where it waits for a queue.
    peer: str
    #: The tensor or the queue.
    what: str
    #: "value": for a value that the peer sends. "credit": for the peer to read what was sent.
    #: "transfer": for a large value that is on its way. "queue": for a queue to have elements, or
    #: space.
    kind: Literal["value", "credit", "transfer", "queue"]
    seconds: float


@dataclass(frozen=True)
class WorkerStatus:
    """One process of a cluster."""

    #: Its task: "/job:worker/replica:0/task:3".
    task: str
    #: Its name in Dask; "" of the client.
    worker: str
    #: Which life of that worker it is: a worker that was started again has another one.
    incarnation: str
    host: str
    pid: int
    devices: tuple[str, ...]
    health: Health
    #: Why it is not "ok"; "" where it is.
    reason: str
    #: Seconds since it has answered.
    silent_s: float
    #: Memory of its process, and what Dask lets it use; None where it is not known or not limited.
    memory_bytes: int | None
    memory_limit: int | None
    #: Bytes of the values that its variables and queues hold.
    held_bytes: int
    #: Steps that it has taken part in, and those that run.
    steps: int
    running: int
    #: Bytes that it has sent to other processes, and received; None where they are not counted.
    sent_bytes: int | None
    received_bytes: int | None
    #: So far its clock is ahead of the client's, and the most that this can be wrong; None where
    #: it was not measured.
    clock_ahead_s: float | None
    clock_error_s: float | None
    #: What a message from the client takes there and back, and the bytes a second that go there;
    #: None where it was not measured. Placement by cost measures both.
    round_trip_s: float | None
    bytes_per_s: float | None
    queues: tuple[QueueFill, ...]
    #: What its connections with other processes are: "sockets" of their own, "dask" for those over
    #: Dask's ports, or "dask and sockets"; "" where it has none.
    transport: str = ""
    #: Whether they are encrypted by TLS: where Dask's are, those of sockets are, too.
    is_encrypted: bool = False
    #: What it had before it was started again, and has not yet: until it is restored, initialised
    #: or made anew.
    lost: tuple[LostState, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One sentence on why steps do not go on."""

    #: "cycle": devices wait for each other in a circle. "state": a worker was started again, and
    #: what it had is gone. "waits": nothing is wrong but the length.
    kind: Literal["cycle", "lost", "hung", "state", "busy", "waits"]
    text: str
    #: The tasks that it is about, the one to blame first.
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster at one moment.

    `print(cluster.status())` shows it as a table.
    """

    #: What a session finds the cluster by.
    target: str
    #: Address of Dask's scheduler, and of its dashboard; "" where there is none.
    scheduler: str
    dashboard: str
    #: The client first.
    workers: tuple[WorkerStatus, ...]
    #: The longest wait first.
    waits: tuple[WaitStatus, ...]
    #: The gravest first.
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        rows = [_HEAD, *[_cells(worker) for worker in self.workers]]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines += [finding.text for finding in self.findings]
        return "\n".join([*lines, *([f"Dask: {self.dashboard}"] if self.dashboard else [])])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(worker)) + "</tr>"
            for worker in self.workers
        )
        findings = "".join(f"<p>{escape(finding.text)}</p>" for finding in self.findings)
        link = ""
        if self.dashboard.startswith(("http://", "https://")):
            link = f'<p><a href="{escape(self.dashboard)}" target="_blank">Dask dashboard</a></p>'
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return table + findings + link


def short_task(task: str) -> str:
    """Returns a task as a sentence says it: "worker 3"; "the client"."""
    parts = _fields(task)
    if parts.get("job") == "client":
        return "the client"
    return f"{parts.get('job', task)} {parts.get('task', '')}".rstrip()


def short_device(device: str) -> str:
    """Returns a device as a sentence says it: "worker 3", or "GPU:1 of worker 3"."""
    kind = device.rpartition("device:")[2]
    task = short_task(task_of(device))
    return task if kind == "CPU:0" else f"{kind} of {task}"


def task_of(device: str) -> str:
    """Returns the task of a device: what stands before "/device:"."""
    return device.partition("/device:")[0]


def lost_text(lost: Sequence[LostState]) -> str:
    """Lost state in words: "2 variables and 1 queue"."""
    kinds = dict.fromkeys([k for k in get_args(Kind) for one in lost if one.kind == k])
    found = [counted(sum(one.kind == k for one in lost), k) for k in kinds]
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def bytes_text(count: int) -> str:
    """Returns a number of bytes with a unit, in three digits."""
    value = float(count)
    unit = 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"


def _fields(task: str) -> dict[str, str]:
    pairs = [part.partition(":") for part in task.split("/") if part]
    return {name: value for name, _, value in pairs}


def _cells(worker: WorkerStatus) -> Sequence[str]:
    limit = "" if worker.memory_limit is None else f" of {bytes_text(worker.memory_limit)}"
    memory = "" if worker.memory_bytes is None else bytes_text(worker.memory_bytes) + limit
    devices = " ".join(device.rpartition("device:")[2] for device in worker.devices)
    running = f" ({worker.running} run)" if worker.running else ""
    health = worker.health if not worker.reason else f"{worker.health}: {worker.reason}"
    health += f", {lost_text(worker.lost)} lost" if worker.lost else ""
    transport = worker.transport + (", TLS" if worker.transport and worker.is_encrypted else "")
    return (
        short_task(worker.task), worker.worker, worker.host, str(worker.pid), devices, memory,
        bytes_text(worker.held_bytes), f"{worker.steps}{running}", transport, health,
    )  # fmt: skip


__all__ = [
    "ClusterStatus",
    "Finding",
    "Health",
    "LostState",
    "QueueFill",
    "WaitStatus",
    "WorkerStatus",
    "bytes_text",
    "lost_text",
    "short_device",
    "short_task",
    "task_of",
]
