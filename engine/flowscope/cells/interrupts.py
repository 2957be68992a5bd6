"""Interrupts of a cell: when they wait, and what they leave open.

An interrupt can come between any two instructions. While a run begins or ends it waits; where it
has come in a builder, what that had opened is closed before the graph is put back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType, TracebackType

from flowscope.cells.installed import is_installed_file
from flowscope.graph.providers import load

#: Makes what lets interrupts wait in a `with` block; the runtime, which knows signals, fills it.
deferrers: list[Callable[[], AbstractContextManager[None]]] = []


def deferred() -> AbstractContextManager[None]:
    """Returns a context manager in which interrupts wait: they come when the block has ended."""
    if not deferrers:
        load("deferrers")
    return deferrers[0]() if deferrers else contextlib.nullcontext()


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is none of the code's own: a KeyboardInterrupt, a cancelled task."""
    return error is not None and not isinstance(error, Exception)


def close_contexts(error: BaseException | None) -> None:
    """Closes scopes that an interrupt has left open between their beginning and their body.

    Such a scope is a generator that waits in a frame of the error's traceback, or of one that was
    being handled. It would be closed, and set the graph's scope, whenever somebody forgets the
    error. The user's frames stay as they are, for a debugger.
    """
    stack, seen, cleared = [error], set[int](), set[FrameType]()
    while stack:
        one = stack.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        stack += [one.__context__, one.__cause__]
        tb: TracebackType | None = one.__traceback__
        while tb is not None:
            frame: FrameType | None = tb.tb_frame
            while frame is not None and frame not in cleared:  # a handler's has who was interrupted
                cleared.add(frame)
                if is_installed_file(frame.f_code.co_filename):
                    _clear(frame)
                frame = frame.f_back
            tb = tb.tb_next


def _clear(frame: FrameType) -> None:
    """Lets a frame that has ended forget what it had."""
    with contextlib.suppress(RuntimeError):  # it still runs
        frame.clear()
        # Who has shown the error has made Python keep a second dict of it: asking renews that.
        _ = frame.f_locals


__all__ = ["close_contexts", "deferred", "deferrers", "is_interrupt"]
