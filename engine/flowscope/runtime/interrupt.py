"""SIGINT while a step runs on the main thread: the step ends at its next safepoint.

A handler is put in front of the one that is there (Python's, or the notebook kernel's, which sets
its own anew for each cell). It raises the gates of the steps in flight; without one it passes the
signal on.

Where a cell of a notebook begins and ends, an interrupt waits: `Deferred`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

from flowscope.graph.cells.interrupts import deferrers
from flowscope.runtime.gate import MAIN_THREAD, Gate

_previous: Callable[[int, Any], Any] | None = None
#: Gates of the steps that run on the main thread, innermost last.
_gates: list[Gate] = []


def _on_sigint(signum: int, frame: Any) -> None:
    if _gates:
        for gate in _gates:
            gate.request("interrupt")
    elif _previous is not None:
        _previous(signum, frame)


def enter(gate: Gate) -> bool:
    """Notes that a step starts on this thread; returns whether `leave` must be called."""
    global _previous
    if threading.get_ident() != MAIN_THREAD:
        return False
    handler = signal.getsignal(signal.SIGINT)
    if handler is not _on_sigint:
        if not callable(handler):
            return False
        _previous = handler
        signal.signal(signal.SIGINT, _on_sigint)
    _gates.append(gate)
    return True


def leave() -> None:
    """Notes that the step on the main thread has ended."""
    _gates.pop()


class Deferred:
    """A `with` block in which SIGINT waits: its handler is called when the block has ended.

    Only the main thread gets signals, so on others nothing has to wait.
    """

    __slots__ = ("_came", "_handler")

    def __init__(self) -> None:
        self._handler: Any = None
        self._came: list[tuple[int, Any]] = []

    def __enter__(self) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if threading.get_ident() == MAIN_THREAD and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def _note(self, signum: int, frame: Any) -> None:
        self._came.append((signum, frame))

    def __exit__(self, *_: object) -> None:
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        if self._came:
            self._handler(*self._came[0])


deferrers.append(Deferred)
