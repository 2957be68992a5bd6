"""The debugger for views: its state, and what views ask of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from flowscope.debug.statistics import Picture, Statistics, picture, statistics
from flowscope.debug.stops import Stop, StoppedTensor
from flowscope.debug.watchpoints import Watchpoint
from flowscope.errors import InvalidArgumentError, OpError
from flowscope.live.answers.asking import Asked, Send, answers, refusals
from flowscope.live.protocol.debug_schema import (
    AskValues,
    BreakpointState,
    BreakpointWish,
    DebugState,
    Replacement,
    StopState,
    Values,
    ValueState,
)
from flowscope.live.protocol.tables import Numbers
from flowscope.runtime.session.session import Session

_NONE = Statistics("", (), 0, 0, 0, 0, None, None, None, ())


def debug_state(session: Session) -> DebugState | None:
    """The message of a session's debugger; None where nothing is set and nothing held."""
    if not session.is_debugged and session.gate.state != "paused":
        return None
    has_devices = len(session.devices) > 1
    found = [_stop_state(s, has_devices) for s in session.debug.stops]
    points = [_breakpoint_state(b) for b in session.debug.breakpoints]
    return DebugState(tuple(points), tuple(found)) if points or found else None


def _breakpoint_state(point: Any) -> BreakpointState:
    standing = point.standing()
    error = "" if point.error is None else f"{type(point.error).__name__}: {point.error}"
    is_watch = isinstance(point, Watchpoint)
    found = str(point.found) if is_watch and point.found is not None else ""
    told = str(point.conditions) or ("not finite" if is_watch else "")
    return BreakpointState(
        point.number, str(point.target), told,
        point.is_after, point.is_enabled, point.hits, error,
        tuple(dict.fromkeys(one.op.id for one in standing)),
        tuple(dict.fromkeys(map(str, standing))), is_watch, found,
        is_watch and point.stops_at_nan,
    )  # fmt: skip


def _stop_state(stop: Stop, has_devices: bool) -> StopState:
    op = stop.op
    sent, sender = stop.transfer or ("", "")
    point = stop.breakpoint
    found = point.found_in(stop.step) if isinstance(point, Watchpoint) else None
    culprit = None if found is None or found.op is None else found.op.id
    return StopState(
        stop.id, stop.step, None if op is None else op.id, stop.frame, stop.iterations,
        None if stop.breakpoint is None else stop.breakpoint.number,
        stop.is_past,
        stop.device if has_devices else "", sent, sender, culprit,
    )  # fmt: skip


def carry_out(session: Session, name: str, value: Any) -> str:
    """Does what a view asks of the debugger; returns what was done.

    Raises:
        OpError, ValueError, KeyError: if that cannot be.
    """
    debug = session.debug
    if name == "break":
        return f"breakpoint {_set(session, value).number} is set"
    if name == "watch":
        wish = {**asdict(value), "when": value.when or None}
        return f"watchpoint {debug.watch(**wish).number} is set"
    if name == "stop_at_nan":
        return _stop_at_nan(session, bool(value))
    if name == "replace":
        return _replace(session, value)
    points = {b.number: b for b in debug.breakpoints}
    point = points.get(int(value))
    if point is None:
        raise InvalidArgumentError(f"there is no breakpoint {int(value)}")
    if name == "unbreak":
        point.remove()
        return f"breakpoint {point.number} is gone"
    point.is_enabled = name == "enable"
    return f"breakpoint {point.number} is {'on' if point.is_enabled else 'off'}"


def _stop_at_nan(session: Session, is_wanted: bool) -> str:
    if is_wanted:
        session.debug.stop_at_nan()
        return "steps are held at the first value that is not finite"
    for point in session.debug.breakpoints:
        if isinstance(point, Watchpoint) and point.stops_at_nan:
            point.remove()
    return "steps are not held at values that are not finite any more"


