"""Engines: what sessions of one process share, owned by an object and not by modules.

Sessions belong to the engine that is the default one where they are made: the process's, unless a
block `with engine.as_default():` names another. Nothing of one engine is seen in another: not its
open sessions, named containers or threads.

Sessions come and go on any thread, and are asked for on others. An engine's lock is held while one
comes or goes and while tracers do: so a session has the tracers of its engine from its first step
on, and a step counts for a session that is open or for those that were closed, never for both.

Signals are not an engine's but the process's: see `flowscope.runtime.threads.interrupt`.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from flowscope.cells.notebook import steps_of
from flowscope.graph.graph import Graph
from flowscope.runtime.planning.graph_growth import GrowthWarner
from flowscope.runtime.state.containers import Containers
from flowscope.runtime.threads.host_calls import HostThreads
from flowscope.runtime.threads.thread_pool import ThreadPool
from flowscope.runtime.trace.tracers import Traced, attach, detach

if TYPE_CHECKING:
    from flowscope.runtime.session.remote import SessionTarget
    from flowscope.runtime.session.session import Session
    from flowscope.runtime.trace.step_trace import Tracer
    from flowscope.runtime.trace.summary_log import SummaryLog


class Sessions:
    """Sessions that are not closed, as long as somebody has them; any thread may look at them."""

    def __init__(self) -> None:
        self._found: dict[int, weakref.ref[Session]] = {}

    def add(self, session: Session) -> None:
        """Adds one."""
        number = id(session)
        self._found[number] = weakref.ref(session, lambda _: self._found.pop(number, None))

    def discard(self, session: Session) -> None:
        """Takes one out, if it is in."""
        self._found.pop(id(session), None)

    def __contains__(self, session: object) -> bool:
        return id(session) in self._found

    def __iter__(self) -> Iterator[Session]:
        found = [reference() for reference in list(self._found.values())]
        return iter([session for session in found if session is not None])

    def __len__(self) -> int:
        return len(self._found)


class Engine:
    """Owns what its sessions share.

    Attributes:
        sessions: Its sessions that are not closed.
        containers: Its named containers.
        pool: The threads that share large kernels.
        host_threads: The threads on which functions of the user's run.
        loops: The loops of `fs.progress` that run now, the outermost first.
        clusters: The clusters that it is connected to, by the targets that sessions find them by.
        servers: The addresses of the schedulers of this process' servers, by the servers' targets.
        feeds: What tells views of its sessions, by the ids of graph and chosen session.
        ended_loop: The one that has ended last; views show its end, and not its last sample.
        tracers: Who wants the steps of all its sessions traced.
        summaries: What writers of summaries were given; None before the first writer.
    """

    def __init__(self) -> None:
        self.sessions = Sessions()
        self.containers = Containers()
        self.clusters: dict[str, SessionTarget] = {}
        self.servers: dict[str, str] = {}
        self.pool = ThreadPool()
        self.host_threads = HostThreads()
        self.loops: list[Any] = []
        self.ended_loop: Any = None
        self.tracers: tuple[Tracer, ...] = ()
        self.summaries: SummaryLog | None = None
        self._lock = threading.Lock()
        self.feeds: weakref.WeakValueDictionary[tuple[int, int], Any] = (
            weakref.WeakValueDictionary()
        )
        self._numbers = itertools.count()
        #: Of each graph for all its sessions: they may be made in the loop, too.
        self._growths: weakref.WeakKeyDictionary[Graph, GrowthWarner] = weakref.WeakKeyDictionary()
        #: Steps of sessions that were closed.
        self._closed: weakref.WeakKeyDictionary[Graph, int] = weakref.WeakKeyDictionary()

    @contextmanager
    def as_default(self) -> Iterator[Engine]:
        """Makes this the engine of the sessions that the block makes, on its thread."""
        before = _default.set(self)
        try:
            yield self
        finally:
            _default.reset(before)

    @property
    def summary_log(self) -> SummaryLog:
        """`summaries`, made if it is not there yet."""
        from flowscope.runtime.trace.summary_log import SummaryLog  # no session needs it

        with self._lock:
            if self.summaries is None:
                self.summaries = SummaryLog()
            return self.summaries

    def opened(self, session: Session) -> int:
        """Notes a session that was opened, and has its steps traced for whom all are.

        Returns:
            Its number: they count as they are made.
        """
        with self._lock:
            session.tracers = (*self.tracers, *session.tracers)
            self.sessions.add(session)
        return next(self._numbers)

    def trace(self, tracer: Tracer) -> None:
        """Has the steps of all sessions traced, also of those that will be opened."""
        with self._lock:
            owners: list[Traced] = [self, *self.sessions]
            for owner in owners:
                attach(owner, tracer)

    def end_trace(self, tracer: Tracer) -> None:
        """Ends what `trace` has begun."""
        with self._lock:
            owners: list[Traced] = [self, *self.sessions]
            for owner in owners:
                detach(owner, tracer)

    def closed(self, session: Session) -> None:
        """Notes that a session was closed."""
        with self._lock:
            if session in self.sessions:
                graph = session.graph
                self._closed[graph] = self._closed.get(graph, 0) + session.attempts
                self.sessions.discard(session)

    def growth_of(self, graph: Graph) -> GrowthWarner:
        """The counter of a graph's growth between runs."""
        return self._growths.setdefault(graph, GrowthWarner())

    def steps_on(self, graph: Graph) -> int:
        """Returns how many steps have run on a graph, in sessions that were closed too."""
        with self._lock:
            running = sum(s.attempts for s in self.sessions if s.graph is graph)
            return running + self._closed.get(graph, 0)


_process = Engine()
_default: ContextVar[Engine] = ContextVar("flowscope engine", default=_process)


def current() -> Engine:
    """Returns the default engine: the process's, or that of the innermost `as_default` block."""
    return _default.get()


steps_of.append(lambda graph: current().steps_on(graph))

__all__ = ["Engine", "current"]
