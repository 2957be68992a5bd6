"""What steps ask of those who own them: a host in a worker, and a client's cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSet, Sequence
from typing import Any, Protocol

from flowscope.cluster.transport.endpoint import Address, Endpoint
from flowscope.cluster.watch.losses import Losses
from flowscope.cluster.watch.state_book import StateBook
from flowscope.cluster.watch.watching import ClusterWatch
from flowscope.cluster.worker.outcomes import Outcomes
from flowscope.runtime.devices.device import Device
from flowscope.runtime.session.engine import Engine
from flowscope.runtime.state.containers import Container

Answer = dict[str, Any] | None
#: Does what a control message of a peer says; returns the answer, or a function that returns it,
#: and may take long.
Handler = Callable[[str, dict[str, Any]], Answer | Callable[[], Answer]]


class DeviceFacts(Protocol):
    """A device of a task, as others know it."""

    @property
    def name(self) -> str:
        """Its full name."""

    @property
    def memory_limit(self) -> int:
        """Bytes of memory that it has; 0 where that is not known."""


class TaskFacts(Protocol):
    """A task of a cluster, as its clients know it."""

    @property
    def name(self) -> str:
        """Its name, such as "/job:worker/replica:0/task:3"."""

    @property
    def incarnation(self) -> int:
        """Which life of it this is."""

    @property
    def devices(self) -> Sequence[DeviceFacts]:
        """Its devices."""


class HostOwner(Protocol):
    """The owner of the hosted devices of a worker."""

    name: str
    endpoint: Endpoint
    engine: Engine
    handlers: dict[str, Handler]
    #: Whether what lies in no named container is shared by all clients, too.
    shares_values: bool

    @property
    def devices(self) -> Sequence[Device]:
        """The devices, the CPU first."""

    def container(self, client: str, session: int, name: str) -> Container:
        """Returns a container of a client's session; "" is the session's own."""

    def forget_container(self, client: str, session: int) -> None:
        """Drops the container of a session that was closed."""


class ClusterOwner(Protocol):
    """A client's cluster."""

    endpoint: Endpoint
    outcomes: Outcomes
    state_book: StateBook
    uid: int
    handlers: dict[str, Handler]
    losses: Losses
    #: The numbers of its sessions, and of the steps of all of them.
    session_numbers: Iterator[int]
    step_numbers: Iterator[int]

    @property
    def watch(self) -> ClusterWatch:
        """Asks its processes how they are, and knows their clocks."""

    @property
    def sessions(self) -> MutableSet[Any]:
        """What its sessions have in it."""

    @property
    def tasks(self) -> Sequence[TaskFacts]:
        """The tasks that there are now."""

    def task(self, name: str) -> TaskFacts:
        """Returns the task of this name."""

    @property
    def known_tasks(self) -> Sequence[TaskFacts]:
        """The tasks, and those that were lost and have not come back, as they were last."""

    def note_losses(self, lives: Mapping[str, int], cut: Iterable[str] = ()) -> None:
        """Waits until it is known what has become of tasks whose connections have ended.

        Args:
            lives: Tasks, and which lives of them are meant.
            cut: Those of them that have not answered, for the connection for it has ended.
        """

    def ways(self, task: str) -> tuple[Address, str | None]:
        """Returns where a task is reached, and where else if not there."""

    def log(self, event: dict[str, Any]) -> None:
        """Writes an event to the cluster's log."""


__all__ = ["ClusterOwner", "Handler", "HostOwner", "TaskFacts"]
