"""The list of variables: what a session keeps of them, and numbers of their values."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.debug.variables import MOST_ELEMENTS
from flowscope.errors import FailedPreconditionError
from flowscope.graph.current_step import working_for
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.step.step import Step

MODES = ("compiled", "op", "tokens")


def named(listed):
    return {one.name: one for one in listed}


@pytest.fixture
def model(graph):
    x = fs.placeholder(fs.float32, [None, 4], name="x")
    with fs.variable_scope("dense"):
        w = fs.get_variable("w", [4, 3], initializer=fs.zeros_initializer())
    fs.Variable([1.0, 2.0], name="idle", trainable=False)
    loss = fs.reduce_mean(fs.square(fs.matmul(x, w) - 1.0))
    fs.train.AdamOptimizer(0.1).minimize(loss, name="train")
    return w


@pytest.mark.parametrize("mode", MODES)
def test_each_variable_tells_which_step_wrote_it_last(model, mode):
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert {v.is_initialized for v in sess.variables()} == {False}
        sess.run(fs.global_variables_initializer())
        for _ in range(3):
            sess.run("train", {"x:0": np.ones((2, 4))})
        sess.run("idle:0")
        found = named(sess.variables())
    assert {n: v.written_in for n, v in found.items() if n != "idle"} == dict.fromkeys(
        ["dense/w", "dense/w/Adam", "dense/w/Adam_1", "beta1_power", "beta2_power"], 3
    )
    assert (found["idle"].written_in, found["idle"].writes) == (0, 1)
    assert (found["dense/w"].shape, found["dense/w"].nbytes) == ((4, 3), 48)
    assert found["dense/w"].is_trainable
    assert not found["dense/w/Adam"].is_trainable
    assert found["dense/w"].device.endswith("CPU:0")


def test_slots_stand_behind_the_variable_that_they_accompany(model):
    with fs.Session() as sess:
        listed = sess.variables()
        assert [v.name for v in listed][:3] == ["dense/w", "dense/w/Adam", "dense/w/Adam_1"]
        assert [v.primary and v.primary.name for v in listed] == [
            None, "dense/w", "dense/w", None, None, None,
        ]  # fmt: skip
        assert named(listed)["dense/w/Adam"].scope == "dense/w"
        assert [v.name for v in sess.variables("dense/w$")] == ["dense/w"]


def test_a_moving_average_accompanies_its_variable(graph):
    v = fs.Variable([1.0], name="v")
    fs.train.ExponentialMovingAverage(0.9).apply([v])
    with fs.Session() as sess:
        assert [(one.name, one.primary) for one in sess.variables()] == [
            ("v", None), ("v/ExponentialMovingAverage", v.op),
        ]  # fmt: skip


def test_numbers_of_values_are_told_where_they_are_asked_for(graph):
    fs.Variable([1.0, np.nan, np.inf, -3.0], name="v")
    fs.Variable(["a", "b"], name="texts")
    fs.Variable([1, 2], name="empty")
    with fs.Session() as sess:
        sess.run(["v/Assign", "texts/Assign"])
        assert all(one.statistics is None for one in sess.variables())
        found = named(sess.variables(statistics=True))
        text = str(sess.variables(statistics=True))
    v = found["v"].statistics
    assert (v.finite, v.nan, v.inf, v.min, v.max, v.mean) == (2, 1, 1, -3.0, 1.0, -1.0)
    assert sum(v.histogram) == 2
    assert found["texts"].statistics.min is None
    assert found["empty"].statistics is None
    assert "2 bad" in text
    assert "not initialised" in text
    assert text.endswith("3 variables, 32 bytes")


def test_of_a_large_value_some_elements_are_looked_at(graph):
    v = fs.Variable(fs.zeros([3, MOST_ELEMENTS]), name="v")
    with fs.Session() as sess:
        sess.run(v.initializer)
        (found,) = sess.variables(statistics=True)
    assert found.statistics.finite == MOST_ELEMENTS
    assert found.statistics.shape == (3, MOST_ELEMENTS)
    assert found.statistics.nbytes == 12 * MOST_ELEMENTS


def test_a_write_that_is_taken_back_is_not_told():
    state = VariableState("v", [])
    state.assign(np.float32(1.0))
    step = Step.__new__(Step)
    step.number = 7
    with working_for(step):
        state.keep()
        state.assign(np.float32(2.0))
        assert state.written_in == 7
        state.undo()
    assert (state.value, state.written_in) == (1.0, None)


def test_a_value_is_never_seen_half_written_and_no_step_waits(graph):
    x = fs.placeholder(fs.float32, [], name="x")
    v = fs.Variable(fs.zeros([64, 1024]), name="v")
    write = v.assign(fs.fill([64, 1024], x), read_value=False)
    with fs.Session() as sess:
        sess.run(v.initializer)
        write_now = sess.make_callable(write, [x])
        has_ended = threading.Event()

        def writes():
            for k in range(400):
                write_now(float(k))
            has_ended.set()

        thread = threading.Thread(target=writes)
        thread.start()
        seen = []
        while not has_ended.is_set() or len(seen) < 5:
            (one,) = sess.variables(statistics=True)
            seen.append(one.statistics)
        thread.join()
    assert {(s.finite, s.min == s.max) for s in seen} == {(64 * 1024, True)}


def test_variables_that_partitions_on_threads_write_tell_the_step(graph):
    with fs.device("/cpu:1"):
        v = fs.Variable(1.0, name="v")
        add = v.assign_add(1.0)
    with fs.device("/cpu:0"):
        y = fs.negative(add)
    config = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always")
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(y) == -2.0
        (found,) = sess.variables()
    assert found.written_in == 1
    assert found.device.endswith("CPU:1")


def test_a_replay_says_where_its_variables_are(model):
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        sess.debug.record()
        sess.run("train", {"x:0": np.ones((2, 4))})
        replay = sess.debug.replay(1)
        with pytest.raises(FailedPreconditionError, match="a replay lists no variables"):
            replay.debug.variables()


def test_a_graph_without_variables_says_so(graph):
    with fs.Session() as sess:
        assert repr(sess.variables()) == "the graph has no variable"
