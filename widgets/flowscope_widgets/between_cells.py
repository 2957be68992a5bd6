"""What a view asks for is done on the main thread, while no cell is running.

A view's messages come in a subshell's thread, at any time. What touches graph and session waits in
a queue here; the main thread's event loop takes it when no cell keeps it busy.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from IPython import get_ipython

from flowscope.live.watchers.bus import notebook
from flowscope_widgets.subshell import running_kernel

_waiting: deque[Callable[[], None]] = deque()
_told: weakref.WeakSet[Any] = weakref.WeakSet()
_shells: list[Any] = []


def ask(work: Callable[[], None]) -> None:
    """Does something between two cells; where there is no kernel, at once.

    Args:
        work: What is to be done; it tells of its own errors.
    """
    _waiting.append(work)
    _watch()
    _take_soon()


def tell_of_cells(listener: Any) -> None:
    """Calls the method `after_cell` of something, as long as it lives, when a cell has ended."""
    _told.add(listener)
    _watch()


def _watch() -> None:
    shell = get_ipython()
    if shell is not None and shell not in _shells:
        _shells.append(shell)
        shell.events.register("post_run_cell", _cell_ended)


def _cell_ended(result: Any = None) -> None:
    del result
    for listener in list(_told):
        listener.after_cell()
    if _waiting:
        _take_soon()


def _take_soon() -> None:
    kernel = running_kernel()
    if kernel is None:
        _take()
    else:
        kernel.io_loop.add_callback(_take)


def _take() -> None:
    """Does what waits, unless a cell that awaits something has let the event loop go on."""
    while _waiting and not notebook.cell_running:
        _waiting.popleft()()


__all__ = ["ask", "tell_of_cells"]
