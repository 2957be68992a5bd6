"""The wait-for graph over all processes of a cluster: what a step waits for in the end.

Each process knows who waits in it, and for which device (`Channel.pending`). Joined, these are the
edges of a graph; its nodes are the devices, for each step apart. A device that waits for nobody,
but is waited for, is what holds the others up: because its process is lost or hangs, because a
kernel takes long, or because it has not come to its `Send`. Where there is no such device, devices
wait for each other in a circle.

One look at all processes proves no circle: each of them is asked at its own moment, and a value may
be on its way. So it is said that nobody can go on only of waits that two looks show, all of them
older than the first look, with more time between the looks than a message takes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from flowscope.cluster.watch.status import (
    Finding,
    Health,
    LostState,
    WaitStatus,
    WorkerStatus,
    lost_text,
    short_device,
    short_task,
    task_of,
)
from flowscope.runtime.waits import wait_graph

#: A device within a step.
Node = tuple[str, int, str]

#: A wait that is shorter is nothing to tell of, where nothing is wrong.
LONG_S = 1.0
#: Waits that one sentence lists.
MOST = 4
#: So long waits of a circle are looked at, at least: what is on its way has come by then.
IN_FLIGHT_S = 0.05

_SAID: dict[str, str] = {"lost": "is lost", "hung": "hangs", "busy": "does not answer"}
_GRAVITY = ("cycle", "lost", "hung", "state", "busy", "waits")


def wait_of(client: str, step: int, pending: Any) -> WaitStatus:
    """Returns the status of one wait in a step's channel (`runtime.waits.rendezvous`)."""
    sender, receiver, name = pending.key.split(";", 2)
    if pending.is_producer:
        return WaitStatus(client, step, sender, receiver, name, "credit", pending.seconds)
    kind: Literal["value", "transfer"] = "transfer" if pending.is_on_way else "value"
    return WaitStatus(client, step, receiver, sender, name, kind, pending.seconds)


def joined(waits: Iterable[WaitStatus]) -> tuple[WaitStatus, ...]:
    """Returns the waits of all processes, the longest first."""
    return tuple(sorted(waits, key=lambda wait: -wait.seconds))


def findings(
    waits: Sequence[WaitStatus],
    health: Mapping[str, tuple[Health, str]],
    long_s: float = LONG_S,
    circle_s: float = math.inf,
) -> tuple[Finding, ...]:
    """The reasons why steps wait, the gravest first.

    Args:
        waits: Those of all processes.
        health: How each task is, and why.
        long_s: So long a device waits at least that is told of, where nothing is wrong.
        circle_s: So long all in a circle wait at least, in seconds, if it is told as one: see
            `proved`.
    """
    graph = _Graph(waits)
    circles = [c for c in graph.circles() if _age(c) >= circle_s]
    found = [_circle_found(circle) for circle in circles]
    unwell = {task for task, (state, _) in health.items() if state != "ok"}
    for task in sorted(unwell):
        state, reason = health[task]
        found.append(_unwell_found(task, state, reason, graph))
    for node, direct in graph.idle().items():
        if max(w.seconds for w in direct) >= long_s:
            found.append(_queue_found(node, direct, graph))
    for node, direct in graph.roots().items():
        if task_of(node[2]) not in unwell and max(w.seconds for w in direct) >= long_s:
            found.append(_late_found(node, direct, graph))
    return by_gravity(found)


def state_found(task: str, lost: Sequence[LostState]) -> Finding:
    """Returns that a task has lost what sessions had there, and what to do."""
    names = ", ".join(one.name for one in lost[:MOST])
    more = f" and {len(lost) - MOST} more" if len(lost) > MOST else ""
    text = (
        f"{short_task(task)} was started again and has lost {lost_text(lost)} ({names}{more}): "
        "restore a checkpoint, run their initializers, or make a new session"
    )
    return Finding("state", text, (task,))


