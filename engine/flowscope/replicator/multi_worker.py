"""`fs.replicator.MultiWorker`: replicas of several clients, each with a graph of its own."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flowscope as fs
from flowscope.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from flowscope.replicator.exchanges import Exchanges
from flowscope.replicator.inputs import InputContext, InputMode
from flowscope.replicator.replicator import Replicator
from flowscope.replicator.values import PerReplica, ReduceOp, as_reduce_op, map_values


class MultiWorker(Replicator):
    """Runs one replica of a step function; the others are those of other clients.

    Each client is a process (or a thread) of its own, which builds its graph by the same program
    and steps when the others do. What replicas exchange goes through queues on the server, in the
    order of the replicas: the bits are those of `MultiDevice`. Its variables are its own: they lie
    in a container of the replica, begin with replica 0's values, and stay equal. If a step of one
    client fails it has missed a step of the others: all clients begin again with `initialize` then.

        replicator = fs.replicator.MultiWorker(num_workers, index, server.target,
                                               device=f"/job:worker/task:{index}")

    Args:
        num_workers: How many clients there are.
        index: The number of this one, from 0.
        target: What sessions connect with, see `fs.Session`: the clients share a server.
        device: Where this client's replica is; None for any.
        queue_devices: Where the queues to each client are, a device per client, in processes that
            all clients reach; by default "/job:worker/task:0" and so on.
        name: The name of the group; groups that share a server have different ones.
        input_mode: PER_WORKER or PER_REPLICA: each client has a pipeline.

    Raises:
        InvalidArgumentError: if the number is none of a client, if there is not a queue device for
            each, or for the input mode SINGLE.
    """

    def __init__(
        self,
        num_workers: int,
        index: int,
        target: Any = "",
        device: Any = None,
        queue_devices: Sequence[Any] | None = None,
        name: str = "replicator",
        *,
        input_mode: InputMode = InputMode.PER_WORKER,
    ) -> None:
        check_index(num_workers, index)
        if input_mode is InputMode.SINGLE:
            raise InvalidArgumentError(
                "expected PER_WORKER or PER_REPLICA as the input mode, got SINGLE: clients have "
                "graphs of their own, which share no pipeline"
            )
        self._begin([[device]], input_mode, target)
        self._index, self._count = index, num_workers
        workers = [f"/job:worker/task:{i}" for i in range(num_workers)]
        places = workers if queue_devices is None else list(queue_devices)
        if len(places) != num_workers:
            raise InvalidArgumentError(
                f"expected a queue device for each of {num_workers} workers, got {len(places)}"
            )
        self._exchanges = Exchanges(name, index, num_workers, places)
        #: Per graph a line for each exchange that was built: what is called, a tab, and where.
        self._lines: weakref.WeakKeyDictionary[fs.Graph, list[str]] = weakref.WeakKeyDictionary()
        self._checked = 0

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas meet in the primitives of a step: one per client."""
        return self._count

    def _replica_id(self, replica: int) -> int:
        return self._index

    def _input_context(self, number: int, count: int) -> InputContext:
        return InputContext(count * self._count, self._index * count + number, self._count)

    @contextmanager
    def scope(self) -> Iterator[Replicator]:
        """Variables that are made in the block belong to the replica; see `Replicator.scope`."""
        container = f"{self._exchanges.name}/replica_{self._index}"
        with super().scope(), fs.container(container):
            yield self

    # -- values ---------------------------------------------------------------------------------

    def reduce(self, values: Any, op: ReduceOp | str) -> Any:
        """Returns the reduction of all clients' values; all clients call it, and run it."""
        found = as_reduce_op(op)

        def reduced(value: Any) -> fs.Tensor:
            if not isinstance(value, PerReplica):
                raise InvalidArgumentError(f"expected PerReplica values to reduce, got {value!r}")
            if found is ReduceOp.ONLY_FIRST:
                return self.exchange_broadcast([value[0]], 0)[0]
            return self.exchange_reduced([value[0]], found.value)[0]

        return map_values(reduced, values)

    def exchange_reduced(self, xs: list[fs.Tensor], reduction: str) -> Sequence[fs.Tensor]:
        """Returns the reduction of all clients' tensors, alone in a list."""
        all_xs = self._exchanges.gathered(xs[0], self._key(f"all_{reduction}", xs[0]))
        return fs.collectives.all_reduce(all_xs, reduction)[self._index :][:1]

    def exchange_gathered(self, xs: list[fs.Tensor]) -> Sequence[fs.Tensor]:
        """Returns the rows of all clients' tensors, alone in a list."""
        key = self._key("all_gather", xs[0], rows_differ=True)
        return [fs.concat(self._exchanges.gathered(xs[0], key, rows_differ=True), 0)]

    def exchange_broadcast(self, xs: list[fs.Tensor], source: int) -> Sequence[fs.Tensor]:
        """Returns the tensor of the client `source`, alone in a list."""
        key = self._key(f"broadcast of replica {source}", xs[0])
        return [self._exchanges.broadcast(xs[0], key, source)]

    def check_merges(self, place: str) -> None:
        """Raises UnimplementedError: no client has the tensors of all."""
        raise UnimplementedError(
            f"merge_call{place} needs all replicas in one graph, as MultiDevice has them"
        )

    def _key(self, what: str, x: fs.Tensor, rows_differ: bool = False) -> str:
        """The key of the next exchange, which is noted."""
        lines = self._lines.setdefault(x.graph, [])
        shape = x.shape[1:] if rows_differ else x.shape
        place = x.op.origin.place
        where = f" ({place})" if place else ""
        lines.append(f"{what} with {x.dtype.name}{shape}\t{where}")
        return f"exchange_{len(lines)}"

    # -- sessions -------------------------------------------------------------------------------

    def initialize(self, session: fs.Session) -> None:
        """Initialises what the client has, and takes over replica 0's values.

        It waits for the other clients, which all call it, after they have built their steps.

        Raises:
            InvalidArgumentError: if another client has built other exchanges; it names both lines.
        """
        super().initialize(session)
        self.check_calls(session)
        self.take_first_values(session)

    def check_calls(self, session: fs.Session) -> None:
        """Checks that all clients in sync have built the same exchanges; all of them call it.

        Raises:
            InvalidArgumentError: if not; it names both lines.
        """
        lines = self._lines.get(fs.get_default_graph(), [])
        self._exchanges.check_alike(session, self._number("calls"), lines)

    def take_first_values(self, session: fs.Session) -> None:
        """Sets the variables of all clients to replica 0's values; all clients call it.

        That is for after replica 0 has restored a checkpoint.
        """
        found = self._mirror.variables(fs.get_default_graph())
        number = self._number("values")
        taken = []
        for i, variable in enumerate(found):
            value = variable.read_value()
            first = self._exchanges.broadcast(value, f"{number}/{i}", 0)
            taken.append(first.op if not self._index else variable.assign(first).op)
        session.run(taken)

    def check_copies(self, session: fs.Session) -> None:
        """Checks that the variables of all clients have the same bits; all clients call it.

        Raises:
            FailedPreconditionError: if copies differ; it names the variables and the replicas.
        """
        found = self._mirror.variables(fs.get_default_graph())
        values = session.run(found) if found else []
        digests = [hashlib.sha256(x.tobytes()).hexdigest() for x in values]
        rows = self._exchanges.meet(session, self._number("copies"), "\n".join(digests))
        wrong = []
        columns = zip(*[row.split("\n") for row in rows], strict=True)
        for variable, column in zip(found, columns, strict=False):
            if differing := [i for i, x in enumerate(column) if x != column[0]]:
                wrong.append(f"{variable.op.name} (replicas {differing})")
        if wrong:
            raise FailedPreconditionError(
                f"copies differ from that of replica 0: {', '.join(wrong)}"
            )

    def _number(self, what: str) -> str:
        self._checked += 1
        return f"{what}_{self._checked}"


def check_index(count: Any, index: Any) -> None:
    """Raises InvalidArgumentError unless `index` is the number of one of `count` clients."""
    for number in (count, index):
        if isinstance(number, bool) or not isinstance(number, int):
            raise InvalidArgumentError(f"expected whole numbers of workers, got {number!r}")
    if not 0 <= index < count:
        raise InvalidArgumentError(f"expected the number of one of {count} workers, got {index}")


__all__ = ["MultiWorker", "check_index"]
