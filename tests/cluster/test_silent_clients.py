"""Clients that are stopped are given up: their steps end, and they swallow no elements."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from local_clusters import local_cluster as started_cluster, wait_until

import flowscope as fs
from flowscope.cluster.worker.client_watch import ClientWatch

#: A client whose dequeue waits until it is stopped; when it thaws, it runs another step.
CLIENT = """
import sys
import flowscope as fs

cluster = fs.cluster.connect(sys.argv[1])
with fs.device("/job:worker/task:0"), fs.container("shared"):
    queue = fs.FIFOQueue(10, fs.int32, [], shared_name="q")
    taken, size = queue.dequeue(), queue.size()
with fs.Session(cluster) as sess:
    sess.run(size)
    print("begins", flush=True)
    try:
        print("got", sess.run(taken), flush=True)
    except fs.errors.UnavailableError as e:
        print("lost" if "/job:worker/replica:0/task:0 is lost" in str(e) else e, flush=True)
    cluster.wait_for(["/job:worker/task:0"], 20)
    print("got", sess.run(taken), flush=True)
"""


@pytest.fixture(scope="module")
def dask_cluster(source_env: dict[str, str]) -> Iterator[Any]:
    with dask.config.set({"flowscope.client-silence": "1s"}):
        with started_cluster(source_env, 1) as found:
            yield found


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_dequeue_of_a_client_that_is_gone_takes_no_element(
    how: str, dask_cluster: Any, source_env: dict[str, str], tmp_path: Path, graph: fs.Graph
) -> None:
    program = tmp_path / "client.py"
    program.write_text(CLIENT)
    with fs.cluster.connect(dask_cluster) as cluster, fs.Session(cluster) as sess:
        with fs.device("/job:worker/task:0"), fs.container("shared"):
            queue = fs.FIFOQueue(10, fs.int32, [], shared_name="q")
            x = fs.placeholder(fs.int32, [])
            put, taken, size = queue.enqueue(x), queue.dequeue(), queue.size()
        assert sess.run(size) == 0
        process = subprocess.Popen(
            [sys.executable, str(program), cluster.target],
            env=source_env,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert line_of(process) == "begins"
            wait_until(lambda: any("q" in w.what for w in cluster.status().waits))
            os.kill(process.pid, signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
            wait_until(lambda: not any("q" in w.what for w in cluster.status().waits))
            sess.run(put, {x: 7})
            assert sess.run(size) == 1  # whose dequeue waited has not swallowed it
            assert sess.run(taken) == 7
            if how == "stopped":
                os.kill(process.pid, signal.SIGCONT)
                assert line_of(process) == "lost"
                sess.run(put, {x: 8})
                assert line_of(process) == "got 8"
                assert process.wait(20) == 0
        finally:
            process.kill()
            process.communicate()


def test_only_silent_clients_are_given_up() -> None:
    given_up: list[str] = []
    silences = {"client:1": 0.0, "client:2": 100.0}
    watch = ClientWatch("clients", 0.05, lambda: list(silences.items()), given_up.append)
    watch.start()
    wait_until(lambda: bool(given_up))
    watch.close()
    assert set(given_up) == {"client:2"}
