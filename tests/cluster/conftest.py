"""A real cluster of three processes, shared by the tests of clusters.

Workers that a test kills are started again by their nannies. Each test has a connection of its
own, so that nothing of one client's is left for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from local_clusters import local_cluster as started_cluster, wait_until

import flowscope as fs

WORKERS = 3


@pytest.fixture(scope="session")
def local_cluster(source_env: dict[str, str]) -> Iterator[Any]:
    """A LocalCluster of three processes, each with a nanny."""
    with started_cluster(source_env, WORKERS) as found:
        yield found


@pytest.fixture
def cluster(local_cluster: Any) -> Iterator[fs.cluster.Cluster]:
    """A connection with it; all three workers are there, and well."""
    with fs.cluster.connect(local_cluster) as found:
        wait_until(lambda: len(found.tasks) == WORKERS)
        wait_until(lambda: all(found.health(t.name)[0] == "ok" for t in found.tasks))
        yield found


@pytest.fixture
def aside() -> Iterator[Callable[..., Future[Any]]]:
    """Runs something on a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit
