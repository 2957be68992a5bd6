"""What views are told of culprits, and of why steps are slow, by messages."""

import threading

import numpy as np
import pytest
from live_views import View
from process_channels import until

import flowscope as fs
from flowscope.live.protocol import schema
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.recorded import RecordedFeed

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def view(graph):
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.log(x, name="a")
    fs.reduce_sum(fs.exp(fs.nn.relu(a), name="c"), name="y")
    with fs.Session() as sess:
        made = View(LiveChannel(graph, sess))
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
