"""Hosts and a client of them, without Dask: in this process, or each in a process of its own."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, NamedTuple

from process_channels import led_to

import flowscope as fs
from flowscope.cluster.client.session import CLIENT_TASK, ClusterSession
from flowscope.cluster.transport.endpoint import Address, Endpoint
from flowscope.cluster.watch.losses import Losses
from flowscope.cluster.watch.reports import clock_report, status_report
from flowscope.cluster.watch.state_book import StateBook, gone_of
from flowscope.cluster.watch.watching import ClientPart, ClusterWatch
from flowscope.cluster.worker.outcomes import Outcomes
from flowscope.cluster.worker.sessions import WorkerSteps
from flowscope.runtime.devices.local_devices import local_devices
from flowscope.runtime.session.engine import Engine
from flowscope.runtime.state.containers import Container

SECRET = b"a secret of 32 bytes for tests.."


class DeviceInfo(NamedTuple):
    name: str
    memory_limit: int


class Task(NamedTuple):
    name: str
    address: Address
    incarnation: int
    devices: tuple[DeviceInfo, ...]
    pid: int
    worker: str = ""
    host: str = "here"
    memory_limit: int = 0


class Host:
    """A worker's end."""

    shares_values = False

    def __init__(self, name: str, cpus: int = 1, incarnation: int = 1) -> None:
        self.name = name
        self.engine = Engine()
        config = fs.ConfigProto(device_count={"CPU": cpus})
        self.devices = local_devices(config, self.engine.pool.parallel_for)
        for device in self.devices:
            device.belong_to(name)
        self.handlers: dict[str, Any] = {}
        self.endpoint = Endpoint(name, incarnation, SECRET)
        self.endpoint.on_call = lambda peer, m: self.handlers[m["kind"]](peer, m)
        self.endpoint.on_lost = lambda peer, *_: self.steps.client_lost(peer)
        self.steps = WorkerSteps(self)
        self.handlers["clock"] = lambda peer, m: clock_report()
        self.handlers["status"] = self._status
        self.containers: dict[Any, Container] = {}
        devices = tuple([DeviceInfo(d.name, 0) for d in self.devices])
        self.task = Task(name, self.endpoint.address, incarnation, devices, os.getpid())

    def _status(self, peer: str, message: dict[str, Any]) -> dict[str, Any]:
        queues = [q for c in self.containers.values() for q in c.others()]
        waits = self.steps.queue_waits(queues)
        gone = gone_of(message.get("had", ()), partial(self.container, peer))
        done, running = self.steps.done, self.steps.running
        return status_report(
            self.endpoint, steps=done, running=running, queue_waits=waits, gone=gone
        )

    def container(self, client: str, session: int, name: str) -> Container:
        return self.containers.setdefault(name or (client, session), Container())


class Cluster:
    """A client's end."""

    def __init__(self, tasks: list[Task], dial: Any = None) -> None:
        self.uid = int.from_bytes(os.urandom(7))
        self.target = f"test://{self.uid:x}"
        self.tasks = tuple(tasks)
        self.handlers: dict[str, Any] = {}
        self.sessions: set[ClusterSession] = set()
        self.session_numbers = itertools.count(1)
        self.step_numbers = itertools.count(1)
        self.watch = ClusterWatch(self)
        self.endpoint = Endpoint(f"client:{self.uid:x}", 1, SECRET)
        self.outcomes = Outcomes(self.endpoint, self.uid)
        self.state_book = StateBook()
        self.losses = Losses(lambda *_: "connected")
        self.endpoint.on_call = lambda peer, m: self.handlers[m["kind"]](peer, m)
        self.endpoint.on_lost = self.lost
        if dial is not None:
            self.endpoint.dial = dial
        for task in tasks:
            self.endpoint.connect(task.name, task.address, task.incarnation)

    def task(self, name: str) -> Task:
        return next(t for t in self.tasks if t.name == name)

    def ways(self, name: str) -> tuple[Address, str | None]:
        return self.task(name).address, None

    def open(self, session: fs.Session) -> ClusterSession:
        return ClusterSession(self, session)

    def reset(self, names: Any = None) -> None:
        raise NotImplementedError

    scheduler_address = dashboard_link = ""
    lost_tasks: ClassVar[dict[str, str]] = {}

    def health(self, task: str) -> tuple[str, str]:
        return "ok", ""

    @property
    def known_tasks(self) -> tuple[Task, ...]:
        return self.tasks

    def note_losses(self, lives: Any, cut: Any = ()) -> None:
        """Nothing is noted of losses here."""

    def client_part(self) -> ClientPart:
        return ClientPart(CLIENT_TASK, (), "here", os.getpid(), status_report(self.endpoint))

    def lost(self, task: str, incarnation: int, error: Exception) -> None:
        self.state_book.lose(task, str(error))
        for session in list(self.sessions):
            session.lost(task, error)
            session.forget_plans(task)


def restart(cluster: Cluster, hosts: list[Host], number: int) -> None:
    """Ends a host of this process, and starts another life of it, which has nothing."""
    old = hosts[number]
    was_lost = threading.Event()
    lost = cluster.endpoint.on_lost

    def told(task: str, incarnation: int, error: Exception) -> None:
        lost(task, incarnation, error)
        was_lost.set()

    cluster.endpoint.on_lost = told
    for peer in old.endpoint.peers():  # a process that ends says no goodbye
        old.endpoint.give_up(peer, ConnectionAbortedError("its process has ended"))
    assert was_lost.wait(10)
    old.endpoint.close()
    cluster.endpoint.on_lost = lost
    new = hosts[number] = Host(old.name, len(old.devices), old.task.incarnation + 1)
    cluster.tasks = tuple([new.task if t.name == new.name else t for t in cluster.tasks])
    cluster.endpoint.connect(new.name, new.task.address, new.task.incarnation)


def worker(number: int) -> str:
    return f"/job:worker/replica:0/task:{number}"


def on(number: int) -> Any:
    return fs.device(f"/job:worker/task:{number}")


@contextmanager
def hosts_here(
    count: int = 2, cpus: int = 1, transport: str = "sockets"
) -> Iterator[tuple[Cluster, list[Host]]]:
    """Hosts in this process."""
    hosts = [Host(worker(i), cpus) for i in range(count)]
    with led_to(transport, *[h.endpoint for h in hosts]) as (dial, addresses):
        tasks = [h.task._replace(address=a) for h, a in zip(hosts, addresses, strict=True)]
        cluster = Cluster(tasks, dial)
        try:
            yield cluster, hosts
        finally:
            cluster.endpoint.close()
            for host in hosts:
                host.endpoint.close()


@contextmanager
def hosts_apart(count: int = 2) -> Iterator[tuple[Cluster, list[Any]]]:
    """Hosts that have a process each."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(count)]
    processes = [
        context.Process(target=_serve, args=(worker(i), theirs), daemon=True)
        for i, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    cluster = Cluster([ours.recv() for ours, _ in pipes])
    try:
        yield cluster, processes
    finally:
        cluster.endpoint.close()
        for process in processes:
            process.kill()
            process.join()
        for pipe in pipes:
            for end in pipe:
                end.close()


def _serve(name: str, pipe: Any) -> None:
    host = Host(name)
    pipe.send(host.task)
    threading.Event().wait()
