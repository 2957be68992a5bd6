"""Whoever goes while a cluster is connected or made ready is waited for, wherever that strikes.

A worker is killed at each call of Dask's and of ours on the way; or the call raises what Dask
raises then.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import distributed
import pytest
from distributed.comm.core import CommClosedError
from distributed.core import RPCClosed
from local_clusters import free_addresses, kept_away, wait_until
from struck import Strike, after, before, raises

import flowscope as fs
from flowscope.cluster.client.membership import Cluster
from flowscope.cluster.servers import plugin
from flowscope.cluster.servers.registry import Registry
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.transport.runs import Answers
from flowscope.errors import FailedPreconditionError, UnavailableError
from flowscope.train.checkpoint.saver import Saver
from flowscope.train.session.session_manager import SessionManager

pytestmark = pytest.mark.slow

TASKS = [f"/job:worker/replica:0/task:{i}" for i in range(3)]
REMOVED = CommClosedError("Address removed.")


def of_a_worker(error: Exception) -> Callable[[Callable[[], Any]], Any]:
    """What gives an error in the place of one worker's answer, as `on_error="return"` does."""

    def does(call: Callable[[], Any]) -> Any:
        found = call()
        return {**found, next(iter(found)): error}

    return does


#: Calls on the way to a connection: who has the function, its name, and which call of it.
CONNECTING: dict[str, tuple[Any, str, int]] = {
    "client": (distributed.Client, "__init__", 0),
    "identity": (distributed.Client, "scheduler_info", 0),
    "scheduler's version": (distributed.Client, "run_on_scheduler", 0),
    "versions": (distributed.Client, "run", 0),
    "registry": (distributed.Client, "register_plugin", 0),
    "events": (distributed.Client, "subscribe_topic", 0),
    "attach": (distributed.Client, "sync", 3),
    "hosts": (distributed.Client, "register_plugin", 1),
    "connections": (Endpoint, "connect_all", 0),
}
#: What Dask raises there if the scheduler, or a worker, has gone.
GONE: list[Exception] = [
    REMOVED,
    RPCClosed("RPC Closed"),
    OSError("Timed out trying to connect to tcp://127.0.0.1:1 after 30 s"),
    TimeoutError(),
    RuntimeError("ConnectionPool is closed"),
]


def is_whole(cluster: Cluster) -> None:
    """Waits until all workers are there, and runs a step on them."""
    cluster.wait_for(TASKS, 60)
    wait_until(lambda: len(cluster.tasks) == 3)
    with fs.Graph().as_default():
        parts = []
        for task in TASKS:
            with fs.device(task):
                parts.append(fs.constant(1.0) + 1.0)
        with fs.Session(cluster) as sess:
            assert sess.run(fs.add_n(parts)) == 6.0


