"""`fs.train.Server`: a task of a cluster in this process.

A cluster of one task needs nothing else. The tasks of a larger one make a Dask cluster.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from flowscope.cluster.servers.connecting import need_dask
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from flowscope.runtime.config import ConfigProto
from flowscope.train.cluster.cluster_spec import ClusterSpec
from flowscope.train.cluster.server_def import ServerDef

if TYPE_CHECKING:
    from flowscope.cluster.servers.local_server import LocalServer
    from flowscope.cluster.servers.task_server import TaskServer

#: The job of `create_local_server`.
_LOCAL_JOB = "local"
#: So often a thread that waits can be interrupted.
_LOOK_S = 0.25


class Server:
    """A task in this process: sessions reach it, and its cluster, by its `target`.

        server = fs.train.Server(spec, job_name="worker", task_index=1)
        with fs.Session(server.target) as sess:
            ...

    Each process of a cluster makes the server of its task, in any order. A session waits for the
    tasks that its graph asks for - for all while it asks for none - 600 s, or as long as
    `ConfigProto.operation_timeout_in_ms` says, and names those that are missing. All sessions share
    what lies in the default container, as in TensorFlow.

    The first parameter server - where there is no job "ps", the first task of the job that is
    first in the alphabet - also keeps the list of who is there. When its process ends, the others
    lose their values; they join again when it is restarted, and a `MonitoredTrainingSession` goes
    on from the last checkpoint.

    Args:
        server_or_cluster_def: A `ClusterSpec` or what makes one, or a `ServerDef`, which says all
            that other arguments do not. Where the cluster has one task, port 0 of its address
            stands for any.
        job_name, task_index: Which of the tasks this process is. The job may be left out where
            there is one, and the number where the job has one task.
        protocol: None or "grpc": how it is called in TensorFlow.
        config: Says which devices it has.
        start: Whether it is started at once.

    Raises:
        UnimplementedError: for another protocol, or if Dask is not installed.
        InvalidArgumentError: if the cluster has no such task, or an address is none.
        UnavailableError: if its address is not this machine's, or in use.
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
        if isinstance(given := server_or_cluster_def, ServerDef):
            server_or_cluster_def = given.cluster
            job_name = job_name or given.job_name or None
            task_index = given.task_index if task_index is None else task_index
            protocol = protocol or given.protocol or None
            config = config or given.default_session_config
        if config is not None and not isinstance(config, ConfigProto):
            raise DTypeError(f"expected a ConfigProto as config, got {config!r}")
        if protocol not in (None, "grpc"):
            raise UnimplementedError(f"expected None or 'grpc' as protocol, got {protocol!r}")
        spec = ClusterSpec(server_or_cluster_def)
        self._job, self._index = _own_task(spec, job_name, task_index)
        self._spec = spec
        self._config = config
        self._server: LocalServer | TaskServer | None = None
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
    def server_def(self) -> ServerDef:
        """Which task of which cluster it is."""
        return ServerDef(
            cluster=self._spec.as_cluster_def(),
            job_name=self._job,
            task_index=self._index,
            default_session_config=self._config or ConfigProto(),
            protocol="grpc",
        )

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
            self._server = self._started()

    def join(self) -> None:
        """Waits until it is stopped, which an interrupt or another thread's `stop` does.

        Raises:
            FailedPreconditionError: if the cluster does not take it: it has another version.
        """
        from flowscope.cluster.servers.task_server import TaskServer  # it needs Dask

        while not self._ended.wait(_LOOK_S):
            if isinstance(self._server, TaskServer) and self._server.wait(0.0):
                return

    def stop(self) -> None:
        """Ends it, and what runs on it; its values are gone."""
        if self._server is not None:
            self._server.close()
        self._ended.set()

    def _started(self) -> LocalServer | TaskServer:
        tasks = _tasks(self._spec)
        if len(tasks) == 1:
            from flowscope.cluster.servers.local_server import (
                LocalServer,  # it needs Dask's packages
            )

            address = tasks[self._job, self._index]
            return LocalServer(self._job, self._index, address, self._config)
        need_dask()
        from flowscope.cluster.servers.task_server import TaskServer  # it needs Dask

        return TaskServer(tasks, self._job, self._index, self._config)

    def __repr__(self) -> str:
        state = "not started" if self._server is None else self._server.target
        return f"<fs.train.Server /job:{self._job}/task:{self._index}: {state}>"


def _tasks(spec: ClusterSpec) -> dict[tuple[str, int], str]:
    return {(j, i): spec.task_address(j, i) for j in spec.jobs for i in spec.task_indices(j)}


def _own_task(spec: ClusterSpec, job: str | None, index: int | None) -> tuple[str, int]:
    if job is None and len(spec.jobs) != 1:
        raise InvalidArgumentError(
            f"expected a job_name, for the cluster has {len(spec.jobs)} jobs: {spec.jobs}"
        )
    job = spec.jobs[0] if job is None else job
    if index is None:
        if spec.num_tasks(job) != 1:
            raise InvalidArgumentError(
                f'expected a task_index, for the job "{job}" has tasks {spec.task_indices(job)}'
            )
        index = spec.task_indices(job)[0]
    spec.task_address(job, index)  # raises if there is none
    return job, index


__all__ = ["Server"]
