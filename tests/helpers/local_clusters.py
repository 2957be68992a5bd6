"""Real clusters of processes on this machine, for tests."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


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
