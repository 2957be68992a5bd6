"""Host calls: how a step calls the functions of the user's that it runs (`py_func`).

Mostly on the step's own thread, as any function. On the main thread signals are handled at once
meanwhile, so Ctrl-C raises KeyboardInterrupt in the function.

No function can be ended from outside. So where a step has a deadline its functions run on threads
of their own, for which the step waits at its gate: a deadline, a stop and a signal end the wait,
and the function is left alone. What it returns then is dropped, and an exception is raised in it at
its next line of Python: an endless loop ends, one that waits in C does not before that returns.

A call's guard is held for three moments: where the thread notes that it is in the function, where
it notes that it has left it, and where the call is given up. So the exception is raised in a thread
that is in this function, and gets it there, for the thread needs the guard to leave. Another two
hold it where the result is there and where somebody asks to be told: one of them finds the other's
note, and tells.

A thread that is idle is in one list and waits for one call; who takes it out gives it that.
"""

from __future__ import annotations

import contextvars
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from flowscope.graph.current_step import current_step, forget_when_forked, working_for

if TYPE_CHECKING:
    from flowscope.runtime.waits.gate import Gate

#: So many threads are kept for later calls.
_KEPT = 8


class _LeftAloneError(BaseException):
    """Raised in a function for which nobody waits any more."""


class Runnable(Protocol):
    """What a thread of its own runs."""

    def run(self) -> None:
        """Does it; raises nothing."""


class HostCall:
    """A function that runs on a thread of its own.

    Args:
        function: The function.
        threads: The threads of which one runs it.
        wake: Called once it has returned, or failed; None for nobody.

    Attributes:
        is_done: Whether it has.
    """

    def __init__(
        self,
        function: Callable[[], Any],
        threads: HostThreads,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.is_done = False
        self._function = function
        self._wake = wake
        self._context = contextvars.copy_context()
        self._step = current_step()
        self._result: Any = None
        self._error: BaseException | None = None
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._thread: int | None = None
        self._is_left = False
        threads.run(self)

    def result(self) -> Any:
        """The function's result; raises the error that it has raised."""
        if self._error is not None:
            raise self._error
        return self._result

    def wait(self, timeout_s: float) -> None:
        """Waits for the function, so long at most."""
        self._over.wait(timeout_s)

    def tell(self, finish: Callable[[Any], None]) -> None:
        """Has `finish` called with what the function returns, or with what it raises."""

        def wake() -> None:
            finish(self._result if self._error is None else self._error)

        with self._guard:
            self._wake = wake
            is_done = self.is_done
        if is_done:
            wake()

    def leave_alone(self) -> None:
        """Gives it up: nobody waits for it any more. A function that has not begun never does."""
        # The thread takes the guard too before it is done with the function, and so gets the
        # exception there at the latest.
        with self._guard:
            self._is_left = True
            if self._thread is not None:
                _raise_in(self._thread)

    def run(self) -> None:
        """Runs the function, on the thread that calls this."""
        with working_for(self._step):
            try:
                try:
                    with self._guard:
                        if self._is_left:
                            raise _LeftAloneError
                        self._thread = threading.get_ident()
                    self._result = self._context.run(self._function)
                finally:
                    with self._guard:
                        self._thread = None
            except BaseException as e:
                self._error = e
        with self._guard:
            self.is_done = True
            wake = self._wake
        self._over.set()
        if wake is not None:
            wake()


class HostThreads:
    """The threads on which an engine's sessions run functions of the user's, and partitions.

    They end with it: those that run something then, when it has returned.
    """

    def __init__(self) -> None:
        #: Those that wait for a call; a thread serves any session.
        self.idle: list[_Worker] = []
        weakref.finalize(self, _end, self.idle).atexit = False
        forget_when_forked(self)

    def before_fork(self) -> None:
        """Nothing to do: its threads hold no lock of a library between two calls of Python's."""

    def forget_threads(self) -> None:
        """Has no threads: they are started when there is a call."""
        self.idle.clear()

    def run(self, call: Runnable) -> None:
        """Has a thread run a call."""
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = _Worker(self)
        worker.take(call)

    def stop(self) -> None:
        """Ends the threads that wait for a call; a later call starts others."""
        _end(self.idle)


class _Worker:
    """A thread that runs one call after the other.

    Args:
        threads: Those among which it waits for the next call.
    """

    def __init__(self, threads: HostThreads) -> None:
        from queue import SimpleQueue  # at need: most programs call no function of the user's

        self._threads = weakref.ref(threads)
        self._calls: SimpleQueue[Runnable | None] = SimpleQueue()
        threading.Thread(target=self._work, name="flowscope host call", daemon=True).start()

    def take(self, call: Runnable | None) -> None:
        """Has the thread run a call; None ends it."""
        self._calls.put(call)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            del call  # it holds what the function has returned
            threads = self._threads()
            if threads is None or len(threads.idle) >= _KEPT:
                return
            threads.idle.append(self)
            del threads


def _end(idle: list[_Worker]) -> None:
    """Ends threads that wait for a call."""
    while True:
        try:
            worker = idle.pop()
        except IndexError:
            return
        worker.take(None)


def _raise_in(thread: int) -> None:
    import ctypes  # at need

    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(_LeftAloneError)
    )


def call_and_wait(gate: Gate, threads: HostThreads, function: Callable[[], Any]) -> Any:
    """Runs a function on another thread and waits for its result; the wait can be ended."""
    call = HostCall(function, threads, gate.wake)
    try:
        gate.wait(lambda: call.is_done)
    except BaseException:
        call.leave_alone()
        raise
    return call.result()


__all__ = ["HostCall", "HostThreads", "call_and_wait"]
