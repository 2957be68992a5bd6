"""Training that goes on after a worker that holds variables was killed."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

import flowscope as fs

pytestmark = pytest.mark.slow

TASKS = [f"/job:worker/replica:0/task:{i}" for i in range(3)]


def test_training_goes_on_after_a_kill(
    cluster: fs.cluster.Cluster, graph: fs.Graph, tmp_path: Path
) -> None:
    """It goes on from the last checkpoint, in the same call of `run`."""
    with fs.device(TASKS[0]):
        total = fs.Variable(0, dtype=fs.int64, name="total")
    step = fs.train.get_or_create_global_step()
    with fs.device(TASKS[1]):
        two = fs.constant(2, fs.int64) * fs.cast(step + 1, fs.int64)
    with fs.device(TASKS[0]):
        train = fs.group(total.assign_add(two - 2 * step), step.assign_add(1))
    victim = cluster.task(TASKS[0])
    with fs.train.MonitoredTrainingSession(
        cluster, checkpoint_dir=str(tmp_path), save_checkpoint_steps=5, max_wait_secs=60
    ) as sess:
        for _ in range(12):
            sess.run(train)
        assert sess.run(total) == 24
        killer = threading.Timer(0.05, os.kill, (victim.pid, signal.SIGKILL))
        killer.start()
        first = sess._hooked
        while sess._hooked is first:
            sess.run(train)
        killer.join()
        reached = int(sess.run(step))
        assert reached >= 10
        for _ in range(3):
            sess.run(train)
        assert sess.run([step, total]) == [reached + 3, 2 * reached + 6]
    assert cluster.task(TASKS[0]).incarnation != victim.incarnation
