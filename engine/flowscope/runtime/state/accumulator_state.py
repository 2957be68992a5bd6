"""Accumulators as state: gradients that wait until there are enough of them to be taken as one.

The gradients are kept apart until they are taken, by their *source*: where the graph says that a
gradient is computed, and the tensor's name. A sum is that of each source, in order of arrival,
added up by source in natural order ("task:2" before "task:10"). So the result does not depend on
which of several workers came first, and the gradients of a step that was stopped can be taken back.
Of a source that has sent many the oldest are one sum already: of these none can be taken back.

No thread waits; see `flowscope.runtime.state.queue_state`.

Source: the rules of time stamps, and the mean of sparse gradients (each row by the number of
gradients that have it), are those of TensorFlow 1.15's kernels. There, sums are by arrival, and
rows that a sparse gradient repeats are undefined.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from flowscope.graph.current_step import current_step
from flowscope.graph.summary import counted
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.kernels.gradient_sums import summed
from flowscope.runtime.state.queue_state import (
    Finish,
    QueueState,
    call_all,
    note_put,
    note_taken,
)

if TYPE_CHECKING:
    from flowscope.ops.state.containers.accumulators import AccumulatorHandle

#: Gradients of one source that are kept apart.
_MOST_APART = 16


#: A dense gradient, or a sparse one.
Value = Any


class _Gradient:
    """One gradient, as a step has applied it."""

    __slots__ = ("local_step", "source", "value")

    def __init__(self, source: str, local_step: int, value: Value) -> None:
        self.source = source
        self.local_step = local_step
        self.value = value


class _Source:
    """The gradients of one source: the sum of the oldest, and the others in order of arrival."""

    __slots__ = ("apart", "summed", "total")

    def __init__(self) -> None:
        self.total: Value = None
        self.summed = 0
        self.apart: list[_Gradient] = []

    @property
    def count(self) -> int:
        """How many gradients these are."""
        return self.summed + len(self.apart)

    @property
    def values(self) -> list[Value]:
        """The sum, if there is one, and the others."""
        return [*([self.total] if self.summed else []), *[g.value for g in self.apart]]

    def add(self, gradient: _Gradient) -> None:
        """Adds a gradient to the others."""
        self.apart.append(gradient)
        if len(self.apart) > _MOST_APART:
            oldest = self.apart.pop(0).value
            self.total = summed([self.total, oldest]) if self.summed else oldest
            self.summed += 1

    def merge(self, before: _Source) -> None:
        """Puts gradients in front, which have been here before."""
        if before.summed:
            self.total = summed([before.total, *self.values]) if self.count else before.total
            self.summed, self.apart = before.count + self.count, []
        else:
            self.apart = before.apart + self.apart


class Taken:
    """What a step has taken: all gradients that there were.

    Attributes:
        count: How many gradients these are.
        stamp: The accumulator's time stamp from then on.
    """

    __slots__ = ("count", "sources", "stamp")

    def __init__(self, sources: dict[str, _Source], stamp: int) -> None:
        self.sources = sources
        self.count = sum([s.count for s in sources.values()])
        self.stamp = stamp


class _Wish:
    """Somebody waits until there are `count` gradients."""

    __slots__ = ("count", "finish", "since", "step")

    def __init__(self, count: int, finish: Finish) -> None:
        self.step = current_step()
        self.since = time.monotonic()
        self.count = count
        self.finish = finish


class AccumulatorState(QueueState):
    """An accumulator of dense or sparse gradients.

    Attributes:
        capacity: How many gradients the next one needs who takes them; 0 before anybody has asked.
        shape: Of the gradients.
        reduction_type: "MEAN" or "SUM".
        stamp: The time stamp: a gradient with a smaller one is stale.
        dropped: How many gradients were stale so far.
    """

    family = "accumulator"
    identity: ClassVar[tuple[str, ...]] = ("kind", "dtypes", "shape", "reduction_type")

    __slots__ = ("_sources", "dropped", "is_sparse", "kind", "reduction_type", "shape", "stamp")

    def __init__(self, handle: AccumulatorHandle) -> None:
        super().__init__(handle.shared_name, 0, (handle.dtype,), (handle.shape,))
        self.kind = "SparseConditionalAccumulator" if handle.is_sparse else "ConditionalAccumulator"
        self.is_sparse = handle.is_sparse
        self.shape = handle.shape
        self.reduction_type = handle.reduction_type
        self.stamp = 0
        self.dropped = 0
        self._sources: dict[str, _Source] = {}

    # -- what is asked of it ----------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of gradients."""
        return sum([s.count for s in list(self._sources.values())])

    def _contents(self) -> Iterable[tuple[Any, ...]]:
        return [tuple(s.values) for s in self._sources.values()]

    def __str__(self) -> str:
        needed = f" of {self.capacity}" if self.capacity else ""
        parts = [f"{self.size}{needed} gradients", f"time stamp {self.stamp}"]
        if self.dropped:
            parts.append(f"{counted(self.dropped, 'stale gradient')} dropped")
        if self._dequeues:
            parts.append(f"{counted(len(self._dequeues), 'take_grad')} waiting")
        return f'{self.kind} "{self.name}" ({", ".join(parts)})'

    # -- what is done to it -----------------------------------------------------------------------

    def apply(self, source: str, local_step: int, value: Callable[[], Value]) -> None:
        """Adds a gradient, unless it is stale.

        Args:
            source: What its place in the sum follows from.
            local_step: Its time stamp.
            value: Returns the gradient, which nobody else changes: a dense one or `GradientRows`.
                Not called for a stale one.

        Raises:
            InvalidArgumentError: if its shape does not fit, and it is not stale.
        """
        with self._lock:
            if local_step < self.stamp:
                self.dropped += 1
                return
            gradient = _Gradient(source, local_step, value())
            self._check_shape(gradient.value)
            self._sources.setdefault(source, _Source()).add(gradient)
            note_put(self, current_step(), [gradient])  # type: ignore[list-item]
            done = self._pump()
        call_all(done)

    def take_all(self, count: int) -> Taken | None:
        """Takes all gradients if there are `count`, and nobody waits; else returns None."""
        with self._lock:
            if self._dequeues or self.size < count:
                return None
            return self._take_out(count, current_step())

    def wait(self, count: int, finish: Finish) -> Callable[[], None]:
        """Takes all gradients once there are `count`; returns what gives the wait up.

        Args:
            count: How many there have to be.
            finish: Called once, with a `Taken` or a CancelledError.
        """
        wish = _Wish(count, finish)
        with self._lock:
            self._dequeues[wish] = None  # type: ignore[index]
            done = self._pump()
        call_all(done)
        return lambda: self._leave(self._dequeues, wish)

    def set_stamp(self, stamp: int) -> None:
        """Sets the time stamp; what is in stays in, as in TensorFlow."""
        with self._lock:
            self.stamp = stamp

    def clear(self) -> None:
        """Makes it new: empty, with the time stamp 0. Who waits gets a CancelledError."""
        with self._lock:
            self._sources.clear()
            self.stamp = self.dropped = self.capacity = 0
        super().clear()

    def take_back(self, put: Sequence[Sequence[Any]]) -> bool:
        """Takes out the gradients that a step has applied; returns whether all were there."""
        is_whole = True
        with self._lock:
            for gradient in [g for some in put for g in some]:
                source = self._sources.get(getattr(gradient, "source", ""))
                is_there = source is not None and gradient in source.apart
                is_whole = is_whole and is_there
                if source is not None and is_there:
                    source.apart.remove(gradient)
                    if not source.count:
                        del self._sources[gradient.source]
        return is_whole

    def give_back(self, taken: Sequence[Sequence[Any]]) -> None:
        """Puts back what a step has taken, and the time stamp, unless somebody has set that since.

        Where it was set, gradients that are stale by now are dropped.
        """
        with self._lock:
            for one in [t for some in reversed(taken) for t in some]:
                if self.stamp == one.stamp:
                    self.stamp -= 1
                for name, source in one.sources.items():
                    self._put_back(name, source)
            done = self._pump()
        call_all(done)

    # -- with the lock held -----------------------------------------------------------------------

    def _pump(self) -> list[tuple[Finish, Any]]:
        done: list[tuple[Finish, Any]] = []
        waits: Any = self._dequeues
        while waits:
            wish = next(iter(waits))
            self.capacity = wish.count
            if self.size < wish.count:
                break
            del waits[wish]
            done.append((wish.finish, self._take_out(wish.count, wish.step)))
        return done

    def _take_out(self, count: int, step: Any) -> Taken:
        self.capacity = count
        self.stamp += 1
        taken = Taken(self._sources, self.stamp)
        self._sources = {}
        note_taken(self, step, [taken])  # type: ignore[list-item]
        return taken

    def _put_back(self, name: str, source: _Source) -> None:
        stale = [g for g in source.apart if g.local_step < self.stamp]
        self.dropped += len(stale)
        before = _Source()
        before.total, before.summed = source.total, source.summed
        before.apart = [g for g in source.apart if g not in stale]
        if before.count:
            self._sources.setdefault(name, _Source()).merge(before)

    def _check_shape(self, value: Value) -> None:
        """Raises InvalidArgumentError if a gradient does not fit the shape, or the others."""
        other = next((s.values[0] for s in self._sources.values()), None)
        if not self.is_sparse:
            dims = value.shape
            wanted = self.shape if other is None else other.shape
            if not compatible(wanted, dims):
                raise expected(f"a gradient of shape {text(wanted)} for {self}", text(dims))
            return
        wanted = (None, *self.shape[1:]) if self.shape else None
        wanted = wanted if other is None else (None, *other.values.shape[1:])
        dims = value.values.shape
        if wanted is not None and not compatible(wanted, dims[: len(wanted)]):
            raise expected(f"values of shape {text(wanted)} for {self}", text(dims))
        count = self.shape[0] if self.shape else None
        if len(value.indices) and count is not None and value.indices[-1] >= count:
            raise expected(f"indices of {count} rows for {self}", int(value.indices[-1]))

    # -- without the lock -------------------------------------------------------------------------

    def reduced(self, taken: Taken) -> Value:
        """Returns the sum or the mean of what was taken: an array, or `GradientRows`."""
        with np.errstate(all="ignore"):
            by_source = sorted(taken.sources.items(), key=lambda item: _natural(item[0]))
            total = summed([summed(source.values) for _, source in by_source])
            if self.reduction_type == "SUM":
                return total
            if not self.is_sparse:
                return total / total.dtype.type(taken.count)
            shape = (-1, *[1] * (total.values.ndim - 1))
            counts = total.counts.astype(total.values.dtype).reshape(shape)
            return total._replace(values=total.values / counts)


def _natural(source: str) -> list[tuple[int, str]]:
    """A sort key of names: numbers in them by their value."""
    parts = re.split(r"(\d+)", source)
    return [(int(part), "") if i % 2 else (0, part) for i, part in enumerate(parts)]


__all__ = ["AccumulatorState", "Taken"]
