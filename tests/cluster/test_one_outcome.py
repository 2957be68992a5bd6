"""A step that takes an element on one worker and writes on another does both, or neither."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from cluster_hosts import Cluster, Host, hosts_here, on
from frozen_hosts import frozen
from process_channels import until

import flowscope as fs
from flowscope.errors import OpError

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


class Program:
    """A queue on worker 0, and a sum of what was taken from it on worker 1."""

    def __init__(self) -> None:
        with fs.container("one outcome"):
            with on(0):
                queue = fs.FIFOQueue(100, [fs.float32], [[]], shared_name="q")
                self.size = queue.size()
                self.fill = queue.enqueue_many([[1.0] * 100])
                taken = queue.dequeue()
            with on(1):
                self.sum = fs.get_variable("sum", initializer=0.0, use_resource=True)
                added = self.sum.assign_add(taken)
        with on(0), fs.control_dependencies([added]):
            self.late = fs.identity(taken)
        self.step = [added, self.late]
        self.init = [fs.global_variables_initializer(), self.fill]

    def check(self, sess: fs.Session, hosts: list[Host]) -> float:
        """Looks whether what was taken is what the sum has; returns that."""
        until(lambda: not any(h.steps.running or len(h.steps.taken) for h in hosts))
        size, total = sess.run([self.size, self.sum])
        assert size + total == 100.0, f"{size} elements are left, and {total} were added"
        return float(total)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("fault", ["client lost", "stop"])
def test_whenever_a_client_is_lost_or_stops_both_are_done_or_neither(
    fault: str, victim: int, mode: str
) -> None:
    program = Program()
    config = fs.ConfigProto(mode=mode)
    with hosts_here(2) as (observer, hosts), fs.Session(observer) as watching:
        watching.run(program.init)
        client = Cluster([h.task for h in hosts])
        sess = fs.Session(client, config=config)
        sess.run(program.step)
        with frozen(hosts[victim]) as counter:
            sess.run(program.step)
        until(lambda: not any(len(h.steps.taken) for h in hosts))
        seen = set()
        for at in range(counter.count + 1):
            before = program.check(watching, hosts)
            with frozen(hosts[victim], at) as freezer:
                run = threading.Thread(target=_quietly, args=(sess, program.step), daemon=True)
                run.start()
                while run.is_alive() and not freezer.is_frozen.wait(0.01):
                    pass
                if fault == "stop":
                    sess.stop()
                else:
                    for host in hosts:
                        for peer in host.endpoint.peers():
                            if peer == client.endpoint.name:
                                host.endpoint.give_up(peer, ConnectionAbortedError("it is silent"))
                freezer.thaw()
                run.join(20)
                assert not run.is_alive()
            seen.add(program.check(watching, hosts) - before)
            if fault == "client lost":
                sess.close()
                client.endpoint.close()
                client = Cluster([h.task for h in hosts])
                sess = fs.Session(client, config=config)
                sess.run(program.step)  # plans and connections are there
        sess.close()
        client.endpoint.close()
    assert seen <= {0.0, 1.0}


def _quietly(sess: fs.Session, fetches: Any) -> None:
    try:
        sess.run(fetches)
    except OpError:
        return
