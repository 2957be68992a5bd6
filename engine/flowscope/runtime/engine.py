"""Engines: what sessions of one process share, owned by an object and not by modules.

Sessions belong to the engine that is the default one where they are made: the process's, unless a
block `with engine.as_default():` names another. Nothing of one engine is seen in another: not its
open sessions, named containers or threads.

Signals are not an engine's but the process's: see `flowscope.runtime.interrupt`.
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
from flowscope.runtime.containers import Containers
from flowscope.runtime.graph_growth import Growth
from flowscope.runtime.host_calls import HostThreads
from flowscope.runtime.thread_pool import ThreadPool
from flowscope.runtime.tracers import Traced, attach, detach

if TYPE_CHECKING:
    from flowscope.runtime.remote import Target
    from flowscope.runtime.session import Session
    from flowscope.runtime.step_trace import Tracer
    from flowscope.runtime.summary_log import SummaryLog


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
        self.sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self.containers = Containers()
        self.clusters: dict[str, Target] = {}
        self.servers: dict[str, str] = {}
        self.pool = ThreadPool()
        self.host_threads = HostThreads()
        self.loops: list[Any] = []
        self.ended_loop: Any = None
        self.tracers: tuple[Tracer, ...] = ()
        self.summaries: SummaryLog | None = None
        self._making = threading.Lock()
        self.feeds: weakref.WeakValueDictionary[tuple[int, int], Any] = (
            weakref.WeakValueDictionary()
        )
        self._numbers = itertools.count()
        #: Of each graph for all its sessions: they may be made in the loop, too.
        self._growths: weakref.WeakKeyDictionary[Graph, Growth] = weakref.WeakKeyDictionary()
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
        from flowscope.runtime.summary_log import SummaryLog  # no session needs it

        with self._making:
            if self.summaries is None:
                self.summaries = SummaryLog()
            return self.summaries

    def opened(self, session: Session) -> int:
        """Notes a session that was opened; returns its number: they count as they are made."""
        self.sessions.add(session)
        return next(self._numbers)

    def trace(self, tracer: Tracer) -> None:
        """Has the steps of all sessions traced, also of those that will be opened."""
        owners: list[Traced] = [self, *self.sessions]
        for owner in owners:
            attach(owner, tracer)

    def end_trace(self, tracer: Tracer) -> None:
        """Ends what `trace` has begun."""
        owners: list[Traced] = [self, *self.sessions]
        for owner in owners:
            detach(owner, tracer)

    def closed(self, session: Session) -> None:
        """Notes that a session was closed."""
        if session in self.sessions:
            graph = session.graph
            self._closed[graph] = self._closed.get(graph, 0) + session.attempts
            self.sessions.discard(session)

    def growth_of(self, graph: Graph) -> Growth:
        """Returns what counts the growth of a graph between runs."""
        return self._growths.setdefault(graph, Growth())

    def steps_on(self, graph: Graph) -> int:
        """Returns how many steps have run on a graph, in sessions that were closed too."""
        running = sum(s.attempts for s in list(self.sessions) if s.graph is graph)
        return running + self._closed.get(graph, 0)


_process = Engine()
_default: ContextVar[Engine] = ContextVar("flowscope engine", default=_process)


def current() -> Engine:
    """Returns the default engine: the process's, or that of the innermost `as_default` block."""
    return _default.get()


steps_of.append(lambda graph: current().steps_on(graph))

__all__ = ["Engine", "current"]
