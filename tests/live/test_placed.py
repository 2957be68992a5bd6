"""What views are told of devices."""

from __future__ import annotations

import pytest

import flowscope as fs
from flowscope.live import placing
from flowscope.live.bus import Feed
from flowscope.live.schema import AskPlacement
from flowscope.live.state import GraphWatcher
from flowscope.live.wire import message_from, to_json


def test_an_operation_that_has_moved_is_told_though_no_other_is_placed(graph):
    x = fs.constant(1.0, name="x")
    watcher = GraphWatcher()
    watcher.change(graph, {x.op.id: "CPU:0"}, 1)
    assert watcher.change(graph, {x.op.id: "CPU:1"}, 1) is None
    change = watcher.change(graph, {x.op.id: "CPU:1"}, 2)
    assert change is not None
    assert change.placed == ((x.op.id, "CPU:1"),)


def test_a_plan_that_places_nothing_anew_is_no_news(graph):
    x = fs.constant(1.0, name="x")
    with fs.Session(graph=graph) as sess:
        sess.run(x)
        version = sess.planner.placement_version
        sess.run([x])
        assert sess.planner.placement_version == version


class TestWhyAnOperationStandsWhereItDoes:
    """What is told of one operation when a view asks."""

    @pytest.fixture
    def session(self, graph):
        with fs.device("/device:CPU:1"):
            y = fs.negative(fs.placeholder(fs.float32, [], name="x"), name="y")
        fs.exp(y, name="never")
        with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as sess:
            sess.run("y:0", {"x:0": 1.0})
            yield sess

    def ask(self, session, name):
        return placing.placement(session, AskPlacement(7, 3, name))

    def test_wish_choice_and_reason_are_told(self, session):
        told = self.ask(session, "y")
        assert (told.request_id, told.view, told.error) == (3, 7, "")
        assert [d.rpartition(":")[2] for d in told.devices] == ["0", "1"]
        assert (told.op.type, told.op.requested) == ("Neg", "/device:CPU:1")
        assert told.op.device.endswith("CPU:1")
        assert told.op.reason

    @pytest.mark.parametrize("name", ["never", "no such operation", "", "y/"])
    def test_of_what_did_not_run_nothing_is_told(self, session, name):
        assert self.ask(session, name).op is None

    def test_without_a_session_it_says_so(self):
        assert "no session" in self.ask(None, "y").error

    def test_the_question_comes_from_a_view_and_the_answer_goes_to_it(self, session):
        feed, told = Feed(session.graph, session), []
        asked = {"kind": "ask_placement", "view": 7, "request_id": 1, "name": "y"}
        feed.hear(message_from(asked), told.append)
        feed.leave(told.append)
        (answer,) = [to_json(m) for m in told if m.kind == "placement"]
        assert answer["op"]["name"] == "y"
        with pytest.raises(ValueError, match="not a message"):
            message_from(asked | {"name": 3})


def test_a_value_that_is_sent_elsewhere_leaves_its_maker_where_it_stands(graph):
    with fs.device("/device:CPU:1"):
        a = fs.exp(fs.placeholder(fs.float32, [], name="x"), name="a")
    with fs.device("/device:CPU:0"):
        b = fs.negative(a, name="b")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(b, {"x:0": 1.0})
        assert [sess.placements[t.op.id][-5:] for t in (a, b)] == ["CPU:1", "CPU:0"]
        told = placing.placement(sess, AskPlacement(1, 1, "a"))
        assert told.op.device.endswith("CPU:1")
