"""What views are told of an operation that they want explained."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.answers.asking import NOTHING_RUNS
from flowscope.live.answers.explaining import explanation
from flowscope.live.protocol.explain_schema import AskExplanation
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.recorded import RecordedFeed
from flowscope.live.watchers.wire import message_from, to_json, to_wire


@pytest.fixture(params=["compiled", "op", "tokens"])
def session(request, graph):
    x = fs.placeholder(fs.float32, [2, 2], name="x")
    fs.reduce_sum(fs.exp(x, name="y"), name="z")
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as made:
        yield made


def ask(session, name):
    return explanation(session, AskExplanation(7, 3, name), {})


def test_sentences_and_types_are_told_before_a_step(session):
    told = ask(session, "y")
    assert (told.request_id, told.view, told.error, told.name) == (3, 7, "", "y")
    assert [s.topic for s in told.sentences][:2] == ["computes", "step"]
    assert [(t.role, t.name, t.type, t.value) for t in told.tensors] == [
        ("input", "x:0", "float32[2,2]", None),
        ("output", "y:0", "float32[2,2]", None),
    ]


def test_at_a_stop_values_come_with_their_pictures_as_columns(session):
    session.debug.break_after("y")
    seen = []
    session.debug.on_stop(lambda stop: seen.append(ask(session, "y")))
    session.run("z:0", {"x:0": np.zeros((2, 2), "f")})
    (told,) = seen
    (value,) = [t.value for t in told.tensors if t.role == "output"]
    assert (value.state, value.max, value.width, value.height) == ("alive", 1.0, 2, 2)
    message, buffers = to_wire(told)
    sent = message["tensors"][1]["value"]
    assert sent["mean"] == 1.0 and len(buffers) >= 2
    assert bytes(buffers[sent["picture"]["buffer"]])
    assert message["sentences"][1]["text"].startswith("Step 0, which is held,")


@pytest.mark.parametrize("name", ["nothing", "", "y:0", "a/"])
def test_what_is_no_operation_is_refused_with_the_reason(session, name):
    told = ask(session, name)
    assert told.error and told.sentences == () == told.tensors
    assert "no session" in ask(None, "y").error


def test_the_question_comes_from_a_view_and_the_answer_goes_to_it(session):
    feed, told = LiveChannel(session.graph, session), []
    asked = {"kind": "ask_explanation", "view": 7, "request_id": 1, "name": "y"}
    feed.hear(message_from(asked), told.append)
    feed.leave(told.append)
    (answer,) = [to_json(m) for m in told if m.kind == "explanation"]
    assert (answer["name"], answer["view"]) == ("y", 7)
    for wrong in ({"name": 3}, {"view": 0}, {"request_id": None}):
        with pytest.raises(ValueError, match="not a message"):
            message_from(asked | wrong)


def test_a_recording_says_that_nothing_runs(session):
    with fs.profile(session) as profile:
        session.run("z:0", {"x:0": np.zeros((2, 2), "f")})
    told = []
    RecordedFeed(profile.recording).hear(AskExplanation(1, 1, "y"), told.append)
    assert [m.error for m in told] == [NOTHING_RUNS]
