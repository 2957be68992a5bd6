"""Where a view is displayed: shown once per cell, and its saved picture kept up to date.

What a notebook file holds of a view is drawn at the end of the cell that displays it, so that the
live view need not wait, and anew at the end of a cell that has changed the graph. It is handed to
the displays, which show the live view and take no notice. A graph whose picture takes long to draw
keeps its first one.
"""

from __future__ import annotations

import time
import uuid
import weakref
from typing import Any

from IPython import get_ipython

from flowscope_widgets import picture

#: Seconds that a picture may take for it to be drawn anew at the end of cells.
QUICK_S = 0.3

#: The displays of all views that are there, and the shells that tell when a cell ends.
_all: weakref.WeakSet[Displays] = weakref.WeakSet()
_shells: weakref.WeakSet[Any] = weakref.WeakSet()


class Displays:
    """The displays of one view.

    Args:
        view: The `GraphView`.
    """

    def __init__(self, view: Any) -> None:
        self._view = weakref.ref(view)
        self._ids: list[str] = []
        #: The graph's version that the displays hold a picture of, and how long that took.
        self._drawn = -1
        self._took_s = 0.0
        #: The cell in which `fs.show()` has displayed the view: its result is not shown again.
        self._shown_in: int | None = None

    def show(self, is_result: bool = True) -> None:
        """Displays the view.

        Args:
            is_result: Whether IPython asks for it. What it asks for as the result of the cell that
                has displayed the view anyway is not displayed twice.
        """
        shell = get_ipython()
        if shell is None:
            return
        cell = shell.execution_count
        if is_result and self._shown_in == cell:
            self._shown_in = None
            return
        self._shown_in = None if is_result else cell
        self._ids.append(uuid.uuid4().hex)
        self._publish(shell, self._ids[-1:], is_update=False)
        self._drawn = -1
        _watch(shell)
        _all.add(self)

    def refresh(self) -> None:
        """Hands a new picture to the displays if the graph is another than they hold."""
        view, shell = self._view(), get_ipython()
        is_behind = view is not None and view.graph.version != self._drawn
        is_quick = self._drawn < 0 or self._took_s <= QUICK_S
        if is_behind and self._ids and is_quick and shell is not None:
            self._publish(shell, self._ids, is_update=True)

    def close(self) -> None:
        """Forgets the displays."""
        self._ids = []
        _all.discard(self)

    def _publish(self, shell: Any, ids: list[str], is_update: bool) -> None:
        view = self._view()
        if view is None:
            return
        if is_update:
            picture.start()  # what that takes says nothing about the graph's picture
        start_s = time.perf_counter()
        self._drawn = view.graph.version
        data, metadata = view.bundle(is_drawn=is_update)
        if is_update:
            self._took_s = time.perf_counter() - start_s
        for one in ids if data else ():
            shell.display_pub.publish(
                data, metadata, transient={"display_id": one}, update=is_update
            )


def _watch(shell: Any) -> None:
    if shell not in _shells:
        _shells.add(shell)
        shell.events.register("post_run_cell", _at_end_of_cell)


def _at_end_of_cell(result: Any = None) -> None:
    del result
    for displays in list(_all):
        displays.refresh()


__all__ = ["Displays"]
