"""The thread pool: threads that help with large kernels, for the sessions of an engine.

Who shares a kernel takes parts of it as well, and waits for nobody but those that are in the middle
of a part: a thread that comes late, because the processor is busy, finds nothing left to do.

Why every part is computed exactly once stands at `_Task`, and why a section is at `Fork`. Tasks
are handed over in a queue of the standard library: each is taken out as often as it was put in.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.graph.current_step import current_step, forget_when_forked, working_for
from flowscope.runtime.threads.cores import available_cores
from flowscope.runtime.threads.forks import Fork, ForkTasks
from flowscope.runtime.threads.matrix_products import MatrixProducts

if TYPE_CHECKING:
    from queue import SimpleQueue

#: More than so many threads gain nothing: memory is the limit.
_MOST = 4


class ThreadPool:
    """Threads that wait for work; they are started when there is some, and end with the pool.

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
        self.forget_threads()
        forget_when_forked(self)

    def before_fork(self) -> None:
        """Nothing to do: its threads hold no lock of a library between two calls of Python's."""

    def forget_threads(self) -> None:
        """Has no threads: they are started when there is work."""
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[_Task | Fork | None] | None = None

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
        helpers = min(self.size, count) - 1
        if helpers > len(self._threads):
            self._start(helpers)
        task = _Task(count, run)
        for _ in range(helpers):
            assert self._tasks is not None
            self._tasks.put(task)
        task.share()

    def tasks(self) -> ForkTasks:
        """Returns the tasks that one call of generated code hands out."""
        return ForkTasks(self)

    def put(self, task: Fork) -> None:
        """Lets a thread run a task; none does where there is one core."""
        if self._cores < 2:
            return
        if not self._threads:
            self._start(1)
        assert self._tasks is not None
        self._tasks.put(task)

    def stop(self) -> None:
        """Ends the threads, and waits until they have ended; later work starts others."""
        with self._lock:
            tasks, threads = self._tasks, self._threads
            self._threads = []
            for _ in threads:
                assert tasks is not None
                tasks.put(None)
        for thread in threads:
            thread.join()
        self.products.stop()

    def _start(self, helpers: int) -> None:
        from queue import SimpleQueue  # at need: most sessions never share anything

        with self._lock:
            tasks = self._tasks = self._tasks or SimpleQueue()
            while len(self._threads) < helpers:
                name = f"flowscope-pool-{len(self._threads) + 1}"
                thread = threading.Thread(target=_help, args=(tasks,), name=name, daemon=True)
                thread.start()
                weakref.finalize(self, tasks.put, None).atexit = False
                self._threads.append(thread)


def _help(tasks: SimpleQueue[_Task | Fork | None]) -> None:
    """Helps with one task after the other; None ends the thread."""
    with np.errstate(all="ignore"):  # as sessions do
        while (task := tasks.get()) is not None:
            task.help()
            del task  # a reference would be a lease


class _Task:
    """One kernel whose parts are being taken.

    Each part is run exactly once: `next` of the one counter gives each number to one thread, and
    that runs the part, whatever has happened meanwhile. The thread that shares the kernel returns
    when it was given a number behind the last - so all are given out - and nobody helps any more; a
    helper is counted before it asks for its first number, and until it has run its last part.

    Once it is closed no number is asked for. That is when all are given out, or when a part has
    failed: then not all of them are run.
    """

    def __init__(self, count: int, run: Callable[[int], None]) -> None:
        self._step = current_step()
        self._run = run
        self._count = count
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._helping = 0
        self._is_closed = False
        self._done = threading.Event()
        self._error: BaseException | None = None

    def share(self) -> None:
        """Takes parts, and waits for those that others have taken.

        Raises:
            BaseException: what a part has raised.
        """
        try:
            self.work()
        finally:
            self.close()
            error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame

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
            self._error = e
            self._is_closed = True
        with self._lock:
            self._helping -= 1
            if self._is_closed and not self._helping:
                self._done.set()

    def work(self) -> None:
        """Takes part after part, until none is left."""
        while not self._is_closed and (i := next(self._numbers)) < self._count:
            self._run(i)

    def close(self) -> None:
        """Lets nobody begin any more, waits for those that are at work, and lets go of the arrays.

        A helper that comes late may have the task still, and a reference would be a lease.
        """
        with self._lock:
            self._is_closed = True
            is_left = not self._helping
        if not is_left:
            self._done.wait()
        del self._run


__all__ = ["ThreadPool"]
