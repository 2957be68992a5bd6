"""`fs.train.SessionManager`: sessions whose variables come from a checkpoint, or are initialised.

On a cluster, a session is made when the tasks that its graph asks for are there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flowscope.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.runtime.config import ConfigProto, RunOptions
from flowscope.runtime.session.engine import current
from flowscope.runtime.session.remote import SessionTarget, target_of
from flowscope.runtime.session.session import Session
from flowscope.train.checkpoint.checkpoints import get_checkpoint_state
from flowscope.train.checkpoint.saver import Saver

#: Seconds for which a checkpoint, or lost tasks, are waited for by default.
MAX_WAIT_SECS = 7200.0


class SessionManager:
    """Makes sessions that are ready to train.

    Args:
        local_init_op: Run after variables were restored or initialised.
        ready_op: A string vector of what is not ready, empty when all is; None checks nothing.
        ready_for_local_init_op: Likewise: what `local_init_op` needs.
        graph: The graph; the default graph by default.
        recovery_wait_secs: So often it is looked whether a checkpoint, or the model, is there.
        local_init_run_options: Options of the run of `local_init_op`.
        local_init_feed_dict: Values that it is fed.

    Raises:
        InvalidArgumentError: if `ready_for_local_init_op` is given, and no `local_init_op`.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: RunOptions | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise InvalidArgumentError("expected a local_init_op with ready_for_local_init_op")
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._local_options = local_init_run_options
        self._local_feed = local_init_feed_dict

    def prepare_session(
        self,
        master: str | SessionTarget,
        init_op: Any = None,
        saver: Saver | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = MAX_WAIT_SECS,
        config: ConfigProto | None = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Session], None] | None = None,
    ) -> Session:
        """Returns a session that is ready: restored from a checkpoint, else initialised.

        Args:
            master: "" for this process; else a cluster, or its `target`.
            init_op: Run where no checkpoint was restored.
            saver: Restores.
            checkpoint_dir: A folder, whose latest checkpoint is restored.
            checkpoint_filename_with_path: A checkpoint's prefix, instead of a folder.
            wait_for_checkpoint: Whether a checkpoint is waited for.
            max_wait_secs: How long; and how long tasks of a cluster that are lost are waited for.
            config: The session's options.
            init_feed_dict: Values that `init_op` is fed.
            init_fn: Called with the session after `init_op`.

        Raises:
            GraphError: if nothing is given that initialises, or variables have no value after that.
            InvalidArgumentError: if both a folder and a checkpoint are given.
            DeadlineExceededError: if lost tasks do not come back in time.
            UnavailableError: if tasks are lost meanwhile.
        """
        sess, is_loaded = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path,
            wait_for_checkpoint, max_wait_secs, config,
        )  # fmt: skip
        with _preparing(sess):
            if not is_loaded:
                self._initialise(sess, init_op, init_feed_dict, init_fn)
            missing = self._initialise_rest(sess) or self._missing(sess, self._ready_op)
            if missing:
                raise GraphError(f"the model is not ready after its initialisation: {missing}")
        return sess

    def recover_session(
        self,
        master: str | SessionTarget,
        saver: Saver | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = MAX_WAIT_SECS,
        config: ConfigProto | None = None,
    ) -> tuple[Session, bool]:
        """Returns a session, and whether a checkpoint was restored and it is ready.

        Arguments and errors are those of `prepare_session`.
        """
        sess, is_loaded = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path,
            wait_for_checkpoint, max_wait_secs, config,
        )  # fmt: skip
        with _preparing(sess):
            missing = self._initialise_rest(sess)
            is_ready = is_loaded and not missing and not self._missing(sess, self._ready_op)
        return sess, is_ready

    def wait_for_session(
        self,
        master: str | SessionTarget,
        config: ConfigProto | None = None,
        max_wait_secs: float = math.inf,
    ) -> Session:
        """Returns a session once another one has made the model ready.

        Sessions share what lies in named containers (`fs.container`).

        Raises:
            DeadlineExceededError: if it is not ready in time.
        """
        end = time.monotonic() + max_wait_secs
        while True:
            sess = self._made(master, config, end - time.monotonic())
            with _preparing(sess):
                missing = self._initialise_rest(sess) or self._missing(sess, self._ready_op)
            if not missing:
                return sess
            sess.close()
            if time.monotonic() + self._recovery_wait_secs > end:
                raise DeadlineExceededError(
                    f"the model is not ready after {max_wait_secs:g} s: {missing}"
                )
            time.sleep(self._recovery_wait_secs)

    # -- its steps ------------------------------------------------------------------------------

    def _made(
        self, master: str | SessionTarget, config: ConfigProto | None, timeout_s: float
    ) -> Session:
        if master:
            devices = {op.device for op in self._graph.get_operations() if op.device}
            end = time.monotonic() + timeout_s
            cluster = target_of(master, current(), timeout_s)
            cluster.wait_for(devices, end - time.monotonic())
            return Session(cluster, self._graph, config)
        return Session(master, self._graph, config)

    def _restored(
        self,
        master: str | SessionTarget,
        saver: Saver | None,
        folder: str | None,
        prefix: str | None,
        waits: bool,
        max_wait_secs: float,
        config: ConfigProto | None,
    ) -> tuple[Session, bool]:
        """Returns a new session, and whether a checkpoint was restored into it."""
        if folder and prefix:
            raise InvalidArgumentError(
                "expected checkpoint_dir or checkpoint_filename_with_path, got both"
            )
        end = time.monotonic() + max_wait_secs
        sess = self._made(master, config, max_wait_secs)
        with _preparing(sess):
            if saver is not None and prefix:
                saver.restore(sess, prefix)
                return sess, True
            if saver is None or not folder:
                return sess, False
            state = get_checkpoint_state(folder)
            while state is None:
                if not waits or time.monotonic() + self._recovery_wait_secs > end:
                    return sess, False
                time.sleep(self._recovery_wait_secs)
                state = get_checkpoint_state(folder)
            saver.restore(sess, state.model_checkpoint_path)
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return sess, True

    def _initialise(
        self,
        sess: Session,
        init_op: Any,
        feed_dict: Mapping[Any, Any] | None,
        init_fn: Callable[[Session], None] | None,
    ) -> None:
        if init_op is None and init_fn is None and self._local_init_op is None:
            raise GraphError(
                "no checkpoint was found, and nothing is there that initialises: give init_op, "
                "init_fn or local_init_op"
            )
        if init_op is not None:
            sess.run(init_op, feed_dict)
        if init_fn is not None:
            init_fn(sess)

    def _initialise_rest(self, sess: Session) -> str:
        """Runs `local_init_op`, if what it needs is there; returns what is missing."""
        if self._local_init_op is None:
            return ""
        missing = self._missing(sess, self._ready_for_local_init_op)
        if not missing:
            sess.run(self._local_init_op, self._local_feed, self._local_options)
        return missing

    @staticmethod
    def _missing(sess: Session, op: Any) -> str:
        """The report of what is not ready, from an operation; "" if all is."""
        if op is None:
            return ""
        names = [n.decode() if isinstance(n, bytes) else str(n) for n in sess.run(op)]
        return f"these have no value: {', '.join(names)}" if names else ""


@contextmanager
def losses_told(
    sess: Session, kinds: tuple[type[OpError], ...] = (FailedPreconditionError,)
) -> Iterator[None]:
    """Tells that tasks were lost where that is why a session cannot be made ready.

    A task that goes meanwhile, and comes back without what was restored or initialised, is a loss
    like any other: the session is to be made again.

    Args:
        sess: The session.
        kinds: Errors that may come of that.

    Raises:
        UnavailableError: if values are missing because tasks were lost.
    """
    try:
        yield
    except kinds as e:
        lost = ", ".join(sorted(sess.lost_tasks))
        if not lost:
            raise
        raise UnavailableError(f"{lost} went while the session was made ready: {e.message}") from e


@contextmanager
def _preparing(sess: Session) -> Iterator[None]:
    """Closes a session that cannot be made ready; see `losses_told`."""
    try:
        with losses_told(sess, (FailedPreconditionError, GraphError)):
            yield
    except BaseException:
        sess.close()
        raise


__all__ = ["MAX_WAIT_SECS", "SessionManager", "losses_told"]
