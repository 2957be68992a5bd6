"""What a client asks of Dask: workers' plugins, the registry, events, and questions to nannies."""

from __future__ import annotations

import asyncio
import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import distributed
from distributed.comm.core import CommClosedError

import flowscope
from flowscope.cluster.membership.members import Attached
from flowscope.cluster.membership.tasks import check_jobs
from flowscope.cluster.servers.dask_comm import DaskStreams
from flowscope.cluster.servers.dask_losses import is_loss
from flowscope.cluster.servers.dask_security import configured_security
from flowscope.cluster.servers.dask_versions import check_versions
from flowscope.cluster.servers.local_server import host_and_port
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    OpError,
    UnavailableError,
)
from flowscope.runtime.config import ClusterDef, ConfigProto
from flowscope.runtime.waits.waiting import called_aside

#: The topic of our events in Dask's log, and the name of the plugins (`registry.NAME`).
_TOPIC = "flowscope"
_SECRET_BYTES = 32
#: So long a scheduler or a worker has to say who it is; it takes so many of these at most.
_ASK_S = 1.0
_MOST_ASKS = 5
#: So long the end of a client may take.
_CLOSE_S = 2.0
#: The name of threads on which Dask is asked.
_THREAD = "flowscope asks Dask"


class DaskClient:
    """A `distributed.Client`, as far as it is needed; implements `members.Members`.

    Args:
        client: The client.
        is_own: Whether it was made here, and is to be closed.
        until: When the scheduler is to have answered, by the monotonic clock.

    Attributes:
        address: The scheduler's address.
    """

    def __init__(self, client: Any, is_own: bool, until: float) -> None:
        self._client = client
        self._is_own = is_own
        scheduler = client.scheduler
        if scheduler is None:
            raise UnavailableError(f"{client!r} was closed meanwhile")
        self.address = str(scheduler.address)
        # A scheduler that has gone is not asked: what it was is told with the errors of that.
        told = self._in_time(until, partial(client.scheduler_info, n_workers=0))
        if "id" not in told:
            raise UnavailableError(f"the scheduler at {self.address} has not said who it is")
        self._scheduler_id = str(told["id"])
        has_dashboard = "dashboard" in told.get("services", {})
        self._dashboard_link = str(client.dashboard_link) if has_dashboard else ""
        self._events: Callable[[dict[str, Any]], None] | None = None
        self._streams: DaskStreams | None = None

    @staticmethod
    def of(given: Any, until: float) -> DaskClient:
        """Returns the one for what `usable` has returned.

        Args:
            given: That.
            until: When the scheduler is to have answered, by the monotonic clock.

        Raises:
            UnavailableError: if the scheduler cannot be reached, or goes meanwhile.
        """
        is_own = not isinstance(given, distributed.Client)
        client = _new_client(given, until) if is_own else given
        try:
            return DaskClient(client, is_own, until)
        except BaseException:
            if is_own:
                _close(client)
            raise

    @property
    def scheduler_id(self) -> str:
        """Which life of the scheduler it was connected with first."""
        return self._scheduler_id

    @property
    def is_open(self) -> bool:
        """Whether it may answer: not once Dask's client has given up its scheduler."""
        return bool(self._client.status != "closed")

    @property
    def dashboard_link(self) -> str:
        """Where Dask's dashboard is; "" where there is none."""
        return self._dashboard_link

    def attach(
        self,
        jobs: Mapping[str, Sequence[Any]] | None,
        config: ConfigProto | None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        until: float = math.inf,
    ) -> Attached:
        """Makes workers hosts that are none yet; returns what is known of them.

        Args:
            jobs, config: See `fs.cluster.connect`.
            on_event: Is told who comes and goes, on a thread of Dask's.
            until: When that is to be done, by the monotonic clock.

        Raises:
            UnavailableError: if the scheduler, or a worker, does not answer in time.
        """
        from flowscope.cluster.servers.plugin import HostPlugin, is_sealed, tls_contexts
        from flowscope.cluster.servers.registry import NAME, Registry

        if config is not None and not isinstance(config, ConfigProto):
            raise DTypeError(f"expected a ConfigProto as config, got {config!r}")
        found = check_jobs(jobs)
        version = flowscope.__version__
        client = self._client
        check_versions(self.address, version, partial(self._call, until))
        registry = Registry(version, secrets.token_bytes(_SECRET_BYTES), found)
        self._in_time(until, partial(client.register_plugin, registry, NAME))
        if on_event is not None:
            self._events = on_event
            subscribe = partial(client.subscribe_topic, NAME, lambda event: on_event(event[1]))
            self._translated(subscribe)
        told = self._ask(until, "flowscope_attach", version=version, jobs=found)
        try:
            if not told["expected"]:
                plugin = HostPlugin(version, config or ConfigProto())
                self._in_time(until, partial(client.register_plugin, plugin, NAME))
        except FailedPreconditionError:
            with suppress(UnavailableError, ValueError):  # another client has done it
                self._in_time(until, partial(client.unregister_worker_plugin, NAME))
            raise
        told = self._ask(until, "flowscope_attach", version=version, jobs=found)
        sealed = is_sealed(self.address)
        tls = tls_contexts(client.security, "client") if sealed else None
        if self._streams is None:
            arguments = client.security.get_connection_args("client")
            self._streams = DaskStreams(client.loop, arguments, self.address)
        return Attached(
            told["secret"], told["hosts"], tls, "127.0.0.1", self._streams.dial, told["expected"]
        )

    def log(self, event: dict[str, Any]) -> None:
        """Writes an event to Dask's log, if the scheduler is there; does not wait for it."""
        client = self._client

        async def write() -> None:
            with suppress(OSError):  # the scheduler has gone, too
                await client.scheduler.log_event(topic=_TOPIC, msg=event)

        if client.status == "running":
            client.loop.add_callback(write)

    def ask_beside(
        self, worker: str, function: Callable[..., Any], *arguments: Any, timeout_s: float
    ) -> Any:
        """Calls a function on a worker's machine, outside of that worker; returns its result.

        Its nanny runs it; where it has none, another worker of the machine.

        Raises:
            UnavailableError: if there is nobody, or none has answered in time.
        """
        failures = []
        beside = self._beside(worker, time.monotonic() + timeout_s)
        for where, is_nanny in [(worker, True), *[(w, False) for w in beside]]:
            try:
                found = self._client.sync(
                    self._client._run,
                    function,
                    args=arguments,
                    workers=[where],
                    nanny=is_nanny,
                    callback_timeout=timeout_s,
                )
                return next(iter(found.values()))
            except Exception as e:  # Dask raises many kinds of them
                failures.append(f"{type(e).__name__}: {e}")
        raise UnavailableError("; ".join(failures) or "nobody else is on its machine")

    def joined(self, cluster_def: ClusterDef) -> None:
        """Returns None: it knows its tasks by their names."""

    def close(self) -> None:
        """Lets go of the client, and closes it where it was made here."""
        if self._events is not None and self._client.status == "running":
            with suppress(UnavailableError):  # it hangs
                until = time.monotonic() + _CLOSE_S
                self._in_time(until, partial(self._client.unsubscribe_topic, _TOPIC))
        if self._streams is not None:
            self._streams.close()
        if self._is_own:
            _close(self._client)

    def _beside(self, worker: str, until: float) -> list[str]:
        told = self._in_time(until, partial(self._client.scheduler_info, n_workers=-1))
        workers = told["workers"]
        host = workers.get(worker, {}).get("host")
        return [a for a, facts in workers.items() if a != worker and facts["host"] == host]

    def _ask(self, until: float, handler: str, **arguments: Any) -> Any:
        ask = self._translated(partial(getattr, self._client.scheduler, handler))
        return self._in_time(until, partial(self._client.sync, ask, **arguments))

    def _call(self, until: float, method: str, *arguments: Any, **options: Any) -> Any:
        """Calls a method of Dask's client; returns its result."""
        return self._in_time(until, partial(getattr(self._client, method), *arguments, **options))

    def _in_time(self, until: float, function: Callable[[], Any]) -> Any:
        """Calls a function of Dask's that has no time limit of its own; returns its result.

        Raises:
            UnavailableError: if that is not there in time, or somebody has gone meanwhile.
        """
        begun, address = time.monotonic(), self.address
        what = f"for the scheduler at {address}"
        ask = partial(self._translated, function)
        try:
            return called_aside(ask, what=what, until=until, name=_THREAD)
        except TimeoutError as e:
            waited = f"{max(0.0, until - begun):.1f} s"
            raise UnavailableError(
                f"the scheduler at {address}, or a worker that it asks, has not answered within "
                f"{waited}: it is stopped, or cannot be reached"
            ) from e

    def _translated(self, function: Callable[[], Any]) -> Any:
        """Calls a function of Dask's; a lost scheduler or worker is an UnavailableError.

        Raises:
            UnavailableError: if the scheduler has gone, or a worker that it has asked.
        """
        try:
            return function()
        except OpError:
            raise
        except Exception as e:  # Dask raises many kinds of them once its client has ended
            if not is_loss(e) and self._client.status == "running":
                raise
            raise UnavailableError(
                f"the scheduler at {self.address}, or a worker that it has asked, has gone "
                f"meanwhile, or cannot be reached: {e or type(e).__name__}"
            ) from e


