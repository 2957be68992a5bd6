"""What control messages lead to, in a host: each part of the cluster registers its own kinds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.cluster.watch.reports import clock_report, status_report
from flowscope.cluster.watch.state_book import gone_of
from flowscope.runtime.state.queue_state import QueueState

if TYPE_CHECKING:
    from flowscope.cluster.worker.host import Host


def register(host: Host) -> None:
    """Fills a host's handlers, before anybody can connect."""

    def status(peer: str, message: dict[str, Any]) -> dict[str, Any]:
        gone = gone_of(message.get("had", ()), partial(host.container, peer))
        others = [other for container in host.containers() for other in container.others()]
        queues = [q for q in others if isinstance(q, QueueState)]
        return status_report(
            host.endpoint,
            steps=host.steps.done,
            running=host.steps.running,
            held_bytes=host.held_bytes(),
            queues=queues,
            queue_waits=host.steps.queue_waits(queues),
            gone=gone,
        )

    host.handlers["clock"] = lambda peer, message: clock_report()
    host.handlers["status"] = status


__all__ = ["register"]
