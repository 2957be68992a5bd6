"""Which worker is which task; who joins and leaves; what Dask is told."""

from __future__ import annotations

import os
import signal
from typing import Any

import distributed
import numpy as np
import pytest
from local_clusters import local_cluster as started_cluster, wait_until
from tls_files import CERT, KEY, ROLES

import flowscope as fs
from flowscope.cluster.membership.tasks import TaskNumbers, WorkerFacts, task_name
from flowscope.cluster.servers.registry import HELD_METRIC, STEPS_METRIC, Registry
from flowscope.errors import FailedPreconditionError, UnavailableError

TASKS = [task_name("worker", i) for i in range(3)]


def facts(name: str, **resources: float) -> WorkerFacts:
    return WorkerFacts(name, f"tcp://{name}", resources)


def test_numbers() -> None:
    """Jobs come from what was said, from names, from resources; numbers from names or in order."""
    numbers = TaskNumbers({"reader": ["bob"]})
    numbers.add([facts("10"), facts("9"), facts("ps-1"), facts("bob"), facts("alice", ps=1)])
    assert numbers.task_of(facts("bob")) == ("reader", 0)
    assert numbers.task_of(facts("ps-1")) == ("ps", 1)
    assert numbers.task_of(facts("alice")) == ("ps", 0)
    numbers = TaskNumbers()
    numbers.add([facts("alice", ps=1), facts("ps-0")])  # numbers of names are not given away
    assert [numbers.task_of(facts(n)) for n in ("ps-0", "alice")] == [("ps", 0), ("ps", 1)]
    numbers = TaskNumbers({"reader": ["bob"]})
    numbers.add([facts("10"), facts("9")])
    assert [numbers.task_of(facts(name)) for name in ("9", "10")] == [("worker", 0), ("worker", 1)]


def test_numbers_stay() -> None:
    """A worker that comes back is the same task; a new one does not take its number."""
    numbers = TaskNumbers()
    numbers.add([facts("b"), facts("a")])
    assert numbers.task_of(facts("c")) == ("worker", 2)
    assert numbers.task_of(facts("b")) == ("worker", 1)
    numbers.assign({"ps": ["d"]})
    assert numbers.task_of(facts("d")) == ("ps", 0)
    with pytest.raises(FailedPreconditionError, match="task:1 of this cluster already"):
        numbers.assign({"ps": ["b"]})


def test_other_version() -> None:
    """Clients and workers of another version are refused, with what to do."""
    registry = Registry("1.0", b"", {})
    with pytest.raises(FailedPreconditionError, match=r"2\.0.*1\.0.*same version"):
        registry.attach("2.0", {})
    with pytest.raises(FailedPreconditionError, match=r"the worker at tcp://a.*2\.0"):
        registry.enter("tcp://a", "2.0")


@pytest.mark.slow
def test_workers_in_this_process(graph: fs.Graph) -> None:
    """Workers that are threads of this process are tasks like others; a retired one is lost."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as dask:
        with fs.cluster.connect(dask) as cluster:
            with fs.device(TASKS[1]):
                y = fs.constant(2.0) + 1.0
            with fs.Session(cluster) as session:
                assert session.run(y) == 3.0
            dask.scale(3)
            wait_until(lambda: len(cluster.tasks) == 3)
            assert [task.name for task in cluster.tasks] == TASKS
            lost: list[str] = []
            cluster.on_lost.append(lambda task, error: lost.append(f"{task}: {error}"))
            with distributed.Client(dask) as client:
                client.retire_workers([cluster.task(TASKS[1]).dask_address])
            wait_until(lambda: bool(lost))
            # Its host says so, or the scheduler does before.
            assert len(lost) == 1 and ("retired" in lost[0] or "removed" in lost[0]), lost
            with pytest.raises(UnavailableError, match="retired|removed"):
                cluster.task(TASKS[1])
            with fs.Session(cluster) as session:
                with fs.device(TASKS[2]):
                    z = fs.constant(2.0) + 5.0
                assert session.run(z) == 7.0


@pytest.mark.slow
def test_dask_sees(cluster: fs.cluster.Cluster, local_cluster: Any, graph: fs.Graph) -> None:
    """Dask's dashboard is told bytes and steps; workers that hold values are not closed."""
    with fs.device(TASKS[0]):
        v = fs.Variable(np.zeros(1000), name="v")
    scheduler = local_cluster.scheduler
    address = cluster.task(TASKS[0]).dask_address
    with fs.Session(cluster) as session:
        session.run(v.initializer)
        wait_until(lambda: scheduler.workers[address].metrics.get(HELD_METRIC) == 8000)
        assert scheduler.workers[address].metrics[STEPS_METRIC] >= 1
        assert address not in scheduler.workers_to_close(n=3)
    wait_until(lambda: scheduler.workers[address].metrics.get(HELD_METRIC) == 0)
    assert len(scheduler.workers_to_close(n=3)) == 3
    events = [event["event"] for _, event in scheduler.get_events("flowscope")]
    assert "ready" in events


