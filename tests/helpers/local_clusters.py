"""Real clusters of processes on this machine, for tests."""

from __future__ import annotations

import os
import random
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flowscope.errors import UnavailableError

#: Ports that the system gives to nobody who asks for any, on Linux and macOS.
PORTS = range(20_000, 32_000)


@contextmanager
def local_cluster(env: Mapping[str, str], workers: int = 3, **arguments: Any) -> Iterator[Any]:
    """A LocalCluster of processes, each with a nanny, which starts it again when it is killed.

    Args:
        env: An environment whose PYTHONPATH leads to the sources.
        workers: How many.
        arguments: LocalCluster's.
    """
    import dask
    import distributed

    settings = {
        # Killed workers are started again, however often.
        "distributed.scheduler.allowed-failures": 1000,
        # A worker that is away at the end of this time, counted from *any* of its deaths, is given
        # up for good: two kills 15 s (Dask's own) apart would now and then meet it.
        "distributed.deploy.lost-worker-timeout": "1 day",
        "distributed.comm.timeouts.connect": "60s",
        "distributed.admin.system-monitor.interval": "2s",
    }
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = env["PYTHONPATH"]
    try:
        with dask.config.set(settings), warnings.catch_warnings():
            # Whether the dashboard's port is taken says nothing about a test.
            warnings.filterwarnings("ignore", "Port .* is already in use")
            arguments = {"threads_per_worker": 1, "dashboard_address": ":0"} | arguments
            with distributed.LocalCluster(n_workers=workers, silence_logs=50, **arguments) as found:
                yield found
    finally:
        if before is None:
            os.environ.pop("PYTHONPATH")
        else:
            os.environ["PYTHONPATH"] = before


def wait_until(is_so: Callable[[], bool], timeout_s: float = 60.0) -> float:
    """Waits for something that other processes do; returns for how many seconds."""
    begin = time.monotonic()
    while not is_so():
        assert time.monotonic() < begin + timeout_s, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - begin


def free_addresses(count: int) -> list[str]:
    """Addresses of this machine at which nobody listens."""
    found: list[str] = []
    for port in random.Random(os.urandom(8)).sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(f"localhost:{port}")
        if len(found) == count:
            break
    return found


@contextmanager
def kept_away(cluster: Any, task: str) -> Iterator[None]:
    """Keeps a client from joining the next life of a task, however soon that comes."""
    endpoint = cluster.endpoint
    connect_all = endpoint.connect_all

    def connect_others(ways: Any, *arguments: Any) -> Any:
        missing = [w for w in ways if not endpoint.is_connected(w.peer, w.incarnation)]
        failed = connect_all([w for w in missing if w.peer != task], *arguments)
        away = UnavailableError(f"{task} is kept away by a test")
        return {**failed, **{w.peer: away for w in missing if w.peer == task}}

    endpoint.connect_all = connect_others
    try:
        yield
    finally:
        del endpoint.connect_all
