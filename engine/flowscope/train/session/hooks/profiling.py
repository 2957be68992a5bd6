"""Hooks that feed runs, and that trace some of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.graph import providers
from flowscope.runtime.config import RunOptions, timelines
from flowscope.runtime.session.session import Session
from flowscope.train.session.hooks.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowscope.train.session.hooks.stepping import GlobalStepHook
from flowscope.train.session.hooks.timing import timer_of

if TYPE_CHECKING:
    from flowscope.train.input.coordinator import Coordinator

__all__ = ["FeedFnHook", "ProfilerHook"]


class FeedFnHook(SessionRunHook):
    """Feeds each run with what a function returns.

    Args:
        feed_fn: Called without arguments before each run; returns a dict of feeds.
    """

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for what it needs of a run."""
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


class ProfilerHook(GlobalStepHook):
    """Traces a run every so often, never the first, into files "timeline-<step>.json" for Chrome.

    Args:
        save_steps: Global steps between two traced runs.
        save_secs: Seconds between two traced runs.
        output_dir: The folder.
        show_dataflow: True: arrows lead from operations to those that use their results.
        show_memory: True: the memory of each operation's results is shown.

    Raises:
        InvalidArgumentError: if not exactly one of the first two is given.
        GraphError: where the session begins, if there is no global step.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._timer = timer_of("save_{}", save_secs, save_steps)
        self._path = os.path.join(output_dir, "timeline-{}.json")
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory
        self._next_step: int | None = None
        self._is_due = False

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Begins anew with a session."""
        self._next_step = None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for what it needs of a run."""
        step = self._next_step
        self._is_due = step is not None and self._timer.should_trigger_for_step(step)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._is_due else None
        return SessionRunArgs(self._global_step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes the trace of a traced run."""
        stale = int(run_values.results)
        step = stale + 1
        if self._next_step is None:
            self._timer.update_last_triggered_step(stale)
        if self._is_due:
            step = self._exact_step(run_context.session)
            self._timer.update_last_triggered_step(step)
            self._write(step, run_values.run_metadata.step_stats)
        self._next_step = step + 1

    def _write(self, step: int, step_stats: Any) -> None:
        os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
        providers.load("timelines")
        trace = timelines[0](step_stats).generate_chrome_trace_format(
            show_dataflow=self._show_dataflow, show_memory=self._show_memory
        )
        with open(self._path.format(step), "w", encoding="utf-8") as file:
            file.write(trace)
