"""Recordings as views are told of them: all that was there, under the graph's names, and no run."""

import dataclasses

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.answers.asking import NOTHING_RUNS
from flowscope.live.answers.history import NO_VALUES
from flowscope.live.protocol.schema import (
    AskHistory,
    AskSpans,
    AskValues,
    Command,
    Connect,
    Disconnect,
)
from flowscope.live.protocol.tables import columns_of
from flowscope.live.watchers.recorded import RecordedFeed
from flowscope.live.watchers.wire import to_wire

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def profiled(graph):
    fs.constant(1.0, name="earlier")
    x = fs.placeholder(fs.float32, [2], name="x")
    _, v = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, fs.tanh(v)), [0, x], name="w")
    y = fs.reduce_sum(v, name="y")
    with fs.Session() as sess, fs.profile(sess) as found:
        for _ in range(3):
            sess.run(y, {x: [1.0, 2.0]})
    return found


@pytest.fixture
def recording(profiled, tmp_path):
    profiled.save(tmp_path / "run.recording")
    return fs.tracing.load(tmp_path / "run.recording")


def asked(feed, message):
    heard = []
    feed.hear(message, heard.append)
    return heard


def test_graph_steps_and_shares_are_told_under_the_graphs_own_numbers(recording, graph):
    feed = RecordedFeed(recording)
    (told,) = asked(feed, Connect(7))
    assert (told.view, told.control, told.session) == (7, "recorded", None)
    names = {node.id: node.name for node in told.graph.added}
    assert sorted(names.values()) == sorted(op.name for op in graph.get_operations())
    assert [s.number for s in told.trace.steps] == [s.number for s in recording.steps]
    rows = columns_of(told.trace.heat, told.trace.heat.data)
    ran = {names[i] for i in rows["id"].tolist()}
    assert {"y", "w/body/Tanh"} <= ran
    assert ran == {n for node in recording.nodes for n in node.names}
    assert sum(dict(zip(rows["node"].tolist(), rows["share"].tolist(), strict=True)).values()) == (
        pytest.approx(1.0)
    )
    placed = {node.name: node.placed for node in told.graph.added}
    assert placed["y"].endswith("CPU:0") and placed["earlier"] is None


def test_spans_of_a_step_lead_to_operations_of_the_graph(recording):
    feed = RecordedFeed(recording)
    names = {node.id: node.name for node in feed.describe().graph.added}
    number = recording.steps[1].number
    (told,) = asked(feed, AskSpans(5, number, None, None, 1000, 7))
    assert (told.request_id, told.view, told.step.number) == (5, 7, number)
    spans = columns_of(told.spans, told.spans.data)
    tanh = [i for i, n in enumerate(told.nodes) if n.name == "w/body/Tanh"]
    assert np.count_nonzero(np.isin(spans["node"], tanh)) == 3
    assert "w/body/Tanh" in [names[i] for i in told.nodes[tanh[0]].operations]
    (newest,) = asked(feed, AskSpans(6, None, None, None, 1000, 7))
    assert newest.step.number == recording.steps[-1].number
    (none,) = asked(feed, AskSpans(6, 99, None, None, 1000, 7))
    assert none.step is None
    assert [s.step.number for s in feed.all_spans(100)] == [s.number for s in recording.steps]
    for one in feed.all_spans(100):
        assert to_wire(one)[1]


def test_nothing_runs_in_a_recording(recording):
    feed = RecordedFeed(recording)
    (reply,) = asked(feed, Command(3, "pause", None, 7))
    assert (reply.ok, reply.message, reply.command_id) == (False, NOTHING_RUNS, 3)
    (values,) = asked(feed, AskValues(7, 1, "stop", (), ()))
    assert (values.error, values.values) == (NOTHING_RUNS, ())
    assert feed.session is None


def test_values_that_were_fetched_or_recorded_are_told(graph, tmp_path):
    x = fs.placeholder(fs.float32, [2], name="x")
    _, v = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, fs.tanh(v)), [0, x], name="w")
    y = fs.reduce_sum(v, name="y")
    with fs.Session() as sess, fs.profile(sess) as profiled:
        sess.debug.record(["w/body/Tanh"])
        results = [sess.run(y, {x: [k, 2.0]}) for k in range(3)]
    profiled.save(tmp_path / "run.recording")
    feed = RecordedFeed(fs.tracing.load(tmp_path / "run.recording"))
    (told,) = asked(feed, Connect(7))
    assert sorted(told.history.tensors) == ["w/body/Tanh:0", "y:0"] and told.session is None
    (past,) = asked(feed, AskHistory(7, 4, "w/body/Tanh:0", 100, 5, ()))
    columns = columns_of(past.values, past.values.data)
    assert columns["step"].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert columns["iteration"].tolist() == [0, 1, 2] * 3
    assert (past.request_id, past.view, past.error) == (4, 7, "")
    assert past.shown.max == columns["max"][5] and past.shown.shape == (2,)
    (sums,) = asked(feed, AskHistory(7, 5, "y:0", 2, None, ()))
    assert columns_of(sums.values, sums.values.data)["max"].tolist() == results[1:]
    (none,) = asked(feed, AskHistory(7, 6, "x:0", 2, None, ()))
    assert 'no values of "x:0"' in none.error
    pairs = list(feed.all_values(4))
    assert [type(one).__name__ for one in pairs] == ["TensorHistory", "Values"] * 2
    assert [len(one.values) for one in pairs[1::2]] == [2, 2]
    for one in pairs:
        assert to_wire(one)[1]


def test_a_recording_without_values_says_so(recording):
    feed = RecordedFeed(dataclasses.replace(recording, values=()))
    (told,) = asked(feed, AskHistory(7, 1, "y:0", 10, None, ()))
    assert told.error == NO_VALUES and feed.describe().history is None


def test_its_views_are_counted_until_they_leave(recording):
    feed, heard = RecordedFeed(recording), []
    tell = heard.append
    feed.hear(Connect(1), tell)
    feed.hear(Connect(2), tell)
    assert feed.views(tell) == 2
    feed.hear(Disconnect(1), tell)
    assert feed.views(tell) == 1
    feed.leave(tell)
    assert feed.views(tell) == 0


@pytest.mark.parametrize("kept", ["", "of an unknown op"])
def test_without_a_graph_the_nodes_that_ran_are_shown(recording, kept):
    text = recording.graph.replace('"Sum"', '"SumOfAnother"') if kept else ""
    feed = RecordedFeed(dataclasses.replace(recording, graph=text))
    nodes = {node.name: node for node in feed.describe().graph.added}
    assert nodes["y"].type == "Sum"
    loop = next(n for n in nodes.values() if n.type == "Loop")
    assert loop.id in nodes["y"].control
    told = next(feed.all_spans(100))
    ids = {i for node in told.nodes for i in node.operations}
    assert ids <= {node.id for node in nodes.values()} and len(ids) > 2


def test_show_takes_recordings(profiled, recording, capsys):
    fs.show(recording)
    assert "y" in capsys.readouterr().out
    fs.show(profiled)
    assert "w/  loop, 11 ops" in capsys.readouterr().out
    with fs.Session() as sess, pytest.raises(fs.errors.DTypeError, match="no session beside"):
        fs.show(recording, sess)
