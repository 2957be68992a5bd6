"""Plans on their way to the tasks that run parts of them: plain data, once per plan and session.

A task gets its partitions, what they meet by - the keys, in an order that all processes share - and
the peers that they meet. It makes the code itself. Functions and types of the user's travel as
`cluster.shipping.sent_objects` says. The bytes are pickled: a worker reads what comes from clients
of its own cluster.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from flowscope.cluster.shipping import sent_objects
from flowscope.cluster.shipping.sent_objects import (
    Ask,
    SentObjects,
    dumps_for,
    nothing_wanted,
    sent,
)
from flowscope.cluster.transport.endpoint import Address
from flowscope.errors import NotFoundError, OpError
from flowscope.graph.graph import Graph
from flowscope.graph.lazy import frozen
from flowscope.ops.host.py_functions import HostFunc, bind_function, called_function
from flowscope.ops.state.containers.queue_ops import QueueHandle
from flowscope.ops.state.update_groups import BeginUpdate
from flowscope.plan.analysis.effects import is_worldly
from flowscope.plan.ir import serialization
from flowscope.plan.ir.crossings import keys, windows
from flowscope.plan.ir.program import Node
from flowscope.plan.partition.compiled_partitions import takes_turns
from flowscope.plan.partition.element_functions import all_nodes
from flowscope.plan.partition.partitions import Partition
from flowscope.runtime.step.failures import located_at


class PlanPeer(NamedTuple):
    """A process that takes part in a plan, and how it is reached."""

    name: str
    incarnation: int
    address: Address
    #: Where it is reached if not there.
    instead: str | None


@frozen
class Shipment:
    """What a task gets of a plan.

    Attributes:
        partitions: Its partitions.
        keys: What partitions of the plan send and receive by, of all tasks.
        peers: The workers that it sends to or receives from.
        tasks: The names of processes by those of tasks, where they differ: the client's.
        windows: After how many values who receives tells that they are read, by key.
        feeds: The names of the step's feeds, for errors.
        restarted: Names of variables that a cell has made anew, with another shape or dtype.
    """

    partitions: tuple[Partition, ...]
    keys: tuple[str, ...]
    peers: tuple[PlanPeer, ...]
    tasks: tuple[tuple[str, str], ...]
    windows: Mapping[str, int]
    feeds: tuple[str, ...] = ()
    restarted: frozenset[str] = frozenset()

    def dumps(self, ask: Ask = nothing_wanted) -> bytes:
        """Returns it as bytes for a task.

        Args:
            ask: Asks the task which modules it wants; see `cluster.shipping.sent_objects`.

        Raises:
            InvalidArgumentError: if it holds what cannot be sent; it names the operation.
            FailedPreconditionError: if it needs a module that the task lacks and that cannot be
                sent; it does so, too.
        """
        programs = [serialization.dumps(p.program) for p in self.partitions]
        rows = [
            (p.device, p.back_end, p.fetched, data, len(objects))
            for p, (data, objects) in zip(self.partitions, programs, strict=True)
        ]
        objects = [one for _, found in programs for one in found]
        called = [called_function(n.op) for n in self._nodes()]
        found = {i: f for i, f in enumerate(called) if f is not None}
        try:
            packed = dumps_for((objects, found), ask) if objects or found else b""
        except OpError as e:
            raise _at_culprit(e, self._nodes(), lambda one: one.dumps(one.needs)) from e.__cause__
        peers = [tuple(p) for p in self.peers]
        facts = self.keys, peers, self.tasks, self.windows, self.feeds, self.restarted
        return pickle.dumps((rows, packed, facts), pickle.HIGHEST_PROTOCOL)

    def _nodes(self) -> Iterator[Node]:
        return (n for p in self.partitions for n in all_nodes(p.program))


def loads(data: bytes) -> Shipment:
    """Returns the shipment that `Shipment.dumps` has written."""
    rows, packed, facts = pickle.loads(data)
    all_keys, peers, tasks, windows, feeds, restarted = facts
    objects: list[Callable[..., Any]]
    called: dict[int, Callable[..., Any]]
    objects, called = sent_objects.loads(packed) if packed else ([], {})
    partitions = []
    for device, back_end, fetched, program, count in rows:
        own, objects = objects[:count], objects[count:]
        made = serialization.loads(program, own)
        partitions.append(Partition(device, made, back_end, fetched))
    nodes = [n for p in partitions for n in all_nodes(p.program)]
    for i, function in called.items():
        bind_function(nodes[i].op, function)
    found = tuple([PlanPeer(*p) for p in peers])
    return Shipment(tuple(partitions), all_keys, found, tasks, windows, feeds, restarted)


class TaskPart:
    """What one task runs of a plan.

    Attributes:
        task: Its name.
        partitions: Its partitions.
        takes: The numbers of the feeds that it takes, in the order in which they are sent.
        gives: The numbers of the fetches that it gives, in the order in which they come.
    """

    def __init__(self, task: str, partitions: Sequence[Partition]) -> None:
        self.task = task
        self.partitions = tuple(partitions)
        feeds = {v.index for p in partitions for v in p.program.feeds}
        self.takes = tuple(sorted(feeds))
        self.gives = tuple([i for p in partitions for i in p.fetched])


def at_user_of(module: str, error: OpError, nodes: Iterable[Node]) -> OpError:
    """Returns the error of a task that lacks a module, with the operation that needs it."""

    def check(one: SentObjects) -> None:
        if module in one.names or module in one.needs:
            raise NotFoundError(module)

    return _at_culprit(error, nodes, check)


def _at_culprit(
    error: OpError, nodes: Iterable[Node], check: Callable[[SentObjects], object]
) -> OpError:
    """Returns an error with the first operation whose objects do not pass a check."""
    if error.is_located:
        return error
    for node in nodes:
        try:
            check(sent(_objects_of(node)))
        except OpError:
            return located_at(error, node)
    return error


def _objects_of(node: Node) -> list[Any]:
    """Returns the functions and types of the user's that a node may hold."""
    op = node.op
    return [type(op), called_function(op), *[v for v in op.attributes().values() if callable(v)]]


