"""Clients of processes of their own that take elements are killed and stopped: none is doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from fault_matrix import Processes, scheduler_file
from local_clusters import wait_until

import flowscope as fs
from flowscope.cluster.membership.tasks import task_name

pytestmark = pytest.mark.slow
ELEMENTS = 3000
#: Takes elements for ever, and says which once it has them.
TAKER = """
import sys
import flowscope as fs
from flowscope.errors import OpError

with fs.device("/job:worker/task:0"), fs.container("takers"):
    taken = fs.FIFOQueue(5000, fs.int32, [], shared_name="jobs").dequeue()
cluster = fs.cluster.connect(sys.argv[1])
sess = fs.Session(cluster)
while True:
    try:
        print(int(sess.run(taken)), flush=True)
    except OpError:
        continue
"""


class Taker:
    """Such a client, and what it has said."""

    def __init__(self, address: str, env: dict[str, str]) -> None:
        line = [sys.executable, "-c", TAKER, address]
        self.process = subprocess.Popen(line, env=env, stdout=subprocess.PIPE, text=True)
        self.taken: list[int] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.taken.append(int(line))

    def goes_on(self, count: int) -> None:
        """Waits until it has taken so many more."""
        enough = len(self.taken) + count
        wait_until(lambda: len(self.taken) >= enough)

    def kill(self) -> None:
        """Ends it, and takes what it has said."""
        self.process.kill()
        self.process.wait()
        self._thread.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_what_killed_and_stopped_clients_took_is_theirs_or_in_the_queue(
    graph: fs.Graph, source_env: dict[str, str], tmp_path: Path
) -> None:
    draw, taken = random.Random(3), list[int]()
    with fs.device(task_name("worker", 0)), fs.container("takers"):
        queue = fs.FIFOQueue(5000, fs.int32, [], shared_name="jobs")
        fill, size = queue.enqueue_many([list(range(ELEMENTS))]), queue.size()
        fed = fs.placeholder(fs.int32, [])
        left = queue.dequeue_many(fed)
    processes = Processes(str(tmp_path))
    takers: list[Taker] = []
    try:
        with fs.cluster.connect(scheduler_file(processes.file)) as cluster:
            wait_until(lambda: any(t.index == 0 for t in cluster.tasks))
            with fs.Session(cluster) as sess:
                sess.run(fill)

                def is_quiet() -> bool:
                    told: Any = cluster.call(task_name("worker", 0), {"kind": "status"})
                    return told["running"] == 0

                for kind in ("kill", "kill", "stop", "stop"):
                    taker = Taker(scheduler_file(processes.file), dict(os.environ, **source_env))
                    takers.append(taker)
                    taker.goes_on(5 + draw.randrange(20))
                    if kind == "stop":
                        taker.process.send_signal(signal.SIGSTOP)
                        wait_until(is_quiet, 4.0)
                        taker.process.send_signal(signal.SIGCONT)
                        taker.goes_on(5)
                    taker.kill()
                    wait_until(is_quiet, 2.0)
                    taken += taker.taken
                rest = sess.run(left, {fed: int(sess.run(size))}).tolist()
    finally:
        for taker in takers:
            taker.process.kill()
        processes.close()
    found = taken + rest
    assert len(found) == len(set(found)), "an element was taken twice"
    # A client that dies between its confirmation and its next line has the element.
    assert len(set(range(ELEMENTS)) - set(found)) <= len(takers)
    assert rest == sorted(rest)
