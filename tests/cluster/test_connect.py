"""Connecting with a Dask cluster, and what its workers are then."""

from __future__ import annotations

from typing import Any

import distributed
import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from flowscope.runtime.session.engine import Engine

pytestmark = pytest.mark.slow


def test_workers_are_tasks(cluster: fs.cluster.Cluster) -> None:
    """Each worker is a task, in the order of the workers' names, with devices and a limit."""
    names = [f"/job:worker/replica:0/task:{i}" for i in range(3)]
    assert [task.name for task in cluster.tasks] == names
    assert [task.worker for task in cluster.tasks] == ["0", "1", "2"]
    for task in cluster.tasks:
        assert [device.name for device in task.devices] == [f"{task.name}/device:CPU:0"]
        assert task.memory_limit > 0
        assert cluster.health(task.name) == ("ok", "")
    assert len({task.incarnation for task in cluster.tasks}) == 3
    assert repr(cluster) == f"<fs.cluster.Cluster {cluster.target}: 3 tasks of /job:worker>"


def test_session_on_a_cluster(cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """A session finds the cluster by the object and by its target."""
    with fs.device("/job:worker/task:0"):
        x = fs.constant(np.arange(3.0))
    with fs.device("/job:worker/task:1"):
        y = x * 2.0
    for target in (cluster, cluster.target):
        with fs.Session(target) as session:
            np.testing.assert_array_equal(session.run(y), [0.0, 2.0, 4.0])


def test_connected_again(cluster: fs.cluster.Cluster, local_cluster: Any) -> None:
    """A cell that is run again gets the same cluster."""
    assert fs.cluster.connect(local_cluster) is cluster
    assert fs.cluster.connect(cluster.target) is cluster


def test_client_or_address(local_cluster: Any) -> None:
    """A client, its address and Dask's current client lead to the cluster."""
    with distributed.Client(local_cluster) as client:
        for given in (client, client.scheduler.address, None):
            with fs.cluster.connect(given) as found:
                assert found.target == client.scheduler.address
                assert len(found.tasks) == 3
            assert client.status == "running"


def test_closed(local_cluster: Any) -> None:
    """A cluster that was closed is no target any more."""
    with fs.cluster.connect(local_cluster) as found:
        pass
    assert found.tasks == ()
    with pytest.raises(NotFoundError, match=r"fs\.cluster\.connect"):
        fs.Session(found.target)
    found.close()


def test_two_clients(cluster: fs.cluster.Cluster, local_cluster: Any, graph: fs.Graph) -> None:
    """Two clients have variables of their own, and share those of named containers."""
    with fs.device("/job:worker/task:2"):
        own = fs.Variable(1.0, name="own")
        with fs.container("shared"):
            shared = fs.Variable(5.0, name="shared")
    with Engine().as_default(), fs.cluster.connect(local_cluster) as other:
        assert other.uid != cluster.uid
        with fs.Session(cluster) as first, fs.Session(other) as second:
            first.run([own.initializer, shared.initializer])
            assert second.run(shared) == 5.0
            with pytest.raises(FailedPreconditionError, match="own"):
                second.run(own)


def test_refused(local_cluster: Any) -> None:
    """What is no cluster, and jobs that are none, are refused."""
    with pytest.raises(DTypeError, match="a Dask cluster"):
        fs.cluster.connect(3)
    with pytest.raises(UnavailableError, match="no Dask client"):
        fs.cluster.connect()
    with pytest.raises(DTypeError, match="jobs"):
        fs.cluster.connect(local_cluster, jobs={"ps": "0"})
    with pytest.raises(InvalidArgumentError, match="twice"):
        fs.cluster.connect(local_cluster, jobs={"ps": [0], "worker": [0]})
    with pytest.raises(InvalidArgumentError, match="client"):
        fs.cluster.connect(local_cluster, jobs={"client": [0]})
    with pytest.raises(DTypeError, match="ConfigProto"):
        fs.cluster.connect(local_cluster, config={"GPU": 1})  # type: ignore[arg-type]


def test_unknown_task(cluster: fs.cluster.Cluster) -> None:
    """A task that is not there is named, with those that are."""
    with pytest.raises(NotFoundError, match=r"task:0.*task:7"):
        cluster.task("/job:worker/replica:0/task:7")