def keys_of(partitions: Sequence[Partition]) -> tuple[str, ...]:
    """The rendezvous keys of partitions, in program order."""
    return tuple(dict.fromkeys(k for p in partitions for k in keys(p.program.nodes)))


def windows_of(partitions: Sequence[Partition]) -> dict[str, int]:
    """Returns after how many values who receives tells that they are read, by key."""
    found: dict[str, int] = {}
    for one in partitions:
        found |= windows(one.program.walk(), not takes_turns([one]))
    return found


def shared_groups(nodes: Iterable[Node]) -> frozenset[str]:
    """Returns the update groups of some nodes for which other processes write, too."""
    return frozenset(n.op.group for n in nodes if isinstance(n.op, BeginUpdate) and n.op.group)


def restarted(graph: Graph, nodes: Iterable[Node]) -> frozenset[str]:
    """Returns the variables, of some nodes' handles, that a notebook cell has made anew."""
    restarts = graph.observer.restarts
    handles: list[Any] = [n.op for n in nodes if n.op.is_handle]
    named = [h for h in handles if hasattr(h, "shared_name")]
    return frozenset(h.shared_name for h in named if restarts.get(h.shared_name) == h)


class Takers:
    """Which tasks of a plan use queues, and which leave what others can see.

    Args:
        by_task: The partitions by tasks, without the client's.
    """

    def __init__(self, by_task: Mapping[str, Sequence[Partition]]) -> None:
        nodes = {t: [n for p in found for n in p.program.walk()] for t, found in by_task.items()}
        self._takers = frozenset(t for t, found in nodes.items() if any(map(_is_queue, found)))
        self._writers = frozenset(t for t, found in nodes.items() if any(map(is_seen, found)))

    def met_by(self, task: str) -> frozenset[str]:
        """Returns the tasks that one asks what they have written, or that ask it."""
        if task in self._takers:
            return self._writers
        return self._takers if task in self._writers else frozenset()

    def header(self, task: str) -> dict[str, Any]:
        """Items of the header of the message that brings a task its part."""
        found: dict[str, Any] = {}
        if task in self._takers and self._writers - {task}:
            found["writers"] = sorted(self._writers - {task})
        if task in self._writers and self._takers - {task}:
            found["is_asked"] = True
        return found


def _is_queue(node: Node) -> bool:
    return isinstance(node.op, QueueHandle)


def is_seen(node: Node) -> bool:
    """Whether a node writes a variable, or acts on the world outside."""
    return bool(node.op.writes_state and node.handles) or is_worldly_call(node)


def is_worldly_call(node: Node) -> bool:
    """Whether a node acts on the world outside, or calls a function that may."""
    return not node.blocks and (is_worldly(node) or isinstance(node.op, HostFunc))


def stripped(partition: Partition) -> Partition:
    """Returns a partition without what only the client's views ask of its program."""
    program = replace(partition.program, notes=(), same=(), tensors=())
    return replace(partition, program=program)


__all__ = [
    "PlanPeer", "Shipment", "Takers", "TaskPart", "is_worldly_call", "keys_of", "loads",
    "restarted", "shared_groups", "stripped", "windows_of",
]  # fmt: skip
