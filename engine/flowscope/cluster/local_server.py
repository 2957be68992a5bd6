"""A cluster of one task in this process: a host, and this process connected with it as a client."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from typing import Any

import psutil

from flowscope.cluster.host import Host
from flowscope.cluster.members import Attached
from flowscope.cluster.membership import Cluster
from flowscope.cluster.tasks import DeviceInfo, Task, task_name
from flowscope.errors import InvalidArgumentError, UnavailableError
from flowscope.runtime.config import ConfigProto

_SECRET_BYTES = 32


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
        name, secret = task_name(job, index), secrets.token_bytes(_SECRET_BYTES)
        self.host = Host(name, secret, *host_and_port(address), config=config)
        endpoint = self.host.endpoint
        devices = [
            DeviceInfo(d.name, d.device_type, d.memory_limit_bytes) for d in self.host.devices
        ]
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
        )
        try:
            self.cluster = Cluster(OneTask(task, secret))
        except BaseException:
            self.host.close()
            raise
        self.target = self.cluster.target

    def close(self) -> None:
        """Ends the host."""
        self.cluster.close()
        self.host.close()


class OneTask:
    """Members of a cluster that has one task, and no Dask; see `members.Members`."""

    dashboard_link = ""
    scheduler_id = ""

    def __init__(self, task: Task, secret: bytes) -> None:
        self._task = task
        self._secret = secret
        host, port = task.address
        self.address = f"flowscope://{host}:{port}"

    def attach(
        self, jobs: Any, config: Any, on_event: Callable[[dict[str, Any]], None] | None = None
    ) -> Attached:
        """Returns what is known of the task."""
        return Attached(self._secret, [self._task.told()], None, "127.0.0.1")

    def log(self, event: dict[str, Any]) -> None:
        """Does nothing: there is no log."""

    def ask_beside(self, worker: str, function: Any, *arguments: Any, timeout_s: float) -> Any:
        """Raises: there is nobody beside this process."""
        raise UnavailableError("there is no other process on its machine")

    def close(self) -> None:
        """Does nothing: nothing was opened."""


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


__all__ = ["LocalServer", "OneTask", "host_and_port"]
