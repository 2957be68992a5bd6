"""The thread pool: threads that help with large kernels, for the sessions of an engine.

Who shares a kernel takes parts of it as well, and waits for nobody but those that are in the middle
of a part: a thread that comes late, because the processor is busy, finds nothing left to do.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.graph.current_step import current_step, working_for
from flowscope.runtime.cores import available_cores
from flowscope.runtime.forks import Fork, Tasks
from flowscope.runtime.matrix_products import MatrixProducts

if TYPE_CHECKING:
    from queue import SimpleQueue

#: More than so many threads gain nothing: memory is the limit.
_MOST = 4


class ThreadPool:
    """Threads that wait for work; they are started when there is some.

    Attributes:
        size: How many threads work on one kernel at the most, with the one that shares it.
        products: Shares matrix products, on threads of its own.

    Args:
        size: As above; None for as many as there are cores to use, within reason.
    """

    def __init__(self, size: int | None = None) -> None:
        self._cores = available_cores()
        self.size = min(self._cores, _MOST) if size is None else size
        self.products = MatrixProducts()
        self._forget_threads()

    def _forget_threads(self) -> None:
        self._started = 0
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[_Task | Fork] | None = None

    def limit(self, size: int) -> None:
        """Lets at most so many threads work on one kernel."""
        self.size = min(size, _MOST)

    def product(self, a: Any, b: Any) -> Any:
        """Returns the product of two large matrices; None where one thread should compute it."""
        return None if self.size < 2 else self.products.product(a, b, self.size)

    def calls(self, table: Any, kept: Any) -> int:
        """Makes calls of blocks on several threads, see `MatrixProducts.calls`; -1 for none."""
        return -1 if self.size < 2 else self.products.calls(table, kept, self.size)

    def parallel_for(self, count: int, run: Callable[[int], None]) -> None:
        """Calls `run` with 0 .. count - 1, on several threads; returns when all have ended.

        Raises:
            BaseException: what one of the calls has raised; not all of them may have been made.
        """
        if self._process != os.getpid():
            self._forget_threads()  # a forked process has none
        helpers = min(self.size, count) - 1
        if helpers > self._started:
            self._start(helpers)
        task = _Task(count, run)
        for _ in range(helpers):
            assert self._tasks is not None
            self._tasks.put(task)
        try:
            task.work()
        finally:
            task.close()
        if task.error is not None:
            raise task.error

    def tasks(self) -> Tasks:
        """Returns the tasks that one call of generated code hands out."""
        return Tasks(self)

    def put(self, task: Fork) -> None:
        """Lets a thread run a task; none does where there is one core."""
        if self._cores < 2:
            return
        if self._process != os.getpid():
            self._forget_threads()
        if not self._started:
            self._start(1)
        assert self._tasks is not None
        self._tasks.put(task)

    def _start(self, helpers: int) -> None:
        from queue import SimpleQueue  # at need: most sessions never share anything

        with self._lock:
            tasks = self._tasks = self._tasks or SimpleQueue()
            while self._started < helpers:
                self._started += 1
                name = f"flowscope-pool-{self._started}"
                threading.Thread(target=_help, args=(tasks,), name=name, daemon=True).start()


def _help(tasks: SimpleQueue[_Task | Fork]) -> None:
    with np.errstate(all="ignore"):  # as sessions do
        while True:
            tasks.get().help()


class _Task:
    """One kernel whose parts are being taken."""

    def __init__(self, count: int, run: Callable[[int], None]) -> None:
        self.error: BaseException | None = None
        self._step = current_step()
        self._run = run
        self._count = count
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._helping = 0
        self._is_closed = False
        self._done = threading.Event()

    def work(self) -> None:
        """Takes part after part, until none is left."""
        while (i := next(self._numbers)) < self._count:
            self._run(i)

    def help(self) -> None:
        """Takes parts as well, if there are any by now."""
        with self._lock:
            if self._is_closed:
                return
            self._helping += 1
        trace = None if self._step is None else self._step.call.trace
        begin = 0 if trace is None else time.perf_counter_ns()
        try:
            with working_for(self._step):
                self.work()
            if trace is not None:
                trace.took_part(begin)
        except BaseException as e:  # the one that shares raises it
            self.error = e
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._helping -= 1
            if self._is_closed and not self._helping:
                self._done.set()

    def close(self) -> None:
        """Lets nobody begin any more, waits for those that are at work, and lets go of the arrays.

        A helper that comes late may have the task still, and a reference would be a lease.
        """
        with self._lock:
            self._is_closed = True
            self._count = 0
            is_left = not self._helping
        if not is_left:
            self._done.wait()
        del self._run


__all__ = ["ThreadPool"]
