"""Monitored sessions: training that goes on, from its last checkpoint, when workers were lost."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.errors import (
    AbortedError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
)
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.runtime.config import ConfigProto, RunMetadata, RunOptions
from flowscope.runtime.session.remote import SessionTarget
from flowscope.runtime.session.session import Session
from flowscope.train.optimizers.global_step import get_global_step
from flowscope.train.session.hooked_session import HookedSession
from flowscope.train.session.hooks.checkpoints import CheckpointSaverHook
from flowscope.train.session.hooks.reporting import StepCounterHook, SummarySaverHook
from flowscope.train.session.hooks.run_hook import SessionRunHook
from flowscope.train.session.scaffold import Scaffold
from flowscope.train.session.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from flowscope.train.session.session_manager import MAX_WAIT_SECS

#: After a failure that comes again, a session is made so many seconds later.
_AGAIN_S = 0.1
_SAVE_SECS = 600.0
_HOOK_METHODS = ("begin", "after_create_session", "before_run", "after_run", "end")


class _Default:
    """Stands for an argument that is not given, where None means never."""

    def __repr__(self) -> str:
        return "USE_DEFAULT"


USE_DEFAULT: Any = _Default()


class MonitoredSession:
    """Runs steps with hooks, and goes on from the latest checkpoint when workers were lost.

        with fs.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks) as sess:
            while not sess.should_stop():
                sess.run(train_op)

    Hooks are called in their order: `begin` before the graph is made read-only, then
    `after_create_session` with each new session, `before_run` and `after_run` with each run, `end`
    at the end, if there was no error. Threads of queue runners are started and ended with each
    session.

    A run that ends with AbortedError or UnavailableError is run again in a new session, which the
    creator has made ready. Until it is closed the graph is read-only. At the end of a `with`,
    OutOfRangeError and StopIteration say that there is no more input, and are no errors.

    Args:
        session_creator: Makes the sessions; a `ChiefSessionCreator` by default.
        hooks: `SessionRunHook`s.
        stop_grace_period_secs: So long threads are waited for when a session ends.

    Attributes:
        graph: The graph.
    """

    class StepContext:
        """What the function of `run_step_fn` is given.

        Attributes:
            session: The session, whose runs call no hooks.
        """

        def __init__(self, session: Session, run_with_hooks: Callable[..., Any]) -> None:
            self.session = session
            self._run_with_hooks = run_with_hooks

        def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
            """Runs a step as the monitored session's `run` does, hooks included."""
            return self._run_with_hooks(*args, **kwargs)

        def request_stop(self) -> None:
            """Ends the training: raises StopIteration, which a `with` block takes for its end."""
            raise StopIteration("step_fn has requested the iterations to stop.")

    _recovers = True

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._hooks = _checked_hooks(hooks)
        self.graph: Graph = get_default_graph()
        self._was_finalized = self.graph.finalized
        self._creator = session_creator or ChiefSessionCreator()
        self._grace_s = stop_grace_period_secs
        self._is_closed = False
        self._hooked: HookedSession | None = None
        self._failing_since: float | None = None
        for hook in self._hooks:
            hook.begin()
        try:
            self._recovering(lambda hooked: None)
        except BaseException:
            self._end()
            raise

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs one step; see `fs.Session.run`. Makes a new session where workers were lost.

        Raises:
            GraphError: if it was closed, its end was asked for, or a tensor is fed twice.
            UnavailableError, DeadlineExceededError: if no session worked for the creator's
                `max_wait_secs`.
        """
        self._check_open()
        return self._recovering(
            lambda hooked: hooked.run(fetches, feed_dict, options, run_metadata)
        )

    def run_step_fn(self, step_fn: Callable[[MonitoredSession.StepContext], Any]) -> Any:
        """Calls a function that runs steps with hooks, without, or several of them.

            def step_fn(step_context):
                a = step_context.session.run(fetches)          # without hooks
                return step_context.run_with_hooks(train_op)   # with hooks

            sess.run_step_fn(step_fn)

        It is called again where workers were lost.

        Args:
            step_fn: Called with a `StepContext`, in a parameter of the name `step_context`.

        Raises:
            InvalidArgumentError: if it has other parameters.
        """
        self._check_open()
        _check_step_fn(step_fn)
        context = self.StepContext
        return self._recovering(lambda hooked: step_fn(context(hooked.session, hooked.run)))

    def should_stop(self) -> bool:
        """True once it was closed, or a hook or a thread has asked for the end.

        Raises:
            Exception: what a thread has reported; a lost worker is no error, the next run recovers.
        """
        if self._is_closed or self._hooked is None:
            return self._is_closed
        try:
            self._hooked.coord.raise_requested_exception()
        except (AbortedError, UnavailableError):
            self._give_up_late()
            return False
        return self._hooked.should_stop

    def close(self) -> None:
        """Calls the hooks' `end` and ends the session.

        Raises:
            Exception: what a thread has reported.
        """
        self._close(with_hooks=True)

    def __enter__(self) -> MonitoredSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        if kind is None or issubclass(kind, OutOfRangeError | StopIteration):
            self._close(with_hooks=True)
            return True
        with contextlib.suppress(Exception):  # what has ended the block is told
            self._close(with_hooks=False)
        return False

    def _check_open(self) -> None:
        if self._is_closed:
            raise GraphError("the monitored session was closed: make a new one")

    def _close(self, with_hooks: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if with_hooks:
                for hook in self._hooks:
                    self._recovering(functools.partial(_end_of, hook))
        finally:
            self._end()

    def _end(self) -> None:
        try:
            self._drop()
        finally:
            if not self._was_finalized:
                self.graph._unsafe_unfinalize()

    def _recovering(self, step: Callable[[HookedSession], Any]) -> Any:
        """What a function does with the session; in a new one where it was lost."""
        while True:
            try:
                if self._hooked is None:
                    self._hooked = HookedSession(self._creator, self._hooks, self._grace_s)
                found = self._hooked.coordinated(step)
            except (AbortedError, UnavailableError):
                self._give_up_late()
            except FailedPreconditionError:
                if self._hooked is None or not self._hooked.session.lost_tasks:
                    raise
                self._give_up_late()  # a worker has come back already, without values
            else:
                self._failing_since = None
                return found

    def _give_up_late(self) -> None:
        """Drops a session that was lost; raises if there was no other for too long."""
        error = sys.exception()
        assert error is not None
        with contextlib.suppress(AbortedError, UnavailableError):  # its threads have met it, too
            self._drop()
        if not self._recovers:
            raise error
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            return
        if now - self._failing_since > self._creator.max_wait_secs:
            raise error
        time.sleep(_AGAIN_S)

    def _drop(self) -> None:
        hooked, self._hooked = self._hooked, None
        if hooked is not None:
            hooked.close()


class SingularMonitoredSession(MonitoredSession):
    """A monitored session that does not recover: what is lost is an error.

    Args:
        hooks: `SessionRunHook`s.
        scaffold: The pieces; default ones if None.
        master: "" for this process; else a cluster, or its `target`.
        config: The session's options.
        checkpoint_dir: A folder, whose latest checkpoint is restored.
        stop_grace_period_secs: So long threads are waited for when the session ends.
        checkpoint_filename_with_path: A checkpoint's prefix, instead of a folder.
    """

    _recovers = False

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str | SessionTarget = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, stop_grace_period_secs)

    def raw_session(self) -> Session:
        """The session behind; its runs call no hooks.

        Raises:
            GraphError: if it was closed.
        """
        self._check_open()
        assert self._hooked is not None
        return self._hooked.session


def MonitoredTrainingSession(
    master: str | SessionTarget = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = MAX_WAIT_SECS,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """Makes a `MonitoredSession` that writes checkpoints and summaries.

    It goes on from the latest checkpoint.

    Args:
        master: "" for this process; else a cluster, or its `target`.
        is_chief: True: it restores or initialises, and writes; others wait for the chief's.
        checkpoint_dir: Where checkpoints are written, and where the latest is restored from.
        scaffold: The pieces; default ones if None.
        hooks: `SessionRunHook`s, called after those that this function adds.
        chief_only_hooks: Hooks of the chief alone, called before all others.
        save_checkpoint_secs: Seconds between two checkpoints: 600 where neither this nor
            `save_checkpoint_steps` is given. None or 0 for both: none are written.
        save_summaries_steps: Global steps between two summaries: 100 where neither this nor
            `save_summaries_secs` is given. None or 0 for both: none are written.
        save_summaries_secs: Seconds between two summaries.
        config: The session's options.
        stop_grace_period_secs: So long threads are waited for when a session ends.
        log_step_count_steps: Global steps between two figures of steps a second; None or 0: none.
        max_wait_secs: So long lost workers, or the chief, are waited for.
        save_checkpoint_steps: Global steps between two checkpoints.
        summary_dir: Where summaries are written; `checkpoint_dir` by default.
        save_graph_def: True: the graph is written beside each checkpoint.

    Raises:
        GraphError: if something is written every so often and the graph has no global step.
        InvalidArgumentError: if both seconds and steps are given for one thing.
    """
    scaffold = scaffold or Scaffold()
    if not is_chief:
        other = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(other, hooks, stop_grace_period_secs)
    summaries = _every_so_often(save_summaries_secs, save_summaries_steps, (None, 100))
    checkpoints = _every_so_often(save_checkpoint_secs, save_checkpoint_steps, (_SAVE_SECS, None))
    added: list[SessionRunHook] = list(chief_only_hooks or ())
    folder = summary_dir or checkpoint_dir
    if folder and log_step_count_steps and get_global_step() is not None:
        added.append(StepCounterHook(log_step_count_steps, output_dir=folder))
    if folder and any(summaries) and get_global_step() is not None:
        secs, steps = summaries
        added.append(SummarySaverHook(steps, secs, output_dir=folder, scaffold=scaffold))
    if checkpoint_dir and any(checkpoints):
        secs, steps = checkpoints
        added.append(
            CheckpointSaverHook(
                checkpoint_dir, secs, steps, scaffold=scaffold, save_graph_def=save_graph_def
            )
        )
    chief = ChiefSessionCreator(
        scaffold, master, config, checkpoint_dir, max_wait_secs=max_wait_secs
    )
    return MonitoredSession(chief, [*added, *(hooks or ())], stop_grace_period_secs)


def _every_so_often(
    secs: Any, steps: Any, default: tuple[float | None, int | None]
) -> tuple[float | None, int | None]:
    """Seconds and steps of two arguments, of which each may be left to the default."""
    if secs is USE_DEFAULT and steps is USE_DEFAULT:
        return default
    found = [None if given is USE_DEFAULT or not given else given for given in (secs, steps)]
    return found[0], found[1]


def _end_of(hook: SessionRunHook, hooked: HookedSession) -> None:
    hook.end(hooked.session)


def _checked_hooks(hooks: Sequence[SessionRunHook] | None) -> list[SessionRunHook]:
    given = list(hooks or ())
    for hook in given:
        missing = [name for name in _HOOK_METHODS if not callable(getattr(hook, name, None))]
        if missing:
            raise InvalidArgumentError(
                f"expected an fs.train.SessionRunHook, got {hook!r} without {', '.join(missing)}"
            )
    return given


def _check_step_fn(step_fn: Any) -> None:
    names = [name for name in inspect.signature(step_fn).parameters if name != "self"]
    if names != ["step_context"]:
        raise InvalidArgumentError(
            f"expected a function step_fn(step_context), got parameters ({', '.join(names)})"
        )


__all__ = [
    "ChiefSessionCreator",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "SessionCreator",
    "SingularMonitoredSession",
    "WorkerSessionCreator",
]
