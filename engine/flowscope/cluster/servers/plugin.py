"""The plugin of Dask's workers: it starts a host in each worker, also in those that come later.

Dask's event loop never waits for a host: what takes time runs on other threads.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import dask
import psutil
from dask.utils import parse_timedelta
from distributed.comm.addressing import get_address_host
from distributed.core import Status
from distributed.diagnostics.plugin import WorkerPlugin

import flowscope
from flowscope.cluster.membership.tasks import DeviceInfo, Task, task_name
from flowscope.cluster.membership.versions import versions
from flowscope.cluster.servers.dask_comm import STREAM, DaskStreams
from flowscope.cluster.servers.dask_losses import is_loss
from flowscope.cluster.servers.registry import HELD_METRIC, NAME, STEPS_METRIC
from flowscope.cluster.transport.encoding.tls import TLSContexts
from flowscope.cluster.watch.losses import killed_for_memory
from flowscope.cluster.worker.client_watch import CLIENT_SILENCE_S
from flowscope.cluster.worker.host import Host
from flowscope.errors import FailedPreconditionError, UnavailableError
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.devices.device import Device

#: So often, and so many seconds apart, a worker asks that the scheduler does not know yet, or
#: whose connection with it was lost.
_TRIES = 100
_AGAIN_S = 0.1


async def _answer(ask: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
    """Returns the registry's answer; asks again while the scheduler does not know the worker, and
    where the connection with it was lost.
    """
    for _ in range(_TRIES):
        try:
            return await ask(**arguments)
        except UnavailableError:
            await asyncio.sleep(_AGAIN_S)
        except Exception as e:
            if not is_loss(e):
                raise
            await asyncio.sleep(_AGAIN_S)
    return await ask(**arguments)


class HostPlugin(WorkerPlugin):
    """Starts a host in a worker.

    Args:
        version: The client's version of flowscope.
        config: Says which devices the worker has.
        shares_values: See `Host`.

    Attributes:
        host: The host, in the worker.
    """

    name = NAME
    idempotent = True
    host: Host

    def __init__(self, version: str, config: ConfigProto, shares_values: bool = False) -> None:
        self._version = version
        self._config = config
        self._shares_values = shares_values

    async def setup(self, worker: Any) -> None:
        """Starts the host; tells the scheduler how it is reached."""
        if flowscope.__version__ != self._version:
            raise FailedPreconditionError(
                f"the worker at {worker.address} has flowscope {flowscope.__version__}, and this "
                f"cluster has {self._version}: install the same version there"
            )
        entered = await _answer(
            worker.scheduler.flowscope_enter,
            address=worker.address,
            version=flowscope.__version__,
        )
        name = task_name(entered["job"], entered["index"])
        tls = tls_contexts(worker.security, "worker") if is_sealed(worker.address) else None
        self.host = await asyncio.to_thread(
            Host,
            name,
            entered["secret"],
            _address_of(worker.address),
            tls=tls,
            config=self._config,
            shares_values=self._shares_values,
            client_silence_s=_client_silence_s(),
        )
        self._streams = DaskStreams(worker.loop, worker.security.get_connection_args("worker"))
        self.host.endpoint.dial = self._streams.dial
        worker.handlers[STREAM] = self._stream
        worker.metrics[HELD_METRIC] = self._held_bytes
        worker.metrics[STEPS_METRIC] = self._steps
        host = (await asyncio.to_thread(self._task, worker, entered)).told()
        await _answer(worker.scheduler.flowscope_ready, host=host)

    async def teardown(self, worker: Any) -> None:
        """Ends the host."""
        for metric in (HELD_METRIC, STEPS_METRIC):
            worker.metrics.pop(metric, None)
        worker.handlers.pop(STREAM, None)
        host = self.__dict__.pop("host", None)
        if host is not None:
            await asyncio.to_thread(host.close, "it was retired, or its cluster was closed")
            await asyncio.to_thread(self._streams.close)

    async def _stream(self, comm: Any) -> Status:
        """Takes a connection that has come over Dask's port."""
        return await self._streams.serve(comm, self.host.endpoint.take)

    def _task(self, worker: Any, entered: dict[str, Any]) -> Task:
        host = self.host
        limit = worker.memory_manager.memory_limit or 0
        devices = [
            DeviceInfo(d.name, d.device_type, _memory_of(d, int(limit))) for d in host.devices
        ]
        return Task(
            name=host.name,
            job=entered["job"],
            index=entered["index"],
            worker=entered["worker"],
            dask_address=worker.address,
            address=host.endpoint.address,
            incarnation=host.endpoint.incarnation,
            devices=tuple(devices),
            pid=os.getpid(),
            started=psutil.Process().create_time(),
            host=socket.gethostname(),
            memory_limit=int(limit),
            versions=versions(),
            oom_kills=killed_for_memory(),
        )

    def _held_bytes(self, worker: Any) -> int:
        return self.host.held_bytes()

    def _steps(self, worker: Any) -> int:
        return self.host.steps_done()


def _client_silence_s() -> float:
    """The time limit of silent clients in Dask's configuration, in seconds."""
    given = dask.config.get("flowscope.client-silence", CLIENT_SILENCE_S)
    return float(parse_timedelta(given))


def _memory_of(device: Device, limit: int) -> int:
    """Returns the bytes that a device has: of a CPU what Dask lets the worker use."""
    own = device.memory_limit_bytes
    return limit if device.device_type == "CPU" and limit else own


def is_sealed(address: str) -> bool:
    """Whether Dask seals what goes to an address."""
    return address.startswith(("tls://", "wss://"))


def tls_contexts(security: Any, role: str) -> TLSContexts:
    """Returns Dask's own contexts of TLS, of a client or a worker."""
    server = security.get_listen_args(role)["ssl_context"]
    client = security.get_connection_args(role)["ssl_context"]
    return TLSContexts(server, client)


def _address_of(dask_address: str) -> str:
    if dask_address.startswith("inproc://"):
        return "127.0.0.1"
    return str(get_address_host(dask_address))


__all__ = ["HostPlugin", "is_sealed", "tls_contexts"]
