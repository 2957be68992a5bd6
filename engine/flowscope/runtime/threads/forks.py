"""Forks: parts of a step that another thread may run before the step comes to them.

Who comes first runs a part: a thread of the pool, or the step itself where it needs the results.
So the step waits only for a thread that is in the middle of its part, never for one that has not
begun: beside busy processes it goes on alone.

Two locks of each `Fork` say who does what. One thread gets the claim, for nobody gives it back: it
alone runs the part, or lets it never run. `_done` is held from the beginning until no thread of the
pool is in the part or will be: whoever gets the claim frees it, a thread of the pool only after it
has let go of the function and its arguments. So a step that has passed `_done` waits for nobody,
shares the arguments with nobody, and reads a result that is whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from flowscope.graph.current_step import current_step, working_for
from flowscope.runtime.threads.blas import one_thread


class Pool(Protocol):
    """What has threads."""

    def put(self, task: Fork) -> None:
        """Lets a thread help with a task."""


class Fork:
    """A part of a step.

    Args:
        function: Computes its results.
        arguments: What it is given.
    """

    __slots__ = ("_arguments", "_claim", "_done", "_error", "_function", "_result", "_step")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function: Callable[..., Any] | None = function
        self._arguments = arguments
        self._step = current_step()
        #: Whoever gets it runs the part; nobody gives it back.
        self._claim = threading.Lock()
        #: Held while a thread of the pool runs it or may come to do so.
        self._done = threading.Lock()
        self._done.acquire()
        self._result: Any = None
        self._error: BaseException | None = None

    def help(self) -> None:
        """Runs it, on a thread of the pool, unless somebody has begun it."""
        if not self._claim.acquire(blocking=False):
            return
        function, arguments = self._function, self._arguments
        assert function is not None
        try:
            with working_for(self._step), self._blas():
                self._result = function(*arguments)
        except BaseException as e:  # who joins raises it
            self._error = e
        self._forget()
        del function, arguments  # before the step goes on: a reference would be a lease
        self._done.release()

    def _blas(self) -> AbstractContextManager[Any]:
        """Returns a context in which BLAS has one thread if the step multiplies.

        Meanwhile the step may run a function of the user's, which has what was there before.
        """
        is_used = self._step is not None and self._step.pool is not None
        return one_thread if is_used else nullcontext()

    def join(self) -> Any:
        """Returns its results, or raises what it has raised."""
        if self._claim.acquire(blocking=False):
            function, arguments = self._function, self._arguments
            assert function is not None
            self._forget()
            self._done.release()
            return function(*arguments)
        with self._done:
            pass
        if self._error is not None:
            raise self._error
        result, self._result = self._result, None
        return result

    def close(self) -> None:
        """Waits for it if it has begun; else it never does."""
        if self._claim.acquire(blocking=False):
            self._forget()
            self._done.release()
        with self._done:
            pass
        self._result = self._error = None

    def _forget(self) -> None:
        self._function, self._arguments = None, ()


class ForkTasks:
    """The parts that one call of generated code hands out.

    Args:
        pool: Whose threads run them.
    """

    __slots__ = ("_forks", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._forks: set[Fork] = set()

    def fork(self, function: Callable[..., Any], *arguments: Any) -> Fork:
        """Hands out a part."""
        fork = Fork(function, arguments)
        self._forks.add(fork)
        self._pool.put(fork)
        return fork

    def join(self, fork: Fork) -> Any:
        """Returns a part's results, or raises what it has raised."""
        self._forks.discard(fork)
        try:
            return fork.join()
        except BaseException:
            fork.close()
            raise

    def close(self) -> None:
        """Waits for parts that have begun; the others never do."""
        for fork in self._forks:
            fork.close()


__all__ = ["Fork", "ForkTasks"]
