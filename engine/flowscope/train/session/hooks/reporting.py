"""Hooks that tell how a training goes: by messages and summaries.

Messages go to Python's logger "flowscope" at the level INFO.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.default import get_default_graph
from flowscope.graph.messages.event_messages import SessionLog, Summary
from flowscope.graph.operation import Operation, Tensor
from flowscope.runtime.session.session import Session
from flowscope.train.events.summary_writer import FileWriter, FileWriterCache
from flowscope.train.session.hooks.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowscope.train.session.hooks.stepping import GlobalStepHook
from flowscope.train.session.hooks.timing import timer_of
from flowscope.train.session.scaffold import Scaffold

if TYPE_CHECKING:
    from flowscope.train.input.coordinator import Coordinator

__all__ = ["LoggingTensorHook", "StepCounterHook", "SummarySaverHook"]

_LOGGER = logging.getLogger("flowscope")


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors: every so many runs or seconds, or at the end.

    The first run is logged.

    Args:
        tensors: Tensors or their names; or a dict, whose keys stand in the message.
        every_n_iter: Runs between two messages.
        every_n_secs: Seconds between two messages.
        at_end: True: the values are also logged at the end, by a step of their own.
        formatter: Makes the message of a dict of values; by default "loss = 0.5, y = 2 (1.2 sec)".

    Raises:
        InvalidArgumentError: if both `every_n_iter` and `every_n_secs` are given, or neither and
            not `at_end`; where the session begins, for a name of several tensors or of none.
    """

    def __init__(
        self,
        tensors: Mapping[str, Any] | Iterable[Any],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        self._timer = None if only_at_end else timer_of("every_n_{}", every_n_secs, every_n_iter)
        self._at_end = at_end
        self._formatter = formatter
        given = tensors.items() if isinstance(tensors, Mapping) else [(t, t) for t in tensors]
        self._given = [(t if isinstance(t, str) else t.name, tensor) for t, tensor in given]
        self._tensors: dict[str, Tensor] = {}
        self._runs = 0
        self._is_due = False

    def begin(self) -> None:
        """Finds what it needs in the graph."""
        if self._timer is not None:
            self._timer.reset()
        self._runs = 0
        self._tensors = {tag: _tensor_of(tensor) for tag, tensor in self._given}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for what it needs of a run."""
        timer = self._timer
        self._is_due = timer is not None and timer.should_trigger_for_step(self._runs)
        return SessionRunArgs(self._tensors) if self._is_due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Tells it if it is due."""
        if self._is_due:
            self._log(run_values.results)
        self._runs += 1

    def end(self, session: Session) -> None:
        """Tells what is told at the end."""
        if self._at_end:
            self._log(session.run(self._tensors))

    def _log(self, values: dict[Any, Any]) -> None:
        timer = self._timer
        elapsed = None if timer is None else timer.update_last_triggered_step(self._runs)[0]
        if self._formatter is not None:
            _LOGGER.info("%s", self._formatter(values))
            return
        told = ", ".join([f"{tag} = {values[tag]}" for tag in self._tensors])
        _LOGGER.info("%s", told if elapsed is None else f"{told} ({elapsed:.3f} sec)")


class StepCounterHook(GlobalStepHook):
    """Logs global steps a second, and writes them as the summary "global_step/sec".

    Args:
        every_n_steps: Global steps between two figures.
        every_n_secs: Seconds between two figures; give `every_n_steps=None` with it.
        output_dir: A folder in which the summary is written.
        summary_writer: Writes it, in place of a writer of `output_dir`.

    Raises:
        InvalidArgumentError: if not exactly one of the first two is given.
        GraphError: where the session begins, if there is no global step.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: FileWriter | None = None,
    ) -> None:
        self._timer = timer_of("every_n_{}", every_n_secs, every_n_steps)
        self._folder = output_dir
        self._writer = summary_writer

    def begin(self) -> None:
        """Finds what it needs in the graph."""
        super().begin()
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)
        self._tag = f"{self._global_step.op.name}/sec"

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Begins anew with a session."""
        self._timer.reset()  # the pause in which a session was lost is no part of the rate

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Tells it if it is due."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = self._exact_step(run_context.session)
        if not self._timer.should_trigger_for_step(step):
            return
        elapsed_s, steps = self._timer.update_last_triggered_step(step)
        if elapsed_s and steps is not None:
            rate = steps / elapsed_s
            _LOGGER.info("%s: %g", self._tag, rate)
            if self._writer is not None:
                value = Summary.Value(tag=self._tag, simple_value=rate)
                self._writer.add_summary(Summary(value=[value]), step)


class SummarySaverHook(GlobalStepHook):
    """Writes summaries every so often, from the first run on.

    Args:
        save_steps: Global steps between two summaries.
        save_secs: Seconds between two summaries.
        output_dir: The folder.
        summary_writer: Writes, in place of a writer of `output_dir`.
        scaffold: Its `summary_op` is run.
        summary_op: Is run in place of that: a serialized summary, or a list of them.

    Raises:
        InvalidArgumentError: if not exactly one of the first two is given, or of the last two.
        GraphError: where the session begins, if there is no global step.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: FileWriter | None = None,
        scaffold: Scaffold | None = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            given = "neither" if scaffold is None else "both"
            raise InvalidArgumentError(f"expected one of scaffold and summary_op, got {given}")
        self._timer = timer_of("save_{}", save_secs, save_steps)
        self._folder = output_dir
        self._writer = summary_writer
        self._scaffold = scaffold
        self._summary_op = summary_op
        self._next_step: int | None = None
        self._is_due = False

    def begin(self) -> None:
        """Finds what it needs in the graph."""
        super().begin()
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Begins anew with a session."""
        self._next_step = None
        self._timer.reset()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for what it needs of a run."""
        step = self._next_step
        self._is_due = step is None or self._timer.should_trigger_for_step(step)
        wanted = self._summaries() if self._is_due else []
        return SessionRunArgs([self._global_step, wanted])

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Tells it if it is due."""
        stale, summaries = run_values.results
        step = int(stale) + 1
        if self._is_due:
            step = self._exact_step(run_context.session)
            self._timer.update_last_triggered_step(step)
            if self._writer is not None:
                if self._next_step is None:
                    self._writer.add_session_log(SessionLog(status=SessionLog.START), step)
                for summary in summaries:
                    self._writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Session) -> None:
        """Tells what is told at the end."""
        if self._writer is not None:
            self._writer.flush()

    def _summaries(self) -> list[Any]:
        found = self._summary_op
        if found is None and self._scaffold is not None:
            found = self._scaffold.summary_op
        if found is None:
            return []
        return list(found) if isinstance(found, list | tuple) else [found]


def _tensor_of(given: Any) -> Tensor:
    """The tensor of a tensor, a variable or a name; "x" is "x:0" if x has one output."""
    graph = get_default_graph()
    if not isinstance(given, str):
        return graph.as_graph_element(given, allow_operation=False)  # type: ignore[no-any-return]
    if ":" in given:
        return graph.get_tensor_by_name(given)
    op: Operation = graph.get_operation_by_name(given)
    if len(op.outputs) != 1:
        raise InvalidArgumentError(
            f'expected the name of one tensor, got "{given}", an operation with {len(op.outputs)} '
            f'outputs: say which one, as in "{given}:0"'
        )
    return op.outputs[0]
