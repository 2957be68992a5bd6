"""From graphs and sessions to the messages' parts. No clock, no threads: time comes in."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Literal

from flowscope.control.calls import Call
from flowscope.control.cond import always_run
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation
from flowscope.live.blocks import blocks_of
from flowscope.live.raw_loops import shown
from flowscope.live.schema import (
    GraphChange,
    Node,
    Origin,
    Output,
    Progress,
    QueueState,
    SessionState,
)
from flowscope.runtime.session import Session

State = Literal["idle", "running", "pausing", "paused", "stopping", "stopped", "closed"]

#: Longest text of an attribute that is sent.
ATTRIBUTE_CHARS = 80


def node_of(op: Operation, placed: str | None) -> Node:
    """Returns an operation as a view sees it."""
    definition = op.definition
    scope, frame = shown(op)
    return Node(
        id=op.id,
        name=op.name,
        type=op.type,
        inputs=tuple((t.op.id, t.value_index) for t in op.inputs),
        control=tuple(c.id for c in op.control_inputs),
        outputs=tuple(output_of(t.spec.variable or t.spec) for t in op.outputs),
        attributes={k: short(v) for k, v in definition.attributes().items()},
        device=op.device,
        placed=placed,
        summary=(type(definition).__doc__ or "").strip().partition("\n")[0],
        origin=made_at(op),
        stale=None if op.stale is None else op.graph.cells.refusal(op).message,
        body=op.block.name,
        is_result=_is_result(op),
        calls=definition.function.name if isinstance(definition, Call) else "",
        scope=scope,
        frame=frame,
        **blocks_of(op),
    )


def _is_result(op: Operation) -> bool:
    function = op.graph.functions.get(op.block.name)
    return function is not None and any(t.op is op for t in function.results)


def output_of(spec: object) -> Output:
    """Returns what is told of an output."""
    return Output(dtype=str(spec.dtype), shape=spec.shape)  # type: ignore[attr-defined]


def short(value: object) -> str:
    """Returns an attribute as a text that is not too long."""
    text = str(value)
    return text if len(text) <= ATTRIBUTE_CHARS else text[: ATTRIBUTE_CHARS - 3] + "..."


def made_at(op: Operation) -> Origin | None:
    """Returns the user's line that made an operation."""
    place = op.origin.place
    if place is None:
        return None
    file = None if place.cell is not None else place.filename
    return Origin(file=file, cell=place.cell, line=place.line, text=place.text)