def scheduler_of(address: str) -> str:
    """Returns the address of the scheduler of a worker; of a scheduler its own.

    Asks both, so that the scheduler is known to be there.

    Args:
        address: Where the worker, or the scheduler, listens: "host:port".

    Raises:
        UnavailableError: if one of them does not answer.
        FailedPreconditionError: if Dask's configuration asks for TLS, and names no certificates.
    """
    host, port = host_and_port(address)
    security: Any = configured_security(("client",))
    connect: Any = distributed.rpc
    by = {} if security is None else security.get_connection_args("client")
    protocol = "tcp" if security is None else "tls"

    async def ask(where: str) -> Any:
        async with connect(where, timeout=_ASK_S, connection_args=by) as peer:
            return await asyncio.wait_for(peer.identity(), _ASK_S)

    async def ask_both() -> str:
        found = await ask(f"{protocol}://{host}:{port}")
        if found["type"] == "Scheduler":
            return str(found["address"])
        scheduler = str(found["scheduler"])
        await ask(scheduler)
        return scheduler

    what, until = f"for the task at {address}", time.monotonic() + _MOST_ASKS * _ASK_S
    try:  # aside: an event loop may run on this thread, a notebook's
        return called_aside(lambda: asyncio.run(ask_both()), what=what, until=until, name=_THREAD)
    except (OSError, TimeoutError, CommClosedError) as e:
        how = "without TLS, as Dask's configuration says" if security is None else "with TLS"
        raise UnavailableError(f"no task of a cluster answers at {address} {how}: {e}") from e


