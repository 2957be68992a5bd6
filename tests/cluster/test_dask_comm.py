"""Connections over Dask's ports: when they are taken, what they carry, and how they end."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dask_ports import DaskPorts, dask_ports
from local_clusters import wait_until
from own_threads import own_threads
from process_channels import RECEIVER, SENDER, by_device, soon, until

import flowscope as fs
from flowscope.cluster.membership.tasks import Task, task_name
from flowscope.cluster.servers.dask_comm import _WINDOW_BYTES, DaskStreams, _Stream, relay
from flowscope.cluster.transport.channel import StepId
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError

KEY = f"{SENDER}/device:CPU:0;{RECEIVER}/device:CPU:0;x:0"
TABLE = by_device([KEY])
TASKS = [task_name("worker", i) for i in range(3)]


@pytest.fixture
def ports() -> Iterator[DaskPorts]:
    with dask_ports() as found:
        yield found


@pytest.fixture
def ends() -> Iterator[tuple[Endpoint, Endpoint]]:
    one, other = Endpoint(SENDER, 1, b"secret"), Endpoint(RECEIVER, 1, b"secret")
    other.on_run = lambda peer, header, values: (header, values)
    yield one, other
    one.close()
    other.close()


def nobody() -> tuple[str, int]:
    """Returns an address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        host, port = closed.getsockname()
    return host, port


def is_direct(one: Endpoint, peer: str) -> bool:
    return one.counters()[peer].is_direct


def test_dasks_port_is_taken_where_no_socket_reaches(
    ports: DaskPorts, ends: tuple[Endpoint, Endpoint]
) -> None:
    one, other = ends
    instead = ports.lead_to(other)
    one.dial = ports.streams.dial
    with pytest.raises(UnavailableError, match="cannot be reached at 127"):
        one.connect(RECEIVER, nobody(), 1)
    one.connect(RECEIVER, nobody(), 1, instead=instead)
    assert not is_direct(one, RECEIVER) and not is_direct(other, SENDER)
    big = np.arange(3_000_000)
    header, values = one.start_run(RECEIVER, {"n": 1}, [big, np.float32(2)]).wait(until=soon())
    assert header == {"n": 1} and values[1] == 2
    np.testing.assert_array_equal(values[0], big)


def test_a_machine_that_sockets_have_reached_is_not_dialled(
    ports: DaskPorts, ends: tuple[Endpoint, Endpoint]
) -> None:
    """A process that has gone is not waited for twice."""
    one, other = ends
    one.connect(RECEIVER, other.address, 1, instead=ports.lead_to(other))
    assert is_direct(one, RECEIVER)
    one.disconnect(RECEIVER)
    with pytest.raises(UnavailableError, match="cannot be reached at 127"):
        one.connect(RECEIVER, nobody(), 1, instead="tcp://127.0.0.1:1")


@pytest.mark.parametrize("protocol", ["tcp", "inproc"])
def test_processes_are_reached_by_what_dask_speaks(
    ports: DaskPorts, ends: tuple[Endpoint, Endpoint], protocol: str
) -> None:
    one, other = ends
    one.dial = ports.streams.dial
    one.connect(RECEIVER, ports.lead_to(other, protocol), 1)
    assert one.start_run(RECEIVER, {"n": 1}, []).wait(until=soon())[0] == {"n": 1}


def test_a_worker_behind_the_scheduler_is_reached_through_it(
    ports: DaskPorts, ends: tuple[Endpoint, Endpoint]
) -> None:
    one, other = ends
    address = ports.lead_to(other)
    hidden = "tcp://127.0.0.1:1"  # so the client sees it

    async def lead(comm: Any, address_: str) -> Any:
        return await relay(comm, address if address_ == hidden else "tcp://127.0.0.1:2", {})

    scheduler = ports.serve({"flowscope_relay": lambda comm, address: lead(comm, address)})
    streams = DaskStreams(ports.loop, {}, scheduler)
    one.dial = streams.dial
    one.connect(RECEIVER, hidden, 1, timeout_s=2)
    values = [np.arange(1_000_000)]
    got = one.start_run(RECEIVER, {}, values).wait(until=soon())[1]
    np.testing.assert_array_equal(got[0], values[0])
    with pytest.raises(UnavailableError, match="cannot be reached"):
        one.connect(TASKS[2], "tcp://127.0.0.1:3", 1, timeout_s=0.1)
    one.disconnect(RECEIVER)
    until(lambda: not other.is_connected(SENDER))
    streams.close()