def by_gravity(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns findings, the gravest first."""
    return tuple(sorted(found, key=lambda f: _GRAVITY.index(f.kind)))


class WaitSnapshot(NamedTuple):
    """What one look at all processes has shown.

    Attributes:
        waits: Who waits, in one step or in all.
        health: How each task is, and why.
        round_trip_s: What a message to the slowest task takes there and back, in seconds.
        workers: How all tasks are; empty where nobody asks.
    """

    waits: Sequence[WaitStatus]
    health: Mapping[str, tuple[Health, str]]
    round_trip_s: float = 0.0
    workers: tuple[WorkerStatus, ...] = ()


def explained(look: Callable[[], WaitSnapshot], rest: Callable[[float], object]) -> str:
    """The waits of a step in words, for its error; "" if it waits for nothing.

    Args:
        look: Looks at all processes.
        rest: Lets so many seconds pass.
    """
    return _explained(*proved(look, rest))


def proved(
    look: Callable[[], WaitSnapshot], rest: Callable[[float], object], least_s: float = 0.0
) -> tuple[WaitSnapshot, float]:
    """The waits to be told, and for how long all in a circle have waited, in seconds.

    It looks twice where a first look shows a circle: waits of one that are as old as the time in
    between were there together, and nothing that could end them was on its way.

    Args:
        look: Looks at all processes.
        rest: Lets so many seconds pass.
        least_s: Circles of waits that are shorter are not looked at again, and not told.
    """
    begin = time.monotonic()
    seen = look()
    if not any(_age(circle) >= least_s for circle in _Graph(seen.waits).circles()):
        return seen, math.inf
    rest(max(IN_FLIGHT_S, 2 * seen.round_trip_s, time.monotonic() - begin))
    seen = look()
    return seen, max(least_s, time.monotonic() - begin)


def _explained(seen: WaitSnapshot, circle_s: float) -> str:
    """Says what a look has shown; circles of waits that are shorter are told as waits."""
    own = seen.waits
    peers = {task_of(wait.peer) for wait in own}
    known = {task: told for task, told in seen.health.items() if task in peers}
    found = findings(own, known, 0.0, circle_s)
    told = {task for one in found for task in one.tasks[:1]}
    queues = [_said(w) for w in own if not w.peer and task_of(w.device) not in told][:MOST]
    ring = [w for c in _Graph(own).circles() if _age(c) < circle_s for w in c]
    ring += [w for w in own if w.kind == "transfer"]
    unproved = [_said(w) for w in ring if task_of(w.peer) not in told][:MOST]
    return "; ".join([*[one.text for one in found], *queues, *unproved])


def _age(circle: Iterable[WaitStatus]) -> float:
    """Returns for how many seconds all in a circle have waited."""
    return min(wait.seconds for wait in circle)


class _Graph:
    """The graph of waits: which process waits for which.

    Attributes:
        out: The waits of each device that waits.
        into: The waits for each device that is waited for.
    """

    def __init__(self, waits: Iterable[WaitStatus]) -> None:
        self.out: dict[Node, list[WaitStatus]] = {}
        self.into: dict[Node, list[WaitStatus]] = {}
        for wait in waits:
            self.out.setdefault(_waiter(wait), []).append(wait)
            if wait.peer:
                self.into.setdefault(_target(wait), []).append(wait)

    def roots(self) -> dict[Node, list[WaitStatus]]:
        """Returns the devices that are waited for and wait for nobody, with who waits for them."""
        return {node: waits for node, waits in self.into.items() if node not in self.out}

    def idle(self) -> dict[Node, list[WaitStatus]]:
        """Returns the devices that are waited for and wait for queues, with who waits for them."""
        return {
            node: waits
            for node, waits in self.into.items()
            if node in self.out and not any(w.peer for w in self.out[node])
        }

    def of_task(self, task: str) -> list[WaitStatus]:
        """Returns the waits for the devices of a task."""
        return [w for node, waits in self.into.items() if task_of(node[2]) == task for w in waits]

    def behind(self, nodes: Collection[Node]) -> set[Node]:
        """Returns the devices that wait for one of these, or for one that does, and so on."""
        seen: set[Node] = set()
        todo = list(nodes)
        while todo:
            waiting = {_waiter(wait) for wait in self.into.get(todo.pop(), ())} - seen
            seen |= waiting
            todo += waiting
        return seen

    def circles(self) -> list[list[WaitStatus]]:
        """Returns the circles in which everybody waits for one other alone.

        A device that runs several iterations at a time may wait for several others, and go on when
        one of them sends: only where all its waits stay inside can it never go on.
        """
        ends = {
            node: [None if not w.peer or w.kind == "transfer" else (_target(w),) for w in waits]
            for node, waits in self.out.items()
        }

        def longest(node: Node) -> WaitStatus:
            return max(self.out[node], key=lambda wait: wait.seconds)

        rings = wait_graph.circles(sorted(wait_graph.stuck(ends)), lambda n: [_target(longest(n))])
        return [[longest(node) for node in ring] for ring in rings]


def _circle_found(circle: Sequence[WaitStatus]) -> Finding:
    links = ", which waits ".join(f"{_for(wait)} ({wait.seconds:.1f} s)" for wait in circle)
    text = f"Nobody can go on: {short_device(circle[0].device)} waits {links}"
    return Finding("cycle", text, tuple(dict.fromkeys(task_of(w.device) for w in circle)))


def _unwell_found(task: str, state: Health, reason: str, graph: _Graph) -> Finding:
    direct = graph.of_task(task)
    why = f" ({reason})" if reason else ""
    text = f"{short_task(task)} {_SAID[state]}{why}"
    text += f": {_waiters(direct, graph)}" if direct else ": no step waits for it"
    return Finding(_kind(state), text, _tasks(task, direct))


def _kind(state: Health) -> Any:
    return "waits" if state == "ok" else state


def _late_found(node: Node, direct: Sequence[WaitStatus], graph: _Graph) -> Finding:
    does = "has not read yet" if all(w.kind == "credit" for w in direct) else "has not sent yet"
    text = f"{short_device(node[2])} {does}: {_waiters(direct, graph)}"
    return Finding("waits", text, _tasks(task_of(node[2]), direct))


def _queue_found(node: Node, direct: Sequence[WaitStatus], graph: _Graph) -> Finding:
    queues = " and ".join(dict.fromkeys(_for(w) for w in graph.out[node]))
    text = f"{short_device(node[2])} waits {queues}: {_waiters(direct, graph)}"
    return Finding("waits", text, _tasks(task_of(node[2]), direct))


def _tasks(blamed: str, direct: Iterable[WaitStatus]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([blamed, *[task_of(wait.device) for wait in direct]]))


def _waiters(direct: Sequence[WaitStatus], graph: _Graph) -> str:
    """Returns who waits for a device, and how many wait for these in turn."""
    ordered = sorted(direct, key=lambda wait: -wait.seconds)
    parts = [_said(wait) for wait in ordered[:MOST]]
    nodes = {_waiter(wait) for wait in direct}
    more = len(graph.behind(nodes) - nodes) + max(0, len(ordered) - MOST)
    return ", ".join(parts) + (f", and {more} more behind" if more else "")


def _said(wait: WaitStatus) -> str:
    return f"{short_device(wait.device)} has waited {wait.seconds:.1f} s {_for(wait)}"


def _for(wait: WaitStatus) -> str:
    if not wait.peer:
        return f'for the queue "{wait.what}"'
    if wait.kind == "credit":
        return f'for {short_device(wait.peer)} to read "{wait.what}"'
    on_way = ", which is on its way" if wait.kind == "transfer" else ""
    return f'for "{wait.what}" of {short_device(wait.peer)}{on_way}'


def _waiter(wait: WaitStatus) -> Node:
    return wait.client, wait.step, wait.device


def _target(wait: WaitStatus) -> Node:
    return wait.client, wait.step, wait.peer


__all__ = [
    "IN_FLIGHT_S",
    "LONG_S",
    "WaitSnapshot",
    "explained",
    "findings",
    "joined",
    "proved",
    "wait_of",
]
