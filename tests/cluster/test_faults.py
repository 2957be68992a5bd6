"""Steps when processes die, hang, leave or join: each ends in time, by its cause."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_matrix import check
from local_clusters import kept_away, wait_until
from own_threads import own_threads
from random_faults import RAISED, Faults

import flowscope as fs
from flowscope.errors import CancelledError, FailedPreconditionError, OpError, UnavailableError

pytestmark = pytest.mark.slow

#: Every step ends within that, whatever has happened.
ENDS_S = 2.0
TASKS = [f"/job:worker/replica:0/task:{i}" for i in range(3)]


def endless_loop(first: str = TASKS[0], second: str = TASKS[1]) -> fs.Tensor:
    """A loop whose iterations go back and forth between two workers, and that does not end."""

    def body(i: fs.Tensor) -> fs.Tensor:
        with fs.device(first):
            half = i + 1.0
        with fs.device(second):
            return half + 2.0

    return fs.while_loop(lambda i: i >= 0.0, body, [fs.constant(0.0)])


def running(cluster: fs.cluster.Cluster, *tasks: str) -> int:
    """How many steps run on some tasks."""
    return sum(cluster.call(task, {"kind": "status"})["running"] for task in tasks)


@contextmanager
def in_thread(function: Callable[[], Any]) -> Iterator[list[BaseException]]:
    """Runs a function on a thread, which must raise; gives what it raises."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            function()
        except BaseException as e:
            raised.append(e)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield raised
    finally:
        thread.join(60.0)
        assert not thread.is_alive()


def wait_for_steps(cluster: fs.cluster.Cluster) -> None:
    wait_until(lambda: running(cluster, *TASKS[:2]) == 2)


def killed_in_a_loop(
    session: fs.Session, cluster: fs.cluster.Cluster, loop: fs.Tensor
) -> BaseException:
    """Kills the second worker while a loop runs there; returns what ends the step."""
    with in_thread(lambda: session.run(loop)) as raised:
        wait_for_steps(cluster)
        killed = time.monotonic()
        os.kill(cluster.task(TASKS[1]).pid, signal.SIGKILL)
        wait_until(lambda: bool(raised))
        assert time.monotonic() - killed < ENDS_S
    return raised[0]


