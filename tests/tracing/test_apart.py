"""Partitions that run apart are traced each for itself, and shown in lanes of their own."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.passes.regions import whole_region
from flowscope.runtime.step.split import SplitFunction
from flowscope.runtime.trace.part_trace import ARRAYS, PartPlan, PartRecorder, packed, unpacked
from flowscope.tracing import chrome_trace

#: So far the second partition's clock is ahead.
AHEAD_NS = 5_000_000_000


class Elsewhere:
    """Runs the partitions of a plan on threads, as another process would run some of them."""

    def __init__(self, plan):
        self.split = SplitFunction(plan.parts)
        self.plans = [
            PartPlan(
                one.back_end,
                part.executable,
                partial(plan.compile_part, one.back_end, whole_region(one.program, True)),
            )
            for one, part in zip(plan.partitions, plan.parts, strict=True)
        ]

    def __call__(self, gate, run, feeds, resources):
        return self.split(gate, run, feeds, resources)

    def traced(self, traces):
        def run(gate, run, feeds, resources):
            recorders = [
                PartRecorder(part.device, plan)
                for part, plan in zip(self.split.parts, self.plans, strict=True)
            ]
            traced = SplitFunction(self.split.parts)
            traced._functions = [one.function for one in recorders]
            fetched = traced(gate, run, feeds, resources)
            here, there = [one.taken() for one in recorders]
            told, arrays = packed(there)
            assert len(arrays) == ARRAYS
            moved = [a + AHEAD_NS if i in (3, 4) else a for i, a in enumerate(arrays)]
            traces.extend([here, unpacked(told, moved, AHEAD_NS, 41_000)])
            return fetched

        return run


@pytest.fixture
def recording(graph):
    x = fs.placeholder(fs.float32, [3], name="x")
    with fs.device("/CPU:1"):
        h = fs.exp(x, name="h")

    def body(i, v):
        with fs.device("/CPU:1"):
            return i + 1, fs.multiply(v, h, name="m")

    _, v = fs.while_loop(lambda i, v: i < 3, body, [fs.constant(0), x], name="loop")
    with fs.device("/CPU:0"):
        y = fs.reduce_sum(h + v, name="y")
    config = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always")
    with fs.Session(config=config) as sess:
        feed = {x: np.float32([0.5, 1.0, 2.0])}
        expected = sess.run(y, feed)
        for call in sess.planner.calls.all():
            call.elsewhere = Elsewhere(call.plan)
        sess.planner.wrap(None)
        with fs.profile(sess) as told:
            assert sess.run(y, feed) == expected
        yield told.recording


def named(recording, name):
    """The spans of a node: lane, frame, iteration, begin, end."""
    spans = recording.spans
    at = [i for i, n in enumerate(recording.nodes) if n.name == name]
    rows = np.flatnonzero(np.isin(spans.node, at))
    columns = spans.lane, spans.frame, spans.iteration, spans.begin, spans.end
    return [tuple(int(c[i]) for c in columns) for i in rows]


def test_each_device_has_a_lane_that_says_how_sure_its_clock_is(recording):
    names = [lane.name for lane in recording.lanes if lane.kind == "device"]
    devices = {name.rpartition("device:")[2] for name in names}
    assert {name[:5] for name in devices} == {"CPU:0", "CPU:1"}
    assert sum("\u00b1 41 \u00b5s" in name for name in devices) == 1


def test_iterations_are_told_of_each_partition_and_clocks_agree(recording):
    multiplied = named(recording, "loop/body/m")
    assert [row[2] for row in multiplied] == [0, 1, 2]
    assert len({row[1] for row in multiplied}) == 1
    (step,) = recording.steps
    assert all(step.begin <= row[3] <= row[4] <= step.end for row in multiplied)
    (exp,), (total,) = named(recording, "h"), named(recording, "y")
    assert exp[4] <= total[4]


def test_what_is_sent_is_a_span_from_its_sender_to_its_receiver(recording):
    lanes = [i for i, lane in enumerate(recording.lanes) if lane.kind == "transfer"]
    spans = recording.spans
    rows = [i for i in range(len(spans)) if spans.lane[i] in lanes]
    names = [recording.nodes[spans.node[i]].name if spans.node[i] >= 0 else "" for i in rows]
    assert {"h/to_CPU:0", "loop/Loop:1/to_CPU:0"} <= set(names)
    (sent,) = [rows[i] for i, name in enumerate(names) if name == "loop/Loop:1/to_CPU:0"]
    (loop, *_) = named(recording, "loop/Loop")
    assert spans.begin[sent] <= spans.end[sent]
    assert loop[3] <= spans.end[sent]


def test_own_times_add_up_to_no_more_than_what_the_lanes_have(recording):
    totals = recording.totals
    assert totals.self_ns.sum() <= 2 * (recording.steps[0].end - recording.steps[0].begin)
    count = {n.name: int(c) for n, c in zip(recording.nodes, totals.count, strict=True)}
    assert (count["loop/body/m"], count["h"], count["y"]) == (3, 1, 1)


def test_partitions_on_threads_of_one_process_are_traced_each_in_its_lane(graph):
    with fs.device("/CPU:1"):
        h = fs.exp(fs.constant(np.ones((64, 64), np.float32)), name="h")
        h = fs.random.normal([64, 64], seed=1) + h
    with fs.device("/CPU:0"):
        y = fs.reduce_sum(h, name="y")
    config = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always")
    with fs.Session(config=config) as sess:
        sess.run(y)
        with fs.profile(sess) as told:
            sess.run(y)
    recording = told.recording
    kinds = {lane.name.rpartition(":")[2]: lane.kind for lane in recording.lanes}
    assert (kinds["0"], kinds["1"]) == ("transfer", "device")
    lanes = {lane.kind: i for i, lane in enumerate(recording.lanes)}
    (sent,) = np.flatnonzero(recording.spans.lane == lanes["transfer"])
    node = recording.nodes[recording.spans.node[sent]]
    assert (node.type, recording.spans.nbytes[sent]) == ("Transfer", 64 * 64 * 4)
    assert recording.spans.begin[sent] < recording.spans.end[sent]
    assert len({int(i) for i in recording.spans.lane if recording.lanes[i].kind == "device"}) == 2


def sent_bytes(recording):
    """The bytes of what was sent, by the names of the transfers."""
    spans = recording.spans
    found = {}
    for row in range(len(spans)):
        if recording.lanes[spans.lane[row]].kind == "transfer":
            # What ends a loop is sent, too, by no node of the plan's.
            name = recording.nodes[spans.node[row]].name if spans.node[row] >= 0 else "condition"
            found.setdefault(name, []).append(int(spans.nbytes[row]))
        else:
            assert spans.nbytes[row] == -1
    return found


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_bytes_are_those_that_went_over_where_shapes_do_not_tell_them(graph, mode):
    x = fs.placeholder(fs.float32, [None], name="x")
    with fs.device("/CPU:1"):
        chosen = fs.boolean_mask(x, x > 0, name="chosen")
        words = fs.as_string(chosen, name="words")
    with fs.device("/CPU:0"):
        y = fs.negative(chosen, name="y"), fs.strings.length(words, name="z")
    config = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always", mode=mode)
    with fs.Session(config=config) as sess:
        for fed in ([1.0, -1.0, 3.0], [1.0] * 50):
            with fs.profile(sess) as told:
                lengths = sess.run(y, {x: np.float32(fed)})[1]
            found = sent_bytes(told.recording)
            back = {name: sizes for name, sizes in found.items() if name.endswith("to_CPU:0")}
            count = sum(v > 0 for v in fed)
            assert sorted(back.values()) == sorted([[count * 4], [int(lengths.sum())]])


def test_values_that_grow_in_a_loop_are_told_each_with_its_own_bytes(graph):
    def body(i, v):
        with fs.device("/CPU:1"):
            v = fs.concat([v, v], 0, name="twice")
        return i + 1, v

    with fs.device("/CPU:0"):
        _, v = fs.while_loop(
            lambda i, v: fs.reduce_sum(v) < 7.0,
            body,
            [fs.constant(0), fs.constant([1.0])],
            shape_invariants=[fs.TensorShape([]), fs.TensorShape([None])],
            name="loop",
        )
    config = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always")
    with fs.Session(config=config) as sess:
        sess.run(v)
        with fs.profile(sess) as told:
            assert len(sess.run(v)) == 8
        assert [4, 8, 16, 32] in sent_bytes(told.recording).values()


def test_chromes_format_has_arrows_from_sends_to_receives(recording):
    events = json.loads(chrome_trace(recording))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    sent = [e for e in slices if e["cat"] == "Transfer" and "\u2192" in lanes[e["tid"]]]
    assert len(begins) == len(ends) >= len(sent) > 0
    assert all("bytes" in e["args"] for e in sent)
    names = set()
    for number, begin in begins.items():
        end = ends[number]
        assert begin["ts"] <= end["ts"] and end["bp"] == "e"
        around = [
            [e for e in slices if e["tid"] == at["tid"] and e["pid"] == at["pid"]
             and e["ts"] <= at["ts"] <= e["ts"] + e["dur"]]
            for at in (begin, end)
        ]  # fmt: skip
        assert all(around), "an arrow is bound to slices around its ends"
        assert lanes[begin["tid"]] != lanes[end["tid"]]
        names.add(begin["name"])
    assert {"h/to_CPU:0", "loop/Loop:1/to_CPU:0"} <= names
