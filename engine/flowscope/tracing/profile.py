"""Profiling: `with fs.profile() as recorded:` traces all steps of the block."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from flowscope.graph.serialization.files import write_file
from flowscope.runtime.session import engine
from flowscope.runtime.trace.step_trace import MOST
from flowscope.runtime.trace.tracers import attach, detach
from flowscope.tracing.chrome import chrome_trace
from flowscope.tracing.files import save
from flowscope.tracing.findings import Findings, why_slow
from flowscope.tracing.recorder import Recorder
from flowscope.tracing.recording import Recording, TensorValues
from flowscope.tracing.tables import Table, table
from flowscope.tracing.values import MAX_BYTES, merged, recorded_values

if TYPE_CHECKING:
    from flowscope.runtime.session.session import Session


class profile:
    """Traces the steps that run in a block, of a session or of all sessions.

        with fs.profile() as profiled:
            sess.run(train)
        profiled.recording

    Sessions that are opened in the block are traced too. Of many steps the newest are kept; totals
    are exact for all.

    Args:
        session: The session; None for all of this process's default engine.
        most_spans: So many spans are kept, or one step if it has more.

    Example:
        >>> x = fs.constant(np.ones([100, 100]))
        >>> sess = fs.Session()
        >>> with fs.profile(sess) as profiled:
        ...     _ = sess.run(fs.matmul(x, x))
        >>> len(profiled.recording.steps)
        1
    """

    def __init__(self, session: Session | None = None, most_spans: int = MOST) -> None:
        self._session = session
        self._engine = engine.current() if session is None else session.engine
        self._recorder = Recorder(most_spans, MAX_BYTES)
        #: What sessions had recorded of tensors at the end of the block.
        self._recorded: tuple[TensorValues, ...] | None = None
        self._read: tuple[int, Recording] | None = None

    @property
    def session(self) -> Session | None:
        """The session whose steps are traced; None for all."""
        return self._session

    @property
    def recording(self) -> Recording:
        """What was traced so far."""
        if self._read is None or self._read[0] != self._recorder.version:
            self._read = self._recorder.version, self._recorder.recording()
        return self._read[1]

    def table(self, by: str = "op") -> Table:
        """Returns where the time went.

        Args:
            by: "op", "type", "scope", "line", "device" or "phase".
        """
        return table(self.recording, by)

    def why_slow(self) -> Findings:
        """Returns why the steps took as long as they did: five findings at most, with evidence.

        The largest share of one operation, copies, waiting, Python between steps, and plans that
        were made again and again. Each names the operations that it is about.
        """
        return why_slow(self.recording)

    def save(self, path: Any) -> None:
        """Writes what was traced to a file, with the graph where that can be written, and values.

        These are what the steps have fetched, and what `session.debug.record` has recorded: the
        newest 16 MiB, without strings.

        `fs.tracing.load` reads it.

        Args:
            path: The file's path.
        """
        save(self.with_graph(), path)

    def with_graph(self) -> Recording:
        """The trace so far with values, and with the graph where that can be written as data."""
        recorded = self._values() if self._recorded is None else self._recorded
        values = merged(recorded, self._recorder.fetched())
        return replace(self.recording, graph=self._recorder.graph(), values=values)

    def _values(self) -> tuple[TensorValues, ...]:
        """The values of tensors that the sessions have recorded until now."""
        sessions = [self._session] if self._session is not None else self._engine.sessions
        debuggers = [s.debug for s in list(sessions) if s is not None and s.is_debugged]
        return recorded_values([d.history for d in debuggers if d.history is not None])

    def export_chrome_trace(self, path: Any) -> None:
        """Writes what was traced to a file that Chrome (chrome://tracing) and Perfetto open.

        Args:
            path: The file's path.
        """
        write_file(path, chrome_trace(self.recording))

    def __enter__(self) -> profile:
        self._recorded = None
        if self._session is not None:
            attach(self._session, self._recorder)
        else:
            self._engine.trace(self._recorder)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._recorded = self._values()
        if self._session is not None:
            detach(self._session, self._recorder)
        else:
            self._engine.end_trace(self._recorder)


__all__ = ["profile"]
