"""What `%load_ext flowscope` does, and undoes."""

from __future__ import annotations

import sys
from typing import Any

from flowscope.errors import OpError
from flowscope.graph import cells, origin
from flowscope.live.bus import notebook
from flowscope.runtime.session import open_sessions
from flowscope_kernel.tracebacks import users_lines

#: Stands for the facts about the cell that loads the extension.
_LOADING = object()


class Extension:
    """The extension of one IPython shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        #: IPython's facts about the cell that is being built; None where it has no identity.
        self._building: Any = None

    def load(self) -> None:
        """Hooks into the shell and the engine."""
        origin.cell_of = self._cell_of
        # The cell that loads the extension is running.
        notebook.cell_running = True
        self._shell.events.register("pre_run_cell", self._before_cell)
        self._shell.events.register("post_run_cell", self._after_cell)
        self._shell.set_custom_exc((OpError,), self._show_error)
        parent: dict[str, Any] = getattr(self._shell, "get_parent", dict)() or {}
        self._begin(parent.get("metadata", {}).get("cellId"), _LOADING)

    def unload(self) -> None:
        """Takes the hooks away."""
        origin.cell_of = lambda filename: None
        notebook.cell_running = None
        cells.notebook.end()
        self._shell.events.unregister("pre_run_cell", self._before_cell)
        self._shell.events.unregister("post_run_cell", self._after_cell)
        self._shell.set_custom_exc((), None)

    def _cell_of(self, filename: str) -> int | None:
        number = getattr(self._shell.compile, "_filename_map", {}).get(filename)
        return number if isinstance(number, int) else None

    def _before_cell(self, info: Any) -> None:
        notebook.cell_running = True
        self._begin(getattr(info, "cell_id", None), info)

    def _begin(self, identity: str | None, info: Any) -> None:
        # Code that a cell runs as a cell has no identity: it belongs to the cell that runs it.
        if identity is not None:
            self._building = info
            cells.notebook.begin(identity, lambda: self._shell.user_ns)

    def _after_cell(self, result: Any) -> None:
        if self._building is _LOADING or self._building is getattr(result, "info", None):
            self._end(result)
        notebook.cell_running = False
        for session in list(open_sessions):
            session.gate.clear_stop()

    def _end(self, result: Any) -> None:
        if self._building is None:
            return
        self._building = None
        error = result.error_before_exec or result.error_in_exec
        number = None if result.execution_count is None else str(result.execution_count)
        for report in cells.notebook.end(error, number):
            sys.stdout.write(f"{report}\n")

    def _show_error(
        self, shell: Any, kind: type, error: BaseException, tb: Any, tb_offset: Any = None
    ) -> Any:
        del tb_offset
        # What it was raised from shows flowscope's own lines: it stays on the error, unseen.
        cause, suppress = error.__cause__, error.__suppress_context__
        error.__cause__, error.__suppress_context__ = None, True
        try:
            shown = shell.InteractiveTB.structured_traceback(
                kind, error, users_lines(tb), tb_offset=1
            )
            shell._showtraceback(kind, error, shown)
        finally:
            error.__cause__, error.__suppress_context__ = cause, suppress
        return shown


_loaded: dict[int, Extension] = {}


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext flowscope`."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = Extension(shell)
        _loaded[id(shell)].load()


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext flowscope`."""
    extension = _loaded.pop(id(shell), None)
    if extension is not None:
        extension.unload()