@pytest.mark.parametrize("at", ["versions", "registry", "attach", "hosts", "connections"])
def test_a_worker_that_is_killed_while_one_connects_is_waited_for(
    at: str, local_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = next(w for w in local_cluster.workers.values() if w.pid is not None)
    kill = after(lambda: os.kill(victim.pid, signal.SIGKILL))
    strike = Strike(monkeypatch, *CONNECTING[at][:2], kill, CONNECTING[at][2])
    with fs.cluster.connect(local_cluster) as cluster:
        assert strike.struck == 1
        is_whole(cluster)


@pytest.mark.parametrize("at", [at for at in CONNECTING if at != "connections"])
@pytest.mark.parametrize("error", GONE, ids=lambda e: type(e).__name__)
def test_what_dask_raises_of_a_loss_while_one_connects_is_waited_for(
    at: str, error: Exception, local_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike = Strike(monkeypatch, *CONNECTING[at][:2], raises(error), CONNECTING[at][2])
    with fs.cluster.connect(local_cluster) as cluster:
        assert strike.struck == 1
        assert len(cluster.tasks) == 3


@pytest.mark.parametrize("at", ["versions", "attach", "hosts"])
def test_a_loss_that_does_not_end_is_unavailable(
    at: str, local_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, call = CONNECTING[at]
    strike = Strike(monkeypatch, owner, name, raises(REMOVED), call, again=True)
    with pytest.raises(UnavailableError, match=r"Address removed\."):
        fs.cluster.connect(local_cluster, timeout_s=4.0)
    assert strike.struck > 1


@pytest.mark.parametrize("error", GONE, ids=lambda e: type(e).__name__)
def test_a_worker_that_goes_while_versions_are_compared_is_not_one_without_flowscope(
    error: Exception, local_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    strike = Strike(monkeypatch, distributed.Client, "run", of_a_worker(error))
    with fs.cluster.connect(local_cluster) as cluster:
        assert strike.struck == 1
        assert len(cluster.tasks) == 3
    strike = Strike(monkeypatch, distributed.Client, "run", of_a_worker(error), again=True)
    with pytest.raises(UnavailableError, match="asked for its version"):
        fs.cluster.connect(local_cluster, timeout_s=2.0)


def test_a_worker_without_flowscope_is_told_at_once(
    local_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = ModuleNotFoundError("No module named 'flowscope'")
    strike = Strike(monkeypatch, distributed.Client, "run", of_a_worker(missing))
    with pytest.raises(FailedPreconditionError, match="cannot import flowscope"):
        fs.cluster.connect(local_cluster)
    assert strike.struck == 1
    strike = Strike(monkeypatch, distributed.Client, "run_on_scheduler", raises(missing))
    with pytest.raises(FailedPreconditionError, match="scheduler at .* has no flowscope"):
        fs.cluster.connect(local_cluster)
    assert strike.struck == 1


def test_closed_clients_and_clusters_are_refused_at_once(local_cluster: Any) -> None:
    client = distributed.Client(local_cluster, set_as_default=False)
    client.close()
    with pytest.raises(UnavailableError, match="is closed"):
        fs.cluster.connect(client)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as closed:
        pass
    with pytest.raises(UnavailableError, match="is closed"):
        fs.cluster.connect(closed)


def test_a_cluster_whose_client_was_closed_is_connected_anew(local_cluster: Any) -> None:
    client = distributed.Client(local_cluster, set_as_default=False)
    first = fs.cluster.connect(client)
    client.close()
    with fs.cluster.connect(local_cluster) as second:
        assert second is not first and len(second.tasks) == 3
    first.close()


def test_a_worker_asks_again_whose_connection_with_the_scheduler_was_lost() -> None:
    found: list[Any] = [REMOVED, UnavailableError("not known"), {"job": "worker"}]

    async def ask(**arguments: Any) -> Any:
        answer = found.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert asyncio.run(plugin._answer(ask)) == {"job": "worker"}


def loss_in(run: Callable[[], Any]) -> UnavailableError | None:
    """The loss by which a step ends; None if it ends well, and may have ended before the loss."""
    try:
        run()
    except UnavailableError as e:
        return e
    return None


# -- steps ----------------------------------------------------------------------------------------

#: Calls on the way of a first step: shipping its plan, and running it.
SHIPPING: dict[str, tuple[Any, str, int]] = {
    "connections": (Endpoint, "connect_all", 0),
    "runs' connections": (Endpoint, "prepare_runs", 0),
    "first shipment": (Endpoint, "start_run", 0),
    "second shipment": (Endpoint, "start_run", 1),
    "answers of shipments": (Answers, "next", 0),
    "first part of the step": (Endpoint, "start_packed", 2),
    "second part of the step": (Endpoint, "start_packed", 3),
    "answers of the step": (Answers, "next", 2),
}


@pytest.mark.parametrize("at", SHIPPING)
def test_a_worker_that_is_killed_around_a_step_is_lost_for_all_when_it_ends(
    at: str, cluster: Cluster, graph: fs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is raised when the worker is lost, or back in another life."""
    victim = cluster.task(TASKS[1])
    with fs.device(TASKS[0]):
        x = fs.random_normal([1000])
    with fs.device(TASKS[1]):
        y = x + 1.0
    with fs.device(TASKS[0]):
        z = fs.reduce_sum(y - x)
    with fs.Session(cluster) as sess:
        kill = after(lambda: os.kill(victim.pid, signal.SIGKILL))
        strike = Strike(monkeypatch, *SHIPPING[at][:2], kill, SHIPPING[at][2])
        error = loss_in(lambda: sess.run(z))
        found = [t.incarnation for t in cluster.tasks if t.name == TASKS[1]]
        assert strike.struck == 1
        assert error is None or (TASKS[1] in str(error) and victim.incarnation not in found)
        cluster.wait_for(TASKS, 60)
        wait_until(lambda: cluster.task(TASKS[1]).incarnation != victim.incarnation)
        assert sess.run(z) == pytest.approx(1000.0, rel=1e-3)


# -- sessions -------------------------------------------------------------------------------------

#: Calls on the way to a session that goes on: whether it happens before or after the call.
RECOVERING: dict[str, tuple[Any, str, Any]] = {
    "before it waits for tasks": (Cluster, "wait_for", after),
    "after it has waited for tasks": (Cluster, "wait_for", before),
    "before the session is there": (SessionManager, "_made", after),
    "when the session is there": (SessionManager, "_made", before),
    "before values are restored": (Saver, "restore", after),
    "after values are restored": (Saver, "restore", before),
    "before it is looked what is missing": (SessionManager, "_missing", after),
    "before a checkpoint is written": (Saver, "save", after),
}


@pytest.mark.parametrize("returns", [False, True], ids=["at once", "back by then"])
@pytest.mark.parametrize("at", RECOVERING)
def test_a_worker_that_is_killed_while_training_recovers_is_waited_for(
    at: str,
    returns: bool,
    cluster: Cluster,
    graph: fs.Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What has gone is waited for, be it that it is back, without values, before that is seen."""
    with fs.device(TASKS[0]):
        total = fs.Variable(0, dtype=fs.int64, name="total")
    with fs.device(TASKS[1]):
        step = fs.train.get_or_create_global_step()
        train = fs.group(total.assign_add(2), step.assign_add(1))

    def kill() -> None:
        victim = cluster.task(TASKS[0])
        os.kill(victim.pid, signal.SIGKILL)
        if returns:
            wait_until(lambda: any(is_back(t, victim) for t in cluster.tasks))

    def is_back(task: Any, victim: Any) -> bool:
        return bool(task.name == victim.name and task.incarnation != victim.incarnation)

    owner, name, when = RECOVERING[at]
    with fs.train.MonitoredTrainingSession(
        cluster, checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, max_wait_secs=60
    ) as sess:
        for _ in range(3):
            sess.run(train)
        sess._drop()  # as where a worker was lost: the next run makes a new session
        strike = Strike(monkeypatch, owner, name, when(kill))
        sess.run(train)
        sess.run(train)
        assert strike.struck == 1
        assert sess.run([step, total]) == [5, 10]


@pytest.mark.parametrize("is_back", [False, True])
def test_a_session_that_is_made_while_a_worker_is_away_works_when_it_is_back(
    is_back: bool, cluster: Cluster, graph: fs.Graph
) -> None:
    """It knows the devices of the worker, which it asks for, as one that was made before."""
    with fs.device(TASKS[2]):
        y = fs.constant(1.0) + 1.0
    with ExitStack() as opened:
        with kept_away(cluster, TASKS[2]):
            os.kill(cluster.task(TASKS[2]).pid, signal.SIGKILL)
            wait_until(lambda: cluster.health(TASKS[2])[0] == "lost")
            sess = opened.enter_context(fs.Session(cluster))
            if not is_back:
                with pytest.raises(UnavailableError, match="task:2 is lost"):
                    sess.run(y)
        cluster.wait_for([TASKS[2]], 60)
        assert sess.run(y) == 2.0


def test_a_server_that_the_scheduler_does_not_know_in_time_tries_again(
    graph: fs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "_TRIES", 1)
    unknown = raises(UnavailableError("the scheduler does not know a worker"))
    strikes = [
        Strike(monkeypatch, Registry, name, unknown)  # the later one meets the first call
        for name in ("enter", "enter", "ready", "ready")
    ]
    first, second = free_addresses(2)
    server = fs.train.Server({"ps": [first], "worker": [second]}, job_name="ps")
    try:
        with fs.device("/job:ps/task:0"):
            y = fs.constant(1.0) + 1.0
        with fs.Session(server.target) as sess:
            assert sess.run(y) == 2.0
        assert [strike.struck for strike in strikes] == [1] * 4
    finally:
        server.stop()
