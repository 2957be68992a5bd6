"""What a hook of a monitored session is, and what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flowscope.runtime.config import RunMetadata, RunOptions
from flowscope.runtime.session.session import Session

if TYPE_CHECKING:
    from flowscope.train.input.coordinator import Coordinator

__all__ = ["SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"]


class SessionRunArgs(NamedTuple):
    """What a hook adds to a run.

    Attributes:
        fetches: What the hook wants to have: a tensor or an operation, or lists and dicts of them.
        feed_dict: Values of tensors. No other hook, nor the caller, may feed the same ones.
        options: Joined with those of the caller and of other hooks: the highest trace level and
            the longest timeout hold.
    """

    fetches: Any
    feed_dict: Any = None
    options: RunOptions | None = None


class SessionRunValues(NamedTuple):
    """What a run has given to a hook.

    Attributes:
        results: The values of what the hook has fetched, in the same structure; None if nothing.
        options: The options of the run.
        run_metadata: What was collected; empty unless an option asks for something.
    """

    results: Any
    options: RunOptions
    run_metadata: RunMetadata


class SessionRunContext:
    """The run that a hook is called for.

    Args:
        original_args: What the caller of the run has given.
        session: The session.
    """

    def __init__(self, original_args: SessionRunArgs, session: Session) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """The arguments that the caller of the run has given."""
        return self._original_args

    @property
    def session(self) -> Session:
        """The session of the run; a hook may run steps of its own in it."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """True if a hook has asked for the end of the training."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Asks for the end of the training: `should_stop()` is True after this run."""
        self._stop_requested = True


class SessionRunHook:
    """Base class of hooks: extends the runs of a monitored session. All methods may be left out."""

    def begin(self) -> None:
        """Called once, before the first session is made: the graph may still be extended."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Called with each new session, also after a loss, before it runs; the graph is read-only.

        Args:
            session: The new session, which is ready.
            coord: Coordinates the threads of this session.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; what is returned is added to the run."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that has not failed."""

    def end(self, session: Session) -> None:
        """Called once at the end, with a session that still runs; not if there was an error.

        OutOfRangeError and StopIteration end the training and are no errors.
        """
