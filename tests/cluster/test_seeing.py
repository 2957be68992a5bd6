"""A cluster of processes tells how it is: a worker that is stopped, and one that is killed."""

from __future__ import annotations

import json
import os
import signal
import threading

import numpy as np
import pytest
from local_clusters import wait_until

import flowscope as fs
from flowscope.errors import UnavailableError
from flowscope.tracing import chrome_trace

pytestmark = pytest.mark.slow


def on(number):
    return fs.device(f"/job:worker/task:{number}")


def test_workers_tell_of_memory_clocks_and_steps(cluster, graph):
    with on(1):
        y = fs.square(fs.constant(3.0))
    before = cluster.status()
    with fs.Session(cluster) as sess:
        assert sess.run(y) == 9.0
        told = cluster.status()
    assert [w.task[-6:] for w in told.workers] == ["task:0", "task:0", "task:1", "task:2"]
    assert told.workers[0].task.startswith("/job:client")
    for worker, task in zip(told.workers[1:], cluster.tasks, strict=True):
        assert (worker.pid, worker.health) == (task.pid, "ok")
        assert worker.memory_bytes and worker.memory_limit
        # All processes of a machine read one clock.
        assert abs(worker.clock_ahead_s) <= worker.clock_error_s
    taken = [b.steps - a.steps for a, b in zip(before.workers, told.workers, strict=True)]
    assert taken[1:] == [0, 1, 0]
    assert "worker 2" in str(told)


def test_a_stopped_worker_is_said_to_hang_and_who_waits_for_it(cluster, graph):
    x = fs.placeholder(fs.float32, [], name="x")
    with on(0):
        h = fs.exp(x, name="h")
    with on(1):
        y = fs.negative(h, name="y")
    pid = cluster.tasks[0].pid
    with fs.Session(cluster) as sess:
        sess.run(y, {x: 0.0})
        failed = []

        def run():
            try:
                sess.run(y, {x: 0.0})
            except UnavailableError as e:
                failed.append(e)

        os.kill(pid, signal.SIGSTOP)
        try:
            thread = threading.Thread(target=run)
            thread.start()
            wait_until(lambda: cluster.status().workers[1].health == "hung")
            told = cluster.status()
            assert "SIGSTOP" in told.workers[1].reason
            assert told.findings[0].kind == "hung"
            thread.join(10)
            assert not thread.is_alive()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert "worker 1 has waited" in failed[0].message and '"h" of worker 0' in failed[0].message
        wait_until(lambda: cluster.health(cluster.tasks[0].name)[0] == "ok")
        assert sess.run(y, {x: 0.0}) == -1.0


def test_a_killed_worker_is_told_as_lost_until_it_is_back(cluster):
    name, pid = cluster.tasks[2].name, cluster.tasks[2].pid
    before = cluster.status().workers[3]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: any(w.health == "lost" for w in cluster.status().workers))
    told = cluster.status()
    if told.workers[3].health == "lost":  # its nanny is quick
        assert (told.workers[3].task, told.workers[3].pid) == (name, pid)
        assert told.workers[3].reason
    wait_until(lambda: cluster.status().workers[3].pid not in (0, pid))
    again = cluster.status().workers[3]
    assert again.task == before.task and again.incarnation != before.incarnation


def test_lanes_of_processes_are_traced_by_one_clock(cluster, graph):
    x = fs.placeholder(fs.float32, [None], name="x")
    with on(0):
        h = fs.exp(fs.boolean_mask(x, x < 1.0), name="h")
    with on(1):
        y = fs.reduce_sum(h, name="y")
    with fs.Session(cluster) as sess:
        feed = {x: np.repeat(np.float32([0.0, 2.0]), 1000)}
        assert sess.run(y, feed) == 1000.0
        with fs.profile(sess) as told:
            sess.run(y, feed)
        recording = told.recording
    (step,) = recording.steps
    spans = recording.spans
    lanes = [recording.lanes[i].kind for i in spans.lane]
    at = {
        recording.nodes[n].name: (int(b), int(e))
        for n, b, e, kind in zip(spans.node, spans.begin, spans.end, lanes, strict=True)
        if n >= 0 and kind == "device"
    }
    assert step.begin <= at["h"][0] <= at["h"][1] <= at["y"][0] <= at["y"][1] <= step.end
    # What went from worker to worker, in its lane, with the bytes that it had.
    (sent,) = [i for i, n in enumerate(spans.node) if lanes[i] == "transfer"
               and n >= 0 and recording.nodes[n].name.startswith("h/")]  # fmt: skip
    assert "task:0/device:CPU:0 \u2192 /job:worker" in recording.lanes[spans.lane[sent]].name
    assert spans.nbytes[sent] == 4000 and spans.begin[sent] <= spans.end[sent]
    ends = [e for e in json.loads(chrome_trace(recording))["traceEvents"] if e["ph"] in "sf"]
    assert [e["ph"] for e in ends if e["name"].startswith("h/")] == ["s", "f"]
