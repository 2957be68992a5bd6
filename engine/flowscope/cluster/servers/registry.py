"""The cluster's registry: a plugin of Dask's scheduler, one per cluster, where tasks are known.

Workers and clients reach it by handlers of the scheduler's own. It gives tasks to workers, hands
out the secret by which processes know each other, tells clients by events of Dask's log who comes
and goes, and keeps workers that hold variables from being chosen when the cluster gets smaller.

It runs on the scheduler's event loop, so it needs no lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from distributed.core import Status
from distributed.diagnostics.plugin import SchedulerPlugin

from flowscope.cluster.membership.tasks import TaskNumbers, WorkerFacts
from flowscope.cluster.servers.dask_comm import RELAY, relay
from flowscope.errors import FailedPreconditionError, UnavailableError

#: The names of the plugins, and of the topic of their events in Dask's log.
NAME = "flowscope"
#: The topic under which nannies tell that they end workers for their memory.
_MEMORY = "worker-restart-memory"
#: So many workers that went are kept in mind, for what their nannies may still tell of them.
_GONE_KEPT = 64
#: What Dask's dashboard shows of a worker.
HELD_METRIC = "flowscope bytes held"
STEPS_METRIC = "flowscope steps"


class Registry(SchedulerPlugin):
    """Knows the tasks of a cluster. See the module.

    Args:
        version: The client's version of flowscope.
        secret: What processes of the cluster know each other by.
        jobs: The names of workers by jobs.
        expected: The addresses of the tasks that the cluster is to have, by their names, where its
            workers are `train.Server`s; these bring their hosts themselves.
    """

    name = NAME
    idempotent = True

    def __init__(
        self,
        version: str,
        secret: bytes,
        jobs: Mapping[str, Sequence[str]],
        expected: Mapping[str, str] | None = None,
    ) -> None:
        self.version = version
        self._expected = dict(expected or {})
        self._secret = secret
        self._numbers = TaskNumbers(jobs)
        #: What ready hosts tell, by the workers' addresses.
        self._hosts: dict[str, dict[str, Any]] = {}
        #: The bytes that workers used whose nannies end them for it, by the workers' addresses.
        self._used: dict[str, int] = {}
        #: What has been told of the last workers that went, by their addresses.
        self._gone: dict[str, dict[str, Any]] = {}

    async def start(self, scheduler: Any) -> None:
        """Begins to serve, on the scheduler."""
        self._scheduler = scheduler
        self._numbers.add(_facts(ws) for ws in scheduler.workers.values())
        scheduler.handlers.update(
            {
                "flowscope_attach": self.attach,
                "flowscope_enter": self.enter,
                "flowscope_ready": self.ready,
                RELAY: self.relay,
            }
        )

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """Gives a task to a worker that has come."""
        self._numbers.add([_facts(scheduler.workers[worker])])

    def remove_worker(self, scheduler: Any, worker: str, **details: Any) -> None:
        """Tells that a worker has gone."""
        found = self._hosts.pop(worker, None)
        if found is not None:
            told = {
                "event": "removed",
                "task": found["name"],
                "incarnation": found["incarnation"],
                "used_bytes": self._used.pop(worker, 0),
                "limit_bytes": found["memory_limit"],
            }
            scheduler.log_event(NAME, told)
            self._gone[worker] = told
            if len(self._gone) > _GONE_KEPT:
                del self._gone[next(iter(self._gone))]

    def log_event(self, topic: str, msg: Any) -> None:
        """Notes what a nanny tells of a worker that it ends because of its memory.

        Its message and the end of the worker's connection come in any order.
        """
        if topic != _MEMORY:
            return
        if msg["worker"] in self._hosts:
            self._used[msg["worker"]] = msg["rss"]
        elif told := self._gone.pop(msg["worker"], None):
            late = {**told, "event": "memory", "used_bytes": msg["rss"]}
            self._scheduler.log_event(NAME, late)

    def valid_workers_downscaling(self, scheduler: Any, workers: list[Any]) -> list[Any]:
        """Returns those of some workers that may go: the ones that hold no values."""
        return [ws for ws in workers if not ws.metrics.get(HELD_METRIC)]

    # -- what clients and workers ask -------------------------------------------------------------

    def attach(self, version: str, jobs: dict[str, list[str]]) -> dict[str, Any]:
        """The secret and the workers, for a client that connects.

        Raises:
            FailedPreconditionError: if it has another version, or wants other tasks.
        """
        self._check("this client", version)
        self._numbers.assign(jobs)
        return {
            "secret": self._secret,
            "hosts": list(self._hosts.values()),
            "expected": self._expected,
        }

    def enter(self, address: str, version: str) -> dict[str, Any]:
        """Returns which task a worker is.

        Raises:
            FailedPreconditionError: if it has another version.
            UnavailableError: if the scheduler does not know it.
        """
        self._check(f"the worker at {address}", version)
        worker = self._scheduler.workers.get(address)
        if worker is None:
            raise UnavailableError(f"the scheduler does not know a worker at {address}")
        job, index = self._numbers.task_of(_facts(worker))
        return {"job": job, "index": index, "secret": self._secret, "worker": str(worker.name)}

    def ready(self, host: dict[str, Any]) -> None:
        """Takes what a host tells that can be connected with.

        Raises:
            UnavailableError: if the scheduler does not know its worker.
        """
        address = host["dask_address"]
        if address not in self._scheduler.workers:
            raise UnavailableError(f"the scheduler does not know a worker at {address}")
        self._hosts[address] = host
        self._scheduler.log_event(NAME, {"event": "ready", "task": host["name"], "host": host})

    async def relay(self, comm: Any, address: str) -> Status:
        """Leads a connection of a client's to a worker that the client does not reach."""
        if address not in self._hosts:
            comm.abort()
            return Status.dont_reply
        return await relay(comm, address, self._scheduler.connection_args)

    def _check(self, who: str, version: str) -> None:
        if version != self.version:
            raise FailedPreconditionError(
                f"{who} has flowscope {version}, and this cluster has {self.version}: all of its "
                "processes need the same version; install it there, or restart the cluster"
            )


def _facts(worker: Any) -> WorkerFacts:
    return WorkerFacts(str(worker.name), worker.address, worker.resources)


__all__ = ["HELD_METRIC", "NAME", "STEPS_METRIC", "Registry"]
