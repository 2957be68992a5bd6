"""How questions find what answers them: functions that modules of this package declare.

    @answers(AskVariables)
    def _live(channel: Asked, asked: AskVariables, send: Send) -> None: ...

A question that a recording can answer has a second one, of `recorded_answers`; for all others a
recording gives the refusal of `refusals`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from flowscope.live.protocol.questions import Answer, Question

if TYPE_CHECKING:
    from flowscope.debug.history import RecordedValue
    from flowscope.live.answers.placing import Placing
    from flowscope.live.answers.traces import Tracing
    from flowscope.runtime.session.engine import Engine
    from flowscope.runtime.session.session import Session
    from flowscope.tracing.recording import Recording

#: Why a recording answers no question about what runs.
NOTHING_RUNS = "this is a recording: nothing runs here"

T = TypeVar("T")
Q = TypeVar("Q", bound=Question)
#: Sends an answer to the view that has asked; from any thread.
Send = Callable[[Any], None]


class Asked(Protocol):
    """The channel of a graph, to those who answer questions about it."""

    @property
    def session(self) -> Session | None:
        """The session that runs the graph; None for none."""

    @property
    def engine(self) -> Engine:
        """The engine of the graph's sessions."""

    @property
    def tracing(self) -> Tracing | None:
        """Traces of the session for views; None before the first view wants some."""

    @property
    def placing(self) -> Placing:
        """Placements and moves of the session."""

    def part(self, kind: type[T]) -> T:
        """The channel's own object of a class, made without arguments on first use."""


class AskedRecording(Protocol):
    """A recording that is shown, to those who answer questions about it."""

    recording: Recording

    def values_of(self, tensor: str) -> tuple[RecordedValue, ...] | None:
        """The recorded values of a tensor; None where there are none."""


_live: dict[type[Question], Callable[[Asked, Any, Send], None]] = {}
_recorded: dict[type[Question], Callable[[AskedRecording, Any], Answer]] = {}
_refusals: dict[type[Question], Callable[[Any, str], Answer]] = {}


def answers(
    kind: type[Q],
) -> Callable[[Callable[[Asked, Q, Send], None]], Callable[[Asked, Q, Send], None]]:
    """Decorates the function that has a question answered while its graph's session is there."""

    def declare(function: Callable[[Asked, Q, Send], None]) -> Callable[[Asked, Q, Send], None]:
        _live[kind] = function
        return function

    return declare


def recorded_answers(
    kind: type[Q],
) -> Callable[[Callable[[AskedRecording, Q], Answer]], Callable[[AskedRecording, Q], Answer]]:
    """Decorates the function that returns a recording's answer; see `Question.recorded`."""

    def declare(function: Callable[[AskedRecording, Q], Answer]) -> Callable[..., Answer]:
        _recorded[kind] = function
        return function

    return declare


def refusals(kind: type[Q]) -> Callable[[Callable[[Q, str], T]], Callable[[Q, str], T]]:
    """Decorates the function that returns an answer with nothing but a reason."""

    def declare(function: Callable[[Q, str], T]) -> Callable[[Q, str], T]:
        _refusals[kind] = function  # type: ignore[assignment]
        return function

    return declare


def answer(channel: Asked, asked: Question, send: Send) -> None:
    """Has a question answered through `send`, on this thread or another one."""
    _load()
    _live[type(asked)](channel, asked, send)


def recorded_answer(recording: AskedRecording, asked: Question) -> Answer:
    """A recording's answer to a question."""
    _load()
    if not asked.recorded:
        return _refusals[type(asked)](asked, NOTHING_RUNS)
    return _recorded[type(asked)](recording, asked)


@cache
def _load() -> None:
    """Loads the modules that answer questions."""
    package = __name__.rpartition(".")[0]
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


__all__ = [
    "NOTHING_RUNS", "Asked", "AskedRecording", "Send", "answer", "answers", "recorded_answer",
    "recorded_answers", "refusals",
]  # fmt: skip
