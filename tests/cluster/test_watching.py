"""All processes of a cluster are asked how they are; a silent one delays nobody for long."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import ClassVar

import pytest

from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.watch.reports import clock, clock_report, status_report
from flowscope.cluster.watch.state_book import StateBook
from flowscope.cluster.watch.watching import ClientPart, ClusterWatch
from flowscope.errors import UnavailableError
from flowscope.runtime.state.queue_state import QueueState

CLIENT = "/job:client/replica:0/task:0"


def task(number):
    return f"/job:worker/replica:0/task:{number}"


def key(sender, receiver, name="h:0"):
    return f"{sender}/device:CPU:0;{receiver}/device:CPU:0;{name}"


@dataclass(frozen=True)
class Device:
    name: str


@dataclass(frozen=True)
class Task:
    name: str
    worker: str
    incarnation: int
    devices: tuple[Device, ...]
    pid: int
    host: str
    memory_limit: int | None


class Watched:
    """Processes that are endpoints of this one."""

    target = "fs://test"
    scheduler_address = "tcp://127.0.0.1:8786"
    dashboard_link = ""
    lost_tasks: ClassVar[dict[str, str]] = {}

    def __init__(self, count):
        self.state_book = StateBook()
        self.endpoint = Endpoint("client:1", 1, b"secret")
        self.workers = [Endpoint(task(i), 7, b"secret") for i in range(count)]
        #: What each says besides; it says nothing as long as this event is not set.
        self.waits = [[] for _ in range(count)]
        self.answers = [threading.Event() for _ in range(count)]
        self.unwell = {}
        for number, worker in enumerate(self.workers):
            self.answers[number].set()
            worker.on_call = lambda peer, message, n=number: self.answer(n, message)
            self.endpoint.connect(worker.name, worker.address, 7)

    def answer(self, number, message):
        assert self.answers[number].wait(timeout=20)
        if message["kind"] == "clock":
            return {"now": clock_report()["now"] + 100.0 * number}
        queue = QueueState("jobs", 8, (), None)
        told = status_report(self.workers[number], steps=3, held_bytes=64, queues=[queue])
        return told | {"waits": self.waits[number]}

    @property
    def tasks(self):
        return [
            Task(w.name, f"w{i}", 7, (Device(f"{w.name}/device:CPU:0"),), 40 + i, "here", 10**9)
            for i, w in enumerate(self.workers)
        ]

    def health(self, name):
        return self.unwell.get(name, ("ok", ""))

    def client_part(self):
        return ClientPart(
            CLIENT, (f"{CLIENT}/device:CPU:0",), "here", os.getpid(), status_report(self.endpoint)
        )

    def close(self):
        for event in self.answers:
            event.set()
        for endpoint in [self.endpoint, *self.workers]:
            endpoint.close()


@pytest.fixture
def watched():
    made = Watched(3)
    yield made
    made.close()


def test_all_tell_of_themselves_and_clocks_are_measured(watched):
    watch = ClusterWatch(watched)
    told = watch.status()
    assert [w.task for w in told.workers] == [CLIENT, task(0), task(1), task(2)]
    last = told.workers[3]
    assert (last.worker, last.pid, last.incarnation, last.memory_limit) == ("w2", 42, "7", 10**9)
    assert (last.steps, last.held_bytes) == (3, 64)
    assert (last.transport, last.is_encrypted) == ("sockets", False)
    assert last.sent_bytes > 0 and last.received_bytes > 0
    assert last.memory_bytes and last.queues[0].capacity == 8
    assert last.clock_error_s is not None and last.clock_error_s < 0.5
    assert last.clock_ahead_s == pytest.approx(200.0, abs=last.clock_error_s)
    ahead, error = watch.clock_of(task(1))
    assert abs(ahead - 100.0) <= error
    with pytest.raises(UnavailableError, match="ps"):
        watch.clock_of("/job:ps/replica:0/task:0")
    assert told.findings == ()


def test_waits_of_all_processes_are_joined(watched):
    watched.waits[0] = [["c", 7, key(task(1), task(0)), 2.0, False]]
    watched.waits[1] = [["c", 7, key(task(2), task(1), "g:0"), 3.0, False]]
    told = ClusterWatch(watched).status()
    assert [wait.what for wait in told.waits] == ["g:0", "h:0"]
    assert told.findings[0].tasks[0] == task(2)


@pytest.mark.parametrize("ends", ["none", "one", "anew"])
def test_a_circle_is_told_only_where_a_second_look_shows_it_whole(watched, ends):
    def ring(seconds):
        waits = [["c", 7, key(task(1), task(0)), seconds, False]]
        return waits, [["c", 7, key(task(0), task(1), "g:0"), 3.0, False]]

    def answer(number, message, inner=watched.answer):
        told = inner(number, message)
        if message["kind"] == "status" and number == 0:
            looks.append(number)
            watched.waits[0] = {"none": first, "one": [], "anew": again}[ends]
        return told

    looks = []
    first, watched.waits[1] = ring(2.0)
    again, _ = ring(0.01)
    watched.waits[0] = first
    watched.answer = answer
    told = ClusterWatch(watched).status()
    assert len(looks) == 2
    assert any(f.kind == "cycle" for f in told.findings) is (ends == "none")


def test_short_waits_are_not_looked_at_twice(watched):
    watched.waits[0] = [["c", 7, key(task(1), task(0)), 0.3, False]]
    watched.waits[1] = [["c", 7, key(task(0), task(1), "g:0"), 0.3, False]]
    assert ClusterWatch(watched).status().findings == ()


def test_one_that_says_nothing_is_waited_for_a_moment_and_told_as_it_was_last(watched):
    watch = ClusterWatch(watched)
    watch.status()
    watched.waits[1] = [["c", 7, key(task(2), task(1)), 2.0, False]]
    watched.answers[2].clear()
    watched.unwell[task(2)] = ("hung", "its process is stopped")
    begun = clock()
    told = watch.status(timeout_s=0.2)
    assert clock() - begun < 2.0
    last = told.workers[3]
    assert (last.health, last.reason, last.steps) == ("hung", "its process is stopped", 3)
    assert last.silent_s >= 0.2
    assert told.findings[0].kind == "hung"
    assert "worker 1 has waited 2.0 s" in told.findings[0].text


def test_what_one_that_is_silent_waited_for_is_not_told(watched):
    watched.waits[2] = [["c", 7, key(task(0), task(2)), 2.0, False]]
    watch = ClusterWatch(watched)
    assert len(watch.status().waits) == 1
    watched.answers[2].clear()
    assert watch.status(timeout_s=0.1).waits == ()


def test_another_life_of_a_worker_has_another_clock(watched):
    watch = ClusterWatch(watched)
    watch.status()
    again = [Task(**(vars(t) | {"incarnation": 8})) for t in watched.tasks]
    assert [known.samples for known in watch._remembered(again)] == [0, 0, 0]
