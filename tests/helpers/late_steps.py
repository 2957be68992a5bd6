"""Steps that cannot end within their deadline."""

from __future__ import annotations

import time
from typing import Any

import pytest

import flowscope as fs
from flowscope.errors import DeadlineExceededError


def late(
    sess: fs.Session,
    fetches: Any,
    feeds: Any = None,
    *,
    match: str | None = None,
    ms: int = 60,
    within_s: float | None = None,
) -> DeadlineExceededError:
    """Runs a step that has to miss its deadline, and returns its error.

    It is planned before, so that the whole deadline is the step's: on a busy machine the plan alone
    takes longer, and the error would not tell where the step stood.

    Args:
        sess: Runs it.
        fetches: See `run`.
        feeds: See `run`.
        match: What the error says, as `pytest.raises` takes it.
        ms: The deadline in milliseconds.
        within_s: So many seconds the step may take to end; None for any number.
    """
    sess.plan(fetches, tuple(feeds or ()))
    begun = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=match) as told:
        sess.run(fetches, feeds, options=fs.RunOptions(timeout_in_ms=ms))
    assert within_s is None or time.monotonic() - begun < within_s
    return told.value
