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

from flowscope.graph.lazy import frozen
from flowscope.plan.codegen.stamps import HEAD, MOST, BufferStamps, Stamped, Stamps
from flowscope.plan.codegen.variants import Variant

if TYPE_CHECKING:
    from flowscope.runtime.native_stamps import Stamper

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
    """What the code of one step fills."""

    @property
    def variant(self) -> Variant:
        """The variant of code that fills it."""

    def stamped(self, run: Any, flush: Callable[[], None]) -> Stamped:
        """Returns the run of the code that fills it."""

    def moment(self) -> int:
        """Notes that the step begins or ends; returns the time."""

    def take(self) -> Piece:
        """Takes the readings out that are in it."""

    def __len__(self) -> int: ...


class ListBuffer:
    """A list of readings of Python's clock."""

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
    from flowscope.runtime.native_stamps import stamper  # most programs are not traced

    return stamper()


def stamp_variant() -> Variant:
    """Returns the variant of code that is traced here."""
    return _variants()[_stamper() is not None]


def stamp_buffer(slots: int, loops: bool) -> StampBuffer:
    """Returns a buffer for one step; see `NativeBuffer` for the arguments."""
    native = _stamper()
    return ListBuffer() if native is None else NativeBuffer(native, slots, loops)


__all__ = [
    "Anchor",
    "ListBuffer",
    "NativeBuffer",
    "Piece",
    "StampBuffer",
    "stamp_buffer",
    "stamp_variant",
]
