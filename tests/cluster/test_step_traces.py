"""Steps over several processes say who waits for whom, and are traced everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_hosts import hosts_here, on
from late_steps import late

import flowscope as fs


@pytest.fixture
def ends(graph):
    with hosts_here(2) as found:
        yield found


def test_a_deadline_says_who_waited_for_whom_over_all_workers(ends):
    cluster, _ = ends
    with on(1):
        queue = fs.FIFOQueue(1, fs.float32, [], name="jobs")
        got = queue.dequeue(name="got")
    with on(0):
        more = fs.exp(got, name="more")
    with fs.device("/job:client/task:0"):
        last = fs.negative(more, name="last")
    with fs.Session(cluster) as sess:
        text = late(sess, last, ms=1000).message
    assert "1000 ms" in text
    assert 'worker 1 waits for the queue "jobs": worker 0 has waited' in text
    assert '"got" of worker 1' in text


@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_a_traced_step_has_a_lane_for_each_process(ends, mode):
    cluster, _ = ends
    x = fs.placeholder(fs.float32, [2], name="x")
    with on(0):
        h = fs.exp(x, name="h")

    def body(i, v):
        with on(1):
            return i + 1, fs.multiply(v, h, name="m")

    _, v = fs.while_loop(lambda i, v: i < 3, body, [fs.constant(0), x], name="loop")
    with fs.device("/job:client/task:0"):
        y = fs.reduce_sum(v, name="y")
    config = fs.ConfigProto(mode=mode)
    with fs.Session(cluster, config=config) as sess:
        feed = {x: np.float32([0.5, 1.0])}
        expected = sess.run(y, feed)
        with fs.profile(sess) as told:
            assert sess.run(y, feed) == expected
        recording = told.recording
    lanes = [lane.name for lane in recording.lanes if lane.kind == "device"]
    assert len([n for n in lanes if "task:0/device:CPU:0 \u00b1" in n and "worker" in n]) == 1
    assert len([n for n in lanes if "task:1/device:CPU:0 \u00b1" in n]) == 1
    count = {n.name: int(c) for n, c in zip(recording.nodes, recording.totals.count, strict=True)}
    assert (count["h"], count["loop/body/m"], count["y"]) == (1, 3, 1)
    spans = recording.spans
    (step,) = recording.steps
    pairs = zip(spans.node.tolist(), spans.end.tolist(), strict=True)
    ends_at = {recording.nodes[node].name: end for node, end in pairs if node >= 0}
    assert step.begin <= ends_at["h"] <= ends_at["y"] <= step.end
    sent = [lane.name for lane in recording.lanes if lane.kind == "transfer"]
    assert any("task:0/device:CPU:0 \u2192 /job:worker/replica:0/task:1" in name for name in sent)


def test_a_step_that_is_not_traced_says_nothing_of_itself(ends):
    cluster, hosts = ends
    with on(0):
        y = fs.exp(1.0)
    with fs.Session(cluster) as sess:
        sess.run(y)
        with fs.profile(sess) as told:
            sess.run(y)
        sess.run(y)
        assert len(told.recording.steps) == 1
    assert hosts[0].steps.done == 3
