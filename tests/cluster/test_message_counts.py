"""What a healthy step sends, message by message: nothing is added to it without a change here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cluster_hosts import Cluster, Host, hosts_here, on
from process_channels import until

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture
def ends() -> Iterator[tuple[Cluster, list[Host]]]:
    with hosts_here(3) as found:
        yield found


def drain(cluster: Cluster, hosts: list[Host]) -> None:
    """Waits until all control messages that were sent before have come, and no step is open."""
    ends = [cluster.endpoint, *[h.endpoint for h in hosts]]
    until(lambda: not any(list(end.open_steps()) for end in ends))
    for host in hosts:
        cluster.endpoint.call(host.name, {"kind": "clock"}, 10.0)


@contextmanager
def counted(cluster: Cluster, hosts: list[Host]) -> Iterator[Counter[str]]:
    """Counts runs and control messages by kinds, and frames of values and of reading.

    A run is a message and its answer.
    """
    found: Counter[str] = Counter()
    endpoints = [cluster.endpoint, *[h.endpoint for h in hosts]]
    before = [(e.on_call, e.on_run) for e in endpoints]

    def noting(call: Callable[..., Any], what: str) -> Callable[..., Any]:
        def note(peer: str, message: dict[str, Any], *more: Any) -> Any:
            found[f"{what} {message['kind']}"] += 1
            return call(peer, message, *more)

        return note

    def frames() -> int:
        return sum(c.sent for e in endpoints for c in e.counters().values())

    drain(cluster, hosts)
    sent = frames()
    for end, (on_call, on_run) in zip(endpoints, before, strict=True):
        end.on_call, end.on_run = noting(on_call, "control"), noting(on_run, "run")
    try:
        yield found
        drain(cluster, hosts)
        del found["control clock"]
    finally:
        for end, (on_call, on_run) in zip(endpoints, before, strict=True):
            end.on_call, end.on_run = on_call, on_run
        found["frames"] = frames() - sent


def one_worker() -> tuple[Any, Any]:
    x = fs.placeholder(fs.float32, [])
    with on(0):
        return x * 2.0, {x: 1.0}


def three_workers() -> tuple[Any, Any]:
    x = fs.placeholder(fs.float32, [])
    made = x
    for i in range(3):
        with on(i):
            made = made + 1.0
    return made, {x: 1.0}


def group_of_two() -> tuple[Any, Any]:
    made = []
    for i in range(2):
        with on(i):
            made.append(fs.Variable(0.0, name=f"v{i}"))
    return fs.group(*[v.assign_add(1.0) for v in made]), {}


def own_variable() -> tuple[Any, Any]:
    with on(0):
        return fs.Variable(0.0, name="v").assign_add(1.0), {}


def dequeue() -> tuple[Any, Any]:
    with on(0):
        queue = fs.FIFOQueue(9, fs.float32, [])
        fs.add_to_collection("fill", queue.enqueue_many([[1.0] * 9]))
        return queue.dequeue(), {}


def loop() -> tuple[Any, Any]:
    def body(i: Any, x: Any) -> tuple[Any, Any]:
        with on(0):
            x = x + 1.0
        with on(1):
            return i + 1, x * 0.5

    return fs.while_loop(lambda i, _: i < 4, body, [0, 1.0])[1], {}


#: What the third step of each kind sends, when plans and connections are there.
SENT: dict[Callable[[], tuple[Any, Any]], dict[str, int]] = {
    one_worker: {"run run": 1},
    three_workers: {"run run": 3, "frames": 2},
    own_variable: {"run run": 1},
    group_of_two: {"run run": 2, "frames": 6},
    dequeue: {"run run": 1, "run step.confirm": 1, "control step.settled": 1},
    loop: {"run run": 2, "frames": 23},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", SENT, ids=lambda f: f.__name__)
def test_a_healthy_step_sends_this_and_no_more(
    program: Callable[[], tuple[Any, Any]], mode: str, ends: Any
) -> None:
    cluster, hosts = ends
    fetch, feeds = program()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run([fs.global_variables_initializer(), *fs.get_collection("fill")])
        for _ in range(2):
            sess.run(fetch, feeds)
        with counted(cluster, hosts) as found:
            sess.run(fetch, feeds)
    assert dict(+found) == SENT[program]
