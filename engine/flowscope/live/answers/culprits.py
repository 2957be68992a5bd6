"""Answers what views ask about the culprit of a watchpoint."""

from __future__ import annotations

from collections.abc import Callable

from flowscope.debug.culprit import Culprit as Found
from flowscope.debug.stops import Stop
from flowscope.errors import OpError
from flowscope.graph.operation import where
from flowscope.live.answers.asking import Asked, Send, answers, refusals
from flowscope.live.answers.batches import Batches
from flowscope.live.answers.debugging import seen_state
from flowscope.live.protocol.debug_schema import AskCulprit, Culprit, CulpritStep
from flowscope.runtime.session.session import Session

_Asking = tuple[AskCulprit, Callable[[Culprit], None]]


class CulpritQuestions:
    """Finds culprits on a thread: the step may have to be computed again.

    Of the questions that one view has asked meanwhile, the last one is answered.
    """

    def __init__(self) -> None:
        self._batches: Batches[tuple[Session, _Asking]] = Batches("flowscope culprits")

    def ask(
        self, session: Session | None, asked: AskCulprit, send: Callable[[Culprit], None]
    ) -> None:
        """Has a question answered, through `send`, on this thread or another one."""
        if session is None:
            send(refused(asked, "no session runs this graph"))
            return
        self._batches.put((session, (asked, send)), _answer)


@refusals(AskCulprit)
def refused(asked: AskCulprit, why: str) -> Culprit:
    """Returns an answer that tells of no culprit."""
    return Culprit(
        asked.request_id, why, asked.stop, "", None, (), (), "", "", (), (), (), "", asked.view
    )


def _answer(asking: list[tuple[Session, _Asking]]) -> None:
    newest = {asked.view: (session, asked, send) for session, (asked, send) in asking}
    for session, asked, send in newest.values():
        send(_told(session, asked))


def _told(session: Session, asked: AskCulprit) -> Culprit:
    stop = next((s for s in session.debug.stops if s.id == asked.stop), None)
    if stop is None:
        return refused(asked, "the step has gone on: what was seen of it is gone")
    try:
        found = stop.culprit()
    except OpError as e:
        return refused(asked, e.message)
    if found is None:
        return refused(asked, "no watchpoint holds this step")
    return _state(asked, stop, found)


def _state(asked: AskCulprit, stop: Stop, found: Found) -> Culprit:
    facts = where(found.op)
    return Culprit(
        asked.request_id, "", stop.id, found.what, found.step, found.iterations,
        tuple([CulpritStep(op.id, op.name, op.type) for op in found.path]),
        facts["origin"] or "", facts["source"] or "", found.already,
        tuple([seen_state(look, None) for look in found.outputs]),
        tuple([seen_state(look, None) for look in found.inputs]),
        found.why_not, asked.view,
    )  # fmt: skip


@answers(AskCulprit)
def _live(channel: Asked, asked: AskCulprit, send: Send) -> None:
    channel.part(CulpritQuestions).ask(channel.session, asked, send)


__all__ = ["CulpritQuestions", "refused"]
