"""Pipelines that compute ahead, on threads of the engine: prefetch, parallel map and interleave.

No thread waits for space: what fills a buffer is a task, which ends when the buffer is full, and
who takes an element out starts it again. Who wants an element that no thread computes yet does so
itself. Elements come out in the order of their numbers, whoever was quicker.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.errors import OutOfRangeError
from flowscope.ops.host import dataset_ops as ops
from flowscope.runtime.datasets.dataset_functions import PassControl
from flowscope.runtime.datasets.dataset_maps import Interleave, Map
from flowscope.runtime.datasets.dataset_pipelines import (
    Context,
    Element,
    EndOfDataset,
    Pipeline,
    Transformation,
    makers,
)
from flowscope.runtime.state.queue_transactions import goes_back
from flowscope.runtime.threads.cores import available_cores
from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import wait_for


class Failed:
    """Stands in a buffer for an element that could not be computed."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


def outcome(compute: Callable[[], Element]) -> Element | Failed:
    """Returns an element, or what stands for it where it fails."""
    try:
        with np.errstate(all="ignore"):
            return compute()
    except BaseException as e:
        return Failed(e)


class Job:
    """Something that a thread of the engine does; it raises nothing."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run


def _wait(is_done: Callable[[], bool], waiter: Waiter) -> None:
    wait_for(is_done, waiter, what="for an element that is computed ahead", until=math.inf)


class Buffered(Pipeline):
    """Elements of another pipeline, of which some are computed ahead.

    Args:
        source: The other one.
        size: How many are.
        control: Ends it from outside.
    """

    def __init__(self, source: Pipeline, size: int, control: PassControl) -> None:
        self._source, self._size, self._going = source, size, control
        self.is_fresh = source.is_fresh
        self._lock = threading.Lock()
        self._buffer: deque[Element | Failed] = deque()
        self._is_busy = False
        self._has_ended = False
        self._waiter = Waiter()

    def next(self) -> Element:
        while True:
            with self._lock:
                found = self._buffer.popleft() if self._buffer else None
                if found is None and self._has_ended:
                    raise EndOfDataset
                is_mine = found is None and not self._is_busy
                self._is_busy = self._is_busy or is_mine
            if is_mine:
                return self._own()
            if found is not None:
                if len(self._buffer) <= self._size // 2:  # a thread is worth while for several
                    self.fill()
                if isinstance(found, Failed):
                    raise found.error
                return found
            waiter = self._waiter = Waiter()
            _wait(lambda: bool(self._buffer) or not self._is_busy, waiter)

    def _own(self) -> Element:
        """Computes the next element on this thread, and has others computed."""
        try:
            return self._source.next()
        except EndOfDataset:
            self._has_ended = True
            raise
        finally:
            self._is_busy = False
            self.fill()

    def fill(self) -> None:
        """Has a thread compute ahead, if there is space and none does."""
        threads = self._going.threads
        with self._lock:
            wants = not (self._is_busy or self._has_ended or self._going.is_ended)
            if not wants or threads is None or len(self._buffer) >= self._size:
                return
            self._is_busy = True
        threads.run(Job(self._run))

    def _run(self) -> None:
        while True:
            found = outcome(self._source.next)
            is_end = isinstance(found, Failed) and isinstance(found.error, EndOfDataset)
            with self._lock:
                self._has_ended = self._has_ended or is_end
                if not is_end and not self._going.is_ended:
                    self._buffer.append(found)
                is_over = is_end or self._going.is_ended or len(self._buffer) >= self._size
                self._is_busy = not is_over
            self._waiter.wake()
            if is_over:
                return


def ahead_of(size: int) -> int:
    """Returns how many elements are computed ahead; one per core for -1."""
    return available_cores() if size < 0 else size


class _Prefetch(Transformation):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        size = ahead_of(int(dataset.inputs[1]))
        self._buffered = Buffered(self.input, size, self.control) if size else self.input

    def next(self) -> Element:
        return self._buffered.next()


class _Task:
    """A call of a function for one element; whoever comes first does it."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute = compute
        self._lock = threading.Lock()
        self._is_taken = False
        self._found: Any = None
        self._waiter = Waiter()

    def run(self) -> None:
        """Does it, unless somebody does."""
        if self._claims():
            self._found = outcome(self._compute)
            self._waiter.wake()

    def result(self) -> Any:
        """The function's results; raises its error."""
        if self._claims():
            found = outcome(self._compute)
            if isinstance(found, Failed) and goes_back(found.error):
                self._is_taken = False  # the step ends, and the element stays
                raise found.error
            self._found = found
        _wait(lambda: self._found is not None, self._waiter)
        if isinstance(self._found, Failed):
            raise self._found.error
        return self._found

    def _claims(self) -> bool:
        with self._lock:
            is_mine, self._is_taken = not self._is_taken, True
        return is_mine


class _ParallelMap(Map):
    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self._most = ahead_of(dataset.op.parallel)
        self._tasks: deque[_Task | Failed] = deque()

    def next(self) -> Element:
        self._begin()
        first = self._tasks[0]
        try:
            if isinstance(first, Failed):
                raise first.error
            found: Element = first.result()
        except OutOfRangeError as e:
            self._tasks.clear()
            self._tasks.append(Failed(EndOfDataset()))
            raise EndOfDataset from e
        except Exception as e:
            if not goes_back(e) and not isinstance(e, EndOfDataset):
                self._tasks.popleft()
            raise
        self._tasks.popleft()
        return found

    def _begin(self) -> None:
        """Begins with so many elements as may be computed at a time."""
        tasks = self._tasks
        while len(tasks) < self._most:
            last = tasks[-1] if tasks else None
            if isinstance(last, Failed) and isinstance(last.error, EndOfDataset):
                return
            try:
                element = self.take()
            except Exception as e:
                if goes_back(e):
                    raise
                tasks.append(Failed(e))
                continue
            task = _Task(lambda n=self.number, e=element: self.function(n, e))  # type: ignore[misc]
            self._pass()
            tasks.append(task)
            if self.control.threads is not None:
                self.control.threads.run(task)

    def skip(self, count: int) -> int:
        return Pipeline.skip(self, count) if self._tasks else super().skip(count)


class _ParallelInterleave(Interleave):
    """Reads the first datasets of a cycle a block ahead, each on a thread."""

    def __init__(self, dataset: ops.DatasetValue, context: Context) -> None:
        super().__init__(dataset, context)
        self._most = ahead_of(dataset.op.parallel)

    def opened(self) -> Pipeline:
        found = super().opened()
        if self.position >= self._most:
            return found
        made = Buffered(found, self.block, self.control)
        made.fill()
        return made


def _map(dataset: ops.DatasetValue, context: Context) -> Pipeline:
    kind = _ParallelMap if dataset.op.parallel else Map
    return kind(dataset, context)


def _interleave(dataset: ops.DatasetValue, context: Context) -> Pipeline:
    kind = _ParallelInterleave if dataset.op.parallel else Interleave
    return kind(dataset, context)


makers |= {
    ops.InterleaveDataset: _interleave,
    ops.MapDataset: _map,
    ops.PrefetchDataset: _Prefetch,
}

__all__ = ["Failed", "Job", "ahead_of", "outcome"]
