"""Interrupts of a cell: when they wait, and what they leave open.

An interrupt can come between any two instructions. While a run begins or ends it waits; where it
has come in a builder, what that had opened is closed before the graph is put back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

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

    Such a scope is a generator that waits in a frame of the error's traceback. It would be closed,
    and set the graph's scope, whenever somebody forgets the error. The user's frames stay as they
    are, for a debugger.
    """
    tb: TracebackType | None = error.__traceback__ if error is not None else None
    while tb is not None:
        if is_installed_file(tb.tb_frame.f_code.co_filename):
            with contextlib.suppress(RuntimeError):  # it still runs
                tb.tb_frame.clear()
        tb = tb.tb_next


__all__ = ["close_contexts", "deferred", "deferrers", "is_interrupt"]
