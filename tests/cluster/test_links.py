"""Links between processes are measured, told, and what placement by cost reckons with."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
from cluster_hosts import Cluster, Host, hosts_here, worker
from slow_link import slow_link

import flowscope as fs
from flowscope.cluster.watch import links as measured_links

pytestmark = pytest.mark.slow

#: So large that work takes much longer than a link of one machine, however busy that is, and much
#: less than a slow one. Nothing is run.
SIDE = 3000


@pytest.fixture
def placed(graph):
    """Two heavy branches that can be computed at the same time."""
    x = fs.placeholder(fs.float32, [SIDE, SIDE], name="x")
    for shift, name in enumerate(("left", "right")):
        y = x + shift
        for _ in range(8):
            y = fs.matmul(y, y)
        fs.identity(y, name=name)
    return fs.add(*[graph.get_tensor_by_name(f"{n}:0") for n in ("left", "right")], name="both")


def devices_of(cluster, both):
    config = fs.ConfigProto(placement="simulated")
    with fs.Session(cluster, config=config) as sess:
        found = sess.placement(both, {"x:0": np.broadcast_to(np.float32(1), (SIDE, SIDE))})
    return {op.device for op in found if op.type == "MatMul"}


@pytest.mark.parametrize("slow", [0, 1])
def test_the_worker_behind_a_slow_link_gets_no_work(placed, slow):
    hosts = [Host(worker(i)) for i in range(2)]
    with ExitStack() as stack:
        tasks = [h.task for h in hosts]
        address = stack.enter_context(slow_link(tasks[slow].address))
        tasks[slow] = tasks[slow]._replace(address=address)
        cluster = Cluster(tasks)
        for end in (cluster, *hosts):
            stack.callback(end.endpoint.close)
        used = devices_of(cluster, placed)
        assert f"{worker(1 - slow)}/device:CPU:0" in used
        assert f"{worker(slow)}/device:CPU:0" not in used
        told = {w.task: w for w in cluster.watch.status().workers}
        assert told[worker(slow)].bytes_per_s < told[worker(1 - slow)].bytes_per_s
        assert told[worker(slow)].round_trip_s > 0


def test_links_are_measured_once_in_a_life_of_both_ends(graph):
    with hosts_here(3) as (cluster, _):
        links = cluster.watch.links
        assert links.between("", worker(0)) is None
        assert cluster.watch.status().workers[1].bytes_per_s is None
        links.measure()
        pairs = [("", worker(0)), ("", worker(2)), (worker(0), worker(2)), (worker(2), worker(1))]
        found = [links.between(*pair) for pair in pairs]
        assert all(link.bytes_per_s > 0 and link.latency_s > 0 for link in found)
        assert f"{worker(1)}/device:CPU:0" in links.profiles
        asked = cluster.endpoint.counters()[worker(0)].runs
        links.measure()
        assert [links.between(*pair) for pair in pairs] == found
        assert cluster.endpoint.counters()[worker(0)].runs == asked
        # Another life: its links are measured anew, the others stay.
        cluster.tasks = (cluster.tasks[0]._replace(incarnation=7), *cluster.tasks[1:])
        links.measure()
        again = [links.between(*pair) for pair in pairs]
        assert again[0] is not found[0] and again[1] is found[1]
        assert cluster.endpoint.counters()[worker(0)].runs > asked


def test_who_does_not_answer_is_reckoned_with_all_the_same(graph):
    with hosts_here(2) as (cluster, hosts):
        hosts[1].endpoint.close()
        with fs.Session(cluster, config=fs.ConfigProto(placement="simulated")) as sess:
            link_of = sess.planner._remote.links()
            devices = [f"{worker(i)}/device:CPU:0" for i in range(2)]
            assert link_of(*devices) == measured_links.unknown()
            assert link_of("/job:client/replica:0/task:0/device:CPU:0", devices[0]).latency_s > 0
