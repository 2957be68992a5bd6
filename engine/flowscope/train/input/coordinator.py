"""`fs.train.Coordinator`: several threads that end together, and the first error of them."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from flowscope.errors import InvalidArgumentError, OutOfRangeError
from flowscope.graph.summary import counted
from flowscope.runtime.session.helpers import Helper

__all__ = ["Coordinator", "LooperThread"]

_LOGGER = logging.getLogger("flowscope")
#: Seconds between two looks whether threads have ended.
_LOOK_S = 0.05

#: An exception, or what `sys.exc_info()` returns.
Failure = BaseException | tuple[Any, Any, TracebackType | None] | None


class Coordinator:
    """Has several threads stop together, and keeps the first error that one of them reports.

        coord = fs.train.Coordinator()

        def work():
            with coord.stop_on_exception():
                while not coord.should_stop():
                    ...

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        coord.join(threads)  # raises what the first that failed has raised

    Args:
        clean_stop_exception_types: Exceptions that end the work and are no errors; by default
            OutOfRangeError, the end of the input.

    Example:
        >>> coordinator = fs.train.Coordinator()
        >>> coordinator.request_stop()
        >>> coordinator.should_stop()
        True
    """

    def __init__(
        self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None
    ) -> None:
        clean = (OutOfRangeError,) if clean_stop_exception_types is None else ()
        self._clean = tuple(clean_stop_exception_types or clean)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._is_joined = False
        self._threads: dict[threading.Thread, None] = {}

    def should_stop(self) -> bool:
        """True once a stop was asked for."""
        return self._stop.is_set()

    def request_stop(self, ex: Failure = None) -> None:
        """Asks all threads to stop.

        Args:
            ex: Why: an exception, or what `sys.exc_info()` returns. The first one is raised by
                `join`, with its own traceback, unless it is one of the clean ones. After `join` it
                is raised here.
        """
        error = _exception_of(ex)
        if error is not None and isinstance(error, self._clean):
            error = None
        with self._lock:
            if not self._is_joined:
                if self._stop.is_set():
                    return
                self._error = error
                self._stop.set()
                error = None
                told = self._error
            else:
                told = None
        if told is not None:
            _LOGGER.info("Error reported to Coordinator: %s, %s", type(told), told)
        if error is not None:
            raise error

    def clear_stop(self) -> None:
        """Makes the coordinator as new: no stop was asked for, no error is known."""
        with self._lock:
            self._is_joined = False
            self._error = None
            self._stop.clear()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context that asks for a stop where its body raises; the exception goes no further."""
        try:
            yield
        except BaseException as error:
            self.request_stop(error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is asked for.

        Args:
            timeout: Seconds that it waits at most; None: for as long as it takes.

        Returns:
            True if a stop was asked for.
        """
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread that `join` waits for."""
        with self._lock:
            self._threads[thread] = None

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until all threads have ended, or a stop was asked for and the grace is over.

        Args:
            threads: Threads beside the registered ones.
            stop_grace_period_secs: So long threads may go on after a stop was asked for.
            ignore_live_threads: True: threads that still run then are no error.

        Raises:
            Exception: what the first thread that failed has reported.
            RuntimeError: if threads still run.
        """
        with self._lock:
            waited = [*self._threads, *[t for t in threads or () if t not in self._threads]]
        while _any_alive(waited) and not self.wait_for_stop(_LOOK_S):
            pass
        grace_ends = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            if thread.is_alive():
                thread.join(max(0.0, grace_ends - time.monotonic()))
        late = [thread.name for thread in waited if thread.is_alive()]
        with self._lock:
            self._is_joined = True
            self._threads.clear()
            error = self._error
        if error is not None:
            raise error
        if late and not ignore_live_threads:
            raise RuntimeError(
                f"Coordinator stopped with threads still running: {' '.join(late)}; the grace of "
                f"{stop_grace_period_secs:g} s is over"
            )
        if late:
            _LOGGER.info("Coordinator stopped with threads still running: %s", " ".join(late))

    @property
    def joined(self) -> bool:
        """True once `join` has ended."""
        return self._is_joined

    def helpers(self) -> list[Helper]:
        """Itself, with what it waits for, for views."""
        with self._lock:
            threads, error = list(self._threads), self._error
        alive = sum(thread.is_alive() for thread in threads)
        text = f"waits for {counted(alive, 'thread')}" if alive else "waits for no thread"
        if self._stop.is_set():
            text = f"has asked for a stop, {text}"
        if error is not None:
            text = f"{type(error).__name__}: {error}".partition("\n")[0]
        return [Helper("coordinator", "Coordinator", text, has_failed=error is not None)]

    def raise_requested_exception(self) -> None:
        """Raises the error that a thread has reported, if there is one."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error


class LooperThread(threading.Thread):
    """A thread that calls something again and again, until its coordinator stops.

    Either `target` is called, or a subclass has `run_loop`. What is raised ends all threads of the
    coordinator.

    Args:
        coord: The coordinator.
        timer_interval_secs: Seconds between the beginnings of two calls; None: one directly after
            another.
        target: Is called.
        args: Its positional arguments.
        kwargs: Its keyword arguments; only with a target.

    Raises:
        InvalidArgumentError: if `coord` is none, or there are arguments and no target.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise InvalidArgumentError(f"expected an fs.train.Coordinator, got {coord!r}")
        if target is None and (args or kwargs):
            raise InvalidArgumentError("expected a target with args and kwargs")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval_s = timer_interval_secs
        self._loop_target = target
        self._loop_args = tuple(args or ())
        self._loop_kwargs = dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls `target` until the coordinator stops; see the class."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def run(self) -> None:
        """Runs the loop: called by `start`."""
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._interval_s is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(max(0.0, due - time.monotonic())):
                    due += self._interval_s
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once before the loop."""

    def stop_loop(self) -> None:
        """Called once after the loop, not after an error."""

    def run_loop(self) -> None:
        """One round of the loop; by default it calls the target."""
        if self._loop_target is not None:
            self._loop_target(*self._loop_args, **self._loop_kwargs)


def _exception_of(ex: Failure) -> BaseException | None:
    """The exception in what `request_stop` was given."""
    if isinstance(ex, tuple):
        _, error, traceback = ex
        return error.with_traceback(traceback) if isinstance(error, BaseException) else None
    return ex


def _any_alive(threads: Iterable[threading.Thread]) -> bool:
    return any(thread.is_alive() for thread in threads)
