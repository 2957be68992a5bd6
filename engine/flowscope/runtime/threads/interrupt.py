"""Signals while a step runs on the main thread: their handlers run where the step can end.

Python runs a signal's handler between any two instructions of the main thread. One that raises -
KeyboardInterrupt, or a timeout by `signal.alarm` - would end a step in the middle of an update, or
with a lock held. So each handler of the program's gets one in front of it, which puts the signal
off to the step's next safepoint or its end, and raises the gate for that. There the handler runs
outside of all locks, and may raise. Between steps, and while a function of the user's runs for a
step, it runs at once.

Where a cell of a notebook begins and ends, signals wait too: `Deferred`.

A handler that is set anew - the notebook kernel does so for each cell - is found as the next step
starts.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from flowscope.cells.interrupts import deferrers

#: The thread that gets signals.
MAIN_THREAD = threading.main_thread().ident

#: Those that programs handle; `signal.getsignal` would take ten times as long.
_SIGNALS = tuple(
    int(getattr(signal, name))
    for name in (
        "SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGPROF",
        "SIGBREAK",
    )
    if hasattr(signal, name)
)  # fmt: skip

_handler_of: Callable[[int], Any] = _signal.getsignal


class Listener(Protocol):
    """What is told that a signal waits for it."""

    def signalled(self) -> None:
        """Has its step call `handle` at its next safepoint."""

    def ended(self) -> None:
        """Forgets that signals wait: they are handled now that it has ended."""


#: What the main thread is in, from the outermost: steps, and None for a function of the user's.
_around: list[Listener | None] = []
#: Signals that wait: (handler, signal, frame).
_waiting: deque[tuple[Callable[[int, Any], Any], int, Any]] = deque()
#: What a handler has raised in the function of the user's that runs.
_raised: Exception | None = None
#: The handlers that there were when the last step started.
_known: tuple[Any, ...] = ()


class HandlerError(BaseException):
    """Carries what a handler has raised through a step, which would take it for a kernel's.

    Attributes:
        error: What it has raised.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _PutOff:
    """Stands before a handler."""

    __slots__ = ("_handler",)

    def __init__(self, handler: Callable[[int, Any], Any]) -> None:
        self._handler = handler

    def __call__(self, signum: int, frame: Any) -> None:
        step = _around[-1] if _around else None
        if step is None and _around:
            _run_inside(self._handler, signum, frame)
        elif step is None:
            self._handler(signum, frame)
        else:
            _waiting.append((self._handler, signum, frame))
            step.signalled()


def enter(step: Listener) -> None:
    """Notes that a step starts; to be called on the main thread."""
    if tuple(map(_handler_of, _SIGNALS)) != _known:
        _stand_before()
    _around.append(step)


def leave(failed: Callable[[BaseException], None] | None = None) -> None:
    """Notes that the step has ended; handles the signals that have waited for that.

    Args:
        failed: Called where a handler raises: nobody gets what the step has computed.
    """
    listener = _around.pop()
    if not _waiting:
        return
    if listener is not None:
        listener.ended()
    step = _around[-1] if _around else None
    if step is not None:
        step.signalled()
        return
    try:
        handle()
    except BaseException as e:
        if failed is not None:
            failed(HandlerError(e) if isinstance(e, Exception) else e)
        raise


def is_waiting() -> bool:
    """Whether a signal waits for its handler."""
    return bool(_waiting)


def handle() -> None:
    """Runs the handlers of the signals that wait; raises what they raise."""
    while _waiting:
        handler, signum, frame = _waiting.popleft()
        handler(signum, frame)


def heed() -> None:
    """Runs the handlers of the signals that wait for a step.

    Raises:
        HandlerError: if a handler raises an exception that is no KeyboardInterrupt or the like.
    """
    try:
        handle()
    except Exception as e:
        raise HandlerError(e) from None


def call(function: Callable[[], Any]) -> Any:
    """Calls a function of the user's, during which signals are handled at once.

    Args:
        function: What it raises is turned into another error, whose cause is the first.

    Raises:
        HandlerError: if a handler has raised what has ended the function.
    """
    global _raised
    depth = len(_around)
    try:
        _around.append(None)
        heed()
        return function()
    except Exception as e:
        if e.__cause__ is not None and e.__cause__ is _raised:
            raise HandlerError(_raised) from None
        raise
    finally:
        _raised = None
        del _around[depth:]


def _run_inside(handler: Callable[[int, Any], Any], signum: int, frame: Any) -> None:
    """Runs a handler in a function of the user's, and notes what it raises."""
    global _raised
    try:
        handler(signum, frame)
    except Exception as e:
        _raised = e
        raise


class Deferred:
    """A `with` block in which signals wait: their handlers run when the block has ended.

    Only the main thread gets signals, so on others nothing has to wait.
    """

    __slots__ = ("_is_main",)

    def __init__(self) -> None:
        self._is_main = threading.get_ident() == MAIN_THREAD

    def __enter__(self) -> None:
        if self._is_main:
            enter(self)

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            leave()

    def signalled(self) -> None:
        """Does nothing: they are handled at the end."""

    def ended(self) -> None:
        """Does nothing."""


def _stand_before() -> None:
    global _known
    for signum in _SIGNALS:
        handler = _handler_of(signum)
        if callable(handler) and not isinstance(handler, _PutOff):
            signal.signal(signum, _PutOff(handler))
    _known = tuple(map(_handler_of, _SIGNALS))


deferrers.append(Deferred)

__all__ = [
    "MAIN_THREAD",
    "Deferred",
    "HandlerError",
    "Listener",
    "call",
    "enter",
    "handle",
    "heed",
    "is_waiting",
    "leave",
]