@pytest.mark.slow
def test_restarted_worker(cluster: fs.cluster.Cluster) -> None:
    """A worker that is killed comes back as the same task, in another life."""
    before = cluster.task(TASKS[2])
    os.kill(before.pid, signal.SIGKILL)
    wait_until(lambda: cluster.health(TASKS[2])[0] == "lost", 2.0)
    assert list(cluster.lost_tasks) == [TASKS[2]]
    wait_until(lambda: len(cluster.tasks) == 3)
    after = cluster.task(TASKS[2])
    assert after.worker == before.worker and after.pid != before.pid
    assert after.incarnation != before.incarnation
    assert cluster.lost_tasks == {}


@pytest.mark.slow
def test_sealed(source_env: dict[str, str], graph: fs.Graph) -> None:
    """Where Dask has TLS, the connections of sessions have it too, with Dask's certificates."""
    files = {f"tls_{role}_cert": CERT for role in ROLES}
    files |= {f"tls_{role}_key": KEY for role in ROLES}
    security = distributed.Security(tls_ca_file=CERT, require_encryption=True, **files)
    with started_cluster(source_env, 2, security=security, protocol="tls://") as dask:
        with fs.cluster.connect(dask) as cluster, fs.Session(cluster) as session:
            assert cluster.target.startswith("tls://")
            assert all(w.is_encrypted and w.transport for w in cluster.status().workers)
            with fs.device(TASKS[0]):
                x = fs.placeholder(fs.float64, [None])
                half = x * 0.5
            with fs.device(TASKS[1]):
                y = half + 1.0
            values = np.arange(100_000.0)
            np.testing.assert_array_equal(session.run(y, {x: values}), values * 0.5 + 1.0)


@pytest.mark.slow
def test_parameter_server(source_env: dict[str, str], graph: fs.Graph) -> None:
    """Jobs of a connected cluster are what replica_device_setter asks for."""
    with started_cluster(source_env, 2) as dask:
        with fs.cluster.connect(dask, jobs={"ps": [1]}) as cluster:
            assert [task.name for task in cluster.tasks] == [task_name("ps", 0), TASKS[0]]
            with fs.device(fs.train.replica_device_setter(cluster=cluster)):
                w = fs.Variable([[1.0], [2.0]], name="w")
                x = fs.placeholder(fs.float32, [None, 2])
                loss = fs.reduce_mean(fs.square(fs.matmul(x, w) - 1.0))
                train = fs.train.GradientDescentOptimizer(0.05).minimize(loss)
            with fs.Session(cluster) as session:
                session.run(w.initializer)
                feed = {x: [[1.0, 0.0], [0.0, 1.0]]}
                losses = [session.run([loss, train], feed)[0] for _ in range(50)]
                assert losses[-1] < losses[0] / 10
                assert cluster.call(task_name("ps", 0), {"kind": "status"})["held"] == 8
