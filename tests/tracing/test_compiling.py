"""The code that reads a clock is made before the first traced step, which does not contain it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import flowscope as fs

TRACED = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)


def _chain(length: int) -> tuple[Any, Any]:
    x = fs.placeholder(fs.float32, [], name="x")
    y = x
    for i in range(length):
        y = fs.maximum(y, x) if i % 2 else y - 1.0
    return x, y


def test_the_first_traced_step_does_not_contain_the_making_of_its_code() -> None:
    with fs.Graph().as_default(), fs.Session() as sess:
        x, y = _chain(200)
        sess.run(y, {x: 1.0})
        with fs.profile(sess) as profiled:
            begin = time.perf_counter_ns()
            sess.run(y, {x: 1.0})
            whole = time.perf_counter_ns() - begin
            sess.run(y, {x: 1.0})
    recording = profiled.recording
    lanes = [lane.kind for lane in recording.lanes]
    spans, (first, second) = recording.spans, recording.steps
    (row,) = np.flatnonzero(spans.lane == lanes.index("compiling"))
    compiled = int(spans.end[row] - spans.begin[row])
    assert spans.end[row] == first.begin
    assert compiled + first.end - first.begin <= whole
    inside = np.arange(first.first, first.last)
    assert row not in inside
    assert (spans.begin[inside] >= first.begin).all()
    assert second.begin >= first.end


def test_a_view_finds_the_making_of_code_before_the_step() -> None:
    from flowscope.tracing.windows import window

    with fs.Graph().as_default(), fs.Session() as sess:
        x, y = _chain(3)
        sess.run(y, {x: 1.0})
        with fs.profile(sess) as profiled:
            sess.run(y, {x: 1.0})
    recording = profiled.recording
    (step,) = recording.steps
    kinds = [lane.kind for lane in recording.lanes]

    def lanes(begin: int) -> set[str]:
        found = window(recording, step, begin, step.end, 1000)
        return {kinds[i] for i in found.columns["lane"]}

    assert "compiling" not in lanes(step.begin)
    assert "compiling" in lanes(step.begin - 1)
    assert any("compiling" in e["name"] for e in recording_events(recording))


def recording_events(recording: Any) -> list[dict[str, Any]]:
    """Returns the slices of its Chrome export."""
    import json

    from flowscope.tracing.chrome import chrome_trace

    return [e for e in json.loads(chrome_trace(recording))["traceEvents"] if e["ph"] == "X"]


def test_metadata_of_the_first_traced_step_tells_no_compilation() -> None:
    with fs.Graph().as_default(), fs.Session() as sess:
        x, y = _chain(200)
        sess.run(y, {x: 1.0})
        metadata = fs.RunMetadata()
        begin = time.perf_counter_ns()
        sess.run(y, {x: 1.0}, options=TRACED, run_metadata=metadata)
        whole = time.perf_counter_ns() - begin
        trace = metadata.step_stats.trace
    assert trace.compiled_ns > 0
    assert metadata.step_stats.total_ns + trace.compiled_ns <= whole


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_buffers_are_used_again_and_steps_keep_their_own_readings(mode: str) -> None:
    config = fs.ConfigProto(mode=mode)
    with fs.Graph().as_default(), fs.Session(config=config) as sess:
        n = fs.placeholder(fs.int32, [])
        y = fs.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 2.0), [0, 1.0])[1]
        with fs.profile(sess) as profiled:
            found = [float(sess.run(y, {n: count})) for count in (3, 1, 6, 0)]
    assert found == [8.0, 2.0, 64.0, 1.0]
    recording = profiled.recording
    spans = recording.spans
    products = [i for i, node in enumerate(recording.nodes) if node.type == "Mul"]
    for step, count in zip(recording.steps, (3, 1, 6, 0), strict=True):
        rows = np.arange(step.first, step.last)
        assert np.isin(spans.node[rows], products).sum() == count
        assert (spans.begin[rows] >= step.begin).all() and (spans.end[rows] <= step.end).all()


def test_spans_of_the_newest_step_are_told_before_anybody_has_looked_at_totals() -> None:
    from flowscope.live.answers.traces import Tracing
    from flowscope.live.protocol.schema import AskSpans

    with fs.Graph().as_default() as graph, fs.Session(graph=graph) as sess:
        x, y = _chain(5)
        tracing = Tracing()
        empty = tracing.spans(AskSpans(1, None, None, None, 1000, 1))
        assert empty.step is None and empty.spans.rows == 0
        tracing.steps_per_s = 1000.0
        for now_s in range(3):
            tracing.ask(sess, float(now_s))
            sess.run(y, {x: 1.0})
        newest = tracing.spans(AskSpans(1, None, None, None, 1000, 1))
        asked = tracing.spans(AskSpans(1, 2, None, None, 1000, 1))
        state = tracing.state()
    assert newest.step is not None and asked.step is not None
    assert newest.step.number == asked.step.number == 2
    assert newest.spans.rows == asked.spans.rows
    assert state is not None and [s.number for s in state.steps] == [0, 1, 2]
