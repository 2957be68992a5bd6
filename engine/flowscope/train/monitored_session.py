"""Monitored sessions: training that goes on, from its last checkpoint, when workers were lost."""

from __future__ import annotations

import math
import os
import time
from typing import Any

from flowscope.errors import (
    AbortedError,
    FailedPreconditionError,
    GraphError,
    OutOfRangeError,
    UnavailableError,
)
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.unsupported import refuse
from flowscope.runtime.config import ConfigProto, RunMetadata, RunOptions
from flowscope.runtime.remote import Target
from flowscope.runtime.session import Session
from flowscope.train.global_step import get_global_step
from flowscope.train.scaffold import Scaffold
from flowscope.train.session_manager import MAX_WAIT_SECS, SessionManager

#: Seconds for which sessions that are no chief's wait for the model.
_WORKER_WAIT_SECS = 1800.0
#: After a failure that comes again, a session is made so many seconds later.
_AGAIN_S = 0.1
#: So often sessions that are no chief's look whether the model is ready.
_LOOK_S = 0.5
_SAVE_SECS = 600.0
_CHECKPOINT = "model.ckpt"


class SessionCreator:
    """Makes sessions for a `MonitoredSession`: again, after one was lost.

    Attributes:
        max_wait_secs: How long whoever uses it goes on to make sessions, while none works.
    """

    max_wait_secs: float = MAX_WAIT_SECS

    def create_session(self) -> Session:
        """Returns a new session that is ready."""
        raise NotImplementedError("a SessionCreator needs the method create_session()")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions that are restored from the latest checkpoint, or initialised.

    Args:
        scaffold: The pieces; default ones if None.
        master: "" for this process; else a cluster, or its `target`.
        config: The sessions' options.
        checkpoint_dir: A folder, whose latest checkpoint is restored.
        checkpoint_filename_with_path: A checkpoint's prefix, instead of a folder.
        max_wait_secs: So long lost workers are waited for.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str | Target = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        *,
        max_wait_secs: float = MAX_WAIT_SECS,
    ) -> None:
        self.scaffold = scaffold or Scaffold()
        self.max_wait_secs = max_wait_secs
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint = checkpoint_filename_with_path
        self._manager: SessionManager | None = None

    def create_session(self) -> Session:
        """Returns a new session that is ready; see `SessionManager.prepare_session` for errors."""
        self._manager = self._manager or _manager_of(self.scaffold)
        return self._manager.prepare_session(
            self._master,
            init_op=self.scaffold.init_op,
            saver=self.scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint,
            max_wait_secs=self.max_wait_secs,
            config=self._config,
            init_feed_dict=self.scaffold.init_feed_dict,
            init_fn=self.scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions that wait until a chief's session has made the model ready.

    They share what lies in named containers (`fs.container`).

    Args:
        scaffold: The pieces; default ones if None.
        master: "" for this process; else a cluster, or its `target`.
        config: The sessions' options.
        max_wait_secs: How long they wait.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str | Target = "",
        config: ConfigProto | None = None,
        max_wait_secs: float = _WORKER_WAIT_SECS,
    ) -> None:
        self.scaffold = scaffold or Scaffold()
        self.max_wait_secs = max_wait_secs
        self._master = master
        self._config = config
        self._manager: SessionManager | None = None

    def create_session(self) -> Session:
        """Returns a new session; see `SessionManager.wait_for_session` for errors."""
        self._manager = self._manager or _manager_of(self.scaffold)
        return self._manager.wait_for_session(self._master, self._config, self.max_wait_secs)


