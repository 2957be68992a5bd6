"""Clusters in this process, without Dask: hosts, and this process connected with them as a client.

A server of a cluster of one task is one. Several of them make another one together where a session
lists them (`ConfigProto.cluster_def`): each is a task of it under a name that the list gives it.
"""

from __future__ import annotations

import math
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psutil

from flowscope.cluster.client.membership import Cluster
from flowscope.cluster.membership.members import Attached
from flowscope.cluster.membership.session_tasks import listed_tasks
from flowscope.cluster.membership.tasks import DeviceInfo, Task, task_name
from flowscope.cluster.membership.versions import versions
from flowscope.cluster.worker.host import Host
from flowscope.errors import InvalidArgumentError, UnavailableError
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.session.engine import current

if TYPE_CHECKING:
    from flowscope.runtime.config import ClusterDef

_SECRET_BYTES = 32
#: What targets begin with.
_SCHEME = "flowscope://"


class LocalServer:
    """A host in this process, with a cluster of this one task.

    Args:
        job, index: Which task it is.
        address: "host:port" to listen at; port 0 for any.
        config: Says which devices it has.

    Attributes:
        target: What sessions find it by.
    """

    def __init__(self, job: str, index: int, address: str, config: ConfigProto | None) -> None:
        secret = secrets.token_bytes(_SECRET_BYTES)
        self.host, task = _hosted(job, index, secret, host_and_port(address), config)
        try:
            self.cluster = Cluster(LocalTasks((task,), secret, config=config))
        except BaseException:
            self.host.close()
            raise
        self.target = self.cluster.target

    def close(self) -> None:
        """Ends the host, and the clusters that it has made with other servers."""
        for cluster in list(current().clusters.values()):
            if not isinstance(cluster, Cluster) or not isinstance(cluster.dask, LocalTasks):
                continue
            if self.target in cluster.dask.servers:
                cluster.close()
        self.cluster.close()
        self.host.close()


def _hosted(
    job: str, index: int, secret: bytes, address: tuple[str, int], config: ConfigProto | None
) -> tuple[Host, Task]:
    """Returns a new host in this process, and the task that it is."""
    name = task_name(job, index)
    host = Host(name, secret, *address, config=config)
    endpoint = host.endpoint
    devices = [DeviceInfo(d.name, d.device_type, d.memory_limit_bytes) for d in host.devices]
    task = Task(
        name=name,
        job=job,
        index=index,
        worker="",
        dask_address="",
        address=endpoint.address,
        incarnation=endpoint.incarnation,
        devices=tuple(devices),
        pid=os.getpid(),
        started=psutil.Process().create_time(),
        host=socket.gethostname(),
        memory_limit=0,
        versions=versions(),
        oom_kills=None,
    )
    return host, task


class LocalTasks:
    """Members of a cluster whose tasks are all in this process, without Dask; see `Members`.

    Args:
        tasks: The tasks.
        secret: What they know each other by.
        hosts: Those of their hosts that end with the cluster.
        servers: The targets of the servers that make it together, by the tasks that they are.
        config: Which devices its server has.
    """

    dashboard_link = ""
    scheduler_id = ""
    is_open = True

    def __init__(
        self,
        tasks: Sequence[Task],
        secret: bytes,
        hosts: Sequence[Host] = (),
        servers: Mapping[str, str] | None = None,
        config: ConfigProto | None = None,
    ) -> None:
        self._tasks, self._secret, self._hosts = tasks, secret, hosts
        self.config = config
        self.servers = list((servers or {}).values())
        host, port = tasks[0].address
        self.address = f"{_SCHEME}{host}:{port}"
        if servers:
            self.address = _joined_target(servers)

    def attach(
        self,
        jobs: Any,
        config: Any,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        until: float = math.inf,
    ) -> Attached:
        """The secret and the tasks, for a client that connects."""
        return Attached(self._secret, [task.told() for task in self._tasks], None, "127.0.0.1")

    def log(self, event: dict[str, Any]) -> None:
        """Does nothing: there is no log."""

    def ask_beside(self, worker: str, function: Any, *arguments: Any, timeout_s: float) -> Any:
        """Raises: there is nobody beside this process."""
        raise UnavailableError("there is no other process on its machine")

    def joined(self, cluster_def: ClusterDef) -> Cluster | None:
        """Returns the cluster that servers of this process make together, which stays until one of
        them ends.

        Raises:
            InvalidArgumentError: if an address is none of a server of this process.
        """
        if self.servers or not cluster_def.job:
            return None
        servers = {name: _server_at(address) for name, address in listed_tasks(cluster_def).items()}
        known = current().clusters.get(_joined_target(servers))
        return known if isinstance(known, Cluster) else _joined(cluster_def, servers)

    def close(self) -> None:
        """Ends the hosts that belong to the cluster alone."""
        for host in self._hosts:
            host.close()


def _joined_target(servers: Mapping[str, str]) -> str:
    parts = [f"{name}={target.removeprefix(_SCHEME)}" for name, target in servers.items()]
    return _SCHEME + ",".join(parts)


def _server_at(address: str) -> str:
    """Returns the target of the server of this process at an address, or with this target."""
    host, port = host_and_port(address.rpartition("/")[2])
    target = f"{_SCHEME}{host}:{port}"
    members = getattr(current().clusters.get(target), "dask", None)
    if not isinstance(members, LocalTasks):
        raise InvalidArgumentError(
            f"expected cluster_def to list servers of one task each that run in this process, got "
            f"the address {address!r}: the tasks of other clusters are in the ClusterSpec that "
            "their servers have"
        )
    return target


def _joined(cluster_def: ClusterDef, servers: Mapping[str, str]) -> Cluster:
    """Makes a host for each task that a `ClusterDef` lists, with the devices of its server."""
    secret, hosts, tasks = secrets.token_bytes(_SECRET_BYTES), [], []
    try:
        for job in cluster_def.job:
            for index in job.tasks:
                target = servers[task_name(job.name, index)]
                config = current().clusters[target].dask.config  # type: ignore[attr-defined]
                host, task = _hosted(job.name, index, secret, ("127.0.0.1", 0), config)
                hosts.append(host)
                tasks.append(task)
        return Cluster(LocalTasks(tasks, secret, hosts, servers))
    except BaseException:
        for host in hosts:
            host.close()
        raise


def host_and_port(address: str) -> tuple[str, int]:
    """Returns the IP address and the port of "host:port".

    Raises:
        InvalidArgumentError: if it is none.
        UnavailableError: if nobody knows the host's name.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidArgumentError(f'expected an address as "host:port", got {address!r}')
    try:
        return socket.gethostbyname(host), int(port)
    except OSError as e:
        raise UnavailableError(f'the host of the address "{address}" is not known: {e}') from e


__all__ = ["LocalServer", "LocalTasks", "host_and_port"]
