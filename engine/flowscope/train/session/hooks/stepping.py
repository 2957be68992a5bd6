"""The global step as hooks read it: stale in the run itself, exact where a hook is due."""

from __future__ import annotations

from typing import Any

from flowscope.errors import GraphError
from flowscope.train.optimizers.global_step import get_global_step
from flowscope.train.session.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook


def step_of_graph(hook: str) -> Any:
    """The global step of the default graph.

    Raises:
        GraphError: if it has none; the error names the hook.
    """
    step = get_global_step()
    if step is None:
        raise GraphError(
            f"{hook} counts by the global step, and the graph has none: call "
            "fs.train.get_or_create_global_step(), and give it to minimize(global_step=...)"
        )
    return step


class GlobalStepHook(SessionRunHook):
    """Base of hooks that fetch the global step in each run.

    A run reads it before its own update: `_next_step` counts that update in, and `_exact_step`
    asks the session once more, for programs that count by other numbers than one.
    """

    _global_step: Any = None

    def begin(self) -> None:
        """Finds what it needs in the graph."""
        self._global_step = step_of_graph(type(self).__name__)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for what it needs of a run."""
        return SessionRunArgs(self._global_step)

    def _exact_step(self, session: Any) -> int:
        return int(session.run(self._global_step))
