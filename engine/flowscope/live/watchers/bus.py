"""The bus: looks at a graph and its session a few times a second and tells what changed.

The engine does nothing for it: sessions count their steps anyway, and a thread of the bus reads the
counters. Only where a step is in its loops it has to be asked: at each look, one safepoint of each
running step tells. All views of a graph share one look; what each is sent, and when, its outbox
decides. Messages go through a function, which is called on the bus's thread and must not wait.
Nothing runs while nobody is told.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

from flowscope.errors import OpError
from flowscope.graph.graph import Graph
from flowscope.live.answers import asking, history, progress
from flowscope.live.answers.following import Following
from flowscope.live.answers.inputs import QueueMeter
from flowscope.live.answers.placing import Placing
from flowscope.live.answers.scalars import Scalars
from flowscope.live.answers.state import GraphWatcher, Meter, activity, session_state
from flowscope.live.answers.traces import Tracing
from flowscope.live.graphs.lowered import LoweredWatcher
from flowscope.live.graphs.partitioned import partition_nodes
from flowscope.live.protocol.schema import (
    PROTOCOL,
    Ack,
    Alive,
    Command,
    Connect,
    Delta,
    Disconnect,
    FromKernel,
    GraphChange,
    MoveWish,
    Question,
    Reply,
    RunState,
    SessionState,
    Snapshot,
    TraceState,
)
from flowscope.live.watchers.frames import FrameWatcher
from flowscope.live.watchers.outbox import WINDOW, Outbox
from flowscope.live.watchers.subscribers import Subscribers
from flowscope.runtime.session import engine
from flowscope.runtime.session.session import Session
from flowscope.runtime.waits.gate import Gate
from flowscope.tracing.recording import Recording

#: Seconds between two looks.
PERIOD_S = 0.125

T = TypeVar("T")
Subscriber = Callable[[FromKernel], None]
Level = Literal["graph", "lowered", "partitions"]
#: The levels that show the program of the latest step.
ProgramLevel = Literal["lowered", "partitions"]


class NotebookState:
    """What the notebook tells: whether a cell is running, and whether commands get through."""

    def __init__(self) -> None:
        #: None where nobody tells (plain Python).
        self.cell_running: bool | None = None
        self.control: Literal["live", "between cells"] = "live"
        #: Returns the user's variables by name; None where nobody tells.
        self.names: Callable[[], Mapping[str, Any]] | None = None


notebook = NotebookState()


class Port:
    """One who is told: a view, or a function of this process.

    Args:
        send: Takes the messages.
        view: The number that the view drew; 0 for a function, which takes any number of messages.
    """

    def __init__(self, send: Subscriber, view: int = 0) -> None:
        self.send = send
        self.view = view
        self.outbox = Outbox(WINDOW if view else None)
        self.level: Level = "graph"


class LiveChannel:
    """The messages about one graph, for any number of views: it is looked at once for all.

    Args:
        graph: The graph to look at.
        session: The session to look at; the graph's latest open one if None.
    """

    def __init__(self, graph: Graph, session: Session | None = None) -> None:
        self._graph = graph
        self._engine = engine.current()
        self._chosen = None if session is None else weakref.ref(session)
        self._ports: list[Port] = []
        #: The views that were heard of lately.
        self.audience = Subscribers()
        #: What those who answer questions keep, by its class.
        self._parts: dict[type, Any] = {}
        self._following = Following()
        self._scalars = Scalars()
        self._seq = 0
        self._lock = threading.RLock()
        #: Ends the thread that looks; None while there is none.
        self._end: threading.Event | None = None
        self._forget()

    def _forget(self) -> None:
        self._watcher = GraphWatcher()
        #: What is told of the latest step's program, to those who are shown it.
        self._programs: dict[ProgramLevel, LoweredWatcher] = {
            "lowered": LoweredWatcher(),
            "partitions": LoweredWatcher(partition_nodes),
        }
        self._meter = Meter()
        self._queue_meter = QueueMeter()
        self._placing = Placing()
        self._metered: Session | None = None
        self._told: SessionState | None = None
        self._frames = FrameWatcher(self._graph)
        self._run: RunState | None = None
        #: The gate that is looked at, and how many of its moves were told.
        self._gate: Gate | None = None
        self._moves_told = 0
        #: What views have traced, and of which session; None before the first wants it.
        self._tracing: Tracing | None = None
        self._traced: Session | None = None
        self._trace_told: tuple[int, float] = (0, 0.0)

    @property
    def graph(self) -> Graph:
        """The graph that is looked at."""
        return self._graph

    @property
    def session(self) -> Session | None:
        """The session that is looked at."""
        if self._chosen is not None:
            return self._chosen()
        candidates = [s for s in list(self._engine.sessions) if s.graph is self._graph]
        return max(candidates, key=lambda s: s.number, default=None)

    @property
    def engine(self) -> engine.Engine:
        """The engine of the graph's sessions."""
        return self._engine

    @property
    def tracing(self) -> Tracing | None:
        """Traces of the session for views; None before the first view wants some."""
        return self._tracing

    @property
    def placing(self) -> Placing:
        """Placements and moves of the session."""
        return self._placing

    def part(self, kind: type[T]) -> T:
        """The channel's own object of a class, made without arguments on first use."""
        with self._lock:
            if kind not in self._parts:
                self._parts[kind] = kind()
            found: T = self._parts[kind]
            return found

    # -- who is told ----------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Sends every message to `subscriber` from now on; returns a function that ends it."""
        port = self._join(Port(subscriber))
        port.outbox.needs_snapshot = False
        return lambda: self._leave(port)

    def _join(self, port: Port) -> Port:
        with self._lock:
            self._ports.append(port)
            if self._end is None:
                self._end = threading.Event()
                threading.Thread(
                    target=self._look, args=(self._end,), name="flowscope live", daemon=True
                ).start()
        return port

    def _leave(self, port: Port) -> None:
        with self._lock:
            self._ports = [p for p in self._ports if p is not port]
            self.audience.left(port.view)
            if not self._ports and self._end is not None:
                self._end.set()
                self._end = None
                self._end_tracing()
                self._scalars.end()
                self._forget()

    def leave(self, send: Subscriber) -> None:
        """Ends what is sent through a function, to all its views."""
        for port in [p for p in self._ports if p.send == send]:
            self._leave(port)

    def views(self, send: Subscriber) -> int:
        """Returns how many views are told through a function."""
        return sum(p.send == send for p in self._ports)

    def _look(self, end: threading.Event) -> None:
        while not end.wait(PERIOD_S):
            now_s = time.monotonic()
            self.look_after(now_s)
            self.tick(now_s)

    def look_after(self, now_s: float) -> None:
        """Forgets the views that were silent for long."""
        with self._lock:
            self.audience.remains(now_s)
            gone = [p for p in self._ports if p.view and p.view not in self.audience]
        for port in gone:
            self._leave(port)

    # -- what views say -------------------------------------------------------------------------

    def hear(
        self,
        message: Connect | Disconnect | Alive | Ack | Command | Question,
        send: Subscriber,
    ) -> None:
        """Takes a view's message.

        Args:
            message: The message.
            send: What brings the view messages.
        """
        with self._lock:
            port = next((p for p in self._ports if p.view == message.view), None)
            if isinstance(message, Disconnect):
                if port is not None:
                    self._leave(port)
                return
            if isinstance(message, Ack) and port is None:
                return  # it was on its way when the view left
            self.audience.heard(message.view, time.monotonic())
            is_new = port is None
            if port is None:
                port = self._join(Port(send, message.view))
            if isinstance(message, Connect) and message.protocol != PROTOCOL:
                send(replace(_OTHER_VERSION, view=message.view))
            elif isinstance(message, Connect) or is_new:
                self._send_snapshot(port, time.monotonic())
            elif isinstance(message, Ack):
                port.outbox.acknowledge(message.seq)
                self._flush(port, time.monotonic())
            if isinstance(message, Command):
                self._obey(message, [port])
            elif isinstance(message, Question):
                asking.answer(self, message, port.send)

    def receive(self, message: Connect | Command) -> None:
        """Takes a message of a function of this process: all of these are answered."""
        ports = [p for p in self._ports if not p.view]
        if isinstance(message, Connect):
            self.snapshot(time.monotonic())
        else:
            self._obey(message, ports)

    def _obey(self, command: Command, ports: list[Port]) -> None:
        is_level = command.name == "level"
        reply = self._show_level(command, ports) if is_level else self._carry_out(command)
        for port in ports:
            port.send(replace(reply, view=port.view))
        self.tick(time.monotonic())

    # -- telling --------------------------------------------------------------------------------

    def snapshot(self, now_s: float) -> Snapshot:
        """Sends the full state to all functions that are subscribed, and returns it."""
        with self._lock:
            ports = [p for p in self._ports if not p.view]
            for port in ports:
                self._send_snapshot(port, now_s)
            if not ports:
                self.tick(now_s)
            level: Level = ports[0].level if ports else "graph"
            return replace(self._snapshot(level, now_s), seq=self._seq)

    def _send_snapshot(self, port: Port, now_s: float) -> None:
        self.tick(now_s, port)  # the others are told what is in it
        message = port.outbox.snapshot(self._snapshot(port.level, now_s))
        silence_s = self.audience.silence_s if port.view else 0.0
        self._seq = max(self._seq, message.seq)
        port.send(replace(message, view=port.view, silence_s=silence_s))

    def _snapshot(self, level: Level, now_s: float) -> Snapshot:
        if self._told is None:
            self._told = self._session_state(now_s)
        program = None if level == "graph" else self._programs[level]
        if program is not None and program.plan is not None:
            change = program.all(program.plan)
        else:
            change = self._watcher.whole()
        return Snapshot(
            seq=0,
            protocol=PROTOCOL,
            graph_name="graph",
            graph=change,
            session=self._told,
            control=notebook.control,
            run=self._run and replace(self._run, tokens=()),
            level=level,
            trace=None if self._tracing is None else self._tracing.state(),
        )

    def traced(self) -> Recording | None:
        """The recording of what was traced for views, with the graph; None for nothing."""
        tracing = self._tracing
        return None if tracing is None or not tracing.version else tracing.whole()

    def describe(self) -> Snapshot:
        """Returns the full state as a message, without sending it."""
        session = self.session
        change = GraphWatcher().change(self._graph, session.placements if session else {})
        state = None
        if session is not None:
            state = session_state(session, activity(session, None, None), None, None, None)
        return Snapshot(0, PROTOCOL, "graph", change or _EMPTY, state, notebook.control)

    def tick(self, now_s: float, asking: Port | None = None) -> Delta | None:
        """Looks once; sends and returns what changed since the last look, None if nothing did.

        While none of those who are told can take a message, nothing is looked at.

        Args:
            now_s: The time.
            asking: One who is about to get a snapshot, and so no change.
        """
        with self._lock:
            has_room = asking is not None or any(p.outbox.has_room for p in self._ports)
            if self._ports and not has_room:
                return None
            begin_s = time.thread_time()
            changes = self._changes(now_s)
            state = self._session_state(now_s)
            run, before = self._run_state(now_s), self._run
            trace = self._trace_state(now_s)
            is_same = not any(changes.values()) and state == self._told and run == before
            if is_same and trace is None:
                return None
            self._told, self._run = state, run
            # A step that has ended is told by frames and a position that are no more.
            news = None if run == before else run or NOTHING_RUNS
            for port in [p for p in self._ports if p is not asking]:
                port.outbox.put(changes[port.level], state, news, trace)
                self._flush(port, now_s)
            if trace is not None and self._tracing is not None:
                self._tracing.cost_s = time.thread_time() - begin_s
            self._seq += 1
            level: Level = next((p.level for p in self._ports if not p.view), "graph")
            return Delta(self._seq, changes[level], state, news, trace=trace)

    def _flush(self, port: Port, now_s: float) -> None:
        outbox = port.outbox
        outbox.give_up(len(self._graph))
        if outbox.needs_snapshot and outbox.has_room and port.view:
            return self._send_snapshot(port, now_s)
        message = outbox.take()
        if message is not None:
            port.send(replace(message, view=port.view))
        return None

    def _changes(self, now_s: float) -> dict[Level, GraphChange | None]:
        """The changes of each level that some view shows."""
        session = self.session
        levels = {p.level for p in self._ports} or {"graph"}
        found: dict[Level, GraphChange | None] = {"graph": None}
        if "graph" in levels:
            placed = session.placements if session else {}
            key = (session.number, session.planner.placement_version) if session else None
            found["graph"] = self._watcher.change(self._graph, placed, key)
        for level, program in self._programs.items():
            found[level] = None
            if level in levels and session is not None:
                found[level] = program.change(session.latest_plan, session.steps, now_s)
        return found

    def _session_state(self, now_s: float) -> SessionState | None:
        session = self.session
        if session is None:
            return None
        if session is not self._metered:
            self._meter, self._metered = Meter(), session
        self._following.look(session)
        rate, step_time = self._meter.update(now_s, session.steps, session.busy_ns)
        state = activity(session, notebook.cell_running, rate)
        done = progress.current(now_s, session)
        told = session_state(session, state, rate, step_time, done, self._queue_meter)
        self._scalars.look(session)
        return replace(
            told,
            debug=self._following.told(told.debug),
            moved=self._placing.look(session),
            scalars=self._scalars.told(self._graph),
        )

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

    def _trace_state(self, now_s: float) -> TraceState | None:
        """Asks for steps to be traced; returns what is new of those that were, None for nothing."""
        tracing, session = self._tracing, self.session
        if tracing is None:
            return None
        if session is not self._traced and self._traced is not None:
            tracing.end(self._traced)
        if session is not None:
            tracing.ask(session, now_s)
        self._traced = session
        news = tracing.version, tracing.steps_per_s
        if news == self._trace_told:
            return None
        self._trace_told = news
        return tracing.state()

    def _end_tracing(self) -> None:
        if self._tracing is not None and self._traced is not None:
            self._tracing.end(self._traced)

    def _trace(self, command: Command) -> Reply:
        """Has steps traced, or no more."""
        steps_per_s = _number(command)
        if self._tracing is None:
            self._tracing = Tracing()
        if not steps_per_s:
            self._end_tracing()
        self._tracing.steps_per_s = steps_per_s
        what = f"tracing {steps_per_s:g} steps a second" if steps_per_s else "tracing no more"
        return Reply(command.command_id, True, what)

    def _show_level(self, command: Command, ports: list[Port]) -> Reply:
        """Sends a snapshot of the level that is asked for."""
        session = self.session
        plan = session.latest_plan if session is not None else None
        wanted = [level for level in _LEVELS if level == command.value]
        level = wanted[0] if wanted else "graph"
        if level != "graph":
            if plan is None:
                what = "nothing is lowered yet: run something first"
                return Reply(command.command_id, False, what)
            if all(p.level != level for p in self._ports):
                self._programs[level].whole(plan)
        for port in ports:
            port.level = level
            self._send_snapshot(port, time.monotonic())
        return Reply(command.command_id, True, _LEVELS[level])

    def _carry_out(self, command: Command) -> Reply:
        session = self.session
        if command.name == "trace":
            return self._trace(command)
        if session is None:
            return Reply(command.command_id, False, "no session runs this graph")
        if command.name in (*_DEBUGGER, *history.COMMANDS):
            try:
                owner = self._following if command.name in _DEBUGGER else history
                what = owner.carry_out(session, command.name, command.value)
            except (OpError, ValueError, KeyError) as e:
                return Reply(command.command_id, False, str(e).partition("\n")[0])
            return Reply(command.command_id, True, what)
        if isinstance(command.value, MoveWish):
            try:
                return Reply(command.command_id, True, self._placing.move(session, command.value))
            except OpError as e:
                return Reply(command.command_id, False, str(e).partition("\n")[0])
        if history.moves_past(session, command.name):
            return Reply(command.command_id, True, _DONE[command.name])
        if command.name == "resume":
            history.leave(session)
        if command.name == "step_out" and not session.gate.held_steps():
            return Reply(command.command_id, False, "no step is held")
        if command.name == "stop" and not self._is_busy(session):
            return Reply(command.command_id, False, "nothing is running")
        if command.name == "pace":
            session.gate.set_pace(_number(command))
        elif command.name != "level":
            getattr(session, command.name)()  # pause, resume, stop, step_op or step_iteration
        return Reply(command.command_id, True, _DONE[command.name])

    def _is_busy(self, session: Session) -> bool:
        if notebook.cell_running is not None:
            return notebook.cell_running or bool(session.running)
        return bool(session.running or (self._told and self._told.state not in ("idle", "stopped")))


