"""`fs.replicator.MultiWorkerAsync`: clients that train variables on parameter servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.replicator.exchanges import Exchanges
from flowscope.replicator.inputs import InputContext, InputMode
from flowscope.replicator.multi_worker import MultiWorker, check_index
from flowscope.replicator.replicator import Replicator


class MultiWorkerAsync(MultiWorker):
    """Runs one replica of a step function; clients share their variables, and wait for nobody.

    Variables lie on a parameter server, in a container that all clients share. Each client applies
    its gradients when it has them, to variables that others may have changed meanwhile.

    Clients may form groups that are in sync inside: a group's primitives meet, and its first client
    applies the mean of the group's gradients. Groups do not wait for each other.

    Args:
        num_workers: How many clients there are.
        index: The number of this one, from 0; client 0 gives the variables their initial values.
        target: See `MultiWorker`.
        device: See `MultiWorker`.
        variable_device: Where the variables are.
        num_sync_groups: How many groups there are; as many as clients by default.
        queue_devices: See `MultiWorker`.
        name: See `MultiWorker`.
        input_mode: See `MultiWorker`.

    Raises:
        InvalidArgumentError: if the clients do not make groups of one size; else see `MultiWorker`.
    """

    def __init__(
        self,
        num_workers: int,
        index: int,
        target: Any = "",
        device: Any = None,
        variable_device: Any = "/job:ps/task:0",
        num_sync_groups: int | None = None,
        queue_devices: Sequence[Any] | None = None,
        name: str = "replicator",
        *,
        input_mode: InputMode = InputMode.PER_WORKER,
    ) -> None:
        check_index(num_workers, index)
        groups = num_workers if num_sync_groups is None else num_sync_groups
        if isinstance(groups, bool) or groups < 1 or num_workers % groups:
            raise InvalidArgumentError(
                f"expected a number of groups of one size for {num_workers} workers, got {groups!r}"
            )
        size = num_workers // groups
        group, rank = divmod(index, size)
        workers = [f"/job:worker/task:{i}" for i in range(num_workers)]
        places = workers if queue_devices is None else list(queue_devices)
        super().__init__(
            size,
            rank,
            target,
            device,
            places[group * size : group * size + size],
            f"{name}/group_{group}",
            input_mode=input_mode,
        )
        self._everyone = Exchanges(f"{name}/all", index, num_workers, places)
        self._container = f"{name}/variables"
        self._variable_device = variable_device

    def scope_number(self, replica: int) -> int:
        """Returns 0: variables have the same names in the graphs of all clients."""
        return 0

    def _input_context(self, number: int, count: int) -> InputContext:
        everyone = self._everyone
        return InputContext(
            count * everyone.count, everyone.index * count + number, self.num_replicas_in_sync
        )

    @contextmanager
    def scope(self) -> Iterator[Replicator]:
        """Variables that are made in the block are shared; see `Replicator.scope`."""
        with super().scope(), fs.container(self._container):
            yield self

    def chosen_device_of_variables(self, replica: int) -> Any:
        """Returns the device of the variables, that of the replica where none was given."""
        return self._variable_device or self.device_of(replica)

    def apply(
        self,
        optimizer: fs.train.Optimizer,
        grads_and_vars: list[tuple[Any, fs.Variable]],
        global_step: fs.Variable | None,
        name: str | None,
    ) -> fs.Operation:
        """Returns the group's update, which its first client does and the others wait for."""
        token = fs.constant(0)
        if not self._index:
            done = optimizer.apply_gradients(grads_and_vars, global_step, name)
            with fs.control_dependencies([done]):
                token = fs.identity(token)
            return fs.group(*self.exchange_broadcast([token], 0))
        given = [g for g, _ in grads_and_vars if g is not None]
        waited = [g.values if isinstance(g, fs.IndexedSlices) else g for g in given]
        with fs.control_dependencies(waited):
            return fs.group(*self.exchange_broadcast([token], 0))

    def initialize(self, session: fs.Session) -> None:
        """Initialises what the client has, and waits until the variables have values.

        Client 0 gives them these.

        Raises:
            InvalidArgumentError: if another client of the group has built other exchanges.
        """
        if not self._everyone.index:
            session.run(fs.global_variables_initializer())
        session.run([fs.local_variables_initializer(), fs.tables_initializer()])
        self._everyone.meet(session, self._number("start"), "")
        self.check_calls(session)

    def wait_for_all(self, session: fs.Session) -> None:
        """Waits until the clients of all groups call it."""
        self._everyone.meet(session, self._number("wait"), "")

    def check_copies(self, session: fs.Session) -> None:
        """Checks nothing: the clients share their variables."""


__all__ = ["MultiWorkerAsync"]
