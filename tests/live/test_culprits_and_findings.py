"""What views are told of culprits, and of why steps are slow, by messages."""

import json
import threading

import numpy as np
import pytest
from process_channels import until

import flowscope as fs
from flowscope.live import schema
from flowscope.live.bus import Feed
from flowscope.live.recorded import RecordedFeed
from flowscope.live.wire import message_from, to_json

pytestmark = pytest.mark.usefixtures("graph")


class View:
    """A view that acknowledges everything; answers may come from another thread."""

    def __init__(self, feed):
        self.feed, self.got, self.number = feed, [], 0
        self.hear(kind="connect", protocol=schema.PROTOCOL)

    def send(self, message):
        json.dumps(to_json(message))
        self.got.append(message)
        if isinstance(message, schema.Snapshot | schema.Delta):
            self.feed.hear(schema.Ack(7, message.seq), self.send)

    def hear(self, **data):
        self.feed.hear(message_from(json.loads(json.dumps({**data, "view": 7}))), self.send)

    def command(self, name, value=None):
        self.number += 1
        self.hear(kind="command", command_id=self.number, name=name, value=value)
        return next(m for m in reversed(self.got) if isinstance(m, schema.Reply))

    def ask(self, kind, answer, **wish):
        self.number += 1
        self.hear(kind=kind, request_id=self.number, **wish)

        def answers():
            told = [m for m in self.got if isinstance(m, answer)]
            return [m for m in told if m.request_id == self.number]

        until(answers)
        return answers()[0]

    @property
    def debug(self):
        self.feed.tick(0.0)
        return [m.session for m in self.got if getattr(m, "session", None)][-1].debug


@pytest.fixture
def view(graph):
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.log(x, name="a")
    fs.reduce_sum(fs.exp(fs.nn.relu(a), name="c"), name="y")
    with fs.Session() as sess:
        made = View(Feed(graph, sess))
        made.session = sess
        yield made
        sess.gate.request("resume")
        made.feed.leave(made.send)


def test_the_culprit_is_told_with_inputs_path_and_line(view):
    sess = view.session
    assert view.command("stop_at_nan", 1).ok
    assert [p.stops_at_nan for p in view.debug.breakpoints] == [True]
    running = threading.Thread(target=sess.run, args=("y:0", {"x:0": [1.0, 0.0, 3.0]}))
    running.start()
    assert sess.debug.wait(30.0) is not None
    [stop] = view.debug.stops
    assert stop.culprit == sess.graph.get_operation_by_name("a").id
    told = view.ask("ask_culprit", schema.Culprit, stop=stop.id)
    assert (told.error, told.what, told.step, told.why_not) == ("", "inf", 0, "")
    assert [s.name for s in told.path] == ["a"] and told.source == 'a = fs.log(x, name="a")'
    assert [(v.name, v.finite, v.inf) for v in told.inputs] == [("x:0", 3, 0)]
    assert [(v.name, v.finite, v.inf) for v in told.outputs] == [("a:0", 2, 1)]
    view.command("replay", {"step": 0, "op": "a", "iterations": []})
    until(lambda: any(s.is_past for s in view.debug.stops))
    past = [s for s in view.debug.stops if s.is_past]
    assert past[0].culprit is None and view.debug.stops[0].culprit is not None
    sess.debug.leave_past()
    view.command("resume")
    running.join(30.0)
    gone = view.ask("ask_culprit", schema.Culprit, stop=stop.id)
    assert gone.error == "the step has gone on: what was seen of it is gone"
    assert view.command("stop_at_nan", 0).ok and view.debug is None


def test_why_it_is_slow_is_told_of_the_steps_that_were_traced(view):
    sess = view.session
    none = view.ask("ask_findings", schema.Findings, program=0)
    assert "no step was traced yet" in none.error
    view.command("trace", 1000)
    for k in range(8):
        view.feed.tick(float(k))
        sess.run("y:0", {"x:0": np.ones(3, np.float32)})
    found = view.ask("ask_findings", schema.Findings, program=0)
    assert found.error == "" and found.steps >= 1 and found.step_s > 0
    assert all(0 < one.share <= 1 and one.text for one in found.findings)
    assert "python" in {one.topic for one in found.findings}, "the looks are seconds apart"


def test_a_recording_answers_too(view):
    with fs.profile() as recorded:
        for _ in range(4):
            view.session.run("y:0", {"x:0": np.ones(3, np.float32)})
    feed = RecordedFeed(recorded.with_graph())
    other = View(feed)
    assert other.ask("ask_findings", schema.Findings, program=0).steps == 3
    refused = other.ask("ask_culprit", schema.Culprit, stop="1")
    assert refused.error == "this is a recording: nothing runs here"
