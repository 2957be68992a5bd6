"""Views ask for the variables: the list, and numbers of the values that are in sight."""

from __future__ import annotations

import queue
from dataclasses import replace

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.answers.asking import NOTHING_RUNS
from flowscope.live.answers.variables import MOST_MEASURED, MOST_ROWS, VariableQuestions
from flowscope.live.protocol.tables import columns_of
from flowscope.live.protocol.variables_schema import AskVariables
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.recorded import RecordedFeed
from flowscope.live.watchers.wire import message_from, to_wire

PATIENCE_S = 20


def asked(view=7, number=1, *measured):
    told = {"kind": "ask_variables", "view": view, "request_id": number}
    return message_from({**told, "measured": list(measured), "step": None})


def answer(feed, question):
    told = queue.Queue()
    feed.hear(question, told.put)
    while True:
        message = told.get(timeout=PATIENCE_S)
        if message.kind == "variables":
            return message


def test_a_question_names_what_is_measured():
    assert asked(7, 3, "v", "w") == AskVariables(7, 3, ("v", "w"), None)
    for wrong in (
        {"view": 0},
        {"measured": "v"},
        {"measured": [1]},
        {"request_id": None},
        {"step": 1.5},
    ):
        whole = {"kind": "ask_variables", "view": 7, "request_id": 1, "measured": [], "step": 2}
        with pytest.raises(ValueError, match="not a message of protocol"):
            message_from({**whole, **wrong})


def test_the_list_and_the_numbers_of_values_travel(graph):
    v = fs.Variable([1.0, 3.0], name="v")
    fs.train.MomentumOptimizer(0.1, 0.9).minimize(fs.reduce_sum(v))
    fs.Variable([0], name="later")
    with fs.Session() as sess:
        sess.run([v.initializer])
        told = answer(LiveChannel(graph, sess), asked(7, 1, "v", "later", "none"))
    data, buffers = to_wire(told)
    rows = {row["name"]: row for row in data["rows"]}
    assert rows["v"] == {
        "op": v.op.id, "name": "v", "dtype": "float32", "shape": [2], "nbytes": 8,
        "device": sess.placements[v.op.id], "is_initialized": True, "is_trainable": True,
        "writes": 1, "written_in": 0, "primary": None, "why": "",
    }  # fmt: skip
    assert rows["v/Momentum"]["primary"] == v.op.id
    assert rows["later"]["is_initialized"] is False
    (value,) = data["values"]
    assert (value["name"], value["min"], value["max"]) == ("v", 1.0, 3.0)
    counts = columns_of(told.values[0].histogram, buffers[value["histogram"]["buffer"]])["count"]
    assert counts.sum() == 2
    assert (data["nbytes"], data["left_out"], data["view"]) == (8, 0, 7)


def test_more_than_fit_are_counted_and_few_are_measured(graph):
    for k in range(MOST_ROWS + 2):
        fs.Variable(0.0, name=f"v{k}", collections=[])
    with fs.Session() as sess:
        sess.run([op for op in graph.get_operations() if op.type == "AssignVariableOp"])
        told = answer(
            LiveChannel(graph, sess), asked(7, 1, *[f"v{k}" for k in range(MOST_MEASURED + 1)])
        )
    assert (len(told.rows), told.left_out) == (MOST_ROWS, 2)
    assert told.nbytes == 4 * (MOST_ROWS + 2)
    assert len(told.values) == MOST_MEASURED


def test_without_a_session_it_says_what_to_do(graph):
    told = []
    VariableQuestions().ask(None, asked(), told.append)
    assert told[0].error.startswith("no session runs this graph: make one")


def test_a_recording_has_no_variables_of_its_own(graph):
    y = fs.add(fs.Variable([1.0], name="v"), 1.0, name="y")
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        with fs.profile() as profile:
            sess.run(y)
    told = []
    RecordedFeed(profile.recording).hear(asked(), told.append)
    assert told[0].error == NOTHING_RUNS


def test_the_newest_question_of_a_view_is_answered(graph):
    v = fs.Variable(np.zeros(3), name="v")
    with fs.Session() as sess:
        sess.run(v.initializer)
        told, questions = queue.Queue(), VariableQuestions()
        for number in range(50):
            questions.ask(sess, asked(7, number, "v"), told.put)
        numbers = [told.get(timeout=PATIENCE_S).request_id]
        while numbers[-1] != 49:
            numbers.append(told.get(timeout=PATIENCE_S).request_id)
    assert numbers == sorted(set(numbers))
    assert told.empty()


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_values_before_a_recorded_step_are_told(graph, mode):
    v = fs.Variable([1.0, 3.0], name="v")
    other = fs.Variable([5.0], name="other")
    step = v.assign_add([1.0, 2.0])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:

        def at(number):
            told = answer(LiveChannel(graph, sess), replace(asked(7, 1, "v", "other"), step=number))
            values = {one.name: (one.min, one.max) for one in told.values}
            return told.error, values, {one.name: one for one in told.rows}

        sess.run([v.initializer, other.initializer])
        assert "nothing is recorded" in at(0)[0]
        history = sess.debug.record([])
        for _ in range(3):
            sess.run(step)
        sess.run(other.assign([7.0]))
        numbers = history.steps
        first = numbers[0]
        error, values, rows = at(first)
        assert error == "" and values == {"v": (1.0, 3.0), "other": (5.0, 5.0)}
        assert at(first + 1)[1]["v"] == (2.0, 5.0)
        assert at(first + 2)[1]["v"] == (3.0, 7.0)
        _, values, rows = at(first + 3)
        assert values["other"] == (5.0, 5.0), "before the step that writes it"
        assert "as it is now" in rows["v"].why and values["v"] == (4.0, 9.0)
        assert f"step {first + 9} is not kept" in at(first + 9)[0]
