"""What a view is told of a cluster: a part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.cluster.watch.status import (
    ClusterStatus,
    Finding,
    LostState,
    QueueFill,
    WaitStatus,
    WorkerStatus,
)
from flowscope.live.protocol.questions import Answer, Question


@dataclass(frozen=True)
class AskCluster(Question):
    """A view asks how the cluster is; the answer is one `Cluster`, which may take a moment."""

    view: int
    request_id: int
    kind: Literal["ask_cluster"] = "ask_cluster"


@dataclass(frozen=True)
class Cluster(Answer, to=AskCluster):
    """The answer to `AskCluster`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: None where this process is connected to no cluster.
    status: ClusterStatus | None
    #: The view that it is for.
    view: int = 0
    kind: Literal["cluster"] = "cluster"


__all__ = [
    "AskCluster", "Cluster", "ClusterStatus", "Finding", "LostState", "QueueFill", "WaitStatus",
    "WorkerStatus",
]  # fmt: skip
