"""Questions of views: each that is declared is answered, refused, and read from its JSON form."""

from dataclasses import MISSING, dataclass, fields
from typing import Literal

import pytest

import flowscope as fs
from flowscope.live.answers import asking
from flowscope.live.protocol import questions
from flowscope.live.protocol.questions import Answer, Question, answer_types
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.recorded import RecordedFeed
from flowscope.live.watchers.wire import message_from
from flowscope.tracing.profile import profile

_GIVEN = {"tuple[str, ...]": [], "tuple[int, ...]": [], "str": "x", "int": 1, "int | None": None}
_GIVEN["float | None"] = None


def question(kind):
    """A question of a kind, as a view sends it."""
    told = {f.name: _GIVEN[f.type] for f in fields(kind) if f.default is MISSING}
    told |= {f.name: [] for f in fields(kind) if f.default == ()}
    found = message_from({**told, "view": 7, "request_id": 3, "kind": kind.kind})
    assert type(found) is kind
    return found


@pytest.mark.parametrize("kind", answer_types())
def test_each_question_is_answered_by_its_answer(graph, kind):
    answer = answer_types()[kind]
    got = []
    asking.answer(LiveChannel(graph), question(kind), got.append)
    while not got:
        pass
    (live,) = got
    assert type(live) is answer
    assert (live.request_id, live.view) == (3, 7)


@pytest.mark.parametrize("kind", answer_types())
def test_a_recording_answers_what_is_declared_so_and_refuses_the_rest(graph, kind):
    y = fs.square(fs.constant(2.0))
    with fs.Session() as sess, profile(sess) as found:
        sess.run(y)
    answer = asking.recorded_answer(RecordedFeed(found.recording), question(kind))
    assert type(answer) is answer_types()[kind]
    assert (answer.request_id, answer.view) == (3, 7)
    assert (getattr(answer, "error", "") == asking.NOTHING_RUNS) != kind.recorded


def test_a_question_is_added_by_its_declaration_and_its_answer(graph, monkeypatch):
    before = dict(answer_types())
    monkeypatch.setattr(questions, "_answers", dict(before))

    @dataclass(frozen=True)
    class AskSize(Question):
        view: int
        request_id: int
        kind: Literal["ask_size"] = "ask_size"

    @dataclass(frozen=True)
    class Size(Answer, to=AskSize):
        request_id: int
        size: int
        view: int = 0
        kind: Literal["size"] = "size"

    monkeypatch.setitem(asking._live, AskSize, None)  # so it is taken out at the end

    @asking.answers(AskSize)
    def live(channel, asked, send):
        send(Size(asked.request_id, len(channel.graph.get_operations()), asked.view))

    fs.constant(1.0)
    got = []
    LiveChannel(graph).hear(AskSize(7, 3), got.append)
    assert Size(3, 1, 7) in got
    assert answer_types() == {**before, AskSize: Size}
