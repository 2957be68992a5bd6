"""Clusters that people start by hand, and clusters that get smaller by themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
from local_clusters import wait_until

import flowscope as fs
from flowscope.cluster.membership.tasks import task_name
from flowscope.cluster.servers.registry import HELD_METRIC
from flowscope.errors import FailedPreconditionError

pytestmark = pytest.mark.slow

#: What stands in the place of flowscope in environments that are not as they should be.
NONE = 'raise ModuleNotFoundError("No module named \'flowscope\'", name="flowscope")\n'
OTHER = '__version__ = "0.0.1"\n'


class Machines:
    """A `dask scheduler` and `dask worker`s, each a process that a command has started."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.env = {**env, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s"}
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.file = folder / "scheduler.json"
        # The workers begin meanwhile: they wait for the file.
        self.start("scheduler", "--port", "0", "--no-dashboard")

    def start(self, what: str, *arguments: str, instead: str = "") -> subprocess.Popen[bytes]:
        """Starts one of Dask's commands.

        Args:
            instead: What stands in the place of flowscope there; "" for nothing.
        """
        env = self.env
        if instead:
            place = self.folder / f"{len(self.processes)}"
            place.mkdir()
            (place / "flowscope.py").write_text(instead)
            env = {**env, "PYTHONPATH": f"{place}{os.pathsep}{env['PYTHONPATH']}"}
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file)]
        log = (self.folder / f"{len(self.processes)}.log").open("wb")
        with log:
            self.processes.append(
                subprocess.Popen([*command, *arguments], env=env, stdout=log, stderr=log)
            )
        return self.processes[-1]

    def worker(self, *arguments: str, instead: str = "") -> subprocess.Popen[bytes]:
        where = ["--no-dashboard", "--local-directory", str(self.folder)]
        return self.start("worker", *where, *arguments, instead=instead)

    @property
    def address(self) -> str:
        """The scheduler's address, when it is there."""

        def is_there() -> bool:
            return self.file.exists() and self.file.read_text().endswith("}")

        wait_until(is_there)
        return str(json.loads(self.file.read_text())["address"])

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        process.wait(60)

    def close(self) -> None:
        for process in reversed(self.processes):  # the scheduler last: workers tell it that they go
            self.stop(process)


@pytest.fixture
def machines(tmp_path: Path, source_env: dict[str, str]) -> Iterator[Machines]:
    """Two parameter servers, one by its name and one by a resource, and a worker."""
    found = Machines(tmp_path, source_env)
    found.worker("--name", "ps-0", "--nthreads", "1", "--no-nanny")
    found.worker("--name", "alice", "--nthreads", "2", "--nanny", "--resources", "ps=1")
    found.worker("--name", "bob", "--nthreads", "1", "--no-nanny")
    try:
        with distributed.Client(found.address) as client:
            client.wait_for_workers(3, timeout=60)
        yield found
    finally:
        found.close()


def workers_of(client: distributed.Client) -> dict[str, str]:
    """Returns the addresses of workers by their names."""
    found = client.scheduler_info(n_workers=-1)["workers"]
    return {facts["name"]: address for address, facts in found.items()}


def test_names_and_resources_say_what_workers_are(machines: Machines, graph: fs.Graph) -> None:
    """A training step over a cluster of three commands: two parameter servers, one worker."""
    with fs.cluster.connect(machines.address) as cluster:
        wait_until(lambda: len(cluster.tasks) == 3)
        found = {task.name: task.worker for task in cluster.tasks}
        assert found == {
            task_name("ps", 0): "ps-0",
            task_name("ps", 1): "alice",
            task_name("worker", 0): "bob",
        }
        with fs.device(fs.train.replica_device_setter(cluster=cluster)):
            a, b = fs.Variable(np.ones(3, np.float32)), fs.Variable(2.0)
            loss = fs.reduce_sum(a * b)
            train = fs.train.GradientDescentOptimizer(0.5).minimize(loss)
        assert [v.device for v in (a, b)] == ["/job:ps/task:0", "/job:ps/task:1"]
        with fs.Session(cluster) as session:
            session.run(fs.global_variables_initializer())
            session.run(train)
            np.testing.assert_array_equal(session.run(a), np.zeros(3, np.float32))
            assert session.run(b) == 0.5


def test_workers_that_are_not_as_others_are_refused(
    tmp_path: Path, source_env: dict[str, str]
) -> None:
    """The error names one, and says what to do; without them the cluster is as good as any."""
    machines = Machines(tmp_path, source_env)
    wrong = {
        "without": (NONE, "cannot import flowscope.*pip install"),
        "other": (OTHER, "has 0.0.1: all processes of a cluster need the same version"),
    }
    try:
        running = {
            name: machines.worker("--name", name, "--no-nanny", instead=instead)
            for name, (instead, _) in wrong.items()
        }
        with distributed.Client(machines.address) as client:
            client.wait_for_workers(2, timeout=60)
            for name, (_, match) in wrong.items():
                address = workers_of(client)[name]
                with pytest.raises(FailedPreconditionError, match=match) as caught:
                    fs.cluster.connect(client)
                assert address in str(caught.value)
                machines.stop(running[name])
                wait_until(lambda gone=name: gone not in workers_of(client))
            with fs.cluster.connect(client) as cluster:
                assert cluster.tasks == ()
    finally:
        machines.close()


@contextmanager
def in_this_process(workers: int) -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as found:
        yield found


def test_an_adaptive_cluster_keeps_workers_that_hold_values(graph: fs.Graph) -> None:
    """It closes the others, as many as it may; what the variable holds is there."""
    with in_this_process(3) as dask, fs.cluster.connect(dask) as cluster:
        with fs.device(task_name("worker", 1)):
            v = fs.Variable(np.arange(1000.0), name="v")
        with fs.Session(cluster) as session:
            session.run(v.initializer)
            keeper = cluster.task(task_name("worker", 1))
            worker = dask.scheduler.workers[keeper.dask_address]
            wait_until(lambda: worker.metrics.get(HELD_METRIC) == 8000)
            dask.adapt(minimum=1, maximum=3, interval="20ms", wait_count=2)
            wait_until(lambda: len(cluster.tasks) == 1)
            assert cluster.tasks == (keeper,)
            np.testing.assert_array_equal(session.run(v), np.arange(1000.0))


def test_accelerators_of_workers_are_what_their_first_client_says(graph: fs.Graph) -> None:
    """Each worker has its own, by its own names: device 0 is the first that its process sees."""
    config = fs.ConfigProto(fake_devices={"GPU": 1})
    with in_this_process(2) as dask, fs.cluster.connect(dask, config=config) as cluster:
        for i, task in enumerate(cluster.tasks):
            names = [device.name.rpartition("device:")[2] for device in task.devices]
            assert names == ["CPU:0", "GPU:0"]
            with fs.device(f"/job:worker/task:{i}/device:GPU:0"):
                fs.identity(fs.constant(np.ones(4)) * float(i + 1), name=f"y{i}")
        with fs.Session(cluster) as session:
            for i in range(2):
                np.testing.assert_array_equal(session.run(f"y{i}:0"), np.full(4, i + 1.0))
