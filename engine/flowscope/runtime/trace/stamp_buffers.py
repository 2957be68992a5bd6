"""Buffers that the code of a traced step fills with readings of a clock.

Where llvmlite is installed compiled code reads the clock and keeps the reading: one call, a third
of the time of a clock of Python's and a list. Its readings may be ticks of the processor; of those
some are known in nanoseconds (an `Anchor` before and after), and between them time is linear.
Elsewhere a buffer is a list.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flowscope.errors import UnimplementedError
from flowscope.graph.lazy import frozen
from flowscope.plan.codegen.stamps import HEAD, MOST, BufferStamps, Stamped, Stamps
from flowscope.plan.codegen.variants import Variant

if TYPE_CHECKING:
    from flowscope.plan.codegen.readings import SlotTable
    from flowscope.plan.executables.back_ends import Executable
    from flowscope.plan.plan import Plan
    from flowscope.runtime.trace.native_stamps import Stamper

clock = time.perf_counter_ns
#: A moment is read anew if both clocks could not be read within so many nanoseconds.
_NEAR_NS = 2000


@frozen
class Anchor:
    """A moment by two clocks: in nanoseconds, and as a reading of compiled code."""

    ns: int
    reading: int


@frozen
class Piece:
    """Readings that were taken out of a buffer.

    Attributes:
        raw: The readings, int64.
        begin, end: Moments before the first one and after the last; the same where the readings
            are nanoseconds.
    """

    raw: Any
    begin: Anchor
    end: Anchor

    def readings(self) -> Any:
        """Returns the readings in nanoseconds."""
        begin, end = self.begin, self.end
        if begin.reading == end.reading:
            return self.raw
        scale = (end.ns - begin.ns) / (end.reading - begin.reading)
        ticks = np.abs(self.raw) - begin.reading
        times = np.rint(ticks * scale).astype(np.int64) + begin.ns
        return np.where(self.raw < 0, -times, times)


@functools.cache
def _variants() -> tuple[Variant, Variant]:
    return Stamps(clock), BufferStamps()  # made late: most programs are not traced


class StampBuffer(Protocol):
    """What the code of one step fills.

    Attributes:
        is_reused: Whether readings are taken out at the step's end, so that the next step can fill
            it; a list is left to the trace, for that takes long.
    """

    is_reused: bool

    @property
    def variant(self) -> Variant:
        """The variant of code that fills it."""

    def stamped(self, run: Any, flush: Callable[[], None]) -> Stamped:
        """Returns the run of the code that fills it."""

    def moment(self) -> int:
        """Notes that the step begins or ends; returns the time."""

    def take(self) -> Piece:
        """Takes the readings out that are in it."""

    def clear(self) -> None:
        """Makes it as new."""

    def __len__(self) -> int: ...


class ListBuffer:
    """A list of readings of Python's clock."""

    is_reused = False

    @property
    def variant(self) -> Variant:
        """The variant of code that fills it."""
        return _variants()[0]

    def __init__(self) -> None:
        self._readings: list[int] = []

    def stamped(self, run: Any, flush: Callable[[], None]) -> Stamped:
        """Returns the run of the code that fills it."""
        return Stamped(run, self._readings, flush)

    def moment(self) -> int:
        """Returns the time."""
        return clock()

    def take(self) -> Piece:
        """Takes the readings out that are in it."""
        raw = np.fromiter(self._readings, np.int64, len(self._readings))
        self._readings.clear()
        return Piece(raw, Anchor(0, 0), Anchor(0, 0))

    def clear(self) -> None:
        """Makes it as new."""
        self._readings.clear()

    def __len__(self) -> int:
        return len(self._readings)


class NativeBuffer:
    """An array that compiled code fills.

    Args:
        stamper: The code.
        slots: How many places of the step's code leave readings: so many come at most between two
            questions whether it is full.
        loops: Whether there are loops in it.

    Attributes:
        stamp: Keeps a reading.
        turn: Keeps a reading as a negative number; returns whether the buffer is to be flushed.
    """

    is_reused = True

    def __init__(self, stamper: Stamper, slots: int, loops: bool) -> None:
        most = MOST if loops else 0
        self._words = np.empty(HEAD + most + slots + 1, np.int64)
        self._words[:HEAD] = HEAD, len(self._words), HEAD + most
        self.stamp, self.turn = stamper.functions(self._words)
        self._begin = self._end = Anchor(0, 0)

    @property
    def variant(self) -> Variant:
        """The variant of code that fills it."""
        return _variants()[1]

    def stamped(self, run: Any, flush: Callable[[], None]) -> Stamped:
        """Returns the run of the code that fills it."""
        return Stamped(run, self, flush)

    def moment(self) -> int:
        """Notes that the step begins or ends; returns the time."""
        self._end = self._anchor()
        if self._begin.ns == 0:
            self._begin = self._end
        return self._end.ns

    def _anchor(self) -> Anchor:
        """Reads both clocks, one right after the other."""
        words, stamp = self._words, self.stamp
        count = words[0]
        for _ in range(8):
            begin = clock()
            stamp()
            is_near = clock() - begin < _NEAR_NS
            words[0] = count
            if is_near:
                break
        return Anchor(begin, int(words[count]))

    def clear(self) -> None:
        """Makes it as new."""
        self._words[0] = HEAD
        self._begin = self._end = Anchor(0, 0)

    def take(self) -> Piece:
        """Takes the readings out that are in it."""
        count = int(self._words[0])
        if count > HEAD and abs(int(self._words[count - 1])) > self._end.reading:
            self.moment()
        piece = Piece(self._words[HEAD:count].copy(), self._begin, self._end)
        self._begin = self._end
        self._words[0] = HEAD
        return piece

    def __len__(self) -> int:
        return int(self._words[0]) - HEAD


def _stamper() -> Stamper | None:
    from flowscope.runtime.trace.native_stamps import stamper  # most programs are not traced

    return stamper()


class StampedCode:
    """The code of a plan that reads a clock, and buffers for its readings.

    Args:
        executable: The code.
        table: What its readings mean.

    Attributes:
        executable, table: As above.
    """

    def __init__(self, executable: Executable, table: SlotTable) -> None:
        self.executable = executable
        self.table = table
        #: What no step fills now; steps of several threads take it out and put it back.
        self._spare: list[StampBuffer] = []

    def buffer(self) -> StampBuffer:
        """Returns an empty buffer for the readings of one step."""
        native, table = _stamper(), self.table
        if native is None:
            return ListBuffer()
        try:
            return self._spare.pop()
        except IndexError:
            return NativeBuffer(native, len(table.owner), table.has_loops)

    def take_back(self, buffer: StampBuffer) -> None:
        """Keeps a buffer for the next step, once its readings were taken out."""
        buffer.clear()
        self._spare.append(buffer)


def stamped_code(plan: Plan) -> StampedCode:
    """Returns the code of a plan that reads a clock.

    Raises:
        UnimplementedError: if the plan is not run by code.
    """
    executable = plan.variant(_variants()[_stamper() is not None])
    table = None if executable.code is None else executable.code.slots
    if table is None:
        raise UnimplementedError("this plan has no code that could be traced")
    return StampedCode(executable, table)


__all__ = [
    "Anchor",
    "ListBuffer",
    "NativeBuffer",
    "Piece",
    "StampBuffer",
    "StampedCode",
    "stamped_code",
]