_DONE = {
    "pause": "pausing at the next safepoint",
    "resume": "going on",
    "stop": "stopping at the next safepoint",
    "step_op": "one more operation",
    "step_iteration": "until the next iteration ends",
    "step_out": "until this loop has ended",
    "step_run": "to the end of the step",
    "pace": "going on at this pace",
}
#: Commands that the debugger carries out.
_DEBUGGER = ("break", "watch", "stop_at_nan", "unbreak", "enable", "disable", "replace")
_LEVELS: dict[Level, str] = {
    "graph": "the graph as written",
    "lowered": "the latest step's program as lowered",
    "partitions": "the latest step's program as cut: a lane per device",
}
#: What is told of steps when the last one has ended.
NOTHING_RUNS = RunState((), None, (), 0.0)
_EMPTY = GraphChange(version=0, added=(), placed=())
#: All that a page of another version gets: it says what is to be done.
_OTHER_VERSION = Snapshot(0, PROTOCOL, "graph", _EMPTY, None, "live")


def _number(command: Command) -> float:
    value = command.value
    return float(value) if isinstance(value, int | float) else 0.0


def shared_feed(graph: Graph, session: Session | None = None) -> LiveChannel:
    """Returns the feed that the views of an engine share: of a graph, and of a chosen session.

    Args:
        graph: The graph.
        session: The session; None for whichever runs.
    """
    owner = engine.current() if session is None else session.engine
    key = id(graph), id(session)
    found: LiveChannel | None = owner.feeds.get(key)
    if found is None or found.graph is not graph:
        with owner.as_default():
            found = owner.feeds[key] = LiveChannel(graph, session)
    return found
