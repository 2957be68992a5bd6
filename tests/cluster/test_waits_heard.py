"""What goes before and after steps ends by a stop, a deadline, an interrupt or a freeze, too."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import distributed
import pytest
from cluster_hosts import hosts_here, on
from faults_while_shipping import Shipping
from late_steps import late

import flowscope as fs
from flowscope.errors import CancelledError, DeadlineExceededError, UnavailableError


@pytest.mark.slow
def test_random_freezes_while_plans_are_shipped(cluster: Any, tmp_path: Path) -> None:
    """`python tests/helpers/faults_while_shipping.py 200` does so more often."""
    faults = Shipping(cluster, random.Random(26), str(tmp_path))
    for kind, end in (
        ("ship", "nothing"),
        ("ship", "stop"),
        ("ship", "interrupt"),
        ("place", "deadline"),
        ("session", "nothing"),
        ("move", "stop"),
        ("close", "nothing"),
    ):
        faults.meet(kind, end)


def _waiting_ship(hosts: Any) -> tuple[threading.Event, threading.Event]:
    """Has a host's ship wait; returns what tells that it has come, and what lets it go on."""
    came, go_on = threading.Event(), threading.Event()
    ship = hosts[0].steps._runs["plan.ship"]

    def waiting(*told: Any) -> Any:
        came.set()
        go_on.wait(30)
        return ship(*told)

    hosts[0].steps._runs["plan.ship"] = waiting
    return came, go_on


def test_a_deadline_is_heard_while_a_plan_is_shipped(graph: fs.Graph) -> None:
    with hosts_here(2) as (cluster, hosts), fs.Session(cluster) as sess:
        came, go_on = _waiting_ship(hosts)
        with on(0):
            y = fs.constant(1.0) + 2.0
        late(sess, y, match="on its way to /job:worker", ms=300, within_s=1.0)
        assert came.is_set()
        go_on.set()
        assert sess.run(y) == 3.0


def test_a_stop_is_heard_while_a_plan_is_shipped(graph: fs.Graph) -> None:
    with hosts_here(2) as (cluster, hosts), fs.Session(cluster) as sess:
        came, go_on = _waiting_ship(hosts)
        with on(0):
            y = fs.constant(1.0) + 2.0
        stopping = threading.Thread(target=lambda: came.wait(10) and sess.stop())
        stopping.start()
        with pytest.raises(CancelledError):
            sess.run(y)
        stopping.join()
        go_on.set()
        assert sess.run(y) == 3.0


@pytest.mark.parametrize("ends", ["stop", "deadline"])
def test_a_stop_and_a_deadline_are_heard_between_the_passes_of_a_plan(
    graph: fs.Graph, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    from flowscope.plan import pipeline

    planning, go_on = threading.Event(), threading.Event()

    def slow(program: Any, _: Any) -> Any:
        planning.set()
        go_on.wait(0.3 if ends == "deadline" else 10)
        return program

    passes = list(pipeline.PASSES)
    x = fs.constant(1.0) + 2.0
    with fs.Session() as sess:
        monkeypatch.setattr(pipeline, "PASSES", (pipeline.Pass("slow", slow, "", ""), *passes))
        if ends == "stop":
            threading.Thread(target=lambda: (planning.wait(10), sess.stop(), go_on.set())).start()
        error = CancelledError if ends == "stop" else DeadlineExceededError
        with pytest.raises(error):
            sess.run(x, options=fs.RunOptions(timeout_in_ms=200 if ends == "deadline" else 0))
        monkeypatch.setattr(pipeline, "PASSES", tuple(passes))
        assert sess.run(x) == 3.0 and sess.gate.state == "open"


def test_a_stop_for_the_next_step_is_not_spent_on_a_question(graph: fs.Graph) -> None:
    x = fs.constant(1.0) + 2.0
    with fs.Session() as sess:
        sess.stop()
        sess.variables()
        with pytest.raises(CancelledError):
            sess.run(x)
        assert sess.run(x) == 3.0


@pytest.mark.slow
def test_a_stopped_scheduler_is_told_in_time(source_env: dict[str, str]) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    command += ["--host", "127.0.0.1", "--no-dashboard"]
    with subprocess.Popen(command, env=source_env, stderr=subprocess.PIPE, text=True) as one:
        try:
            assert one.stderr is not None
            line = next(text for text in one.stderr if "Scheduler at:" in text)
            address = line.split()[-1]
            with distributed.Client(address, set_as_default=False) as client:
                os.kill(one.pid, signal.SIGSTOP)
                for given in (address, client):
                    begun = time.monotonic()
                    with pytest.raises(UnavailableError, match=r"within \d"):
                        fs.cluster.connect(given, timeout_s=1.0)
                    assert time.monotonic() - begun < 6.0
                os.kill(one.pid, signal.SIGCONT)
        finally:
            one.kill()


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(fs.errors.InvalidArgumentError, match="timeout_s above 0"):
        fs.cluster.connect("tcp://127.0.0.1:1", timeout_s=0)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told_in_time() -> None:
    begun = time.monotonic()
    with pytest.raises(UnavailableError, match="no Dask scheduler"):
        fs.cluster.connect("tcp://127.0.0.1:1", timeout_s=1.0)
    assert time.monotonic() - begun < 5.0
