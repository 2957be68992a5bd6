"""`fs.train.CheckpointSaverHook`: writes checkpoints in the course of a training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flowscope.errors import GraphError, InvalidArgumentError
from flowscope.graph.default import get_default_graph
from flowscope.graph.messages.event_messages import SessionLog
from flowscope.graph.serialization.files import write_graph
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.runtime.session.session import Session
from flowscope.train.events.summary_writer import FileWriterCache
from flowscope.train.session.hooks.run_hook import SessionRunContext, SessionRunValues
from flowscope.train.session.hooks.stepping import GlobalStepHook
from flowscope.train.session.hooks.timing import timer_of
from flowscope.train.session.scaffold import Scaffold

if TYPE_CHECKING:
    from flowscope.train.input.coordinator import Coordinator

__all__ = ["CheckpointSaverHook", "CheckpointSaverListener"]


class CheckpointSaverListener:
    """Base class of listeners, which are called around each checkpoint.

    All methods may be left out.
    """

    def begin(self) -> None:
        """Called once, while the graph may still be extended."""

    def before_save(self, session: Session, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Session, global_step_value: int) -> bool | None:
        """Called after a checkpoint was written; True asks for the end of the training."""
        return None

    def end(self, session: Session, global_step_value: int) -> None:
        """Called at the end, after the last checkpoint."""


class CheckpointSaverHook(GlobalStepHook):
    """Writes a checkpoint when a session is new, then every so often, and at the end.

    Args:
        checkpoint_dir: The folder.
        save_secs: Seconds between two checkpoints.
        save_steps: Global steps between two checkpoints.
        saver: Writes; by default the scaffold's, or the one in the collection `SAVERS`.
        checkpoint_basename: What the files' names begin with.
        scaffold: Has the saver.
        listeners: Called around each checkpoint, in this order.
        save_graph_def: True: the graph is written beside each checkpoint.

    Raises:
        InvalidArgumentError: if not exactly one of `save_secs` and `save_steps` is given, or both
            `saver` and `scaffold`.
        GraphError: where the session begins, if there is no global step or no saver.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Scaffold | None = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise InvalidArgumentError("expected one of saver and scaffold, got both")
        self._folder = checkpoint_dir
        self._prefix = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = timer_of("save_{}", save_secs, save_steps)
        self._saver = saver
        self._scaffold = scaffold
        self._listeners = list(listeners or ())
        self._save_graph_def = save_graph_def

    def begin(self) -> None:
        """Finds what it needs in the graph."""
        super().begin()
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Writes the graph, and a checkpoint of what the session begins with."""
        if self._save_graph_def:
            write_graph(get_default_graph(), self._folder, "graph.pbtxt")
        FileWriterCache.get(self._folder).add_graph(session.graph)
        self._timer.reset()
        self._save(session, self._exact_step(session))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes a checkpoint if it is due."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = self._exact_step(run_context.session)
        if self._timer.should_trigger_for_step(step) and self._save(run_context.session, step):
            run_context.request_stop()

    def end(self, session: Session) -> None:
        """Writes a last checkpoint, unless there is one of this global step."""
        step = self._exact_step(session)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Session, step: int) -> bool:
        """Writes a checkpoint; True if a listener asks for the end."""
        for listener in self._listeners:
            listener.before_save(session, step)
        self._found_saver().save(session, self._prefix, step, write_meta_graph=self._save_graph_def)
        self._timer.update_last_triggered_step(step)
        log = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._prefix)
        FileWriterCache.get(self._folder).add_session_log(log, step)
        asked = [listener.after_save(session, step) for listener in self._listeners]
        return any(asked)

    def _found_saver(self) -> Any:
        if self._saver is None:
            if self._scaffold is not None:
                self._saver = self._scaffold.saver
            else:
                found = get_default_graph().get_collection(GraphKeys.SAVERS)
                if len(found) > 1:
                    raise GraphError(
                        f"expected one saver in the collection SAVERS, got {len(found)}: give "
                        "CheckpointSaverHook(saver=...)"
                    )
                self._saver = found[0] if found else None
        if self._saver is None:
            raise GraphError("CheckpointSaverHook has no saver: the graph has no variables to save")
        return self._saver
