"""Where a cluster's members are known: Dask's scheduler, or one process that is all there is."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from flowscope.cluster.transport.encoding.tls import TLSContexts

if TYPE_CHECKING:
    from flowscope.cluster.client.membership import Cluster
    from flowscope.runtime.config import ClusterDef, ConfigProto


class Attached(NamedTuple):
    """What a client is told when it attaches: the secret, the hosts there are, how to listen, and
    what dials addresses that are names, if there is something. `expected` are the addresses of the
    tasks that the cluster is to have, by their names, where a `ClusterSpec` says it.
    """

    secret: bytes
    hosts: list[dict[str, Any]]
    tls: TLSContexts | None
    listen_at: str
    dial: Callable[[str, float], socket.socket] | None = None
    expected: Mapping[str, str] = {}


class Members(Protocol):
    """What a client asks of whoever knows a cluster's members."""

    @property
    def address(self) -> str:
        """Where they are known: what sessions find the cluster by."""

    @property
    def scheduler_id(self) -> str:
        """Which life of the scheduler it was connected with first; "" without one."""

    @property
    def is_open(self) -> bool:
        """Whether it may answer."""

    @property
    def dashboard_link(self) -> str:
        """Where Dask's dashboard is; "" where there is none."""

    def attach(
        self,
        jobs: Mapping[str, Sequence[Any]] | None,
        config: ConfigProto | None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        until: float = math.inf,
    ) -> Attached:
        """Makes members hosts that are none yet; returns what is known of them.

        Args:
            jobs, config: See `fs.cluster.connect`.
            on_event: Is told who comes and goes, on a thread of its own.
            until: When that is to be done, by the monotonic clock.
        """

    def log(self, event: dict[str, Any]) -> None:
        """Writes an event to the cluster's log."""

    def ask_beside(
        self, worker: str, function: Callable[..., Any], *arguments: Any, timeout_s: float
    ) -> Any:
        """Calls a function on a worker's machine, outside of that worker; returns its result.

        Raises:
            UnavailableError: if there is nobody, or none has answered in time.
        """

    def joined(self, cluster_def: ClusterDef) -> Cluster | None:
        """Returns the cluster that servers of this process make together; None if it is Dask's."""

    def close(self) -> None:
        """Lets go of it."""


__all__ = ["Attached", "Members"]