def test_a_goodbye_is_heard_though_values_were_not_read(
    ports: DaskPorts, ends: tuple[Endpoint, Endpoint]
) -> None:
    one, other = ends
    lost: list[str] = []
    other.on_lost = lambda peer, incarnation, error: lost.append(peer)
    one.dial = ports.streams.dial
    one.connect(RECEIVER, ports.lead_to(other), 1)
    box = one.open_step(StepId(1, 1), TABLE).mailbox(KEY)
    for _ in range(100):
        box.send(np.zeros(5000))
    one.disconnect(RECEIVER)
    until(lambda: not other.is_connected(SENDER))
    assert lost == []


def test_nothing_is_left_of_connections_that_have_ended(
    ports: DaskPorts, ends: tuple[Endpoint, Endpoint]
) -> None:
    one, other = ends
    one.dial = ports.streams.dial
    address = ports.lead_to(other)
    for _ in range(5):
        one.connect(RECEIVER, address, 1)
        one.start_run(RECEIVER, {}, [np.zeros(100_000)]).wait(until=soon())
        one.disconnect(RECEIVER)
        until(lambda: not other.is_connected(SENDER))
    ports.streams.close()
    until(lambda: not ports.streams._running)
    before = own_threads()
    one.connect(RECEIVER, address, 1)
    one.disconnect(RECEIVER)
    until(lambda: own_threads() <= before)


class Silent:
    """A comm that hears nothing."""

    async def read(self) -> Any:
        await asyncio.Event().wait()

    async def write(self, message: Any) -> None:
        await asyncio.sleep(0)

    def abort(self) -> None:
        return


@pytest.mark.parametrize("steps", range(4))
def test_a_connection_that_is_cancelled_again_while_it_ends_closes_its_socket(steps: int) -> None:
    taken: list[socket.socket] = []

    async def work() -> None:
        streams = DaskStreams(SimpleNamespace(asyncio_loop=None), {})
        serving = asyncio.ensure_future(streams.serve(Silent(), taken.append))
        while not taken:
            await asyncio.sleep(0)
        for _ in range(2):
            serving.cancel()
            for _ in range(steps):
                await asyncio.sleep(0)
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(work())
    with taken[0] as theirs:
        theirs.settimeout(10)
        assert theirs.recv(1) == b""
    gc.collect()  # tells of sockets that nobody has closed


class Told:
    """A comm from which messages come that were told before."""

    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages
        self.written: list[Any] = []

    async def read(self) -> Any:
        if not self.messages:
            raise OSError("closed")
        return self.messages.pop()

    async def write(self, message: Any) -> None:
        self.written.append(message)
        await asyncio.sleep(0)


def test_no_more_is_sent_than_a_window() -> None:
    """What a peer does not read stays with whoever sends it."""

    async def work() -> int:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for sock in (ours, theirs):
                sock.setblocking(False)
            comm = Told([])
            data = bytes(4 * _WINDOW_BYTES)
            sending = asyncio.ensure_future(_Stream(comm, ours).send())
            loop = asyncio.get_running_loop()
            writing = asyncio.ensure_future(loop.sock_sendall(theirs, data))
            while sum(map(len, comm.written)) < _WINDOW_BYTES:
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            assert not sending.done() and not writing.done()
            sending.cancel()
            writing.cancel()
            await asyncio.gather(sending, writing, return_exceptions=True)
        return sum(map(len, comm.written))

    assert _WINDOW_BYTES <= asyncio.run(work()) < 1.5 * _WINDOW_BYTES


def strange(rng: random.Random) -> Any:
    """Returns a message that no stream sends, or one that says nothing true."""
    return rng.choice(
        [
            rng.randbytes(rng.randrange(100)),
            rng.randrange(-(1 << 70), 1 << 70),
            {"op": "close"},
            [1, b"x"],
            "text",
            1.5,
            True,
        ]
    )


def thrown(count: int) -> tuple[int, list[Any]]:
    """Has streams hear strange messages; returns how many they took, and what was run."""
    rng = random.Random(count)
    done: list[Any] = []
    end = Endpoint(SENDER, 1, b"secret")
    end.on_call = end.on_run = lambda *call: done.append(call)  # type: ignore[assignment]
    taken = 0

    async def work() -> None:
        nonlocal taken
        streams = DaskStreams(_Loop(), {})
        while taken < count:
            comm = Told([strange(rng) for _ in range(rng.randrange(1, 2000))])
            before = len(comm.messages)
            comm.abort = comm.messages.clear  # type: ignore[attr-defined]
            await asyncio.wait_for(streams.serve(comm, end.take), 10)
            taken += before

    class _Loop:
        asyncio_loop: Any = None

    try:
        asyncio.run(work())
    finally:
        end.close()
    return taken, done


