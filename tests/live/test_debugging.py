"""The debugger for views: breakpoints, values of a stop and replacing by messages."""

import json
import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.answers import history
from flowscope.live.protocol import schema
from flowscope.live.protocol.tables import columns_of
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import message_from, to_json, to_wire

pytestmark = pytest.mark.usefixtures("graph")
PATIENCE_S = 60
WISH = {
    "op": None, "scope": None, "op_type": None, "line": None, "cell": None, "file": None,
    "is_after": False, "when": "", "iteration": None, "step": None, "hits": 1,
}  # fmt: skip


class View:
    """A view that acknowledges everything."""

    def __init__(self, feed):
        self.feed, self.got, self.number = feed, [], 0
        self.hear({"kind": "connect", "view": 7, "protocol": schema.PROTOCOL})

    def send(self, message):
        self.got.append((message, *to_wire(message)))
        if isinstance(message, schema.Snapshot | schema.Delta):
            self.feed.hear(schema.Ack(7, message.seq), self.send)

    def hear(self, data):
        self.feed.hear(message_from(json.loads(json.dumps(data))), self.send)

    def ask(self, name, value=None):
        self.number += 1
        what = {"kind": "command", "command_id": self.number, "name": name, "value": value}
        self.hear({**what, "view": 7})
        return next(m for m, *_ in reversed(self.got) if isinstance(m, schema.Reply))

    @property
    def debug(self):
        self.feed.tick(0.0)
        states = [m.session for m, *_ in self.got if getattr(m, "session", None)]
        return states[-1].debug

    def history(self, tensor, row=None):
        what = {
            "kind": "ask_history",
            "view": 7,
            "request_id": 4,
            "tensor": tensor,
            "most": 100,
            "at": [],
        }
        self.hear({**what, "row": row})
        return next(g for g in reversed(self.got) if isinstance(g[0], schema.TensorHistory))

    def values(self, stop, *tensors):
        self.hear(
            {
                "kind": "ask_values",
                "view": 7,
                "request_id": 3,
                "stop": stop,
                "tensors": tensors,
                "at": [],
            }
        )
        return next(g for g in reversed(self.got) if isinstance(g[0], schema.Values))


@pytest.fixture(params=["compiled", "op", "tokens"])
def program(request, monkeypatch):
    monkeypatch.setattr(history, "_PATIENCE_S", PATIENCE_S)  # replies tell where a step stands
    x = fs.placeholder(fs.float32, [3], name="x")
    b = fs.exp(fs.sin(x, name="a"), name="b")
    y = fs.reduce_sum(b * 2.0, name="y")
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as sess:
        view = View(LiveChannel(sess.graph, sess))
        yield sess, view, lambda: sess.run(y, {x: [0.5, 1.0, 2.0]})
        view.hear({"kind": "disconnect", "view": 7})


def begun(run):
    box = {}

    def work():
        try:
            box["value"] = run()
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=work)
    thread.start()
    return thread, box


def test_a_view_sets_a_breakpoint_looks_replaces_and_goes_on(program):
    sess, view, run = program
    plain = run()
    assert view.debug is None
    reply = view.ask("break", {**WISH, "op": "b", "is_after": True, "when": "max > 1"})
    assert reply.ok and reply.message == "breakpoint 1 is set"
    thread, box = begun(run)
    assert sess.debug.wait(PATIENCE_S)
    (point,), (stop,) = view.debug.breakpoints, view.debug.stops
    assert (point.target, point.conditions, point.is_after, point.hits) == (
        '"b"',
        "max > 1",
        True,
        1,
    )
    assert point.ops == (sess.graph.get_operation_by_name("b").id,) and point.where == ('"b"',)
    assert (stop.breakpoint, stop.step) == (1, 1)
    told, data, buffers = view.values(stop.id, "b", "a", "y")
    states = [(v.name, v.state) for v in told.values]
    assert states == [("b:0", "alive"), ("a:0", "gone"), ("y:0", "not yet")]
    assert told.values[1].why == 'gone since "b"' and told.values[0].max == pytest.approx(
        2.48, 0.01
    )
    drawn = data["values"][0]["picture"]
    table = schema.Table(drawn["rows"], 0, tuple(map(tuple, drawn["columns"])))
    levels = columns_of(table, buffers[drawn["buffer"]])["level"].tolist()
    assert data["values"][0]["width"] == len(levels) == 3 and {min(levels), max(levels)} == {0, 254}
    everything, *_ = view.values(stop.id)
    assert "b:0" in [v.name for v in everything.values]
    wrong = view.ask("replace", {"stop": stop.id, "tensor": "b:0", "text": "[1, 2]"})
    assert not wrong.ok and "expected the shape [3], got [2]" in wrong.message
    evil = view.ask("replace", {"stop": stop.id, "tensor": "b:0", "text": "__import__('os')"})
    assert not evil.ok and "expected numbers" in evil.message
    assert view.ask("replace", {"stop": stop.id, "tensor": "b:0", "text": "0.5"}).ok
    assert view.ask("unbreak", 1).ok and not view.ask("unbreak", 1).ok
    view.ask("resume")
    thread.join(PATIENCE_S)
    assert box["value"] == np.float32(3.0) and run() == plain
    late, *_ = view.values(stop.id, "b")
    assert "has gone on" in late.error and late.values == ()
    assert view.debug is None


