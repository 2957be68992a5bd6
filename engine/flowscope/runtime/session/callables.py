"""Callables: functions that run the same fetches again and again, fed by their arguments."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.errors import InvalidArgumentError
from flowscope.runtime.planning.calls import PreparedCall
from flowscope.runtime.session import checks

if TYPE_CHECKING:
    from flowscope.runtime.session.session import Session


def made_callable(
    session: Session, fetches: Any, feed_list: tuple[Any, ...], accept_options: bool
) -> Callable[..., Any]:
    """Returns a function that runs `fetches`; see `Session.make_callable`."""
    mode = session.config.mode
    call = session._call(fetches, feed_list, mode)

    def current(values: tuple[Any, ...], deadline: tuple[int, int] | None) -> PreparedCall:
        nonlocal call
        if len(values) != len(feed_list):
            raise InvalidArgumentError(f"expected {len(feed_list)} values, got {len(values)}")
        if call.edits != session.graph.edits and not call.is_current(session.graph):
            call = session._call(fetches, feed_list, mode, deadline)
        return call

    def run(*values: Any) -> Any:
        deadline = session._deadline()
        now = current(values, deadline)
        if deadline is not None or session.tracers:
            return session._observed(now, values, None, None, 0, True, deadline)
        feeds = tuple([c(v) for c, v in zip(now.converters, values, strict=True)])
        return now.rebuild(session._step(now, feeds))

    def run_with_options(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
        start = time.perf_counter_ns()
        checks.check_options(options, run_metadata)
        deadline = session._deadline(options)
        misses = session._calls.misses
        now = current(values, deadline)
        was_cached = misses == session._calls.misses
        return session._observed(now, values, options, run_metadata, start, was_cached, deadline)

    return run_with_options if accept_options else run


__all__ = ["made_callable"]
