"""Connections over Dask's own ports, for clusters where nothing else is reached, and for UCX.

An endpoint has one half of a pair of sockets. What it writes there goes through a comm of Dask's to
the other process' pair, and back: so framing, handshake and threads are those of own sockets. All
of it runs on Dask's event loop, in pieces of 256 kB.

    bytes   what was written
    int     how many bytes have been read by the other endpoint, told after each half of a window
    None    no more comes; whoever hears it ends the comm
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any

from distributed.comm.core import connect
from distributed.core import Status

from flowscope.cluster.servers.dask_losses import is_loss
from flowscope.runtime.waits.waiting import result_of

#: The handlers of workers that take a connection, and of the scheduler that leads one to a worker.
STREAM = "flowscope_stream"
RELAY = "flowscope_relay"
#: As many bytes go in one message.
_PIECE_BYTES = 1 << 18
#: As many may be on their way, in each direction of a connection.
_WINDOW_BYTES = 1 << 22
#: So long the other end may take to hear that no more comes.
_GOODBYE_S = 1.0
#: So long the scheduler tries to reach a worker.
_RELAY_S = 2.0


class DaskStreams:
    """The connections of one process that go over Dask's ports.

    Args:
        loop: Dask's event loop in this process.
        connection_args: What Dask connects by, such as its contexts of TLS.
        scheduler: The scheduler's address, where workers that cannot be reached are to be reached
            through it; else None.
    """

    def __init__(
        self, loop: Any, connection_args: dict[str, Any], scheduler: str | None = None
    ) -> None:
        self._loop: asyncio.AbstractEventLoop = loop.asyncio_loop
        self._arguments = connection_args
        self._scheduler = scheduler
        #: The workers that only the scheduler reaches.
        self._behind: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()

    def dial(self, address: str, timeout_s: float) -> socket.socket:
        """Returns a socket that leads to a worker. Not to be called on Dask's event loop.

        Args:
            address: The worker's address in Dask.
            timeout_s: How long it may take.

        Raises:
            OSError: if the worker cannot be reached.
        """
        made: list[socket.socket] = []
        if self._loop.is_closed():
            raise ConnectionResetError("Dask has ended in this process")
        dialing = asyncio.run_coroutine_threadsafe(self._dial(address, timeout_s, made), self._loop)
        try:
            until = time.monotonic() + 2 * timeout_s + _GOODBYE_S
            result_of(dialing, what=f"for a connection with {address}", until=until)
        except BaseException as e:
            dialing.cancel()
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the task with it
                self._loop.call_soon_threadsafe(_close, made)  # it may have come in this moment
            if is_loss(e) and not isinstance(e, OSError):
                raise ConnectionResetError(f"Dask's connection has gone: {e}") from e
            raise
        return made[0]

    async def serve(self, comm: Any, take: Callable[[socket.socket], None]) -> Status:
        """Takes a connection that another process has begun, until it ends.

        Args:
            comm: The comm.
            take: Is given a socket that leads to that process.
        """
        ours, theirs = _pair()
        with ours:
            take(theirs)
            await _carry(comm, ours)
        return Status.dont_reply

    def close(self) -> None:
        """Waits until all connections have ended, whose sockets were closed."""
        if self._running and self._loop.is_running():
            waiting = asyncio.run_coroutine_threadsafe(self._all_ended(), self._loop)
            with contextlib.suppress(TimeoutError):
                until = time.monotonic() + 2 * _GOODBYE_S
                result_of(waiting, what="for goodbyes", until=until, owned_by=None)

    async def _all_ended(self) -> None:
        if self._running:
            await asyncio.wait(list(self._running))

    async def _dial(self, address: str, timeout_s: float, made: list[socket.socket]) -> None:
        comm = await self._reached(address, timeout_s)
        ours, theirs = _pair()
        made.append(theirs)
        task = asyncio.create_task(_carry(comm, ours))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: ours.close())  # also of one that was cancelled at once

    async def _reached(self, address: str, timeout_s: float) -> Any:
        """Returns a comm whose other end serves a connection with a worker."""
        hello, scheduler = {"op": STREAM, "reply": False}, self._scheduler
        if address not in self._behind:
            try:
                comm = await _connected(address, timeout_s, self._arguments)
            except OSError:
                if scheduler is None:
                    raise
            else:
                await comm.write(hello)
                return comm
        comm = await _connected(str(scheduler), timeout_s, self._arguments)
        try:
            await comm.write({"op": RELAY, "reply": False, "address": address})
            await comm.read()  # raises if the scheduler does not reach the worker
        except BaseException:
            comm.abort()
            raise
        self._behind.add(address)
        return comm


async def relay(comm: Any, address: str, connection_args: dict[str, Any]) -> Status:
    """Leads a connection to a worker that only this process, the scheduler, reaches.

    Args:
        comm: The comm with whoever connects.
        address: The worker's address.
        connection_args: What Dask connects by.
    """
    try:
        further = await _connected(address, _RELAY_S, connection_args)
    except OSError:
        comm.abort()  # whoever connects takes that as not reached
        return Status.dont_reply
    try:
        await further.write({"op": STREAM, "reply": False})
        await comm.write(0)
        ways = [asyncio.ensure_future(_pass_on(*w)) for w in ((comm, further), (further, comm))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        comm.abort()
        further.abort()
    await asyncio.wait(ways)  # an aborted comm ends whoever reads it
    return Status.dont_reply


async def _connected(address: str, timeout_s: float, arguments: dict[str, Any]) -> Any:
    return await connect(address, timeout=timeout_s, **arguments)  # type: ignore[no-untyped-call]


async def _pass_on(source: Any, target: Any) -> None:
    with contextlib.suppress(OSError):
        while True:
            await target.write(await source.read())


def _pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    ours.setblocking(False)
    return ours, theirs


def _close(socks: list[socket.socket]) -> None:
    for sock in socks:
        sock.close()


async def _carry(comm: Any, sock: socket.socket) -> None:
    """Carries bytes between a comm and a socket until one of them has ended; closes the comm."""
    stream = _Stream(comm, sock)
    sending, receiving, handing = (
        asyncio.ensure_future(work()) for work in (stream.send, stream.receive, stream.hand_out)
    )
    try:
        await asyncio.wait((sending, handing), return_when=asyncio.FIRST_COMPLETED)
        if not handing.done():  # the other end closes when it has handed out all
            await asyncio.wait((receiving,), timeout=_GOODBYE_S)
    finally:
        comm.abort()
        for one in (sending, receiving, handing):
            one.cancel()
        await asyncio.gather(sending, receiving, handing, return_exceptions=True)


class _Stream:
    """One connection, on Dask's event loop.

    Args:
        comm: The comm.
        sock: This end of the pair, which does not block.
    """

    def __init__(self, comm: Any, sock: socket.socket) -> None:
        self._comm = comm
        self._socket = sock
        self._loop = asyncio.get_running_loop()
        self._writing = asyncio.Lock()
        #: How many bytes are on their way to the other end.
        self._unread = 0
        self._is_below = asyncio.Event()
        #: What has come and was not handed out; None for the end.
        self._come: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting_bytes = 0

    async def send(self) -> None:
        """Sends what the endpoint writes, until it has closed its socket."""
        with contextlib.suppress(OSError):
            while data := await self._loop.sock_recv(self._socket, _PIECE_BYTES):
                self._unread += len(data)
                await self._write(data)
                while self._unread >= _WINDOW_BYTES:
                    self._is_below.clear()
                    await self._is_below.wait()
        with contextlib.suppress(OSError):
            await self._write(None)

    async def receive(self) -> None:
        """Takes what comes; never waits for the endpoint to read it."""
        try:
            while (message := await self._comm.read()) is not None:
                if type(message) is int:
                    self._unread -= message
                    self._is_below.set()
                elif type(message) is bytes and self._waiting_bytes <= 2 * _WINDOW_BYTES:
                    self._waiting_bytes += len(message)
                    self._come.put_nowait(message)
                else:
                    break
        except Exception:  # the network's, or one of many of Dask's about what it cannot read
            pass  # the connection ends: its endpoint is told
        finally:
            self._come.put_nowait(None)

    async def hand_out(self) -> None:
        """Gives the endpoint what has come; tells how much it has read."""
        read = 0
        while (data := await self._come.get()) is not None:
            with contextlib.suppress(OSError):  # the endpoint reads no more: `send` ends, too
                await self._loop.sock_sendall(self._socket, data)
            self._waiting_bytes -= len(data)
            read += len(data)
            if read >= _WINDOW_BYTES // 2:
                with contextlib.suppress(OSError):  # `receive` ends, too
                    await self._write(read)
                read = 0

    async def _write(self, message: bytes | int | None) -> None:
        async with self._writing:
            await self._comm.write(message)


__all__ = ["RELAY", "STREAM", "DaskStreams", "relay"]
