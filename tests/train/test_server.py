"""Clusters by TensorFlow's names: ClusterSpec, Server, replica_device_setter."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)

SPEC = {"worker": {1: "a:1", 3: "b:2"}, "ps": ["x:1"]}


def test_cluster_spec() -> None:
    """Jobs are told as they were given, with numbers that may have gaps."""
    spec = fs.train.ClusterSpec(SPEC)
    assert spec.as_dict() == SPEC
    assert spec.jobs == ["worker", "ps"]
    assert spec.job_tasks("worker") == [None, "a:1", None, "b:2"]
    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("worker") == [1, 3]
    assert spec.task_address("worker", 3) == "b:2"
    assert spec == fs.train.ClusterSpec(spec) and hash(spec) == hash(fs.train.ClusterSpec(SPEC))
    assert spec != fs.train.ClusterSpec({}) and not fs.train.ClusterSpec({})
    assert repr(spec) == "ClusterSpec({'ps': ['x:1'], 'worker': {1: 'a:1', 3: 'b:2'}})"


def test_cluster_spec_refuses() -> None:
    """What is no cluster, and what it has not, is refused with what it has."""
    spec = fs.train.ClusterSpec(SPEC)
    with pytest.raises(InvalidArgumentError, match='"worker", "ps"'):
        spec.job_tasks("chief")
    with pytest.raises(InvalidArgumentError, match=r"\[1, 3\]"):
        spec.task_address("worker", 0)
    for given in (3, {"a": 3}, {"a": [3]}, {3: ["a"]}):
        with pytest.raises(DTypeError):
            fs.train.ClusterSpec(given)
    with pytest.raises(InvalidArgumentError, match="number"):
        fs.train.ClusterSpec({"a": {"x": "y"}})


def test_replica_device_setter(graph: fs.Graph) -> None:
    """Variables take turns over parameter servers; wishes of inner blocks are completed."""
    cluster = {"ps": ["a", "b"], "worker": ["c"]}
    with fs.device(fs.train.replica_device_setter(cluster=cluster)):
        variables = [fs.Variable(float(i)) for i in range(3)]
        total = fs.constant(1.0) + variables[0]
        with fs.device("/job:worker/task:1/cpu:0"):
            own = fs.Variable(1.0)
        with fs.device("/gpu:0"):
            on_gpu = fs.Variable(1.0)
    assert [v.device for v in variables] == [f"/job:ps/task:{i}" for i in (0, 1, 0)]
    assert total.device == "/job:worker"
    assert own.device == "/job:worker/task:1/device:CPU:0"
    assert on_gpu.device == "/job:ps/task:1/device:GPU:0"


def test_replica_device_setter_arguments(graph: fs.Graph) -> None:
    """No parameter servers: no function. A strategy chooses among them."""
    setter = fs.train.replica_device_setter
    assert setter() is None
    assert setter(cluster={"worker": ["a"]}) is None
    with fs.device(
        setter(ps_tasks=4, ps_strategy=lambda op: 3, worker_device="/job:worker/task:2")
    ):
        assert fs.Variable(1.0).device == "/job:ps/task:3"
        assert fs.constant(1.0).device == "/job:worker/task:2"
    with fs.device(setter(ps_tasks=2, merge_devices=False)), fs.device("/cpu:0"):
        assert fs.Variable(1.0).device == "/device:CPU:0"
    with pytest.raises(DTypeError):
        setter(cluster=3)
    with pytest.raises(DTypeError, match="ps_strategy"):
        setter(ps_tasks=1, ps_strategy=3)  # type: ignore[arg-type]


@pytest.mark.slow
def test_local_server(graph: fs.Graph) -> None:
    """A server in this process is a target; its sessions have its device and share containers."""
    server = fs.train.Server.create_local_server()
    with fs.device("/job:local/task:0"):
        x = fs.placeholder(fs.float32, [3])
        with fs.container("shared"):
            v = fs.Variable(np.ones(3, np.float32), name="v")
        y = v.assign_add(x)
    try:
        with fs.Session(server.target) as first, fs.Session(server.target) as second:
            assert "/job:local/replica:0/task:0/device:CPU:0" in [d.name for d in first.devices]
            first.run(v.initializer)
            np.testing.assert_array_equal(second.run(y, {x: [1, 2, 3]}), [2, 3, 4])
            np.testing.assert_array_equal(first.run(v), [2, 3, 4])
            fs.Session.reset(server.target, ["shared"])
            with pytest.raises(FailedPreconditionError):
                first.run(v)
    finally:
        joined = threading.Thread(target=server.join)
        joined.start()
        target = server.target
        server.stop()
        joined.join(10.0)
        assert not joined.is_alive()
    with pytest.raises(NotFoundError):
        fs.Session(target)


def test_server_refuses() -> None:
    """A task of several must be said; a server that was not started has no target."""
    with pytest.raises(InvalidArgumentError, match="task_index"):
        fs.train.Server({"worker": ["a:1", "b:1"]})
    with pytest.raises(InvalidArgumentError, match="job_name"):
        fs.train.Server(SPEC)
    with pytest.raises(InvalidArgumentError, match="expected a job"):
        fs.train.Server({"worker": ["localhost:0"]}, job_name="ps")
    with pytest.raises(UnimplementedError, match="protocol"):
        fs.train.Server({"worker": ["localhost:0"]}, protocol="smoke")
    server = fs.train.Server({"worker": ["localhost:0"]}, start=False)
    with pytest.raises(FailedPreconditionError, match=r"start\(\)"):
        _ = server.target
    assert server.server_def.job_name == "worker" and server.server_def.task_index == 0
    server.stop()
    server.join()
