"""A task of a cluster that a `ClusterSpec` names: a Dask worker in this process.

The first task also runs Dask's scheduler, at its address; its worker has a port of its own. The
others' workers listen at their addresses, and wait for the scheduler, so tasks start in any order.
When the scheduler goes, each worker ends, and with it the values that it has; another one takes its
place, which waits until the scheduler is there again. Where Dask's configuration asks for TLS, all
of it has TLS.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from distributed import Scheduler, Worker
from distributed.utils import silence_logging_cmgr

import flowscope
from flowscope.cluster.membership.tasks import task_name
from flowscope.cluster.servers.dask_security import configured_security
from flowscope.cluster.servers.local_server import host_and_port
from flowscope.cluster.servers.plugin import HostPlugin
from flowscope.cluster.servers.registry import NAME, Registry
from flowscope.errors import InvalidArgumentError, OpError, UnavailableError
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.session.engine import current
from flowscope.runtime.waits.waiting import join, result_of

_SECRET_BYTES = 32
#: So long after a worker that could not start the next one is tried.
_AGAIN_S = 0.2
#: So long a scheduler may take to start, and a server to stop.
_WAIT_S = 30.0

#: The addresses of tasks, by their jobs and numbers.
Addresses = Mapping[tuple[str, int], str]


def first_task(tasks: Addresses) -> tuple[str, int]:
    """Returns the task that runs the scheduler.

    It is the first parameter server, for values are lost with that one anyway; where there is no
    job "ps", the first task of the job that is first in the alphabet.
    """
    return min(tasks, key=lambda task: (task[0] != "ps", *task))


class TaskServer:
    """A task in this process, from its start to `close`.

    Args:
        tasks: The addresses of all tasks of the cluster.
        job, index: Which of them it is.
        config: Says which devices it has.

    Raises:
        InvalidArgumentError: if an address is none that others can find.
        UnavailableError: if its address is not this machine's, or in use.
        FailedPreconditionError: if Dask's configuration asks for TLS, and names no certificates.
    """

    def __init__(self, tasks: Addresses, job: str, index: int, config: ConfigProto | None) -> None:
        self._tasks = tasks
        self._name = task_name(job, index)
        self._config = config or ConfigProto()
        first = first_task(tasks)
        self._is_first = first == (job, index)
        for address in tasks.values():
            _check(address)
        self.target = f"grpc://{tasks[job, index]}"
        self._address = host_and_port(tasks[job, index])
        self._scheduler = "{}:{}".format(*host_and_port(tasks[first]))
        self._security = configured_security(
            ("scheduler", "worker") if self._is_first else ("worker",)
        )
        self._protocol = "tcp" if self._security is None else "tls"
        _check_free(self._name, tasks[job, index], self._address)
        self._started: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=f"server {self._name}", daemon=True)
        self._thread.start()
        what, until = "for the server to start", time.monotonic() + _WAIT_S
        result_of(self._started, what=what, until=until)
        self._servers = current().servers
        self._servers[self.target] = self._scheduler

    def close(self) -> None:
        """Ends it, and what runs on it; its values are gone."""
        self._servers.pop(self.target, None)
        if self._thread.is_alive():
            with suppress(RuntimeError):  # its loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._stopping.set)
            join(self._thread, _WAIT_S)

    def wait(self, timeout_s: float) -> bool:
        """Returns whether it has ended, after some time at most.

        Raises:
            OpError: if the cluster does not take it.
        """
        with suppress(TimeoutError):
            what, until = "for the server to end", time.monotonic() + timeout_s
            result_of(self._ended, what=what, until=until)
            return True
        return False

    # -- on its own thread ------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with silence_logging_cmgr(logging.ERROR):  # others come and go, which is no news
                asyncio.run(self._serve())
        except BaseException as e:  # those who wait for it are told
            if not self._started.done():
                self._started.set_exception(e)
            self._ended.set_exception(e)
        else:
            self._ended.set_result(None)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        scheduler = await self._new_scheduler() if self._is_first else None
        self._started.set_result(None)
        try:
            while not self._stopping.is_set():
                await self._live()
        finally:
            if scheduler is not None:
                await scheduler.close()

    async def _new_scheduler(self) -> Any:
        """Starts the scheduler with the registry of this cluster."""
        host, port = self._address
        scheduler: Any = Scheduler(
            host=host,
            port=port,
            dashboard=False,
            dashboard_address=":0",  # its HTTP server listens anyway
            protocol=f"{self._protocol}://",
            security=self._security,
        )
        await scheduler.start()
        expected = {task_name(*task): address for task, address in self._tasks.items()}
        secret = secrets.token_bytes(_SECRET_BYTES)
        registry = Registry(flowscope.__version__, secret, {}, expected)
        await scheduler.register_scheduler_plugin(registry, NAME, idempotent=True)
        return scheduler

    async def _live(self) -> None:
        """Runs one worker, until it ends or the server is stopped."""
        host, port = self._address
        worker: Any = Worker(
            f"{self._protocol}://{self._scheduler}",
            name=self._name,
            nthreads=1,
            memory_limit=0,
            host=host,
            port=0 if self._is_first else port,
            dashboard=False,
            protocol=f"{self._protocol}://",
            security=self._security,
        )
        try:
            await self._unless_stopped(self._begin(worker))
            await self._unless_stopped(worker.finished())
        except Exception as e:  # Dask raises many kinds: the last life of this task is known still
            if isinstance(e, OpError) and not isinstance(e, UnavailableError):
                raise  # the cluster does not take it
            await asyncio.sleep(_AGAIN_S)
        finally:
            await worker.close()

    async def _begin(self, worker: Any) -> None:
        await worker.start()
        plugin = HostPlugin(flowscope.__version__, self._config, shares_values=True)
        await worker.plugin_add(plugin, NAME, catch_errors=False)

    async def _unless_stopped(self, doing: Coroutine[Any, Any, Any]) -> None:
        """Waits for something, or until the server is stopped."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        task = asyncio.ensure_future(doing)
        try:
            await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
        finally:
            for each in (task, stopping):
                each.cancel()
            await asyncio.gather(task, stopping, return_exceptions=True)


def _check(address: str) -> None:
    """Raises unless an address says a port: others find the task by it."""
    if address.rpartition(":")[2] in ("", "0") or not address.rpartition(":")[2].isdigit():
        raise InvalidArgumentError(
            f'expected addresses as "host:port" with a port that is not 0, by which the tasks of '
            f"a cluster find each other, got {address!r}"
        )


def _check_free(name: str, given: str, address: tuple[str, int]) -> None:
    """Raises if nobody can listen at an address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as e:
            raise UnavailableError(
                f"{name} cannot listen at {given}: {e.strerror}. Expected an address of this "
                "machine whose port is free: end what listens there, or give the ClusterSpec of "
                "all tasks another one"
            ) from e


__all__ = ["TaskServer", "first_task"]