def usable(given: Any) -> Any:
    """The Dask client that `fs.cluster.connect` is to use: the given one, or the current one.

    Raises:
        DTypeError: if there is no way to connect with it.
        UnavailableError: if it was closed, or there is no current client.
    """
    if given is None:
        given = _default_client()
    if isinstance(given, distributed.Client):
        if given.asynchronous:
            raise DTypeError(
                "expected a client that is not asynchronous: fs.Session waits for its steps; make "
                "a second one with distributed.Client(address)"
            )
        if given.status == "closed":
            raise UnavailableError(
                f"{given!r} is closed, by its user or for it has lost its scheduler: make a new one"
            )
    elif hasattr(given, "scheduler_address"):
        if getattr(getattr(given, "status", None), "name", "") in ("closing", "closed"):
            raise UnavailableError(f"{given!r} is closed: make a new one")
    elif not isinstance(given, str):
        raise DTypeError(
            "expected a distributed.Client, a Dask cluster, the address of a scheduler or "
            f"None, got {given!r}"
        )
    return given


def _default_client() -> Any:
    try:
        return distributed.get_client()
    except ValueError:
        raise UnavailableError(
            "there is no Dask client in this process: give fs.cluster.connect one, a cluster such "
            "as distributed.LocalCluster(), or a scheduler's address"
        ) from None


def _new_client(given: Any, until: float) -> Any:
    timeout_s = max(0.1, until - time.monotonic())
    is_late = threading.Event()

    def make() -> Any:
        kind: Any = distributed.Client  # it has no annotations
        client = kind(given, set_as_default=False, timeout=timeout_s)
        if is_late.is_set():  # nobody wants it any more
            client.close()
        return client

    try:
        what = f"for the scheduler at {given!r}"
        return called_aside(make, what=what, until=until, name=_THREAD)
    except Exception as e:
        if not is_loss(e):
            raise
        raise UnavailableError(
            f"no Dask scheduler can be reached at {given!r} within {timeout_s:.1f} s: {e}"
        ) from e
    finally:
        is_late.set()


def _close(client: Any) -> None:
    """Closes a client; one whose scheduler hangs is left alone."""
    until = time.monotonic() + 2 * _CLOSE_S
    with suppress(TimeoutError):
        close = partial(client.close, timeout=_CLOSE_S)
        called_aside(close, what="for the end of a client", until=until, name=_THREAD)


__all__ = ["DaskClient", "scheduler_of", "usable"]
