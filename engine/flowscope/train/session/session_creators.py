"""Session creators: make the sessions of a monitored session, again after one was lost."""

from __future__ import annotations

from flowscope.graph.default import get_default_graph
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.session.remote import SessionTarget
from flowscope.runtime.session.session import Session
from flowscope.train.session.scaffold import Scaffold
from flowscope.train.session.session_manager import MAX_WAIT_SECS, SessionManager

__all__ = ["ChiefSessionCreator", "SessionCreator", "WorkerSessionCreator"]

#: Seconds for which sessions that are no chief's wait for the model.
_WORKER_WAIT_SECS = 1800.0
#: So often sessions that are no chief's look whether the model is ready.
_LOOK_S = 0.5


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
        master: str | SessionTarget = "",
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
        master: str | SessionTarget = "",
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
