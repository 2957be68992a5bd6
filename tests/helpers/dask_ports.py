"""Endpoints that only a server of Dask's leads to, in this process, for tests."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed.core import Server, Status
from tornado.ioloop import IOLoop

from flowscope.cluster.servers.dask_comm import STREAM, DaskStreams
from flowscope.cluster.transport.endpoint import Endpoint


class DaskPorts:
    """An event loop as Dask's, on a thread, with the servers of endpoints.

    Attributes:
        streams: What the endpoints of this process dial by.
    """

    def __init__(self) -> None:
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)
        self.streams = DaskStreams(self.loop, {})
        self._servers: list[Any] = []

    def _run(self, started: threading.Event) -> None:
        async def work() -> None:
            self.loop = IOLoop.current()
            self._ended = asyncio.Event()
            started.set()
            await self._ended.wait()

        asyncio.run(work())

    def lead_to(self, endpoint: Endpoint, protocol: str = "tcp") -> str:
        """Returns an address of Dask's by which an endpoint is reached."""
        endpoint.dial = self.streams.dial
        reached = weakref.ref(endpoint)  # Dask keeps handlers for as long as the process lives

        async def take(comm: Any) -> Status:
            found = reached()
            assert found is not None
            return await self.streams.serve(comm, found.take)

        return self.serve({STREAM: take}, protocol)

    def serve(self, handlers: dict[str, Any], protocol: str = "tcp") -> str:
        """Returns the address of a new server with these handlers."""
        return str(self.call(self._served(handlers, protocol)))

    def call(self, work: Any) -> Any:
        """The result of a coroutine on the event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop.asyncio_loop).result(10)

    async def _served(self, handlers: dict[str, Any], protocol: str) -> str:
        server = Server(handlers)
        await server.listen("tcp://127.0.0.1:0" if protocol == "tcp" else f"{protocol}://")
        self._servers.append(server)
        return str(server.address)

    def close(self) -> None:
        """Ends the servers and the thread."""
        self.streams.close()
        for server in self._servers:
            self.call(server.close())
        self.loop.add_callback(self._ended.set)
        self._thread.join(10)


@contextmanager
def dask_ports() -> Iterator[DaskPorts]:
    """Gives an event loop, on which endpoints are reached while the block runs."""
    ports = DaskPorts()
    try:
        yield ports
    finally:
        ports.close()