def test_what_a_view_may_not_ask(program):
    sess, view, _ = program
    for wish, said in (
        ({"op": "nothing"}, "nothing"),
        ({"op": "b", "when": "import os"}, "a condition: expected"),
        ({}, "expected one of op"),
        ({"op": "b", "hits": -3}, "expected an integer"),
    ):
        reply = view.ask("break", {**WISH, **wish})
        assert not reply.ok and said in reply.message
    for bad in ({**WISH, "op": 3}, {**WISH, "more": 1}, {"op": "b"}):
        with pytest.raises(ValueError, match="of protocol"):
            view.ask("break", bad)
    assert sess.debug.breakpoints == () and not view.ask("step_out").ok
    assert not view.ask("enable", 9).ok


def test_a_view_switches_breakpoints_and_moves(program):
    sess, view, run = program
    view.ask("break", {**WISH, "op_type": "Exp"})
    assert view.ask("disable", 1).message == "breakpoint 1 is off"
    assert not view.debug.breakpoints[0].is_enabled
    run()
    assert view.ask("enable", 1).ok
    thread, _ = begun(run)
    first = sess.debug.wait(PATIENCE_S)
    assert first is not None
    view.ask("step_run")
    with sess.gate._changed:
        assert sess.gate._changed.wait_for(lambda: sess.gate.state == "paused", PATIENCE_S)
    assert view.debug.stops[0].op is None
    view.ask("resume")
    thread.join(PATIENCE_S)


WATCH = {
    "op": None, "scope": None, "op_type": None, "line": None, "cell": None, "file": None,
    "when": "", "exceptions": [], "raises": False,
}  # fmt: skip


def test_a_view_watches_for_what_is_not_finite(program):
    sess, view, run = program
    assert view.ask("watch", WATCH).message == "watchpoint 1 is set"
    (point,) = view.debug.breakpoints
    assert (point.is_watch, point.target, point.found) == (True, "everything", "")
    x = sess.graph.get_tensor_by_name("x:0")
    y = sess.graph.get_tensor_by_name("y:0")
    run()
    thread, box = begun(lambda: sess.run(y, {x: [100.0, 1.0, np.inf]}))
    assert sess.debug.wait(PATIENCE_S)
    (point,), (stop,) = view.debug.breakpoints, view.debug.stops
    assert stop.breakpoint == 1 and "inf" in point.found and '"x"' in point.found
    assert view.ask("unbreak", 1).ok
    view.ask("resume")
    thread.join(PATIENCE_S)
    assert np.isnan(box["value"])
    everything = [op.name for op in sess.graph.get_operations()]
    assert view.ask("watch", {**WATCH, "exceptions": everything, "raises": True}).ok
    assert np.isnan(sess.run(y, {x: [100.0, 1.0, np.inf]}))
    reply = view.ask("watch", {**WATCH, "op": "nothing"})
    assert not reply.ok and "nothing" in reply.message
    for bad in ({**WATCH, "exceptions": "x"}, {**WATCH, "exceptions": [3]}, {"op": "b"}):
        with pytest.raises(ValueError, match="not a WatchWish"):
            view.ask("watch", bad)
    for one in sess.debug.breakpoints:
        one.remove()


def test_a_view_that_vanishes_while_a_step_is_held_leaves_it_held(program):
    sess, view, run = program
    view.ask("break", {**WISH, "op": "b"})
    thread, box = begun(run)
    stop = sess.debug.wait(PATIENCE_S)
    view.hear({"kind": "disconnect", "view": 7})
    assert stop.is_there and sess.gate.state == "paused"
    again = View(view.feed)
    assert again.debug.stops[0].id == stop.id, "a view that is opened anew finds it"
    again.ask("unbreak", 1)
    again.ask("resume")
    thread.join(PATIENCE_S)
    assert "value" in box


def test_messages_are_json():
    wish = schema.BreakpointWish(**{**WISH, "op": "b"})
    sent = to_json(schema.Command(1, "break", wish, 7))
    assert message_from(json.loads(json.dumps(sent))) == schema.Command(1, "break", wish, 7)


