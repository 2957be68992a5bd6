"""From graphs and sessions to the messages' parts. No clock, no threads: time comes in."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Literal

from flowscope.control.cond import always_run
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation
from flowscope.live.answers.debugging import debug_state
from flowscope.live.answers.history import history_state
from flowscope.live.answers.inputs import QueueMeter, helper_states, queue_states
from flowscope.live.answers.placing import is_simulated
from flowscope.live.answers.summaries import summary_state
from flowscope.live.graphs.nodes import Described
from flowscope.live.protocol.schema import (
    Failure,
    GraphChange,
    Progress,
    SessionState,
)
from flowscope.runtime.session.session import Session

State = Literal["idle", "running", "pausing", "paused", "stopping", "stopped", "closed"]


class GraphWatcher:
    """Knows what of a graph was told, and what is new."""

    def __init__(self) -> None:
        self._told: dict[int, Operation] = {}
        self._edits = 0
        self._version = -1
        self._placed: dict[int, str] = {}
        self._placed_at: object = None
        self._marked: tuple[int, ...] = ()
        #: Ids of functions' results: known when a body is complete, its operations before.
        self._results: set[int] = set()
        #: What always runs for each branching operation: less, once others use it too.
        self._always: dict[int, tuple[int, ...]] = {}

    def is_behind(self, graph: Graph, placed_at: object) -> bool:
        """Whether there may be something new."""
        return graph.version != self._version or placed_at != self._placed_at

    def change(
        self, graph: Graph, placements: dict[int, str], placed_at: object = None
    ) -> GraphChange | None:
        """The changes since the last call; None if there are none.

        Args:
            graph: The graph.
            placements: Device by operation id, as far as known.
            placed_at: Another one where they may be others.
        """
        if not self.is_behind(graph, placed_at):
            return None
        version = graph.version
        present, removed = self._look(graph)
        added = [op for op in present if op.id not in self._told]
        told = {op.id for op in added}
        changed = self._changed(graph, told)
        fresh = {i: d for i, d in list(placements.items()) if self._placed.get(i) != d}
        seen = told | {op.id for op in changed}
        placed = tuple((i, d) for i, d in fresh.items() if i in self._told and i not in seen)
        marked = tuple(sorted(graph.observer.marked & (self._told.keys() | told)))
        is_news = added or changed or removed or placed or marked != self._marked
        self._told |= {op.id: op for op in added}
        for i in removed:
            del self._told[i]
        self._version, self._marked = version, marked
        self._placed_at = placed_at
        self._placed.update(fresh)
        if not is_news:
            return None
        new, other = Described(added, placements), Described(changed, placements)
        return GraphChange(version, new, placed, other, removed, marked)

    def whole(self) -> GraphChange:
        """Returns all that was told so far, as one change."""
        operations = Described(list(self._told.values()), self._placed)
        return GraphChange(max(self._version, 0), operations, (), marked=self._marked)

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
        return present, tuple(sorted(self._told.keys() - {op.id for op in present}))

    def _changed(self, graph: Graph, added: set[int]) -> list[Operation]:
        edits = graph.edits
        edited = {op.id: op for op in graph.edited_since(self._edits)}
        self._edits = edits
        turned = self._turned(graph) | self._freed(graph)
        edited |= {op.id: op for op in graph.get_operations() if op.id in turned} if turned else {}
        gone = {op.id for op in edited.values() if op.stale and op.stale.kind == "gone"}
        known = self._told.keys() - added - gone
        return [op for i, op in edited.items() if i in known]

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
    """The state of a session.

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
    meter: QueueMeter | None = None,
) -> SessionState:
    """The message of a session; `meter` counts the elements of its queues."""
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
        queues=queue_states(session, meter),
        helpers=helper_states(session),
        failure=None if session.failure is None else Failure(*session.failure),
        debug=debug_state(session),
        history=history_state(session),
        summaries=summary_state(session.engine),
        devices=tuple([device.name for device in session.devices]),
        is_simulated=is_simulated(session),
    )