@pytest.mark.parametrize("looks", ["while it is away", "when it is back"])
def test_killed_worker(looks: str, cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """The step ends at once, everywhere; the session works again when the worker is back.

    Whoever has the error finds the worker lost, or back without its values.
    """
    with fs.device(TASKS[1]):
        lost = fs.Variable(3.0, name="lost")
    with fs.device(TASKS[0]):
        kept = fs.Variable(4.0, name="kept")
    loop = endless_loop()
    before = cluster.task(TASKS[1])
    with fs.Session(cluster) as session:
        session.run([lost.initializer, kept.initializer])
        with kept_away(cluster, TASKS[1]):
            error = killed_in_a_loop(session, cluster, loop)
            assert cluster.health(TASKS[1])[0] == "lost"
            assert session.lost_tasks == {TASKS[1]}
            assert isinstance(error, UnavailableError) and TASKS[1] in str(error)
            wait_until(lambda: running(cluster, TASKS[0]) == 0, ENDS_S)
            if looks == "while it is away":
                assert session.run(kept) == 4.0
                with pytest.raises(UnavailableError, match="task:1"):
                    session.run(lost)
        wait_until(lambda: len(cluster.tasks) == 3)
        assert cluster.task(TASKS[1]).incarnation != before.incarnation
        assert session.run(kept) == 4.0
        with pytest.raises(FailedPreconditionError, match="lost"):
            session.run(lost)
        session.run(lost.initializer)
        assert session.run(lost + kept) == 7.0


def test_stopped_worker(cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """A worker that hangs ends the step; when it wakes it throws its part away."""
    loop = endless_loop()
    with fs.device(TASKS[1]):
        small = fs.constant(2.0) + 1.0
    pid = cluster.task(TASKS[1]).pid
    with fs.Session(cluster) as session:
        with in_thread(lambda: session.run(loop)) as raised:
            wait_for_steps(cluster)
            stopped = time.monotonic()
            os.kill(pid, signal.SIGSTOP)
            try:
                wait_until(lambda: bool(raised))
                assert time.monotonic() - stopped < ENDS_S
                assert isinstance(raised[0], UnavailableError), raised
                assert "SIGSTOP" in str(raised[0])
                assert running(cluster, TASKS[0]) == 0
                with pytest.raises(UnavailableError, match="hangs"):
                    session.run(small)
            finally:
                os.kill(pid, signal.SIGCONT)
        wait_until(lambda: cluster.health(TASKS[1])[0] == "ok")
        wait_until(lambda: running(cluster, TASKS[1]) == 0, ENDS_S)
        assert session.run(small) == 3.0


def test_long_kernel_is_no_hang(cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """A kernel that holds the interpreter for long is told apart from a hang: it may end.

    To match this pattern takes seconds, in one call of C that lets nobody else run Python.
    """
    with fs.device(TASKS[2]):
        text = fs.placeholder(fs.string, [])
        matches = fs.strings.regex_full_match(text, "(a+)+b")
    seen = set()
    found: list[Any] = []
    with fs.Session(cluster) as session:
        assert session.run(matches, {text: b"aab"})
        thread = threading.Thread(
            target=lambda: found.append(session.run(matches, {text: b"a" * 25}))
        )
        thread.start()
        while thread.is_alive():
            seen.add(cluster.health(TASKS[2])[0])
            thread.join(0.02)
    assert found == [False]
    assert "busy" in seen and "hung" not in seen


def test_interrupted_cell(cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """An interrupt ends the step on all workers."""
    loop = endless_loop()
    with fs.Session(cluster) as session:

        def interrupt() -> None:
            wait_for_steps(cluster)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            session.run(loop)
        thread.join()
        wait_until(lambda: running(cluster, *TASKS) == 0, ENDS_S)


def test_stopped_session(cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """A stop ends the step on all workers."""
    loop = endless_loop()
    with fs.Session(cluster) as session:
        with in_thread(lambda: session.run(loop)) as raised:
            wait_for_steps(cluster)
            session.stop()
            wait_until(lambda: bool(raised), ENDS_S)
        assert isinstance(raised[0], CancelledError)
        wait_until(lambda: running(cluster, *TASKS) == 0, ENDS_S)


def test_dead_client(
    cluster: fs.cluster.Cluster, local_cluster: Any, source_env: dict[str, str]
) -> None:
    """Workers end the steps of a client that dies."""
    code = f"""
        import flowscope as fs
        if __name__ == "__main__":
            cluster = fs.cluster.connect({local_cluster.scheduler_address!r})
            def body(i):
                with fs.device("{TASKS[0]}"):
                    half = i + 1.0
                with fs.device("{TASKS[1]}"):
                    return half + 2.0
            loop = fs.while_loop(lambda i: i >= 0.0, body, [fs.constant(0.0)])
            fs.Session(cluster).run(loop)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, env=source_env) as client:
        wait_for_steps(cluster)
        client.kill()
        wait_until(lambda: running(cluster, *TASKS) == 0, ENDS_S)


def test_kernel_that_fails(cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """The error is the cause: what has failed on a worker, and not that others have ended."""
    with fs.device(TASKS[0]):
        index = fs.placeholder(fs.int32, [])
        taken = fs.gather(fs.constant([1.0, 2.0]), index)
    with fs.device(TASKS[1]):
        result = taken + 1.0
    with fs.Session(cluster) as session:
        assert session.run(result, {index: 1}) == 3.0
        with pytest.raises(OpError, match="task:0") as raised:
            session.run(result, {index: 7})
        assert raised.value.op_name == taken.op.name
        assert session.run(result, {index: 0}) == 2.0


def test_nothing_stays_behind(cluster: fs.cluster.Cluster, graph: fs.Graph) -> None:
    """Steps that fail leave no thread, and nothing open."""
    with fs.device(TASKS[0]):
        index = fs.placeholder(fs.int32, [])
        taken = fs.gather(fs.constant([1.0, 2.0]), index)
    with fs.device(TASKS[1]):
        result = fs.reduce_sum(taken * np.ones(20000, np.float32))

    def fail() -> None:
        with pytest.raises(OpError):
            session.run(result, {index: 7})

    with fs.Session(cluster) as session:
        for _ in range(20):
            fail()
        before = own_threads()
        for _ in range(200):
            fail()
        wait_until(lambda: own_threads() <= before, ENDS_S)
        assert cluster.endpoint.open_steps() == []
        assert running(cluster, *TASKS) == 0
        assert session.run(result, {index: 0}) == 20000.0


def test_random_faults(cluster: fs.cluster.Cluster, tmp_path: Path) -> None:
    """Steps meet faults of all kinds at random points, and leave nothing behind.

    `python tests/helpers/random_faults.py 1000` does so more often.
    """
    draw = random.Random(18)
    faults = Faults(cluster, draw, str(tmp_path))
    kinds = [*RAISED, "kill", "kill", "cut", "cut"]
    draw.shuffle(kinds)
    for kind in kinds:
        faults.meet(kind)
    faults.session.close()
    assert max(faults.took.values()) < ENDS_S
    # A few begin when they are first needed; none stays for each fault.
    wait_until(lambda: own_threads() <= faults.threads + 3)
    assert cluster.endpoint.open_steps() == []


def test_a_worker_that_is_killed_while_a_step_is_stepped_through_ends_it(
    graph: fs.Graph, cluster: fs.cluster.Cluster, aside: Callable[..., Future[Any]]
) -> None:
    """The step was paused while it ran: it stands on all workers, and one of them goes."""

    def body(i: Any, x: Any) -> tuple[Any, Any]:
        for task in range(3):
            with fs.device(f"/job:worker/task:{task}"):
                x = fs.tanh(x) + 0.5
        return i + 1, x

    trips = fs.placeholder(fs.int32, [])
    loop = fs.while_loop(lambda i, x: i < trips, body, [fs.constant(0), fs.ones([4])])
    with fs.Session(cluster) as sess:
        assert sess.run(loop, {trips: 3})[0] == 3
        running = aside(sess.run, loop, {trips: 1 << 30})
        wait_until(lambda: sess.running > 0)
        sess.pause()
        for _ in range(5):
            stop = sess.debug.wait(30.0)
            assert stop is not None
            stop.step_op()
        assert sess.debug.wait(30.0) is not None
        begin = time.monotonic()
        os.kill(cluster.task(TASKS[1]).pid, signal.SIGKILL)
        with pytest.raises(UnavailableError, match=r"worker/replica:0/task:1 is lost"):
            running.result(30.0)
        assert time.monotonic() - begin < ENDS_S
        sess.resume()
        wait_until(lambda: len(cluster.tasks) == 3)
        assert sess.run(loop, {trips: 3})[0] == 3


def test_all_that_clients_do_meets_faults_of_all_processes() -> None:
    """A few of each run; `python tests/helpers/fault_matrix.py 60 --seed 2` has more of them."""
    done, _ = check(6, seed=1)
    assert done.total() == 6
