"""Plans reach the tasks once; afterwards a step is one message for each, and one answer."""

import time

import numpy as np
import pytest
from cluster_hosts import hosts_here, on, worker

import flowscope as fs
from flowscope.cluster.shipping.plans import PlanPeer, Shipment, keys_of, loads
from flowscope.cluster.transport.encoding.messages import MessageReader
from flowscope.plan.ir.memories import host_of

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(scope="module")
def ends():
    with hosts_here(4) as found:
        yield found


def function_of(sess, fetches, feeds=()):
    """What runs some fetches on the cluster."""
    return sess._call(fetches, list(feeds), sess.config.mode).elsewhere


def test_a_second_run_does_no_graph_work_and_sends_one_message_per_worker(ends):
    cluster, _ = ends
    x = fs.placeholder(fs.float32, [])
    with on(0):
        a = x + 1.0
    with on(1):
        b = x * 2.0
    with fs.Session(cluster) as sess:
        sess.run([a, b], {x: 1.0})
        started = []
        own = cluster.endpoint.start_packed

        def counted(peer, parts):
            reader = MessageReader()
            reader.feed(b"".join(parts))
            started.append((peer, reader.next()[0]["kind"]))
            return own(peer, parts)

        cluster.endpoint.start_packed = counted
        try:
            for i in range(3):
                assert sess.run([a, b], {x: float(i)}) == [i + 1.0, i * 2.0]
        finally:
            del cluster.endpoint.start_packed
        assert sorted(started) == sorted([(worker(0), "run"), (worker(1), "run")] * 3)
        assert function_of(sess, [a, b], [x]).ships == 1
        assert sess.plan_cache.misses == 1


def test_a_task_gets_its_own_partitions_feeds_and_peers_only(ends):
    cluster, hosts = ends
    x, y = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    with on(0):
        a = x + 1.0
    with on(1):
        b = a * y
    with on(2):
        c = fs.random_uniform([], seed=1) * 0.0 + 2.0
    with fs.Session(cluster) as sess:
        assert sess.run([b, c], {x: 2.0, y: 3.0}) == [9.0, 2.0]
        number = sess._remote.number
    hosted = [h.steps.session(cluster.endpoint.name, number) for h in hosts]
    del hosted  # the session is closed: what it had is gone
    with fs.Session(cluster) as sess:
        sess.run([b, c], {x: 2.0, y: 3.0})
        plans = [
            [*h.steps.session(cluster.endpoint.name, sess._remote.number).plans.values()]
            for h in hosts
        ]
        assert [len(p) for p in plans] == [1, 1, 1, 0]
        assert [p[0].takes for p in plans[:3]] == [(0,), (1,), ()]
        assert [p[0].gives for p in plans[:3]] == [(), (0,), (1,)]
        assert not any("/job:client" in n.device for p in plans[:3] for n in p[0].nodes)


def test_a_shipment_comes_back_from_bytes_as_it_was(ends):
    cluster, _ = ends
    offset = 2.0
    with on(0):
        a = fs.constant(np.arange(3.0))
    with on(1):
        b = fs.py_func(lambda v: v + offset, [a], fs.float64)
    with fs.Session(cluster) as sess:
        plan = sess.plan(b)
        partitions = plan.cut(host_of)
        peers = (PlanPeer("/job:worker/replica:0/task:1", 1 << 60, ("127.0.0.1", 1), "tcp://a:1"),)
        sent = Shipment(partitions, keys_of(partitions), peers, (("a", "b"),), {"k": 2}, ("x:0",))
        came = loads(sent.dumps())
    assert (came.keys, came.peers, came.tasks, came.feeds) == (
        sent.keys,
        sent.peers,
        sent.tasks,
        sent.feeds,
    )
    texts = [[p.program.text() for p in s.partitions] for s in (sent, came)]
    assert texts[0] == texts[1]
    assert [p.device for p in came.partitions] == [p.device for p in partitions]


def test_an_edit_of_the_graph_ships_what_it_concerns_and_no_more(ends):
    cluster, _ = ends
    with on(0):
        a = fs.random_uniform([], seed=1) * 0.0 + 2.0
    with fs.Session(cluster) as sess:
        sess.run(a)
        first = function_of(sess, a)
        with on(1):
            b = a * 3.0
        assert sess.run(b) == 6.0
        assert sess.run(a) == 2.0
        assert function_of(sess, a) is first and first.ships == 1
        sess.move(a.op, worker(1) + "/device:CPU:0")
        assert sess.run(a) == 2.0
        assert function_of(sess, a) is not first
        assert sess.placements[a.op.id] == worker(1) + "/device:CPU:0"


def test_a_variable_takes_its_value_along_to_another_worker(ends):
    cluster, _ = ends
    with on(0):
        v = fs.Variable(np.arange(4.0), name="v")
    with fs.Session(cluster) as sess:
        sess.run(v.initializer)
        sess.run(v.assign_add(np.ones(4)))
        sess.move(v, worker(2) + "/device:CPU:0")
        np.testing.assert_array_equal(sess.run(v), np.arange(4.0) + 1)
        assert sess.placements[v.handle.op.id] == worker(2) + "/device:CPU:0"


@pytest.mark.slow
def test_ten_thousand_operations_reach_four_workers_in_three_seconds(ends):
    cluster, _ = ends
    x = fs.placeholder(fs.float32, [])
    results = []
    for task in range(4):
        with on(task):
            y = x
            for i in range(2500):
                y = (fs.add, fs.maximum, fs.subtract, fs.minimum)[i % 4](y, x)
            results.append(y)
    with fs.Session(cluster) as sess:
        begun = time.perf_counter()
        values = sess.run(results, {x: 1.0})
        assert len(set(values)) == 1
        assert time.perf_counter() - begun < 12  # alone on a machine it is below 3
