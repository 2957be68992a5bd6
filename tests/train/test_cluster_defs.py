"""Clusters as messages: ClusterDef, JobDef, ServerDef, and what a session does with them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError, NotFoundError
from flowscope.train import ClusterDef, ClusterSpec, JobDef, ServerDef

SPEC = {"worker": {1: "a:1", 3: "b:2"}, "ps": ["x:1"]}


def test_a_spec_becomes_a_message_and_back() -> None:
    spec = ClusterSpec(SPEC)
    message = spec.as_cluster_def()
    assert [(job.name, job.tasks) for job in message.job] == [
        ("ps", {0: "x:1"}),
        ("worker", {1: "a:1", 3: "b:2"}),
    ]
    assert ClusterSpec(message) == spec
    assert repr(message).startswith('job {\n  name: "ps"\n  tasks {\n    key: 0\n    value: "x:1"')
    for other in (copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert other == message
        other.job.add(name="chief").tasks[0] = "c:3"
        assert other != message
        assert ClusterSpec(other).as_dict() == {**SPEC, "chief": ["c:3"]}
    message.MergeFrom(ClusterDef(job=[JobDef(name="evaluator", tasks={0: "e:1"})]))
    assert len(message.job) == 3
    message.ClearField("job")
    assert message == ClusterDef()


def test_messages_refuse() -> None:
    with pytest.raises(DTypeError, match=r"ClusterDef.job of type list of JobDef, got \[3\]"):
        ClusterDef(job=[3])
    with pytest.raises(DTypeError, match="cluster_def of type ClusterDef, got"):
        fs.ConfigProto(cluster_def=SPEC)
    with pytest.raises(DTypeError, match="expected a str as task address"):
        ClusterSpec(ClusterDef(job=[JobDef(name="a", tasks={0: 3})]))
    with pytest.raises(InvalidArgumentError, match="cluster_def lists tasks, and the session is"):
        fs.Session(config=fs.ConfigProto(cluster_def=ClusterSpec(SPEC).as_cluster_def()))
    config = fs.ConfigProto()
    config.session_inter_op_thread_pool.append(3)
    with pytest.raises(fs.errors.UnimplementedError, match="session_inter_op_thread_pool"):
        fs.Session(config=config)


def test_a_server_takes_a_server_def() -> None:
    cluster = ClusterSpec({"worker": ["localhost:0", "b:1"], "ps": ["c:1"]}).as_cluster_def()
    config = fs.ConfigProto(device_count={"CPU": 2})
    given = ServerDef(
        cluster=cluster, job_name="worker", task_index=1, default_session_config=config
    )
    server = fs.train.Server(given, start=False)
    assert server.server_def == ServerDef(
        cluster=cluster,
        job_name="worker",
        task_index=1,
        default_session_config=config,
        protocol="grpc",
    )
    assert fs.train.Server(given, "ps", 0, start=False).server_def.job_name == "ps"
    with pytest.raises(InvalidArgumentError, match="job_name"):
        fs.train.Server(ServerDef(cluster=cluster), start=False)
    with pytest.raises(fs.errors.UnimplementedError, match="protocol"):
        fs.train.Server(ServerDef(cluster=cluster, job_name="ps", protocol="smoke"), start=False)


@pytest.fixture
def servers() -> Iterator[list[fs.train.Server]]:
    """Three servers, each of a cluster of its own."""
    config = fs.ConfigProto(device_count={"CPU": 2})
    found = [fs.train.Server.create_local_server(config=config) for _ in range(3)]
    yield found
    for server in found:
        server.stop()


def listed(*servers: Any, job: str = "worker") -> fs.ConfigProto:
    """Returns a configuration that lists servers, in this order."""
    config = fs.ConfigProto()
    tasks = config.cluster_def.job.add(name=job).tasks
    for number, server in enumerate(servers):
        tasks[number] = server.target[len("grpc://") :]  # as programs for TensorFlow do
    return config


def test_servers_make_a_cluster_under_the_names_of_the_list(graph, servers) -> None:
    """TensorFlow calls that the propagation of a ClusterSpec."""
    config = listed(*servers[:2], job="renamed")
    with fs.device("/job:renamed/task:1/cpu:1"):
        a = fs.get_variable("a", initializer=[17.0])
    with fs.device("/job:renamed/task:0/cpu:1"):
        b = fs.get_variable("b", initializer=[3.0])
    with fs.device("/job:renamed/replica:0/task:1/device:CPU:0"):
        total = a + b
    with fs.Session(servers[0].target, config=config) as s:
        s.run(fs.global_variables_initializer())
        metadata = fs.RunMetadata()
        got = s.run(total, options=fs.RunOptions(trace_level=3), run_metadata=metadata)
        assert got.tolist() == [20.0]
        ran = {d.device for d in metadata.step_stats.dev_stats}
        assert "/job:renamed/replica:0/task:1/device:CPU:0" in ran
        names = [d.name for d in s.list_devices()]
        assert [n for n in names if "/job:client" not in n] == [
            f"/job:renamed/replica:0/task:{i}/device:CPU:{k}" for i in (0, 1) for k in (0, 1)
        ]
        with fs.Session(servers[1].target, config=config) as again:
            assert again.cluster is s.cluster


def test_lists_of_servers_are_clusters_apart(graph, servers) -> None:
    """Variables on one server are others in another list."""
    with fs.device("/job:worker/task:1"):
        v = fs.get_variable("v", initializer=np.zeros([2], np.float32))
        more = v.assign_add(np.ones([2], np.float32))
    configs = [listed(servers[1], servers[0]), listed(servers[1], servers[2])]
    first, second = [fs.Session(servers[1].target, config=c) for c in configs]
    with first, second:
        for s in (first, second):
            s.run(fs.global_variables_initializer())
        first.run(more)
        first.run(more)
        second.run(more)
        assert first.run(v).tolist() == [2, 2]
        assert second.run(v).tolist() == [1, 1]


def test_a_cluster_of_servers_ends_with_one_of_them(graph, servers) -> None:
    with fs.device("/job:worker/task:0"):
        x = fs.random_uniform([])
    s = fs.Session(servers[0].target, config=listed(*servers[:2]))
    assert 0 <= s.run(x) < 1
    target = s.cluster.target
    servers[1].stop()
    with pytest.raises(fs.errors.UnavailableError, match="task:0 is not connected"):
        s.run(x)
    with pytest.raises(NotFoundError):
        fs.Session(target)


def test_what_is_no_server_of_this_process(servers) -> None:
    config = listed(servers[0])
    config.cluster_def.job[0].tasks[1] = "localhost:1"
    with pytest.raises(InvalidArgumentError, match="the address 'localhost:1'"):
        fs.Session(servers[0].target, config=config)
    twice = listed(servers[0])
    twice.cluster_def.job.add(name="worker")
    with pytest.raises(InvalidArgumentError, match="each job once"):
        fs.Session(servers[0].target, config=twice)


def test_filters_leave_devices_out(graph, servers) -> None:
    config = listed(*servers)
    config.device_filters.append("/job:worker/task:0")
    config.device_filters.append("/job:worker/task:2/cpu:1")
    with fs.Session(servers[0].target, config=config) as s:
        names = [d.name.removeprefix("/job:worker/replica:0") for d in s.list_devices()[1:]]
        assert names == ["/task:0/device:CPU:0", "/task:0/device:CPU:1", "/task:2/device:CPU:1"]
        with fs.device("/job:worker/task:1"):
            x = fs.constant(1.0) + fs.random_uniform([])
        with pytest.raises(InvalidArgumentError, match="task:1"):
            s.run(x)
    with fs.Session(config=fs.ConfigProto(device_filters=["/job:ps"])) as s:
        assert s.run(fs.constant(2.0)) == 2  # there are no other tasks