def _set(session: Session, wish: BreakpointWish) -> Any:
    given = asdict(wish)
    is_after = given.pop("is_after")
    given["when"] = given["when"] or None
    return (session.debug.break_after if is_after else session.debug.break_before)(**given)


def _replace(session: Session, wish: Replacement) -> str:
    stop = _stop(session, wish.stop)
    tensor: Any = session.graph.as_graph_element(wish.tensor, allow_operation=False)
    try:
        array = np.array(json.loads(wish.text), tensor.dtype.as_numpy_dtype)
    except (ValueError, TypeError, RecursionError) as e:
        raise InvalidArgumentError(f"expected numbers such as [1, 2], got {wish.text!r}") from e
    if not array.shape:
        array = np.full(stop.value(tensor).shape, array[()])
    stop.replace(tensor, array)
    return f'"{wish.tensor}" is replaced'


def _stop(session: Session, number: str) -> Stop:
    found = next((s for s in session.debug.stops if s.id == number), None)
    if found is None:
        raise InvalidArgumentError("the step has gone on: what was seen of it is gone")
    return found


def values(session: Session | None, asked: AskValues) -> Values:
    """Returns the answer to a question for values at a stop."""
    try:
        if session is None:
            raise InvalidArgumentError("no session runs this graph")
        stop = _stop(session, asked.stop)
        if asked.tensors:
            told = [_named(stop, name, asked.at) for name in asked.tensors]
        else:
            looks = [StoppedTensor(n, "alive", "", s) for n, s in stop.values().items()]
            told = [seen_state(look, None) for look in looks]
    except (OpError, ValueError, KeyError) as e:
        return Values(asked.request_id, str(e).partition("\n")[0], (), asked.view)
    return Values(asked.request_id, "", tuple(told), asked.view)


def _named(stop: Stop, name: str, at: Sequence[int]) -> ValueState:
    look = stop.look(name)
    if look.state != "alive":
        return seen_state(look, None)
    index = _place(look.statistics.shape if look.statistics else (), at)
    return seen_state(look, stop.picture(name, index))


def value_state(name: str, array: Any, at: Sequence[int] = ()) -> ValueState:
    """Returns all that is told of a value.

    Args:
        name: The tensor's name.
        array: The value.
        at: Where its picture is taken; see `AskValues.at`.
    """
    seen = statistics(array)
    drawn = picture(np.asarray(array)[_place(seen.shape, at)])
    return seen_state(StoppedTensor(name, "alive", "", seen), drawn)


def _place(shape: Sequence[int], at: Sequence[int]) -> tuple[int, ...]:
    """A place along the axes before the last two, within their ends; () where an axis is empty."""
    if 0 in shape:
        return ()
    return tuple([max(0, min(k, n - 1)) for k, n in zip(at, shape[:-2], strict=False)])


def seen_state(look: StoppedTensor, drawn: Picture | None) -> ValueState:
    """The message of a tensor that was looked at.

    Args:
        look: What was seen.
        drawn: Its value as a picture; None for none.
    """
    found = look.statistics or _NONE
    levels = np.frombuffer(drawn.levels if drawn else b"", np.uint8).astype(np.int32)
    return ValueState(
        look.name, look.state, look.why, found.dtype, found.shape, found.nbytes, found.finite,
        found.nan, found.inf, found.min, found.max, found.mean,
        Numbers({"count": np.array(found.histogram, np.int32)}), Numbers({"level": levels}),
        drawn.width if drawn else 0, drawn.height if drawn else 0,
        drawn.low if drawn else 0.0, drawn.high if drawn else 0.0,
    )  # fmt: skip


@answers(AskValues)
def _live(channel: Asked, asked: AskValues, send: Send) -> None:
    send(values(channel.session, asked))


@refusals(AskValues)
def _refused(asked: AskValues, why: str) -> Values:
    return Values(asked.request_id, why, (), asked.view)


__all__ = ["carry_out", "debug_state", "seen_state", "value_state", "values"]