def test_strange_messages_run_nothing() -> None:
    taken, done = thrown(5_000)
    assert taken >= 5_000 and done == []


@pytest.mark.slow
def test_a_hundred_thousand_strange_messages_run_nothing() -> None:
    taken, done = thrown(100_000)
    assert taken >= 100_000 and done == []


@pytest.mark.slow
def test_strangers_at_dasks_port_change_nothing(
    ports: DaskPorts, ends: tuple[Endpoint, Endpoint]
) -> None:
    one, other = ends
    done: list[Any] = []
    one.dial = ports.streams.dial
    address = ports.lead_to(other)
    other.on_call = lambda *call: done.append(call)  # type: ignore[assignment, func-returns-value]
    rng = random.Random(3)
    for i in range(60):
        sock = ports.streams.dial(address, 5.0)
        with sock:
            sock.settimeout(10)
            start = b"" if i % 2 else (11 + i).to_bytes(4, "little") + b"flowscope/1"
            sock.sendall(start + rng.randbytes(rng.randrange(200)))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(4096):
                pass
    assert done == []
    one.connect(RECEIVER, address, 1)
    assert one.start_run(RECEIVER, {"n": 1}, []).wait(until=soon())[0] == {"n": 1}


def task(dask_address: str) -> Task:
    facts: dict[str, Any] = dict.fromkeys(Task.__annotations__, 0)
    facts |= {"address": ["here", 1], "devices": [], "dask_address": dask_address}
    return Task.heard(facts)


def test_ways() -> None:
    """Where Dask speaks UCX, so do steps; else sockets come first."""
    tcp, ucx = task("tcp://a:1"), task("ucx://a:1")
    assert tcp.ways(None) == (("here", 1), "tcp://a:1")
    assert tcp.ways("sockets") == (("here", 1), None)
    assert tcp.ways("dask") == ("tcp://a:1", None)
    assert ucx.ways(None) == ("ucx://a:1", None)
    assert ucx.ways("sockets") == (("here", 1), None)
    assert task("").ways(None) == (("here", 1), None)


@pytest.fixture
def over_dask(local_cluster: Any) -> Iterator[fs.cluster.Cluster]:
    """A connection over Dask's ports with the shared cluster."""
    with fs.cluster.connect(local_cluster, transport="dask") as found:
        wait_until(lambda: len(found.tasks) == 3)
        wait_until(lambda: all(found.health(t.name)[0] == "ok" for t in found.tasks))
        yield found


@pytest.mark.slow
def test_a_session_over_dasks_ports(
    over_dask: fs.cluster.Cluster, local_cluster: Any, graph: fs.Graph
) -> None:
    """It gives what any other gives, and the status says what it goes over."""
    with fs.device(TASKS[0]):
        x = fs.placeholder(fs.float64, [None])
        half = x * 0.5
    with fs.device(TASKS[1]):
        y = half + 1.0
    values = np.arange(200_000.0)
    with fs.Session(over_dask) as session:
        np.testing.assert_array_equal(session.run(y, {x: values}), values * 0.5 + 1.0)
    status = over_dask.status()
    assert status.workers[0].transport == "dask"
    assert all("dask" in worker.transport for worker in status.workers)
    assert "transport" in str(status) and "<td>dask" in status._repr_html_()
    assert fs.cluster.connect(local_cluster) is over_dask
    with pytest.raises(FailedPreconditionError, match=r"transport='dask'.*close\(\)"):
        fs.cluster.connect(local_cluster, transport="sockets")
    with pytest.raises(InvalidArgumentError, match='"sockets" or "dask"'):
        fs.cluster.connect(local_cluster, transport="pigeon")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_is_killed_or_hangs_ends_its_steps(
    over_dask: fs.cluster.Cluster, graph: fs.Graph, number: int
) -> None:
    with fs.device(TASKS[2]):
        queue = fs.FIFOQueue(1, fs.int32, [])
        got = queue.dequeue()
    with fs.device(TASKS[1]):
        y = got + 1
    pid = over_dask.task(TASKS[2]).pid
    ended: list[Any] = []

    def work() -> None:
        with fs.Session(over_dask, graph=graph) as session:
            with pytest.raises(UnavailableError) as caught:
                session.run(y)
            ended.append(caught.value)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: bool(over_dask.status().waits))
    os.kill(pid, number)
    try:
        took = wait_until(lambda: bool(ended), 30.0)
    finally:
        if number == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
        thread.join(30)
    assert "task:2" in str(ended[0])
    assert took < 10.0  # 2 s on a machine that has nothing else to do
    if number == signal.SIGKILL:
        wait_until(lambda: len(over_dask.tasks) == 3)
