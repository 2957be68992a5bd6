"""A session with its hooks, and with the coordinator of its threads: of a monitored session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowscope.errors import AbortedError, GraphError, InvalidArgumentError, UnavailableError
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.runtime.config import RunMetadata, RunOptions
from flowscope.runtime.session.helpers import Helper
from flowscope.train.input.coordinator import Coordinator
from flowscope.train.input.queue_runner import start_queue_runners
from flowscope.train.session.hooks.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowscope.train.session.hooks.timing import SecondOrStepTimer
from flowscope.train.session.session_creators import SessionCreator
from flowscope.train.session.session_manager import losses_told


class HookedSession:
    """A session with what belongs to it: the coordinator of its threads, and what hooks have asked.

    Args:
        creator: Makes the session.
        hooks: Are told of it.
        grace_s: Seconds for which threads are waited for at its end.
    """

    def __init__(
        self, creator: SessionCreator, hooks: Sequence[SessionRunHook], grace_s: float
    ) -> None:
        self._hooks = hooks
        self._grace_s = grace_s
        self._is_stopping = False
        #: The hook that is called now, and its method.
        self._calling: tuple[SessionRunHook, str] | None = None
        self.session = creator.create_session()
        self.session.helpers.add(self)
        self.coord = Coordinator(clean_stop_exception_types=[])
        self.session.helpers.add(self.coord)
        try:
            with losses_told(self.session):
                if self.session.graph.get_collection(GraphKeys.QUEUE_RUNNERS):
                    start_queue_runners(self.session, self.coord)
                for hook in self._called("after_create_session"):
                    hook.after_create_session(self.session, self.coord)
        except BaseException:
            self.close()
            raise

    @property
    def should_stop(self) -> bool:
        """True if a hook or a thread has asked for the end."""
        return self._is_stopping or self.coord.should_stop()

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs a step with what the hooks add to it."""
        if self.should_stop:
            raise GraphError("run was called after the end was asked for: look at should_stop()")
        if not self._hooks:
            return self.session.run(fetches, feed_dict, options, run_metadata)
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self.session)
        asked = [
            hook.before_run(context) or SessionRunArgs(None) for hook in self._called("before_run")
        ]
        wants = [args.fetches for args in asked if args.fetches is not None]
        options = joined_options([options, *[args.options for args in asked]])
        metadata = RunMetadata() if run_metadata is None else run_metadata
        feeds = joined_feeds([feed_dict, *[args.feed_dict for args in asked]])
        needs_metadata = run_metadata is not None or options is not None
        found, *values = self.session.run(
            [fetches, *wants], feeds, options, metadata if needs_metadata else None
        )
        rest = iter(values)
        options = options or RunOptions()
        for hook, args in zip(self._called("after_run"), asked):
            result = None if args.fetches is None else next(rest)
            hook.after_run(context, SessionRunValues(result, options, metadata))
        self._is_stopping |= context.stop_requested
        return found

    def _called(self, method: str) -> Iterator[SessionRunHook]:
        """The hooks in their order, each of which counts as called until the next is asked for."""
        for hook in self._hooks:
            self._calling = hook, method
            yield hook
        self._calling = None

    def helpers(self) -> list[Helper]:
        """Its hooks, with what they wait for, for views."""
        called, method = self._calling or (None, "")
        return [
            Helper("hook", type(one).__name__, f"in {method}" if one is called else _waits_for(one))
            for one in self._hooks
        ]

    def coordinated(self, step: Callable[[HookedSession], Any]) -> Any:
        """What a function of this session returns; a thread's error, where that is the cause."""
        try:
            return step(self)
        except (AbortedError, UnavailableError, StopIteration):
            raise
        except Exception:
            self.coord.raise_requested_exception()
            raise

    def close(self) -> None:
        """Stops the threads and ends the session.

        Raises:
            Exception: what a thread has reported.
        """
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace_s, ignore_live_threads=True)
        finally:
            self.session.close()


def _waits_for(hook: SessionRunHook) -> str:
    """What a hook waits for between two calls."""
    timer = getattr(hook, "_timer", None)
    due = timer.due_text() if isinstance(timer, SecondOrStepTimer) else ""
    return due or "waits for the next run"


def joined_feeds(feeds: Sequence[Any]) -> Any:
    """The feeds of a run: the caller's and the hooks'.

    Raises:
        GraphError: if two feed the same tensor.
    """
    given = [f for f in feeds if f]
    if len(given) < 2:
        return given[0] if given else None
    out: dict[Any, Any] = {}
    for one in given:
        for key, value in one.items():
            if key in out:
                raise GraphError(
                    f"expected one value for each tensor, hooks or the caller feed {key} twice"
                )
            out[key] = value
    return out


def joined_options(given: Sequence[RunOptions | None]) -> RunOptions | None:
    """One set of options: the highest trace level, the longest timeout, all that is asked for."""
    options = [o for o in given if o is not None]
    if len(options) < 2:
        return options[0] if options else None
    modes = {o.mode for o in options if o.mode is not None}
    if len(modes) > 1:
        raise InvalidArgumentError(
            f"expected one mode for a run, got {sorted(modes)}: by hooks or by the caller"
        )
    pools = {o.inter_op_thread_pool for o in options} - {0}
    return RunOptions(
        trace_level=max(o.trace_level for o in options),
        timeout_in_ms=max(o.timeout_in_ms for o in options),
        inter_op_thread_pool=max(pools, default=0),
        output_partition_graphs=any(o.output_partition_graphs for o in options),
        mode=next(iter(modes), None),
    )
