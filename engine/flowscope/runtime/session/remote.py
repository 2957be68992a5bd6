"""What a session asks of the cluster that it runs on; a higher floor implements it.

A session on a cluster plans over its own devices and those of all tasks. What a plan has on other
tasks, the cluster runs: `Remote.function` returns what runs such a plan, in the place of code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from flowscope.errors import DTypeError, NotFoundError
from flowscope.graph import providers
from flowscope.graph.values.host_values import on_host
from flowscope.plan.analysis.device_profile import Link
from flowscope.plan.executables.back_ends import BackEnd, Function
from flowscope.plan.plan import Plan
from flowscope.runtime.devices.device import Device
from flowscope.runtime.session.engine import Engine

if TYPE_CHECKING:
    from flowscope.runtime.config import ClusterDef
    from flowscope.runtime.session.session import Session
    from flowscope.runtime.trace.part_trace import PartTrace

#: What connects with a cluster by a target of one of its servers, by what such targets begin with;
#: a higher floor fills it.
cluster_connectors: dict[str, Callable[[str, float], SessionTarget]] = {}
#: So long a cluster's tasks are waited for when a session is made.
START_S = 600.0


class RemoteValue:
    """A value of a held step that is in another process; a higher floor makes them.

    Attributes:
        is_array: Whether it is an array, and no list of them.
    """

    is_array = True

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """Calls a function where the value is; only the result is sent."""
        raise NotImplementedError


def asked(function: Callable[[Any], Any], value: Any) -> Any:
    """Calls a function of a value, in the process that has the value.

    It is given the value in the host's memory of the process that has it.
    """
    return value.apply(function) if isinstance(value, RemoteValue) else function(on_host(value))


def fetched(value: Any) -> Any:
    """Returns a value in the host's memory of this process, wherever it is."""
    return on_host(np.asarray(value) if isinstance(value, RemoteValue) else value)


def is_array(value: Any) -> bool:
    """Whether a value is an array, a number or a string, on any device, and no list of them."""
    if isinstance(value, RemoteValue):
        return value.is_array
    return isinstance(value, np.ndarray | np.generic | bytes) or hasattr(value, "dtype")


class RemoteFunction(Protocol):
    """Runs a plan that has partitions in other processes.

    Attributes:
        takes_turns: Whether a step of it that is on its way can be stepped through.
    """

    takes_turns: bool

    def __call__(
        self, gate: Any, run: Any, feeds: tuple[Any, ...], resources: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Runs one step; see `flowscope.plan.codegen.function` for the arguments."""

    def traced(self, traces: list[PartTrace]) -> Function:
        """A function that runs one step and traces it.

        Args:
            traces: Where what the partitions did is put, once the step has ended.
        """


class Remote(Protocol):
    """A session's part in its cluster.

    Attributes:
        task: The task that this process is in the session, such as "/job:client/replica:0/task:0".
        devices: The devices of the other tasks.
        lost_tasks: Those that had something of the session and were lost.
    """

    task: str
    devices: Sequence[Device]
    lost_tasks: set[str]

    def back_ends(self, own: Mapping[str, BackEnd]) -> dict[str, BackEnd]:
        """Returns code back ends that run programs of several tasks one operation at a time."""

    def is_elsewhere(self, device: str) -> bool:
        """Whether a device belongs to another task."""

    def function(self, plan: Plan, resources: Sequence[Any], is_handed_out: bool) -> RemoteFunction:
        """A function that runs a plan with partitions on other tasks.

        Args:
            plan: The plan.
            resources: What its handles stand for, in their order.
            is_handed_out: Whether its fetches go to the user.
        """

    def links(self) -> Callable[[str, str], Link]:
        """A function that gives the link between two devices' hosts; it measures where needed."""

    def state(self, handle: Any, device: str) -> Any:
        """The proxy of a variable or queue of another task.

        Args:
            handle: The op that makes the handle.
            device: The device that has it.
        """

    def facts(self, variables: Sequence[Any]) -> list[tuple[bool, int, int, int | None] | str]:
        """Asks other tasks for facts of variables that `state` has returned.

        Of each: whether it has a value, how often it was written, bytes, and the number of the run
        that wrote it last; or why nothing is known of it. Waits for tasks that do not answer, but
        not for long.
        """

    def begins_anew(self, plan: Plan) -> bool:
        """Whether a plan restores a checkpoint, or initialises all global variables."""

    def begin_anew(self) -> None:
        """Has queues and locks that were lost with their tasks be made anew when they are used."""

    def close(self) -> None:
        """Ends the session on all tasks."""


class SessionTarget(Protocol):
    """A cluster that sessions can run on.

    Attributes:
        target: What sessions call it.
    """

    target: str

    def open(self, session: Session) -> Remote:
        """Returns a session's part in it."""

    def narrowed(self, cluster_def: ClusterDef) -> SessionTarget:
        """Returns the cluster of the tasks that a session's `ClusterDef` lists."""

    def reset(self, names: Iterable[str] | None = None) -> None:
        """Drops the values in the named containers of its tasks, in all of them for None."""

    def wait_for(self, devices: Iterable[str], timeout_s: float) -> None:
        """Waits until the tasks are well that some devices belong to: those that were lost or hang,
        and those that a `ClusterSpec` says and that have not started.

        Raises:
            DeadlineExceededError: if they are not well in time.
        """


def target_of(target: Any, engine: Engine, timeout_s: float = START_S) -> SessionTarget:
    """Returns the cluster that a session's argument names.

    Args:
        target: A cluster, its target, or that of one of its servers.
        engine: Whose clusters there are.
        timeout_s: So long a server that does not answer is waited for.

    Raises:
        DTypeError: if it names nothing.
        NotFoundError: if the engine is connected to no such cluster.
        UnavailableError: if the server does not answer in time.
    """
    if isinstance(target, bytes):
        target = target.decode()
    if not isinstance(target, str):
        if isinstance(getattr(target, "target", None), str) and _opens(target):
            return target  # type: ignore[no-any-return]
        raise DTypeError(f"expected a str or a connected cluster as target, got {target!r}")
    found = engine.clusters.get(target)
    if found is None:
        connector = _connector_of(target)
        if connector is not None:
            return connector(target, timeout_s)
        known = ", ".join(f'"{name}"' for name in engine.clusters) or "none"
        raise NotFoundError(
            f'expected target "" (this process) or that of a connected cluster ({known}), '
            f"got {target!r}: fs.cluster.connect returns a cluster that has one"
        )
    return found


def _connector_of(target: str) -> Callable[[str, float], SessionTarget] | None:
    scheme, colon, _ = target.partition("://")
    if not colon:
        return None
    providers.load("cluster_connectors")
    return cluster_connectors.get(scheme)


def _opens(target: Any) -> bool:
    found: Callable[..., Any] | None = getattr(target, "open", None)
    return callable(found)


__all__ = ["Remote", "RemoteValue", "SessionTarget", "asked", "fetched", "is_array", "target_of"]
