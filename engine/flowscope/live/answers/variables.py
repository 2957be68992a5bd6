"""Answers what views ask about variables."""

from __future__ import annotations

from collections.abc import Callable

from flowscope.debug.stops import StoppedTensor
from flowscope.debug.variables import VariableInfo, before, variables
from flowscope.errors import OpError
from flowscope.live.answers.asking import Asked, Send, answers, refusals
from flowscope.live.answers.batches import Batches
from flowscope.live.answers.debugging import seen_state
from flowscope.live.protocol.variables_schema import AskVariables, Variables, VariableState
from flowscope.runtime.session.session import Session

#: Variables that are told at most, and of how many of them numbers of the values.
MOST_ROWS, MOST_MEASURED = 1000, 16

_Asking = tuple[AskVariables, Callable[[Variables], None]]


class VariableQuestions:
    """Lists a session's variables, on a thread: workers may be slow, and values large.

    Of the questions that one view has asked meanwhile, the last one is answered.
    """

    def __init__(self) -> None:
        self._batches: Batches[tuple[Session, _Asking]] = Batches("flowscope variables")

    def ask(
        self, session: Session | None, asked: AskVariables, send: Callable[[Variables], None]
    ) -> None:
        """Has a question answered, through `send`, on this thread or another one."""
        if session is None:
            why = "no session runs this graph: make one, fs.Session(), and run its initializers"
            send(refused(asked, why))
            return
        self._batches.put((session, (asked, send)), _answer)


@refusals(AskVariables)
def refused(asked: AskVariables, why: str) -> Variables:
    """Returns an answer that lists nothing."""
    return Variables(asked.request_id, why, (), 0, 0, (), asked.view)


def _answer(asking: list[tuple[Session, _Asking]]) -> None:
    newest = {asked.view: (session, asked, send) for session, (asked, send) in asking}
    for session, asked, send in newest.values():
        send(_told(session, asked))


def _told(session: Session, asked: AskVariables) -> Variables:
    try:
        found = variables(session, measured=frozenset(asked.measured[:MOST_MEASURED]))
        if asked.step is not None:
            found = before(found, session, asked.step)
    except OpError as e:
        return refused(asked, e.message)
    return Variables(
        asked.request_id, "", tuple([_row(one) for one in found[:MOST_ROWS]]),
        max(0, len(found) - MOST_ROWS), found.nbytes,
        tuple([
            seen_state(StoppedTensor(one.name, "alive", "", one.statistics), None)
            for one in found if one.statistics is not None
        ]),
        asked.view,
    )  # fmt: skip


def _row(one: VariableInfo) -> VariableState:
    return VariableState(
        one.op.id, one.name, one.dtype, one.shape, one.nbytes, one.device, one.is_initialized,
        one.is_trainable, one.writes, one.written_in,
        None if one.primary is None else one.primary.id, one.why,
    )  # fmt: skip


@answers(AskVariables)
def _live(channel: Asked, asked: AskVariables, send: Send) -> None:
    channel.part(VariableQuestions).ask(channel.session, asked, send)


__all__ = ["MOST_MEASURED", "MOST_ROWS", "VariableQuestions", "refused"]
