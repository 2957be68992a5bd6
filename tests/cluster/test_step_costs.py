"""What a step over several workers costs, by counts: system calls, messages, threads, calls.

Counts are the least of several steps: one that has waited at its gate has more.
"""

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from statistics import mode

import numpy as np
import pytest
from cluster_hosts import hosts_here

import flowscope as fs
from flowscope.cluster.transport.encoding.messages import packed

STEPS = 40
#: Calls of functions of Python, by worker, besides, and at a worker.
CLIENT_CALLS, STEP_CALLS, WORKER_CALLS = 36, 50, 63


class _Counting:
    """Counts what one thread calls while it is on."""

    def __init__(self):
        self.found = Counter()

    def __enter__(self):
        sys.setprofile(self._profile)
        return self.found

    def __exit__(self, *exc):
        sys.setprofile(None)

    def _profile(self, frame, event, arg):
        if event == "call":
            self.found["calls"] += 1
            self.found[frame.f_code] += 1
        elif event == "c_call":
            self.found[arg.__name__] += 1


def one_op_each(cluster, count):
    """Returns a session, and what runs a step that has one operation on each worker."""
    graph = fs.Graph()
    with graph.as_default():
        x = fs.placeholder(fs.float32, [])
        ends = []
        for i in range(count):
            with fs.device(f"/job:worker/task:{i}"):
                ends.append(x + np.float32(i))
        sess = fs.Session(cluster, graph=graph)

    def run():
        assert sess.run(ends, {x: 1.0}) == [1.0 + i for i in range(count)]

    return sess, run


def counts_of(run):
    """Returns the counts of single steps, after a few that are not counted."""
    for _ in range(3):
        run()
    found = []
    for _ in range(STEPS):
        with _Counting() as counts:
            run()
        found.append(counts)
    return found


def least(counts, what):
    return min(one[what] for one in counts)


def test_a_step_writes_once_to_each_worker_and_reads_once_from_each():
    with hosts_here(6) as (cluster, _):
        sess, run = one_op_each(cluster, 6)
        with sess:
            counts = counts_of(run)
            # of most steps: where another process has the core, a connection may be asked twice
            assert mode(one["send"] for one in counts) == 6
            assert mode(one["sendmsg"] for one in counts) == 0
            assert least(counts, "recv") == 6
            assert mode(one["poll"] + one["select"] for one in counts) == 0


def test_workers_with_the_same_feeds_get_bytes_that_are_packed_once():
    with hosts_here(6) as (cluster, _):
        sess, run = one_op_each(cluster, 6)
        with sess:
            assert least(counts_of(run), packed.__code__) == 1


def test_calls_of_a_step_by_worker():
    """Each function of Python that is called costs, most where caches are cold."""
    found = {}
    for count in (2, 6):
        with hosts_here(count) as (cluster, _):
            sess, run = one_op_each(cluster, count)
            with sess:
                found[count] = least(counts_of(run), "calls")
    assert (found[6] - found[2]) / 4 <= CLIENT_CALLS
    assert found[2] - 2 * (found[6] - found[2]) / 4 <= STEP_CALLS


def test_calls_of_a_worker():
    with hosts_here(1) as (cluster, (host,)):
        sess, run = one_op_each(cluster, 1)
        counts, own = [], host.endpoint.on_run

        def counted(*message):
            """Counts from one message to the next: what reads and writes them is counted too."""
            sys.setprofile(None)
            counter = _Counting()
            counts.append(counter.found)
            counter.__enter__()
            return own(*message)

        with sess:
            run()
            host.endpoint.on_run = counted
            for _ in range(STEPS):
                run()
            host.endpoint.on_run = own
        assert least(counts[:-1], "calls") <= WORKER_CALLS
        assert all(one["send"] == 1 and one["sendmsg"] == 0 for one in counts[:-1])
        assert least(counts[:-1], "recv") == 1


@pytest.mark.slow
def test_a_client_has_no_thread_for_each_worker():
    found = {}
    for count in (2, 16):
        with hosts_here(count) as (cluster, _):
            sess, run = one_op_each(cluster, count)
            with sess:
                run()
                names = [t.name.split(" ") for t in threading.enumerate()]
                own = [n[0] for n in names if n[-1] == cluster.endpoint.name]
                # The workers name those after the client on which they run its steps.
                found[count] = sorted(kind for kind in own if kind != "run")
    for kinds in found.values():  # some begin only when they are needed
        assert {"listener"} <= set(kinds)
        assert len(kinds) == len(set(kinds)), kinds


#: A worker that gets a plan: which classes are made while it makes code of it.
A_FIRST_PLAN = """
import os
import subprocess
import sys
from cluster_hosts import Host
from flowscope.graph import lazy
host, made, own = Host("/job:worker/replica:0/task:0"), [], lazy._Plan.carry_out
lazy._Plan.carry_out = lambda plan: (made.append(plan.cls.__name__), own(plan))
import numpy as np
data = np.frombuffer(sys.stdin.buffer.read(), np.uint8)
answer, _ = host.steps.on_run("client:1", {"kind": "plan.ship", "session": 1, "plan": 1}, [data])
assert "error" not in answer, answer
print(made)
host.endpoint.close()
"""


@pytest.mark.slow
def test_a_worker_has_made_what_all_plans_need_before_the_first_one_comes():
    with hosts_here(1) as (cluster, (host,)):
        sess, run = one_op_each(cluster, 1)
        own, shipped = host.endpoint.on_run, []

        def tap(peer, header, values):
            if header["kind"] == "plan.ship":
                shipped.append(values[0].tobytes())
            return own(peer, header, values)

        host.endpoint.on_run = tap
        with sess:
            run()
    helpers = str(Path(__file__).parents[1] / "helpers")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([helpers, *sys.path])}
    command = [sys.executable, "-c", A_FIRST_PLAN]
    done = subprocess.run(command, input=shipped[0], env=env, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
