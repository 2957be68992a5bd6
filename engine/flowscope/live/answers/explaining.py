"""Explanations for views: what an operation does, with the values of the step that is held."""

from __future__ import annotations

from flowscope.debug.explain import Measured, explain
from flowscope.debug.explanation import ExplainedTensor
from flowscope.debug.stops import StoppedTensor
from flowscope.errors import OpError
from flowscope.live.answers.asking import Asked, Send, answers, refusals
from flowscope.live.answers.debugging import seen_state
from flowscope.live.protocol import explain_schema as told
from flowscope.runtime.session.session import Session


def explanation(
    session: Session | None, asked: told.AskExplanation, measured: Measured
) -> told.Explanation:
    """Returns the answer to a question what an operation does.

    Args:
        session: The session that runs its graph.
        asked: The question.
        measured: What views have had traced of the session.
    """
    if session is None:
        return refused(asked, "no session runs this graph: make one, fs.Session(), and run a step")
    try:
        op = session.graph.as_graph_element(asked.name, allow_tensor=False)
        found = explain(session, op, measured)
    except (OpError, ValueError, KeyError) as e:
        return refused(asked, str(e).partition("\n")[0])
    return told.Explanation(
        asked.request_id, "", found.name,
        tuple([told.Sentence(s.topic, s.text) for s in found.sentences]),
        tuple([_tensor(t) for t in found.tensors]), asked.view,
    )  # fmt: skip


@refusals(told.AskExplanation)
def refused(asked: told.AskExplanation, why: str) -> told.Explanation:
    """Returns an answer that explains nothing."""
    return told.Explanation(asked.request_id, why, asked.name, (), (), asked.view)


def _tensor(found: ExplainedTensor) -> told.ExplainedTensor:
    value = None
    if found.statistics is not None:
        value = seen_state(StoppedTensor(found.name, "alive", "", found.statistics), found.picture)
    return told.ExplainedTensor(found.role, found.name, found.type_text, found.why, value)


@answers(told.AskExplanation)
def _live(channel: Asked, asked: told.AskExplanation, send: Send) -> None:
    measured = {} if channel.tracing is None else channel.tracing.measured()
    send(explanation(channel.session, asked, measured))


__all__ = ["explanation", "refused"]
