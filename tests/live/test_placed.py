"""What views are told of devices."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.live.answers.placing import Placing
from flowscope.live.answers.state import GraphWatcher
from flowscope.live.protocol.schema import PROTOCOL, AskPlacement, MoveWish
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import message_from, to_json


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
        return Placing().answer(session, AskPlacement(7, 3, name, ""))

    def test_wish_choice_and_reason_are_told(self, session):
        told = self.ask(session, "y")
        assert (told.request_id, told.view, told.error) == (3, 7, "")
        assert (told.op.type, told.op.requested) == ("Neg", "/device:CPU:1")
        assert told.op.device.endswith("CPU:1")
        assert told.op.reason

    @pytest.mark.parametrize("name", ["never", "no such operation", "", "y/"])
    def test_of_what_did_not_run_nothing_is_told(self, session, name):
        assert self.ask(session, name).op is None

    def test_without_a_session_it_says_so(self):
        assert "no session" in self.ask(None, "y").error

    def test_the_question_comes_from_a_view_and_the_answer_goes_to_it(self, session):
        feed, told = LiveChannel(session.graph, session), []
        asked = {
            "kind": "ask_placement",
            "view": 7,
            "request_id": 1,
            "name": "y",
            "device": "",
            "parts": [],
        }
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
        told = Placing().answer(sess, AskPlacement(1, 1, "a", ""))
        assert told.op.device.endswith("CPU:1")


class TestMoving:
    """A view predicts a move, makes it, and is told what it did."""

    @pytest.fixture
    def session(self, graph):
        with fs.device("/device:CPU:1"), fs.name_scope("layer"):
            w = fs.Variable(np.ones((64, 64), np.float32), name="w")
            y = fs.matmul(w, w, name="y")
        fs.identity(y, name="z")
        with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
            sess.run(fs.global_variables_initializer())
            sess.run("z:0")
            yield sess

    def ask(self, session, name, device):
        return Placing().answer(session, AskPlacement(7, 3, name, device))

    def test_candidates_are_told_with_predicted_times(self, session):
        told = self.ask(session, "layer/y", "")
        assert [c.device[-5:] for c in told.op.candidates] == ["CPU:0", "CPU:1", "CPU:2"]
        assert told.move is None

    def test_a_move_of_a_scope_is_predicted_and_changes_nothing(self, session):
        move = self.ask(session, "layer/", "/device:CPU:2").move
        assert (move.refused, move.moved_bytes) == ("", 64 * 64 * 4)
        assert min(move.before_s, move.after_s) > 0.0
        assert session.placements[session.graph.get_operation_by_name("layer/y").id][-1] == "1"

    @pytest.mark.parametrize("device", ["/device:GPU:0", "/device:CPU:9", "nowhere"])
    def test_what_cannot_be_is_refused_with_the_reason(self, session, device):
        move = self.ask(session, "layer/y", device).move
        assert move.refused
        assert move.after_s is None
        with pytest.raises(InvalidArgumentError):
            Placing().move(session, MoveWish("layer/y", device))

    def test_after_a_move_the_steps_since_are_measured(self, session):
        placing = Placing()
        placing.look(session)
        session.run("z:0")
        placing.look(session)
        placing.move(session, MoveWish("layer/", "/device:CPU:2"))
        told = placing.look(session)
        assert told.measured_before_s > 0.0
        assert told.measured_after_s is None
        session.run("z:0")
        assert placing.look(session).measured_after_s > 0.0
        assert session.placements[session.graph.get_operation_by_name("layer/y").id][-1] == "2"

    def test_what_a_view_shows_as_one_moves_as_a_whole(self, session):
        placing, parts = Placing(), ("layer/y", "z")
        asked = AskPlacement(7, 3, "2 ops", "/device:CPU:2", parts)
        move = placing.answer(session, asked).move
        assert (move.refused, move.moved_bytes) == ("", 0)
        placing.move(session, MoveWish("2 ops", "/device:CPU:2", parts))
        assert placing.look(session).name == "2 ops"
        session.run("z:0")
        ids = [session.graph.get_operation_by_name(name).id for name in parts]
        assert [session.placements[i][-1] for i in ids] == ["2", "2"]

    def test_the_command_moves_and_the_state_tells_it(self, session):
        feed, told = LiveChannel(session.graph, session), []
        wish = {"name": "layer/", "device": "/device:CPU:2", "parts": []}
        command = {"kind": "command", "command_id": 1, "name": "move", "value": wish, "view": 7}
        feed.hear(message_from({"kind": "connect", "view": 7, "protocol": PROTOCOL}), told.append)
        feed.hear(message_from(command), told.append)
        feed.hear(
            message_from(command | {"command_id": 2, "value": wish | {"device": "?"}}), told.append
        )
        state = feed.snapshot(0.0).session
        feed.leave(told.append)
        assert [m.ok for m in told if m.kind == "reply"] == [True, False]
        assert (state.moved.name, state.moved.device) == ("layer/", "/device:CPU:2")
        with pytest.raises(ValueError, match="MoveWish"):
            message_from(command | {"value": {"name": "layer/"}})


def test_on_simulated_devices_the_virtual_clock_measures_a_mystery_that_is_mended(graph):
    """A layer on another device than its neighbours makes values cross twice."""
    x = h = fs.placeholder(fs.float32, [64, 256], name="x")
    for number, device in enumerate(["/device:GPU:0", "/device:GPU:1", "/device:GPU:0"]):
        with fs.device(device), fs.name_scope(f"layer{number}"):
            w = fs.Variable(np.ones((256, 256), np.float32), name="w")
            h = fs.matmul(h, w, name="y")
    feed = {x: np.ones((64, 256), np.float32)}
    placing = Placing()
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 2})) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(h, feed)
        placing.look(sess)
        sess.run(h, feed)
        placing.move(sess, MoveWish("layer1/", "/device:GPU:0"))
        sess.run(h, feed)
        sess.run(h, feed)
        told = placing.look(sess)
    assert told.after_s < told.before_s
    assert told.measured_after_s < told.measured_before_s
