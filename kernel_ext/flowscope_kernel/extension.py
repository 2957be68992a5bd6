"""What `%load_ext flowscope` does, and undoes."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from flowscope import cells
from flowscope.cells.interrupts import deferred
from flowscope.errors import OpError
from flowscope.graph.origins import origin
from flowscope.live.watchers.bus import notebook
from flowscope.runtime.session import engine
from flowscope.runtime.threads import blas_kernels
from flowscope_kernel.magics import FlowscopeMagics
from flowscope_kernel.tracebacks import users_lines
from flowscope_widgets import panel


def _tell_of_kernels() -> None:
    """Says what would make products quicker, where it is too late to do it for the user."""
    if better := blas_kernels.better_choice():
        print(
            "flowscope: matrix products would be quicker with the kernel "
            '"Python 3 (flowscope)", or where the environment has '
            f"{blas_kernels.VARIABLE}={better} before Python starts (see python -m flowscope)."
        )


#: Stands for the facts about the cell that loads the extension.
_LOADING = object()


class Extension:
    """The extension of one IPython shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        #: IPython's facts about the cell that is being built; None where it has no identity.
        self._building: Any = None
        self._magics = FlowscopeMagics(shell)

    def load(self) -> None:
        """Hooks into the shell and the engine."""
        origin.cell_of = self._cell_of
        # The cell that loads the extension is running.
        notebook.cell_running = True
        notebook.names = lambda: self._shell.user_ns
        for name, callback in self._callbacks():
            self._shell.events.register(name, callback)
        self._shell.set_custom_exc((OpError,), self._show_error)
        self._shell.register_magics(self._magics)
        panel.serve()
        _tell_of_kernels()
        parent: dict[str, Any] = getattr(self._shell, "get_parent", dict)() or {}
        self._begin(parent.get("metadata", {}).get("cellId"), _LOADING)

    def unload(self) -> None:
        """Takes the hooks away."""
        origin.cell_of = lambda filename: None
        notebook.cell_running = None
        notebook.names = None
        cells.notebook.end()
        for name, callback in self._callbacks():
            self._shell.events.unregister(name, callback)
        self._shell.set_custom_exc((), None)
        self._magics.unregister()

    def _callbacks(self) -> list[tuple[str, Any]]:
        return [
            ("pre_run_cell", self._before_cell),
            ("pre_run_cell", self._before_cell_again),
            ("post_run_cell", self._after_cell),
        ]

    def _cell_of(self, filename: str) -> int | None:
        number = getattr(self._shell.compile, "_filename_map", {}).get(filename)
        return number if isinstance(number, int) else None

    def _before_cell(self, info: Any) -> None:
        with deferred():
            # Code that a cell runs as a cell belongs to that cell.
            if self._building is info or self._cells_on_stack() > 1:
                return
            if self._building is not None:  # an interrupt has kept us from hearing of its end
                self._end(self._shell.last_execution_result)
            notebook.cell_running = True
            self._begin(getattr(info, "cell_id", None), info)

    def _before_cell_again(self, info: Any) -> None:
        """Does it where an interrupt has come first: IPython shows that and runs the cell."""
        self._before_cell(info)

    def _begin(self, identity: str | None, info: Any) -> None:
        if identity is not None:
            self._building = info
            cells.notebook.begin(identity, lambda: self._shell.user_ns)

    def _after_cell(self, result: Any) -> None:
        with deferred():
            if self._cells_on_stack() > 0:
                return
            if self._building is not None:
                self._end(result)
            notebook.cell_running = False
            for session in list(engine.current().sessions):
                session.gate.clear_stop()

    def _cells_on_stack(self) -> int:
        """Returns how many cells are being run: one that runs code as a cell is not the only one.

        They are not counted as they come and go: an interrupt can come between the two.
        """
        code = type(self._shell).run_cell_async.__code__
        frame: FrameType | None = sys._getframe(1)
        count = 0
        while frame is not None:
            count += frame.f_code is code
            frame = frame.f_back
        return count

    def _end(self, result: Any) -> None:
        """Ends the cell that is being built.

        Args:
            result: What IPython says of it. Where it says nothing, or speaks of another cell, an
                interrupt came so late that nothing is known.
        """
        building, self._building = self._building, None
        error: BaseException | None = KeyboardInterrupt()
        number = None
        if result is not None and _is_of(result, building):
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


def _is_of(result: Any, building: Any) -> bool:
    """Whether a result is that of a cell; after an interrupt IPython may make new facts of it."""
    info = result.info
    if building is _LOADING or info is building:
        return True
    return info is not None and info.cell_id == building.cell_id


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