class MonitoredSession:
    """Runs steps, and goes on from the latest checkpoint when workers were lost.

        with fs.train.MonitoredTrainingSession(cluster, checkpoint_dir=folder) as sess:
            while not sess.should_stop():
                sess.run(train_op)

    A run that ends with AbortedError or UnavailableError is run again in a new session, which the
    creator has made ready. The graph is read-only. At the end of a `with`, OutOfRangeError and
    StopIteration say that there is no more input, and are no errors.

    Args:
        session_creator: Makes the sessions; a `ChiefSessionCreator` by default.
        hooks: There are none yet.
        stop_grace_period_secs: It starts no threads, so none are waited for.

    Attributes:
        graph: The graph.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Any = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        refuse("train.MonitoredSession", hooks=hooks)
        del stop_grace_period_secs
        self.graph: Graph = get_default_graph()
        self._creator = session_creator or ChiefSessionCreator()
        self._saving: _Checkpoints | None = None
        self._is_closed = False
        self._session: Session | None = None
        self._failing_since: float | None = None
        self._recovering(lambda session: None)

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs one step; see `fs.Session.run`. Makes a new session where workers were lost.

        Raises:
            GraphError: if it was closed.
            UnavailableError, DeadlineExceededError: if no session worked for the creator's
                `max_wait_secs`.
        """
        if self._is_closed:
            raise GraphError("the monitored session was closed: make a new one")
        saving = self._saving

        def step(session: Session) -> Any:
            found = session.run(fetches, feed_dict, options, run_metadata)
            if saving is not None:
                saving.after_run(session)
            return found

        return self._recovering(step)

    def should_stop(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    def close(self) -> None:
        """Writes a last checkpoint, where it writes any, and ends the session."""
        if not self._is_closed:
            self._is_closed = True
            try:
                if self._saving is not None:
                    self._recovering(self._saving.save)
            finally:
                self._drop()

    def __enter__(self) -> MonitoredSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        if kind is None or issubclass(kind, OutOfRangeError | StopIteration):
            self.close()
            return True
        self._is_closed = True
        self._drop()
        return False

    def _recovering(self, step: Any) -> Any:
        """Returns what a function does with the session; in a new one where it was lost."""
        while True:
            try:
                if self._session is None:
                    self._session = self._creator.create_session()
                    if self._saving is not None:
                        self._saving.begin(self._session)
                found = step(self._session)
            except (AbortedError, UnavailableError):
                self._give_up_late()
            except FailedPreconditionError:
                if self._session is None or not self._session.lost_tasks:
                    raise
                self._give_up_late()  # a worker has come back already, without values
            else:
                self._failing_since = None
                return found

    def _give_up_late(self) -> None:
        """Drops a session that was lost; raises if there was no other for too long."""
        self._drop()
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            return
        if now - self._failing_since > self._creator.max_wait_secs:
            raise  # what was caught
        time.sleep(_AGAIN_S)

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


class _Checkpoints:
    """Writes checkpoints in the course of training.

    Args:
        folder: Where.
        saver: Writes.
        step: The global step.
        every_secs, every_steps: How often; one of them is None.
        writes_graph: Whether the graph is written beside.
    """

    def __init__(
        self,
        folder: str,
        saver: Any,
        step: Any,
        every_secs: float | None,
        every_steps: int | None,
        writes_graph: bool,
    ) -> None:
        self._prefix = os.path.join(folder, _CHECKPOINT)
        self._saver = saver
        self._step = step
        self._every_secs = math.inf if every_secs is None else every_secs
        self._every_steps = every_steps
        self._writes_graph = writes_graph
        self._saved_at = 0.0
        self._saved_step = -1

    def begin(self, session: Session) -> None:
        """Writes what a new session begins with."""
        self._saved_step = -1
        self.save(session)

    def after_run(self, session: Session) -> None:
        """Writes a checkpoint if it is time."""
        if self._every_steps is not None:
            is_time = int(session.run(self._step)) - self._saved_step >= self._every_steps
        else:
            is_time = time.monotonic() - self._saved_at >= self._every_secs
        if is_time:
            self.save(session)

    def save(self, session: Session) -> None:
        """Writes a checkpoint, unless there is one of this global step."""
        step = int(session.run(self._step))
        if step != self._saved_step:
            self._saver.save(session, self._prefix, step, write_meta_graph=self._writes_graph)
            self._saved_step = step
        self._saved_at = time.monotonic()


def MonitoredTrainingSession(
    master: str | Target = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: float | None = None,
    save_summaries_steps: int | None = None,
    save_summaries_secs: float | None = None,
    config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = None,
    max_wait_secs: float = MAX_WAIT_SECS,
    save_checkpoint_steps: int | None = None,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """Returns a `MonitoredSession` that writes checkpoints, and goes on from the latest one.

    Unlike TensorFlow's it writes neither summaries nor step counts.

    Args:
        master: "" for this process; else a cluster, or its `target`.
        is_chief: Whether it restores or initialises; others wait for the chief's.
        checkpoint_dir: Where checkpoints are written, and where the latest is restored from.
        scaffold: The pieces; default ones if None.
        save_checkpoint_secs: So often a checkpoint is written: every 600 s, where neither this nor
            `save_checkpoint_steps` is given; it goes before that.
        save_checkpoint_steps: So many global steps lie between two checkpoints.
        config: The session's options.
        max_wait_secs: So long lost workers, or the chief, are waited for.
        save_graph_def: Whether the graph is written beside each checkpoint.

    Raises:
        GraphError: if checkpoints are to be written and the graph has no global step.
        UnimplementedError: for hooks, summaries and step counts.
    """
    refuse(
        "train.MonitoredTrainingSession",
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_summaries_steps=save_summaries_steps,
        save_summaries_secs=save_summaries_secs,
        log_step_count_steps=log_step_count_steps,
        summary_dir=summary_dir,
    )
    scaffold = scaffold or Scaffold()
    if not is_chief:
        other = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(other, None, stop_grace_period_secs)
    step = get_global_step()
    if checkpoint_dir is not None and step is None:
        raise GraphError(
            "checkpoints are numbered by the global step, and the graph has none: call "
            "fs.train.get_or_create_global_step(), and give it to minimize(global_step=...)"
        )
    chief = ChiefSessionCreator(
        scaffold, master, config, checkpoint_dir, max_wait_secs=max_wait_secs
    )
    session = MonitoredSession(chief, None, stop_grace_period_secs)
    if checkpoint_dir is not None:
        if save_checkpoint_secs is None and save_checkpoint_steps is None:
            save_checkpoint_secs = _SAVE_SECS
        steps = None if save_checkpoint_secs is not None else save_checkpoint_steps
        session._saving = _Checkpoints(
            checkpoint_dir, scaffold.saver, step, save_checkpoint_secs, steps, save_graph_def
        )
        session._recovering(session._saving.begin)
    return session


def _manager_of(scaffold: Scaffold) -> SessionManager:
    scaffold.finalize()
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
        recovery_wait_secs=_LOOK_S,
        local_init_feed_dict=scaffold.local_init_feed_dict,
    )


__all__ = [
    "ChiefSessionCreator",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "SessionCreator",
    "WorkerSessionCreator",
]
