"""Recordings as views are shown them: the messages of a graph and its steps, without a session.

What a recording says of operations it says by the numbers that they had in the graph that ran. The
graph that it keeps is built anew, in which they may have others: names lead from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flowscope.debug.history import RecordedValue
from flowscope.errors import OpError
from flowscope.graph.graph import Graph
from flowscope.graph.serialization.build import import_graph_def
from flowscope.graph.serialization.definition import GraphDef
from flowscope.live.answers import asking
from flowscope.live.answers.asking import NOTHING_RUNS
from flowscope.live.answers.debugging import value_state
from flowscope.live.answers.history import told_values
from flowscope.live.answers.state import GraphWatcher
from flowscope.live.answers.traces import heat_of, spans_of, summary
from flowscope.live.protocol.schema import (
    PROTOCOL,
    Ack,
    Alive,
    AskHistory,
    AskSpans,
    Command,
    Connect,
    Disconnect,
    GraphChange,
    HistoryState,
    Node,
    Origin,
    Question,
    Reply,
    Snapshot,
    Spans,
    TensorHistory,
    TraceState,
    Values,
)
from flowscope.live.watchers.bus import LiveChannel, Subscriber
from flowscope.runtime.session.session import Session
from flowscope.tracing.recording import Recording, TracedNode
from flowscope.tracing.values import MAX_BYTES


class RecordedFeed(LiveChannel):
    """The messages about a recording, for any number of views.

    Args:
        recording: The recording. Where it keeps no graph, the nodes that ran are shown as one.
        graph: The graph, in the place of the one that the recording keeps.

    Attributes:
        recording: The recording, whose nodes name operations by the numbers that they have here.
    """

    def __init__(self, recording: Recording, graph: Graph | None = None) -> None:
        super().__init__(_graph(recording) if graph is None else graph)
        ids = {op.name: op.id for op in self.graph.get_operations()}
        if ids:
            placed = {ids[n]: one.device for one in recording.nodes for n in one.names if n in ids}
            change = GraphWatcher().change(self.graph, placed)
        else:
            nodes = _nodes(recording.nodes)
            ids = {node.name: node.id for node in nodes}
            change = GraphChange(0, nodes, ())
        known = tuple([_with_ids(node, ids) for node in recording.nodes])
        self.recording = replace(recording, nodes=known)
        self._change = change or GraphChange(0, (), ())
        self._readers: dict[int, Subscriber] = {}
        self._values = {
            one.name: tuple([RecordedValue(k.step, k.iterations, k.value) for k in one.kept])
            for one in recording.values
        }

    @property
    def session(self) -> Session | None:
        """None: nothing runs."""
        return None

    def traced(self) -> Recording:
        """Returns the recording."""
        return self.recording

    def describe(self) -> Snapshot:
        """Returns graph and steps as a message."""
        steps = tuple([summary(s) for s in self.recording.steps])
        programs, told = heat_of(self.recording)
        trace = TraceState(0.0, 1, self.recording.traced_steps, steps, programs, told)
        is_graph = not steps
        return Snapshot(
            0,
            PROTOCOL,
            "graph" if is_graph else "recording",
            self._change,
            None,
            "graph" if is_graph else "recorded",
            trace=None if is_graph else trace,
            history=self._history(),
        )

    def _history(self) -> HistoryState | None:
        if not self._values:
            return None
        nbytes = sum(k.value.nbytes for kept in self._values.values() for k in kept)
        return HistoryState(1, 0, None, None, tuple(self._values), nbytes, MAX_BYTES)

    def all_values(self, most: int) -> Iterator[TensorHistory | Values]:
        """Returns the values of each tensor: what is told of all, and behind that each of them.

        Args:
            most: So many values in all at most, the newest of each tensor.
        """
        each = max(1, most // max(1, len(self._values)))
        for name, values in self._values.items():
            kept = values[-each:]
            yield told_values(AskHistory(0, 0, name, each, None, ()), 1, kept)
            yield Values(0, "", tuple([value_state(name, k.value) for k in kept]), 0)

    def values_of(self, tensor: str) -> tuple[RecordedValue, ...] | None:
        """The recorded values of a tensor; None where there are none."""
        return self._values.get(tensor)

    def all_spans(self, most: int) -> Iterator[Spans]:
        """The events of each step, as one message per step.

        Args:
            most: So many spans of each at most: neighbours that are too narrow become one.
        """
        for step in self.recording.steps:
            asked = AskSpans(0, step.number, None, None, most, 0)
            yield spans_of(self.recording, step, asked, 1)

    def hear(
        self,
        message: Connect | Disconnect | Alive | Ack | Command | Question,
        send: Subscriber,
    ) -> None:
        """Takes a view's message: it is shown all at once, and what it asks for."""
        if isinstance(message, Connect):
            self._readers[message.view] = send
            send(replace(self.describe(), view=message.view))
        elif isinstance(message, Disconnect):
            self._readers.pop(message.view, None)
        elif isinstance(message, Command):
            send(Reply(message.command_id, False, NOTHING_RUNS, message.view))
        elif isinstance(message, Question):
            send(asking.recorded_answer(self, message))

    def leave(self, send: Subscriber) -> None:
        """Ends what is sent through a function, to all its views."""
        self._readers = {view: one for view, one in self._readers.items() if one != send}

    def views(self, send: Subscriber) -> int:
        """Returns how many views are told through a function."""
        return sum(one == send for one in self._readers.values())


def _graph(recording: Recording) -> Graph:
    """Returns the graph that a recording keeps; an empty one where it keeps none that is known."""
    graph = Graph()
    if recording.graph:
        try:
            with graph.as_default():
                import_graph_def(GraphDef.from_json(recording.graph), name="")
        except OpError:
            return Graph()  # it has ops of the user's that are not registered here
    return graph


def _nodes(nodes: tuple[TracedNode, ...]) -> tuple[Node, ...]:
    """Returns the nodes that ran as operations, each of which waits for others."""
    numbers = {node.name: i for i, node in enumerate(nodes)}
    told = []
    for i in sorted(numbers.values()):
        node = nodes[i]
        before = dict.fromkeys([numbers[nodes[j].name] for j in node.waits_for])
        line = node.line
        origin = None if line is None else Origin(line.file, line.cell, line.line, line.text)
        told.append(
            Node(i, node.name, node.type, (), tuple(before), (), {}, "", node.device, "", origin)
        )
    return tuple(told)


def _with_ids(node: TracedNode, ids: dict[str, int]) -> TracedNode:
    """Returns a node with the numbers that its operations have here."""
    names = node.names if any(name in ids for name in node.names) else (node.name,)
    return replace(node, operations=tuple([ids[name] for name in names if name in ids]))


__all__ = ["RecordedFeed"]
