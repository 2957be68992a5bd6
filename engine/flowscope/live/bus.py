"""The bus: looks at a graph and its session a few times a second and tells what changed.

The engine does nothing for it: sessions count their steps anyway, and a thread of the bus reads the
counters. Only where a step is in its loops it has to be asked: at each look, one safepoint of each
running step tells. A subscriber is a function that takes a message; it is called on the bus's
thread and must not wait. Nothing runs while nobody is subscribed.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Literal

from flowscope.graph.graph import Graph
from flowscope.live import progress
from flowscope.live.frames import FrameWatcher
from flowscope.live.lowered import LoweredWatcher
from flowscope.live.schema import (
    PROTOCOL,
    Command,
    Connect,
    Delta,
    FromKernel,
    GraphChange,
    Reply,
    RunState,
    SessionState,
    Snapshot,
)
from flowscope.live.state import GraphWatcher, Meter, activity, session_state
from flowscope.runtime.gate import Gate
from flowscope.runtime.session import Session, open_sessions

#: Seconds between two looks.
PERIOD_S = 0.125

Subscriber = Callable[[FromKernel], None]


class Notebook:
    """What the notebook tells: whether a cell is running, and whether commands get through."""

    def __init__(self) -> None:
        #: None where nobody tells (plain Python).
        self.cell_running: bool | None = None
        self.control: Literal["live", "between cells"] = "live"


notebook = Notebook()


class Feed:
    """The messages about one graph, for any number of subscribers: one sequence for all of them.

    Args:
        graph: The graph to look at.
        session: The session to look at; the graph's latest open one if None.
    """

    def __init__(self, graph: Graph, session: Session | None = None) -> None:
        self._graph = graph
        self._chosen = None if session is None else weakref.ref(session)
        self._subscribers: list[Subscriber] = []
        #: Those of them who may go without a word, and what tells whether they are there.
        self._asked: list[tuple[Subscriber, Callable[[float], bool]]] = []
        self._seq = 0
        self._lock = threading.RLock()
        #: Ends the thread that looks; None while there is none.
        self._end: threading.Event | None = None
        #: What is told of lowered programs; None where the graph as written is shown.
        self._lowered: LoweredWatcher | None = None
        self._forget()

    def _forget(self) -> None:
        self._watcher = GraphWatcher()
        self._meter = Meter()
        self._metered: Session | None = None
        self._told: SessionState | None = None
        self._frames = FrameWatcher()
        self._run: RunState | None = None
        #: The gate that is looked at, and how many of its moves were told.
        self._gate: Gate | None = None
        self._moves_told = 0

    @property
    def graph(self) -> Graph:
        """The graph that is looked at."""
        return self._graph

    @property
    def session(self) -> Session | None:
        """The session that is looked at."""
        if self._chosen is not None:
            return self._chosen()
        candidates = [s for s in list(open_sessions) if s.graph is self._graph]
        return max(candidates, key=lambda s: s.number, default=None)

    # -- subscribing ----------------------------------------------------------------------------

    def subscribe(
        self, subscriber: Subscriber, remains: Callable[[float], bool] | None = None
    ) -> Callable[[], None]:
        """Sends every message to `subscriber` from now on; returns a function that ends it.

        Args:
            subscriber: Takes the messages.
            remains: Asked at each look, with the time, whether the subscriber is still there.
        """
        with self._lock:
            self._subscribers.append(subscriber)
            if remains is not None:
                self._asked.append((subscriber, remains))
            if self._end is None:
                self._end = threading.Event()
                threading.Thread(
                    target=self._look, args=(self._end,), name="flowscope live", daemon=True
                ).start()
        return lambda: self._unsubscribe(subscriber)

    def _unsubscribe(self, subscriber: Subscriber) -> None:
        with self._lock:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)
            self._asked = [(s, r) for s, r in self._asked if s in self._subscribers]
            if not self._subscribers and self._end is not None:
                self._end.set()
                self._end = None

    def _look(self, end: threading.Event) -> None:
        while not end.wait(PERIOD_S):
            now_s = time.monotonic()
            self.look_after(now_s)
            self.tick(now_s)

    def look_after(self, now_s: float) -> None:
        """Ends the subscriptions of those who are there no more."""
        for subscriber, remains in list(self._asked):
            if not remains(now_s):
                self._unsubscribe(subscriber)

    def _send(self, message: FromKernel) -> None:
        for subscriber in list(self._subscribers):
            subscriber(message)

    # -- telling --------------------------------------------------------------------------------

    def receive(self, message: Connect | Command) -> None:
        """Takes a view's message: a Connect gets a snapshot, a Command goes to the gate."""
        if isinstance(message, Connect):
            self.snapshot(time.monotonic())
        else:
            if message.name == "level":
                self._send(self._show_level(message))
            else:
                self._send(self._carry_out(message))
            self.tick(time.monotonic())

    def snapshot(self, now_s: float) -> Snapshot:
        """Sends the full state to all subscribers and returns it."""
        with self._lock:
            self._forget()
            message = self._snapshot(now_s)
            self._send(message)
        return message

    def _snapshot(self, now_s: float) -> Snapshot:
        state = self._session_state(now_s)
        change = self._change()
        if self._lowered is not None and self._lowered.plan is not None:
            change = self._lowered.whole(self._lowered.plan)
        self._told = state
        self._run = self._run_state(now_s)
        self._seq += 1
        return Snapshot(
            seq=self._seq,
            protocol=PROTOCOL,
            graph_name="graph",
            graph=change or _EMPTY,
            session=state,
            control=notebook.control,
            run=self._run,
            level="graph" if self._lowered is None else "lowered",
        )

    def _change(self) -> GraphChange | None:
        session = self.session
        return self._watcher.change(self._graph, session.placements if session else {})

    def _lowered_change(self, now_s: float) -> GraphChange | None:
        session = self.session
        if session is None or self._lowered is None:
            return None
        return self._lowered.change(session.latest_plan, session.steps, now_s)

    def describe(self) -> Snapshot:
        """Returns the full state as a message, without sending it."""
        session = self.session
        change = GraphWatcher().change(self._graph, session.placements if session else {})
        state = None
        if session is not None:
            state = session_state(session, activity(session, None, None), None, None, None)
        return Snapshot(0, PROTOCOL, "graph", change or _EMPTY, state, notebook.control)

    def tick(self, now_s: float) -> Delta | None:
        """Looks once; sends and returns what changed since the last look, None if nothing did."""
        with self._lock:
            change = self._change() if self._lowered is None else self._lowered_change(now_s)
            state = self._session_state(now_s)
            run, before = self._run_state(now_s), self._run
            if change is None and state == self._told and run == before:
                return None
            self._told, self._run = state, run
            self._seq += 1
            # A step that has ended is told by frames and a position that are no more.
            news = None if run == before else run or NOTHING_RUNS
            message = Delta(seq=self._seq, graph=change, session=state, run=news)
            self._send(message)
        return message

    def _session_state(self, now_s: float) -> SessionState | None:
        session = self.session
        if session is None:
            return None
        if session is not self._metered:
            self._meter, self._metered = Meter(), session
        rate, step_time = self._meter.update(now_s, session.steps, session.busy_ns)
        state = activity(session, notebook.cell_running, rate)
        return session_state(session, state, rate, step_time, progress.current(now_s, session))

    def _run_state(self, now_s: float) -> RunState | None:
        """Returns where the steps were at the look before, and asks them where they are now."""
        session = self.session
        if session is None or not (session.running or session.gate.pace_s):
            return None
        gate = session.gate
        if gate is not self._gate:
            self._gate, self._moves_told = gate, gate.moves.count
        moves = gate.moves.since(self._moves_told)
        self._moves_told = gate.moves.count
        state = self._frames.state(now_s, *gate.report(), moves, gate.pace_s)
        gate.look()
        return state

    def _show_level(self, command: Command) -> Reply:
        """Sends a snapshot of the level that is asked for."""
        session = self.session
        plan = session.latest_plan if session is not None else None
        if command.value == "lowered" and plan is None:
            what = "nothing is lowered yet: run something first"
            return Reply(command.command_id, False, what)
        self._lowered = None
        if command.value == "lowered":
            self._lowered = LoweredWatcher()
            self._lowered.plan = plan
        self.snapshot(time.monotonic())
        return Reply(command.command_id, True, _LEVELS[self._lowered is not None])

    def _carry_out(self, command: Command) -> Reply:
        session = self.session
        if session is None:
            return Reply(command.command_id, False, "no session runs this graph")
        if command.name == "stop" and not self._is_busy(session):
            return Reply(command.command_id, False, "nothing is running")
        if command.name == "pace":
            session.gate.set_pace(float(command.value or 0.0))
        elif command.name != "level":
            session.gate.request(command.name)
        return Reply(command.command_id, True, _DONE[command.name])

    def _is_busy(self, session: Session) -> bool:
        if notebook.cell_running is not None:
            return notebook.cell_running
        return bool(session.running or (self._told and self._told.state not in ("idle", "stopped")))


_DONE = {
    "pause": "pausing at the next safepoint",
    "resume": "going on",
    "stop": "stopping at the next safepoint",
    "step_op": "one more operation",
    "step_iteration": "until the next iteration ends",
    "pace": "going on at this pace",
}
_LEVELS = ("the graph as written", "the latest step's program as lowered")
#: What is told of steps when the last one has ended.
NOTHING_RUNS = RunState((), None, (), 0.0)
_EMPTY = GraphChange(version=0, added=(), placed=())
