"""Answers what views ask about a cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from flowscope.cluster.watch.status import ClusterStatus
from flowscope.errors import OpError
from flowscope.live.answers.asking import Asked, Send, answers, refusals
from flowscope.live.answers.batches import Batches
from flowscope.live.protocol.cluster_schema import AskCluster, Cluster
from flowscope.runtime.session.engine import Engine


class HasStatus(Protocol):
    """What a `Cluster` is to a view."""

    def status(self) -> ClusterStatus:
        """Asks all workers how they are; waits for those that do not answer, but not for long."""


class ClusterQuestions:
    """Asks a cluster how it is, on a thread: a worker that hangs would hold up all messages.

    Questions that come while the workers are asked are answered with what they say next.
    """

    def __init__(self) -> None:
        self._batches: Batches[tuple[AskCluster, Callable[[Cluster], None]]]
        self._batches = Batches("flowscope cluster status")

    def ask(
        self, cluster: HasStatus | None, asked: AskCluster, send: Callable[[Cluster], None]
    ) -> None:
        """Has a question answered, through `send`, on this thread or another one."""
        if cluster is None:
            send(Cluster(asked.request_id, "", None, asked.view))
            return
        self._batches.put((asked, send), partial(_answer, cluster))


def _answer(cluster: HasStatus, asking: list[tuple[AskCluster, Callable[[Cluster], None]]]) -> None:
    status, error = _asked(cluster)
    for asked, send in asking:
        send(Cluster(asked.request_id, error, status, asked.view))


def cluster_in(engine: Engine) -> Any:
    """Returns the cluster that an engine was connected to last; None if there is none."""
    return next(reversed(list(engine.clusters.values())), None)


def _asked(cluster: HasStatus) -> tuple[ClusterStatus | None, str]:
    try:
        return cluster.status(), ""
    except OpError as e:
        return None, e.message


@answers(AskCluster)
def _live(channel: Asked, asked: AskCluster, send: Send) -> None:
    channel.part(ClusterQuestions).ask(cluster_in(channel.engine), asked, send)


@refusals(AskCluster)
def _refused(asked: AskCluster, why: str) -> Cluster:
    return Cluster(asked.request_id, why, None, asked.view)


__all__ = ["ClusterQuestions", "HasStatus", "cluster_in"]