class GraphWatcher:
    """Knows what of a graph was told, and what is new."""

    def __init__(self) -> None:
        self._told: set[int] = set()
        self._edits = 0
        self._version = -1
        self._placed: dict[int, str] = {}
        self._marked: tuple[int, ...] = ()
        #: Ids of functions' results: known when a body is complete, its operations before.
        self._results: set[int] = set()
        #: What always runs for each branching operation: less, once others use it too.
        self._always: dict[int, tuple[int, ...]] = {}

    def is_behind(self, graph: Graph, placements: dict[int, str]) -> bool:
        """Whether there may be something new."""
        return graph.version != self._version or len(placements) != len(self._placed)

    def change(self, graph: Graph, placements: dict[int, str]) -> GraphChange | None:
        """Returns what came since the last call, None if nothing did.

        Args:
            graph: The graph.
            placements: Device by operation id, as far as known.
        """
        if not self.is_behind(graph, placements):
            return None
        version = graph.version
        present, removed = self._look(graph)
        added = tuple([_node(op, placements) for op in present if op.id not in self._told])
        told = {n.id for n in added}
        changed = self._changed(graph, placements, told)
        fresh = {i: d for i, d in list(placements.items()) if self._placed.get(i) != d}
        seen = told | {n.id for n in changed}
        placed = tuple((i, d) for i, d in fresh.items() if i in self._told and i not in seen)
        marked = tuple(sorted(graph.cells.marked & (self._told | told)))
        is_news = added or changed or removed or placed or marked != self._marked
        self._told = (self._told | told) - set(removed)
        self._version, self._marked = version, marked
        self._placed.update(fresh)
        if not is_news:
            return None
        return GraphChange(version, added, placed, changed, removed, marked)

    def _look(self, graph: Graph) -> tuple[list[Operation], tuple[int, ...]]:
        """Returns the operations, and the ids of those that are there no more.

        While a cell is run again, those that it has not made again yet are not listed: what is
        gone is known at its end.
        """
        runs = [graph.run]
        present = graph.get_operations()
        runs.append(graph.run)
        if any(run is not None and run.is_again for run in runs):
            return present, ()
        return present, tuple(sorted(self._told - {op.id for op in present}))

    def _changed(
        self, graph: Graph, placements: dict[int, str], added: set[int]
    ) -> tuple[Node, ...]:
        edits = graph.edits
        edited = {op.id: op for op in graph.edited_since(self._edits)}
        self._edits = edits
        turned = self._turned(graph) | self._freed(graph)
        edited |= {op.id: op for op in graph.get_operations() if op.id in turned} if turned else {}
        gone = {op.id for op in edited.values() if op.stale and op.stale.kind == "gone"}
        known = self._told - added - gone
        return tuple([_node(op, placements) for i, op in edited.items() if i in known])

    def _turned(self, graph: Graph) -> set[int]:
        """Returns the ids of what has become, or was, a function's result since the last call."""
        results = {t.op.id for f in list(graph.functions.values()) for t in f.results}
        turned = results ^ self._results
        self._results = results
        return turned

    def _freed(self, graph: Graph) -> set[int]:
        """Returns the ids of branching operations for which other operations run now than did."""
        conds = [op for op in graph.get_operations() if op.type == "Cond"]
        always = {op.id: tuple([one.id for one in always_run(op)]) for op in conds}
        changed = {i for i, ids in always.items() if self._always.get(i, ids) != ids}
        self._always = always
        return changed


def _node(op: Operation, placements: dict[int, str]) -> Node:
    return node_of(op, placements.get(op.id))


class Meter:
    """Steps per second and time per step over the last `window_s` seconds."""

    def __init__(self, window_s: float = 1.5) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int, int]] = deque()

    def update(self, now_s: float, steps: int, busy_ns: int) -> tuple[float | None, float | None]:
        """Takes a sample; returns (steps per second, seconds per step), None where nothing ran."""
        self._samples.append((now_s, steps, busy_ns))
        while len(self._samples) > 2 and now_s - self._samples[1][0] >= self._window_s:
            self._samples.popleft()
        start, first_steps, first_busy = self._samples[0]
        done = steps - first_steps
        if not done or now_s <= start:
            return None, None
        return done / (now_s - start), (busy_ns - first_busy) * 1e-9 / done


def activity(session: Session, is_cell_running: bool | None, rate: float | None) -> State:
    """Returns what a session is doing.

    Args:
        session: The session.
        is_cell_running: Whether a cell of the notebook is running; None where nobody tells.
        rate: Steps per second, None where none has ended lately.
    """
    state = session.gate.state
    if session.is_closed:
        return "closed"
    if (session.running and state == "open") or state == "stepping":
        return "running"
    if state != "open":
        return state
    if session.is_stopped:
        return "stopped"
    # Between two steps of a loop it runs, but not when the cell has ended.
    return "running" if rate and is_cell_running is not False else "idle"


def session_state(
    session: Session,
    state: State,
    rate: float | None,
    step_time: float | None,
    progress: Progress | None,
) -> SessionState:
    """Returns what is told of a session."""
    is_going_on = state not in ("idle", "stopped", "closed")
    if progress is not None and not is_going_on:
        progress = replace(progress, eta_s=None)
    if not is_going_on:
        rate = step_time = None
    return SessionState(
        state=state,
        steps=session.steps,
        steps_per_s=None if rate is None else float(f"{rate:.4g}"),
        step_time_s=None if step_time is None else float(f"{step_time:.4g}"),
        progress=progress,
        queues=tuple(
            [QueueState(op, q.size, q.capacity, *q.waiting, q.is_closed)
             for op, q in session.queues.items()]
        ),
    )  # fmt: skip
