"""What views are told of a program that is cut: a lane per device, Send and Recv between them."""

from __future__ import annotations

import pytest

import flowscope as fs
from flowscope.live.graphs.partitioned import partition_nodes
from flowscope.live.protocol.schema import Command
from flowscope.live.watchers.bus import LiveChannel

CONFIG = fs.ConfigProto(device_count={"CPU": 3})


@pytest.fixture
def plan(graph):
    """A loop on two devices, and the device of its condition; what goes in is made on another."""
    with fs.device("/device:CPU:1"):
        a = fs.exp(fs.placeholder(fs.float32, [4], name="x"), name="a")

    def body(i, v):
        with fs.device("/device:CPU:2"):
            return i + 1, fs.tanh(v, name="t") * a

    found = fs.while_loop(lambda i, v: i < 3, body, [0, a], name="loop")
    with fs.Session(config=CONFIG) as sess:
        yield sess.plan(found[1], ["x:0"])


def test_each_operation_stands_in_the_lane_of_its_device(plan):
    told = {n.name: n for n in partition_nodes(plan)}
    assert told["a"].scope.partition("/")[0] == "CPU:1"
    assert told["loop/body/t"].scope == "CPU:2/loop/body"
    assert {n.scope.partition("/")[0] for n in told.values()} == {"CPU:0", "CPU:1", "CPU:2"}


def test_an_edge_leads_from_each_send_to_its_recv_which_comes_later(plan):
    told = partition_nodes(plan)
    at = {n.id: i for i, n in enumerate(told)}
    assert len(at) == len(told) == len({n.name for n in told})
    recvs = [n for n in told if n.type == "Recv"]
    assert len(recvs) == sum(n.type == "Send" for n in told) > 1
    for recv in recvs:
        ((sender, _),) = recv.inputs
        send = told[at[sender]]
        assert (send.type, send.attributes["tensor_name"]) == (
            "Send", recv.attributes["tensor_name"]
        )  # fmt: skip
        assert at[sender] < at[recv.id]
        assert send.scope.partition("/")[0] != recv.scope.partition("/")[0]


def test_each_device_in_a_loop_has_its_own_state_machine_which_leads_to_the_loop(plan):
    told = partition_nodes(plan)
    lanes = {n.scope.partition("/")[0] for n in told if n.type == "Merge"}
    assert {"CPU:0", "CPU:2"} <= lanes
    for node in told:
        if node.type in ("Merge", "Switch", "Enter", "NextIteration", "LoopCond"):
            assert "loop/Loop" in [source.name for source in node.made_from]


def test_the_users_operations_keep_their_numbers(plan, graph):
    told = {n.name: n.id for n in partition_nodes(plan)}
    assert told["a"] == graph.get_operation_by_name("a").id
    assert told["loop/body/t"] == graph.get_operation_by_name("loop/body/t").id


def test_the_level_is_a_snapshot_and_follows_the_latest_plan(graph):
    with fs.device("/device:CPU:1"):
        y = fs.exp(fs.placeholder(fs.float32, [], name="x"), name="y")
    with fs.device("/device:CPU:2"):
        z = fs.negative(y, name="z")
    with fs.Session(config=CONFIG) as sess:
        feed, told = LiveChannel(graph, sess), []
        feed.hear(Command(1, "level", "partitions", view=7), told.append)
        assert [m.ok for m in told if m.kind == "reply"] == [False]
        sess.run(z, {"x:0": 1.0})
        feed.hear(Command(2, "level", "partitions", view=7), told.append)
        feed.leave(told.append)
    snapshot = [m for m in told if m.kind == "snapshot"][-1]
    assert snapshot.level == "partitions"
    assert {n.type for n in snapshot.graph.added} >= {"Send", "Recv", "Neg"}
