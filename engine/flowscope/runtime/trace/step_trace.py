"""Traces of steps as they are taken: readings of a clock, and what happened around and besides.

A step that is traced runs another variant of its plan's code, in the place of the plain function.
Nothing is worked out while it runs, but where it runs for long: of its readings the newest are
kept, and of those before only whose time they were.

One thread fills a trace, that of its step, and it is read when the step has ended. But for two
things that other threads note in it meanwhile: helpers append their `parts` before the step goes on
(one call of a list's), and partitions of one step their `waits`, for which there is a lock.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import current_thread, get_ident
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from flowscope.plan.codegen.readings import Cursor, Reading, SlotTable
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan

if TYPE_CHECKING:
    from flowscope.runtime.session.remote import RemoteFunction
    from flowscope.runtime.step.split import SplitFunction
    from flowscope.runtime.trace.part_trace import PartTrace
    from flowscope.runtime.trace.stamp_buffers import Piece, StampBuffer, StampedCode

clock = time.perf_counter_ns
#: Readings of one step that are kept: the newest.
MOST = 1 << 20
#: The same where operations run one by one, and each is an object.
MOST_ROWS = 1 << 17
#: Waits so near to each other are one.
_NEAR_NS = 100_000


class Wait(NamedTuple):
    """A time in which a step stood still.

    Attributes:
        kind: Whether it was held (a pause, slow motion), or waited for others.
        begin, end: By the clock.
    """

    kind: Literal["pause", "wait"]
    begin: int
    end: int


class TracedChunk(NamedTuple):
    """A part of a large operation that a helper thread took.

    Attributes:
        thread: The thread's name.
        begin, end: By the clock.
    """

    thread: str
    begin: int
    end: int


class Dropped:
    """Readings of a step that are not kept: whose time they were.

    Attributes:
        count, self_ns: Per node of the table how often it ran, and its own nanoseconds.
        begin, end: From when to when.
        spans: How many spans there were.
    """

    def __init__(self, nodes: int, begin: int) -> None:
        self.count = np.zeros(nodes, np.int64)
        self.self_ns = np.zeros(nodes, np.int64)
        self.begin = self.end = begin
        self.spans = 0

    def add(self, table: SlotTable, reading: Reading, waits: list[Wait]) -> None:
        """Adds what readings tell."""
        owner = table.owner[reading.slots]
        own_ns = reading.end - reading.begin - waited(reading, waits)
        spans = owner[table.parts(reading)]
        self.count += np.bincount(spans, minlength=len(self.count))
        self.self_ns += np.bincount(owner, own_ns, len(self.count)).astype(np.int64)
        self.end = int(reading.end[-1]) if len(owner) else self.end
        self.spans += len(spans)


def waited(reading: Reading, waits: list[Wait]) -> Any:
    """Returns the nanoseconds of each interval in which the step stood still."""
    found = np.zeros(len(reading.end), np.int64)
    for wait in waits:
        i = int(np.searchsorted(reading.end, wait.end))
        if i < len(found) and reading.begin[i] <= wait.begin:
            found[i] += wait.end - wait.begin
    return found


class ProbedInvocation(NamedTuple):
    """An invocation of which a probe was told.

    Attributes:
        node: The node.
        iterations: Numbers of the iterations of the loops around, from the outermost.
        end: By the clock.
        begin: When it began; 0 where the one before it ended.
    """

    node: Node
    iterations: tuple[int, ...]
    end: int
    begin: int = 0


class Rows:
    """What a probe was told, where operations run one by one: the newest invocations.

    Attributes:
        rows: The invocations.
        begin: From when on they are kept.
        dropped: Of the others per node how often it ran, and its own nanoseconds.
        spans: How many others there were.
    """

    def __init__(self) -> None:
        self.rows: list[ProbedInvocation] = []
        self.begin = 0
        self.dropped: dict[Node, tuple[int, int]] = {}
        self.spans = 0

    def probe(self, node: Node, iterations: tuple[int, ...], outputs: Any) -> None:
        """Takes an invocation."""
        self.rows.append(ProbedInvocation(node, iterations, clock()))
        if len(self.rows) > MOST_ROWS:
            self._drop(MOST_ROWS // 2)

    def _drop(self, count: int) -> None:
        for row in self.rows[:count]:
            before = self.dropped.get(row.node, (0, 0))
            self.dropped[row.node] = before[0] + 1, before[1] + row.end - self.begin
            self.begin = row.end
        self.spans += count
        del self.rows[:count]


class StepTrace:
    """The trace of one step.

    Args:
        plan: The plan.
        called: When the step was asked for.
        by_op: Whether operations run one by one, though the plan has code: code that reads a clock
            asks at no breakpoint.

    Attributes:
        plan: As above.
        number: The number of the run in its session; None where it has none.
        thread: The thread that ran it.
        called, planned, fed, begin, end, done: When the step was asked for, had its plan, had its
            feeds, began, had ended, and had its results put together; nanoseconds of the clock.
        compiled_ns: Nanoseconds in which the code was made that reads the clock, for the first
            traced step of a plan. They are no part of the step: it is told to begin after them.
        waits: When it stood still.
        parts: What helper threads did.
        error: What it failed with, "" for nothing.
        dropped: What is not kept; None for nothing.
        cursor: What came before the readings that are kept.
        is_sample: Whether it is a part of a step that lasts.
        rows: In the place of readings, where operations run one by one; else None.
        apart: What partitions told that ran apart, in this process and others.
    """

    def __init__(self, plan: Plan, called: int, by_op: bool = False) -> None:
        self.plan = plan
        self.number: int | None = None
        self.thread = get_ident()
        self.called = called
        self.planned = self.fed = self.begin = self.end = self.done = clock()
        self.compiled_ns = 0
        self.waits: list[Wait] = []
        self._waiting = threading.Lock()
        self.parts: list[TracedChunk] = []
        self.error = ""
        self.dropped: Dropped | None = None
        self.cursor: Cursor | None = None
        self.is_sample = False
        #: The shapes of what was fed.
        self.shapes: tuple[Any, ...] = ()
        self.apart: list[PartTrace] = []
        #: What was fetched, while tracers are told; they copy what they keep.
        self.fetched: tuple[Any, ...] = ()
        self.rows = None if _is_code(plan) and not by_op else Rows()
        self._code: StampedCode | None = None
        self._buffer: StampBuffer | None = None
        self._pieces: deque[Piece] = deque()
        self._kept = 0

    @property
    def stamps(self) -> Any:
        """The readings that are kept."""
        self.pack()
        return np.concatenate([np.empty(0, np.int64), *[p.readings() for p in self._pieces]])

    def pack(self) -> None:
        """Lets the readings take 8 bytes each, and not 40 of a list or some room for more."""
        if self._buffer is not None:
            self._flush(self._buffer)
            self._buffer = None

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows.rows)
        return self._kept + (0 if self._buffer is None else len(self._buffer))

    def sampled(self, number: int | None, begin: int, end: int) -> None:
        """Notes that this is a part of a step that lasts, from begin to end."""
        self.number, self.is_sample = number, True
        self.called = self.planned = self.fed = self.begin = begin
        self.end = self.done = end

    @property
    def is_whole(self) -> bool:
        """Whether all of it is kept."""
        is_kept = self.dropped is None and (self.rows is None or not self.rows.spans)
        return is_kept and not self.is_sample

    def waited(self, kind: Literal["pause", "wait"], begin: int) -> None:
        """Notes that the step has stood still until now."""
        with self._waiting:
            last = self.waits[-1] if self.waits else None
            if last is not None and last.kind == kind and begin - last.end < _NEAR_NS:
                begin = min(begin, self.waits.pop().begin)
            self.waits.append(Wait(kind, begin, clock()))

    def took_part(self, begin: int) -> None:
        """Notes that the calling thread, a helper, has worked for the step until now."""
        self.parts.append(TracedChunk(current_thread().name, begin, clock()))

    def compile(self, known: StampedCode | None) -> StampedCode | None:
        """Makes the code that reads a clock, where there is none yet; returns it.

        Args:
            known: The code, where it was made before.
        """
        if known is None and self.rows is None:
            begin = clock()
            known = _stamped_code(self.plan)
            self.compiled_ns = clock() - begin
            self.called += self.compiled_ns
            self.planned += self.compiled_ns
        self._code = known
        return known

    def traced(self, wrap: Callable[[Any], Any]) -> Callable[..., Any]:
        """A function that runs the plan and traces it; see `PreparedCall.function`.

        Args:
            wrap: What a session puts around a plan's function.
        """
        if self.rows is not None:
            return wrap(self._probed(self.rows))  # type: ignore[no-any-return]
        code = self._stamped
        buffer = self._buffer = code.buffer()
        executable = code.executable

        def run(gate: Any, run: Any, feeds: Any, resources: Any) -> Any:
            self.number, self.shapes = run[-1], tuple(map(np.shape, feeds))
            stamped = buffer.stamped(run, partial(self._flush, buffer))
            self.begin = buffer.moment()
            try:
                return executable.function(gate, stamped, feeds, resources)
            except Exception as e:
                self.error = f"{type(e).__name__}: {e}"
                error = e if executable.code is None else executable.code.located(e)
                if error is e:
                    raise
                raise error from e
            finally:
                self.end = buffer.moment()
                if buffer.is_reused:
                    self.pack()
                    code.take_back(buffer)

        return wrap(run)  # type: ignore[no-any-return]

    def traced_apart(
        self, wrap: Callable[[Any], Any], function: RemoteFunction | SplitFunction
    ) -> Callable[..., Any]:
        """A function that runs a plan whose partitions run apart, and traces it.

        Args:
            wrap: What a session puts around a plan's function.
            function: What runs it.
        """
        self.rows = Rows()  # its readings are those of its partitions
        traced = function.traced(self.apart)

        def run(gate: Any, run: Any, feeds: Any, resources: Any) -> Any:
            self.number, self.shapes = run[-1], tuple(map(np.shape, feeds))
            self.begin = clock()
            try:
                return traced(gate, run, feeds, resources)
            except Exception as e:
                self.error = f"{type(e).__name__}: {e}"
                raise
            finally:
                self.end = clock()

        return wrap(run)  # type: ignore[no-any-return]

    def _probed(self, rows: Rows) -> Callable[..., Any]:
        function = self.plan.executable.probed(rows.probe)

        def run(gate: Any, run: Any, feeds: Any, resources: Any) -> Any:
            self.number, self.shapes = run[-1], tuple(map(np.shape, feeds))
            self.begin = rows.begin = clock()
            try:
                return function(gate, run, feeds, resources)
            except Exception as e:
                self.error = f"{type(e).__name__}: {e}"
                raise
            finally:
                self.end = clock()

        return run

    def _flush(self, buffer: StampBuffer) -> None:
        """Takes readings away from the code."""
        piece = buffer.take()
        self._pieces.append(piece)
        self._kept += len(piece.raw)
        while self._kept > MOST and len(self._pieces) > 1:
            self._drop(self._pieces.popleft())

    def _drop(self, piece: Piece) -> None:
        table = self.table
        if self.dropped is None or self.cursor is None:
            self.dropped = Dropped(len(table.nodes), self.begin)
            self.cursor = table.cursor(self.begin)
        self.dropped.add(table, table.read(self.cursor, piece.readings()), self.waits)
        self._kept -= len(piece.raw)

    @property
    def table(self) -> SlotTable:
        """What its readings mean."""
        return self._stamped.table

    @property
    def _stamped(self) -> StampedCode:
        if self._code is None:
            self._code = _stamped_code(self.plan)
        return self._code

    def read(self) -> tuple[SlotTable, Reading, Cursor]:
        """The slots of the kept readings, the decoded readings, and where they end."""
        self.pack()
        table = self.table
        cursor = table.cursor(self.begin) if self.cursor is None else self.cursor.copy()
        return table, table.read(cursor, self.stamps), cursor


class Tracer(Protocol):
    """A tracer: something that wants steps of a session traced."""

    def wants(self, plan: Plan) -> bool:
        """Whether the step that begins is to be traced."""

    def take(self, trace: StepTrace) -> None:
        """Takes the trace of a step that has ended, or failed."""


def _is_code(plan: Plan) -> bool:
    """Whether a plan is one generated function; else its operations are traced one by one."""
    return plan.back_end == "python"


def _stamped_code(plan: Plan) -> StampedCode:
    """Returns the code of a plan that reads a clock."""
    from flowscope.runtime.trace.stamp_buffers import stamped_code  # most programs are not traced

    return stamped_code(plan)


__all__ = ["MOST", "Rows", "StepTrace", "Tracer", "Wait", "clock", "waited"]
