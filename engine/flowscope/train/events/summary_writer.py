"""Summaries, graphs and other events, written to files for TensorBoard."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, ClassVar, Self

from flowscope.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from flowscope.graph.graph import Graph
from flowscope.graph.messages.event_messages import Event, SessionLog, Summary
from flowscope.graph.messages.protobuf import LENGTH, VARINT, field, varint
from flowscope.graph.messages.tensor_arrays import shape_bytes
from flowscope.graph.serialization.definition import GraphDef, NodeDef
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.shapes import TensorShape
from flowscope.runtime.session import engine
from flowscope.train.events.event_file import EventFile

__all__ = ["FileWriter", "FileWriterCache"]


class FileWriter:
    """Writes events to a new file in a folder, which TensorBoard reads. Several threads may use it.

    Summaries are also shown by views, while the program runs, in the panel Summaries: the folder is
    the run's name there, as in TensorBoard. A new writer of the same folder begins the run anew at
    the step that it writes first.

    A `with` block closes it at its end. What waits is also written when the program ends.

    Args:
        logdir: The folder. With None nothing is written to a file: views alone show the summaries.
        graph: A graph that is written first, if there is one.
        max_queue: How many events wait at most before they are written.
        flush_secs: After how many seconds they are written in any case.
        graph_def: A graph as an `fs.GraphDef`, in place of `graph`.
        filename_suffix: What the file's name ends in.
        session: Not supported: the writer is no part of a graph.

    Raises:
        InvalidArgumentError: if both `graph` and `graph_def` are given.
        UnimplementedError: if a session is given.

    Example:
        >>> summary = fs.Session().run(fs.summary.scalar("loss", 0.5))
        >>> with fs.summary.FileWriter("logs") as writer:
        ...     writer.add_summary(summary, global_step=1)
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str] | None,
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: GraphDef | None = None,
        filename_suffix: str | None = None,
        session: None = None,
    ) -> None:
        refuse("summary.FileWriter", session=session)
        self._logdir = None if logdir is None else os.fspath(logdir)
        self._log = engine.current().summary_log
        self._options = max_queue, flush_secs, filename_suffix or ""
        self._open()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def _open(self) -> None:
        self._writer = self._log.writer()
        self._file = None if self._logdir is None else EventFile(self._logdir, *self._options)
        self._close = weakref.finalize(self, self._file.close if self._file else _nothing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get_logdir(self) -> str | None:
        """Returns the folder; None where there is none."""
        return self._logdir

    def add_summary(self, summary: bytes | Summary, global_step: Any = None) -> None:
        """Adds a summary: what a run of a summary op returned, or a message.

        Args:
            summary: The summary.
            global_step: Number of the step of training, 0 by default.

        Raises:
            InvalidArgumentError: if the bytes are no summary.
        """
        if isinstance(summary, bytes):
            summary = Summary.FromString(summary)
        if not isinstance(summary, Summary):
            raise DTypeError(
                f"expected a serialized summary or an fs.Summary, got {summary!r}: run the summary "
                "op, and add what the run returns"
            )
        self._add(global_step, summary=summary)

    def add_session_log(self, session_log: SessionLog, global_step: Any = None) -> None:
        """Adds that a session began, ended or wrote a checkpoint, at a step (0 by default)."""
        self._add(global_step, session_log=session_log)

    def add_graph(
        self, graph: Graph | None, global_step: Any = None, graph_def: GraphDef | None = None
    ) -> None:
        """Adds a graph: names, types, inputs, devices and shapes of its operations.

        Args:
            graph: The graph.
            global_step: Number of the step of training, 0 by default.
            graph_def: The graph as an `fs.GraphDef`, in place of `graph`.

        Raises:
            InvalidArgumentError: if not exactly one of `graph` and `graph_def` is given.
            DTypeError: if it is something else.
        """
        if (graph is None) == (graph_def is None):
            raise InvalidArgumentError("expected one of graph and graph_def, got both or none")
        definition = graph.as_graph_def() if isinstance(graph, Graph) else graph or graph_def
        if not isinstance(definition, GraphDef):
            raise DTypeError(f"expected an fs.Graph or an fs.GraphDef, got {definition!r}")
        self._add(global_step, graph_def=graph_bytes(definition))

    def _add(self, step: Any, **what: Any) -> None:
        self.add_event(Event(wall_time=time.time(), step=int(step or 0), **what))

    def add_event(self, event: Event) -> None:
        """Adds an event as it is.

        Raises:
            FailedPreconditionError: if the writer is closed.
        """
        if not self._close.alive:
            raise FailedPreconditionError(
                f"the FileWriter of {self._logdir!r} is closed: call reopen() first"
            )
        if self._file is not None:
            self._file.add(event)
        if event.summary is not None:
            run = self._logdir or ""
            self._log.add(self._writer, run, event.step, event.wall_time, event.summary)

    def flush(self) -> None:
        """Writes what waits to the file."""
        if self._close.alive and self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self._close()

    def reopen(self) -> None:
        """Begins a new file in the folder, if the writer is closed."""
        if not self._close.alive:
            self._open()


def _nothing() -> None:
    """Closes the file of a writer that has none."""


class FileWriterCache:
    """The process's writers, one per folder."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _writers: ClassVar[dict[str, FileWriter]] = {}

    @classmethod
    def get(cls, logdir: str | os.PathLike[str]) -> FileWriter:
        """Returns the writer of a folder, which is made when it is first asked for."""
        folder = os.fspath(logdir)
        with cls._lock:
            if folder not in cls._writers:
                cls._writers[folder] = FileWriter(folder)
            return cls._writers[folder]

    @classmethod
    def clear(cls) -> None:
        """Closes all writers and forgets them."""
        with cls._lock:
            while cls._writers:
                cls._writers.popitem()[1].close()


def graph_bytes(definition: GraphDef) -> bytes:
    """Returns a graph as a serialized message, of which TensorBoard draws a picture."""
    nodes = [field(1, LENGTH, _node(node)) for node in definition.node]
    producer = field(1, VARINT, varint(1))
    return b"".join([*nodes, field(4, LENGTH, producer)])


def _node(node: NodeDef) -> bytes:
    texts = [(1, node.name), (2, node.op), *[(3, i) for i in node.input], (4, node.device)]
    out = [field(number, LENGTH, text.encode()) for number, text in texts if text]
    if node.outputs:
        shapes = [shape_bytes(TensorShape(dims).as_proto()) for _, dims in node.outputs]
        listed = b"".join([field(7, LENGTH, shape) for shape in shapes])
        value = field(1, LENGTH, listed)
        out.append(field(5, LENGTH, field(1, LENGTH, b"_output_shapes") + field(2, LENGTH, value)))
    return b"".join(out)
