"""The past of a session for views: what is recorded of it, steps that are computed again."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.debug.history import RecordedValue
from flowscope.debug.stops import Stop
from flowscope.errors import FailedPreconditionError, OpError
from flowscope.live.answers.asking import (
    Asked,
    AskedRecording,
    Send,
    answers,
    recorded_answers,
)
from flowscope.live.answers.debugging import value_state
from flowscope.live.protocol.history_schema import (
    AskHistory,
    HistoryState,
    RecordWish,
    ReplayWish,
    TensorHistory,
)
from flowscope.live.protocol.tables import Numbers
from flowscope.runtime.session.session import Session

#: What a view is told that asks for values where a recording has none.
NO_VALUES = "the recording has no values: fetch or record tensors while steps are traced"
#: Commands that are about the past.
COMMANDS = ("record", "replay", "step_back")
#: So long an answer waits for a step to be computed again.
_PATIENCE_S = 0.5
_MOVES = ("step_op", "step_iteration", "step_out", "step_run")


def history_state(session: Session) -> HistoryState | None:
    """The message of the recorded steps; None for none."""
    history = session.debug.history if session.is_debugged else None
    if history is None:
        return None
    steps = history.steps
    return HistoryState(
        history.version, len(steps), steps[0] if steps else None, steps[-1] if steps else None,
        tuple(t.name for t in history.tensors), history.nbytes, history.max_bytes,
    )  # fmt: skip


def carry_out(session: Session, name: str, value: Any) -> str:
    """Does what a view asks of the past; returns what was done.

    Raises:
        OpError, ValueError, KeyError: if that cannot be.
    """
    debug = session.debug
    if name == "record":
        if value is None:
            if debug.history is not None:
                debug.history.remove()
            return "nothing is recorded any more"
        assert isinstance(value, RecordWish)
        debug.record(value.tensors, max_bytes=value.max_bytes)
        return "steps are recorded from now on"
    if name == "replay":
        assert isinstance(value, ReplayWish)
        debug.replay(value.step)  # is refused at once
        counts = value.iterations
        at = counts if len(counts) > 1 else next(iter(counts), None)
        return _computed(lambda: debug.revisit(value.step, value.op, at))
    stops = debug.stops
    if not stops:
        raise FailedPreconditionError("no step is held: pause one, or set a breakpoint")
    stop = stops[-1]
    if not stop.is_past:
        debug.replay(stop.step)
    return _computed(stop.step_back)


def _computed(compute: Callable[[], Stop]) -> str:
    """Computes a step again, on another thread; returns where it stands, if that is known soon.

    Raises:
        OpError: what the step has failed with, or why it cannot stand there.
    """
    found: list[Stop] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            found.append(compute())
        except Exception as e:  # told below; later than that the view sees that nothing is held
            errors.append(e)

    thread = threading.Thread(target=run, name="flowscope past", daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    if errors:
        raise errors[0]
    if not found:
        return "the step is computed again"
    op, frame = found[0].op, found[0].frame
    at = "at the end of an iteration" if op is None else f'before "{op.name}"'
    return f"step {found[0].step}, computed again, stands {at}" + (f" in {frame}" if frame else "")


def moves_past(session: Session, name: str) -> bool:
    """Moves the past that stands, where a move is asked for; returns whether there is one."""
    if name not in _MOVES or not session.is_debugged:
        return False
    past = [s for s in session.debug.stops if s.is_past]
    for stop in past[-1:]:
        getattr(stop, name)()
    return bool(past)


def leave(session: Session) -> None:
    """Ends the past that stands, if one does: the step that is held goes on, or nothing does."""
    if session.is_debugged:
        session.debug.leave_past()


def tensor_history(session: Session | None, asked: AskHistory) -> TensorHistory:
    """Returns the answer to a question for the values that a tensor had."""
    try:
        history = session.debug.history if session is not None and session.is_debugged else None
        if history is None:
            raise FailedPreconditionError("nothing is recorded")
        version, kept = history.version, history.values(asked.tensor)
    except (OpError, ValueError, KeyError) as e:
        return refused(asked, str(e).partition("\n")[0])
    return told_values(asked, version, kept)


def refused(asked: AskHistory, why: str) -> TensorHistory:
    """Returns an answer without values."""
    return TensorHistory(asked.request_id, why, 0, asked.tensor, Numbers({}), None, asked.view)


def told_values(
    asked: AskHistory, version: int, values: tuple[RecordedValue, ...]
) -> TensorHistory:
    """Returns the answer to a question for the values that a tensor had.

    Args:
        asked: The question.
        version: The version of what is told.
        values: The values, the oldest first.
    """
    kept = values[-asked.most :]
    has_row = asked.row is not None and 0 <= asked.row < len(kept)
    shown = value_state(asked.tensor, kept[asked.row or 0].value, asked.at) if has_row else None
    return TensorHistory(
        asked.request_id, "", version, asked.tensor, _columns(kept), shown, asked.view
    )


def _columns(kept: tuple[RecordedValue, ...]) -> Numbers:
    told = [k.statistics for k in kept]
    depth = max((len(k.iterations) for k in kept), default=0)
    return Numbers({
        "step": np.array([k.step for k in kept], np.int32),
        "iteration": np.array([k.iterations[-1] if k.iterations else -1 for k in kept], np.int32),
        **{
            f"around{i}": np.array([k.iterations[i] for k in kept], np.int32)
            for i in range(depth - 1)
        },
        "finite": np.array([s.finite for s in told], np.float64),
        "size": np.array([s.finite + s.nan + s.inf for s in told], np.float64),
        **{
            name: np.array([_number(getattr(s, name)) for s in told], np.float64)
            for name in ("min", "max", "mean")
        },
    })  # fmt: skip


def _number(value: float | None) -> float:
    return math.nan if value is None else value


@answers(AskHistory)
def _live(channel: Asked, asked: AskHistory, send: Send) -> None:
    send(tensor_history(channel.session, asked))


@recorded_answers(AskHistory)
def _recorded(one: AskedRecording, asked: AskHistory) -> TensorHistory:
    kept = one.values_of(asked.tensor)
    if kept is not None:
        return told_values(asked, 1, kept)
    why = f'the recording has no values of "{asked.tensor}"' if one.recording.values else NO_VALUES
    return refused(asked, why)


__all__ = [
    "COMMANDS",
    "carry_out",
    "history_state",
    "leave",
    "moves_past",
    "tensor_history",
    "told_values",
]
