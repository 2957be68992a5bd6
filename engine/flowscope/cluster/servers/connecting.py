"""`fs.cluster.connect`: where Dask is loaded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from flowscope.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
    UnimplementedError,
)
from flowscope.runtime.session.engine import current
from flowscope.runtime.session.remote import cluster_connectors
from flowscope.runtime.waits.waiting import pause

if TYPE_CHECKING:
    from flowscope.cluster.client.membership import Cluster
    from flowscope.cluster.membership.tasks import Transport
    from flowscope.runtime.config import ConfigProto

#: So long a scheduler and its workers may take to answer, where nobody says otherwise.
CONNECT_S = 30.0
#: Even at the end of its time a server is given so long.
_LEAST_S = 1.0
#: So long after a server has not answered it is asked again.
_AGAIN_S = 0.1


def connect(
    client_or_address: Any = None,
    *,
    jobs: Mapping[str, Sequence[Any]] | None = None,
    config: ConfigProto | None = None,
    transport: Transport | None = None,
    timeout_s: float = CONNECT_S,
) -> Cluster:
    """Connects with a Dask cluster, whose workers then are tasks that sessions can run on.

        cluster = fs.cluster.connect(LocalCluster(n_workers=3))
        with fs.Session(cluster) as sess:
            ...

    Workers that come later are tasks, too. A second call for the same cluster returns the same
    object.

    Args:
        client_or_address: A `distributed.Client`, a Dask cluster such as `LocalCluster`, or the
            address of a scheduler; None for Dask's current client.
        jobs: The names of workers by jobs, e.g. {"ps": ["alice"]}, in the order of their numbers.
            Others belong to the job of their name ("ps-0") or resource (`--resources "ps=1"`), or
            are workers.
        config: Says which devices workers have (`device_count`, `fake_devices`); what the first
            client says, holds. By default each has a CPU.
        transport: What carries the values of steps: "sockets" of their own, or "dask" for
            connections over the ports of Dask's workers, which are slower. By default "dask" where
            Dask speaks UCX, else "sockets", and "dask" to workers that these do not reach. A worker
            whose port cannot be reached either is reached through the scheduler.
        timeout_s: How long it may take until the scheduler and its workers have answered. A worker
            that goes meanwhile is waited for until Dask has removed it, or started it again.

    Raises:
        UnimplementedError: if Dask (`distributed`) is not installed.
        DTypeError: if these are no arguments of these kinds.
        UnavailableError: if the cluster cannot be reached, or does not answer in time.
        InvalidArgumentError: if there is no such transport, or the time is not positive.
        FailedPreconditionError: if workers or the scheduler have no flowscope, or another version,
            if workers have another Python (3.11 and 3.12), NumPy (1 and 2) or cloudpickle, if
            workers are other tasks already than `jobs` says, or if this process is connected
            with the cluster by another transport.
    """
    need_dask()
    if transport not in (None, "sockets", "dask"):
        raise InvalidArgumentError(f'expected "sockets" or "dask" as transport, got {transport!r}')
    if not isinstance(timeout_s, int | float) or not timeout_s > 0:
        raise InvalidArgumentError(f"expected timeout_s above 0, in seconds, got {timeout_s!r}")
    from flowscope.cluster.servers.dask_client import usable  # Dask takes a while to load

    until, reason = time.monotonic() + timeout_s, None
    while True:
        given = usable(client_or_address)
        try:
            return _connected(given, jobs, config, transport, until)
        except UnavailableError as e:  # somebody has gone: Dask removes it, or starts it again
            now = time.monotonic()
            reason = e if reason is None or now < until else reason
            if now + _AGAIN_S > until:
                raise reason from reason.__cause__
        pause(_AGAIN_S)


def _connected(
    given: Any,
    jobs: Mapping[str, Sequence[Any]] | None,
    config: ConfigProto | None,
    transport: Transport | None,
    until: float,
) -> Cluster:
    """Connects with a cluster, if nobody goes meanwhile.

    Raises:
        UnavailableError: if somebody has gone meanwhile, or does not answer in time.
    """
    from flowscope.cluster.client.membership import Cluster
    from flowscope.cluster.servers.dask_client import DaskClient

    dask = DaskClient.of(given, until)
    found = current().clusters.get(dask.address)
    if isinstance(found, Cluster) and (
        found.dask.scheduler_id != dask.scheduler_id or not found.dask.is_open
    ):
        found.close()  # of an earlier life of the scheduler, or given up by its Dask client
        found = None
    if isinstance(found, Cluster):
        dask.close()
        if transport not in (None, found.transport):
            raise FailedPreconditionError(
                f"expected transport={found.transport!r}, by which this process is connected with "
                f"{found.target} already, got {transport!r}: close() that cluster before"
            )
        found.dask.attach(jobs, config, until=until)
        return found
    try:
        made = Cluster(dask, jobs, config, transport, until)
    except BaseException:
        dask.close()
        raise
    made.warn()
    return made


def need_dask() -> None:
    """Raises UnimplementedError if Dask is not installed."""
    if find_spec("distributed") is None:
        raise UnimplementedError(
            'fs.cluster needs Dask: pip install "flowscope[cluster]" installs it'
        )


def connect_server(target: str, timeout_s: float) -> Cluster:
    """Connects with the cluster of a `train.Server`, by its target; waits until that is there.

    Args:
        target: The server's: "grpc://host:port".
        timeout_s: How long.

    Raises:
        UnavailableError: if it does not answer in time.
    """
    end = time.monotonic() + timeout_s
    known = current().servers.get(target)
    while True:
        try:
            from flowscope.cluster.servers.dask_client import (
                scheduler_of,  # Dask takes a while to load
            )

            scheduler = scheduler_of(known or target.partition("://")[2])
            return connect(scheduler, timeout_s=max(end - time.monotonic(), _LEAST_S))
        except UnavailableError as e:  # it may go while this process connects
            if time.monotonic() + _AGAIN_S > end:
                raise UnavailableError(
                    f"the cluster of {target} cannot be reached after {timeout_s:g} s: {e}"
                ) from e
            pause(_AGAIN_S)


cluster_connectors["grpc"] = connect_server

__all__ = ["connect", "connect_server", "need_dask"]
