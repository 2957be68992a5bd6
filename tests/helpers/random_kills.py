"""Kills workers of a real cluster at random points of steps that train, and restores what is lost.

    python tests/helpers/random_kills.py 200

Every step must end, with its result or an error of the kill, within two seconds of it. Then the
session goes on: it restores from the last save, and counts on from there.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(ROOT / "engine"), str(ROOT / "tests" / "helpers")]

from local_clusters import local_cluster, wait_until

import flowscope as fs
from flowscope.cluster.tasks import Task, task_name
from flowscope.errors import AbortedError, FailedPreconditionError, UnavailableError

WORKERS = 3
#: A step ends so soon after a kill.
ENDS_S = 2.0


def counting(graph: fs.Graph) -> tuple[Any, Any, Any]:
    """Returns a variable, a step that counts it up by way of all workers, and an initializer."""
    with graph.as_default():
        with fs.device(task_name("worker", 0)):
            count = fs.Variable(0.0, name="count", dtype=fs.float64)

        def body(i: Any, total: Any) -> tuple[Any, Any]:
            with fs.device(task_name("worker", 1)):
                half = total + 0.25
            with fs.device(task_name("worker", 2)):
                return i + 1, half + 0.25

        _, total = fs.while_loop(
            lambda i, total: i < 200, body, [fs.constant(0), fs.constant(0.0, fs.float64)]
        )
        with fs.device(task_name("worker", 0)):
            step = count.assign_add(total)
    return count, step, count.initializer


def kill_at_random(
    cluster: fs.cluster.Cluster, kills: int, draw: random.Random, folder: str
) -> list[float]:
    """Kills workers; returns how many seconds after each kill its step had ended."""
    graph = fs.Graph()
    count, step, initializer = counting(graph)
    with graph.as_default():
        saver = fs.train.Saver()
    took = []
    with fs.Session(cluster, graph) as session:
        session.run(initializer)
        for _ in range(kills):
            path = saver.save(session, Path(folder) / "model")
            saved = float(session.run(count))
            victim, seconds = _killed_step(cluster, session, step, draw)
            took.append(seconds)
            wait_until(lambda: _is_whole_again(cluster, victim))  # noqa: B023
            saver.restore(session, path)
            assert float(session.run(count)) == saved
            assert float(session.run(step)) == saved + 100.0
    return took


def _is_whole_again(cluster: fs.cluster.Cluster, victim: Task) -> bool:
    """Whether all tasks are there, and the killed one in another life."""
    return len(cluster.tasks) == WORKERS and victim not in cluster.tasks


def _killed_step(
    cluster: fs.cluster.Cluster, session: fs.Session, step: Any, draw: random.Random
) -> tuple[Task, float]:
    """Runs steps until one has met a kill; returns who, and for how long it went on after it."""
    victim = draw.choice(cluster.tasks)
    killed: list[float] = []

    def kill() -> None:
        killed.append(time.monotonic())
        os.kill(victim.pid, signal.SIGKILL)

    timer = threading.Timer(draw.random() * 0.3, kill)
    timer.start()
    try:
        while True:
            session.run(step)
    except (UnavailableError, AbortedError, FailedPreconditionError):
        ended = time.monotonic() - killed[0]
    timer.join()
    assert ended < ENDS_S, f"the step ended {ended:.2f} s after {victim.name} was killed"
    return victim, ended


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    path = os.pathsep.join([str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")])
    with local_cluster({"PYTHONPATH": path}, WORKERS) as dask, tempfile.TemporaryDirectory() as to:
        with fs.cluster.connect(dask) as cluster:
            took = kill_at_random(cluster, kills, random.Random(seed), to)
    print(f"{kills} kills, seed {seed}: steps ended within {max(took):.3f} s")


if __name__ == "__main__":
    main()
