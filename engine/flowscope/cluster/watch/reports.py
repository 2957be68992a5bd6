"""What a process of a cluster tells of itself: the answers to "clock" and "status"."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import psutil

from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.runtime.state.queue_state import QueueState


def clock() -> float:
    """Returns this process' clock, which its traces go by, in seconds."""
    return time.perf_counter()


def clock_report() -> dict[str, Any]:
    """Returns the answer to the control message "clock"."""
    return {"now": clock()}


def status_report(
    endpoint: Endpoint,
    *,
    steps: int = 0,
    running: int = 0,
    held_bytes: int = 0,
    queues: Iterable[QueueState] = (),
    queue_waits: Iterable[tuple[StepId, str, str, float]] = (),
    gone: Sequence[int] = (),
) -> dict[str, Any]:
    """Returns the answer to the control message "status", as plain data.

    Args:
        endpoint: The process' end: its open steps say who waits.
        steps: How many steps it has taken part in.
        running: How many run now.
        held_bytes: Bytes of the values that its variables and queues hold.
        queues: Its queues.
        queue_waits: Which steps wait for queues: the step, its device, the queue, and for how long.
        gone: The positions of what it was asked about and does not have.
    """
    peers = list(endpoint.counters().values())
    return {
        "memory": psutil.Process().memory_info().rss,
        "held": held_bytes,
        "gone": list(gone),
        "steps": steps,
        "running": running,
        "transports": sorted({"sockets" if p.is_direct else "dask" for p in peers}),
        "encrypted": endpoint.is_sealed,
        "traffic": [sum(p.sent_bytes for p in peers), sum(p.received_bytes for p in peers)],
        "queues": [_fill(q) for q in queues],
        "queue_waits": [[f"{step.client:x}", step.number, *told] for step, *told in queue_waits],
        "waits": [
            [f"{step.client:x}", step.number, pending.key, pending.seconds, pending.is_producer,
             pending.is_on_way]
            for step, channel in endpoint.open_steps()
            for pending in channel.pending()
        ],
    }  # fmt: skip


def _fill(queue: QueueState) -> list[Any]:
    """What is told of a queue: the fields of a `QueueFill`."""
    stamp, dropped = getattr(queue, "stamp", None), getattr(queue, "dropped", 0)
    return [queue.name, queue.size, queue.capacity, *queue.waiting, stamp, dropped]


__all__ = ["clock", "clock_report", "status_report"]