def test_a_view_steps_back_moves_there_and_returns_to_the_present(program):
    sess, view, run = program
    refused = view.ask("step_back")
    assert not refused.ok and "no step is held" in refused.message
    assert view.ask("break", {**WISH, "op": "y"}).ok
    thread, box = begun(run)
    assert sess.debug.wait(PATIENCE_S)
    refused = view.ask("step_back")
    assert not refused.ok and "nothing is recorded" in refused.message
    view.ask("resume")
    thread.join(PATIENCE_S)
    plain = box["value"]
    assert view.ask("record", {"tensors": ["b", "x"], "max_bytes": 1 << 20}).ok
    thread, box = begun(run)
    assert sess.debug.wait(PATIENCE_S)
    reply = view.ask("step_back")
    assert reply.ok and reply.message.startswith("step 1, computed again, stands before")
    assert view.ask("step_back").ok
    present, past = view.debug.stops
    assert past.is_past and not present.is_past and past.step == present.step == 1
    assert past.op == sess.graph.get_operation_by_name("b").id
    told, *_ = view.values(past.id, "a", "b")
    assert [v.state for v in told.values] == ["alive", "not yet"]
    gate = sess.debug.stops[-1]._session.gate
    assert view.ask("step_op").ok and gate.wait_until_held(PATIENCE_S)
    moved = view.debug.stops
    assert moved[0] == present and moved[-1].op != past.op
    view.ask("resume")
    thread.join(PATIENCE_S)
    assert box["value"] == plain and view.debug.stops == ()


def test_a_view_looks_at_the_values_that_a_tensor_had(program):
    _, view, run = program
    assert view.history("b")[0].error == "nothing is recorded"
    assert view.ask("record", {"tensors": ["b"], "max_bytes": 1 << 20}).ok
    for _ in range(3):
        run()
    view.feed.tick(1.0)
    state = next(m.session for m, *_ in reversed(view.got) if getattr(m, "session", None))
    assert (state.history.steps, state.history.first, state.history.last) == (3, 0, 2)
    assert state.history.tensors == ("b:0",) and state.history.nbytes > 0
    told, data, buffers = view.history("b", row=1)
    table = data["values"]
    kinds = tuple(map(tuple, table["columns"]))
    columns = columns_of(schema.Table(table["rows"], 0, kinds), buffers[table["buffer"]])
    assert columns["step"].tolist() == [0, 1, 2] and columns["iteration"].tolist() == [-1] * 3
    assert columns["max"].tolist() == [told.shown.max] * 3 and columns["size"].tolist() == [3] * 3
    assert data["shown"]["width"] == 3
    assert "is not recorded" in view.history("a")[0].error
    assert view.ask("replay", {"step": 1, "op": "b", "iterations": []}).ok
    (past,) = view.debug.stops
    assert past.is_past and past.step == 1
    wrong = view.ask("replay", {"step": 1, "op": "b", "iterations": [4]})
    assert not wrong.ok and "does not run by itself in iteration 4" in wrong.message
    late = view.ask("replay", {"step": 77, "op": "b", "iterations": []})
    assert not late.ok and "step 77 cannot be replayed" in late.message
    assert view.ask("record").message == "nothing is recorded any more"
    for bad in ({"tensors": "b", "max_bytes": 1}, {"tensors": [1], "max_bytes": 1}, {}):
        with pytest.raises(ValueError, match="not a"):
            view.ask("record", bad)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_value_of_a_loop_in_a_loop_is_found_again_by_all_iterations(graph, mode):
    x, made = fs.placeholder(fs.float32, [], name="x"), []

    def inner(j, u):
        made.append(fs.sin(u, name="wave"))
        return j + 1, made[0]

    def body(i, v):
        return i + 1, fs.while_loop(lambda j, u: j < 3, inner, [0, v + 1.0])[1]

    y = fs.while_loop(lambda i, v: i < 2, body, [0, x])[1]
    (wave,) = made
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        view = View(LiveChannel(sess.graph, sess))
        assert view.ask("record", {"tensors": [wave.name], "max_bytes": 1 << 20}).ok
        sess.run(y, {x: 0.5})
        _, data, buffers = view.history(wave.name)
        table = data["values"]
        kinds = tuple(map(tuple, table["columns"]))
        columns = columns_of(schema.Table(table["rows"], 0, kinds), buffers[table["buffer"]])
        assert columns["around0"].tolist() == [0, 0, 0, 1, 1, 1]
        assert columns["iteration"].tolist() == [0, 1, 2, 0, 1, 2]
        assert view.ask("replay", {"step": 0, "op": wave.name, "iterations": [1, 2]}).ok
        (past,) = view.debug.stops
        assert past.is_past and past.iterations == (1, 2)
        view.hear({"kind": "disconnect", "view": 7})
