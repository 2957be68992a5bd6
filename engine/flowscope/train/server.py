"""`fs.train.Server`: a task of a cluster in this process, without Dask's scheduler and workers.

Clusters of several processes are Dask's: `fs.cluster.connect`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from flowscope.runtime.config import ConfigProto
from flowscope.train.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from flowscope.cluster.local_server import LocalServer

#: The job of `create_local_server`.
_LOCAL_JOB = "local"
#: So often a thread that waits can be interrupted.
_LOOK_S = 0.25


class Server:
    """A task in this process: sessions reach it by its `target`, over sockets.

        server = fs.train.Server.create_local_server()
        with fs.Session(server.target) as sess:
            ...

    Args:
        server_or_cluster_def: A `ClusterSpec` or what makes one, with one task: the port of its
            address is the one that is listened at, 0 for any.
        job_name, task_index: Which of the tasks this process is; the only one by default.
        protocol: None or "grpc": how it is called in TensorFlow.
        config: Says which devices it has.
        start: Whether it is started at once.

    Raises:
        UnimplementedError: for a cluster of several tasks, or another protocol.
        InvalidArgumentError: if the cluster has no such task.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: ConfigProto | None = None,
        start: bool = True,
    ) -> None:
        if config is not None and not isinstance(config, ConfigProto):
            raise DTypeError(f"expected a ConfigProto as config, got {config!r}")
        if protocol not in (None, "grpc"):
            raise UnimplementedError(f"expected None or 'grpc' as protocol, got {protocol!r}")
        spec = ClusterSpec(server_or_cluster_def)
        self._job, self._index = _own_task(spec, job_name, task_index)
        self._spec = spec
        self._config = config
        self._server: LocalServer | None = None
        self._ended = threading.Event()
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: ConfigProto | None = None, start: bool = True) -> Server:
        """Returns a server of a cluster that has no other task: "/job:local/task:0".

        Args:
            config: Says which devices it has.
            start: Whether it is started at once.
        """
        return Server({_LOCAL_JOB: ["localhost:0"]}, config=config, start=start)

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The cluster that it belongs to, as it was given."""
        return self._spec

    @property
    def target(self) -> str:
        """What sessions find it by.

        Raises:
            FailedPreconditionError: if it was not started.
        """
        if self._server is None:
            raise FailedPreconditionError("the server has no target before it is started: start()")
        return self._server.target

    def start(self) -> None:
        """Starts it, unless it runs."""
        if self._server is None:
            from flowscope.cluster.local_server import LocalServer  # it needs Dask's packages

            address = self._spec.task_address(self._job, self._index)
            self._server = LocalServer(self._job, self._index, address, self._config)

    def join(self) -> None:
        """Waits until it is stopped, which an interrupt or another thread's `stop` does."""
        while not self._ended.wait(_LOOK_S):
            pass

    def stop(self) -> None:
        """Ends it, and what runs on it; its values are gone."""
        if self._server is not None:
            self._server.close()
        self._ended.set()

    def __repr__(self) -> str:
        state = "not started" if self._server is None else self._server.target
        return f"<fs.train.Server /job:{self._job}/task:{self._index}: {state}>"


def _own_task(spec: ClusterSpec, job: str | None, index: int | None) -> tuple[str, int]:
    tasks = [(j, i) for j in spec.jobs for i in spec.task_indices(j)]
    if job is None and len(spec.jobs) != 1:
        raise InvalidArgumentError(
            f"expected a job_name, for the cluster has {len(spec.jobs)} jobs: {spec.jobs}"
        )
    job = spec.jobs[0] if job is None else job
    if index is None:
        index = spec.task_indices(job)[0] if spec.num_tasks(job) == 1 else 0
    spec.task_address(job, index)  # raises if there is none
    if len(tasks) > 1:
        raise UnimplementedError(
            f"expected a cluster whose one task is this process, got {spec!r}: the processes of a "
            "larger one are Dask workers. Start `dask scheduler` once, in the place of this server "
            f'`dask worker SCHEDULER --name "{job}-{index}"`, and in the place of '
            "Session(server.target) use fs.Session(fs.cluster.connect(SCHEDULER))"
        )
    return job, index


__all__ = ["Server"]
