"""Exchanges between the graphs of several clients, over queues that they share on a server.

Client i has a queue to each client j, for each exchange, by a name that both know. A step puts its
tensor into the queues to the others, and takes one from each queue to itself. Queues keep order, so
the n-th steps of all clients meet, and no client is more than a step ahead of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowscope as fs
from flowscope.errors import InvalidArgumentError

#: So many elements lie in a queue at most: those of a step, and of the next one.
_AHEAD = 2


class Exchanges:
    """What one client exchanges with the others.

    Args:
        name: What the clients call their group; other groups have other names.
        index: The number of this client.
        count: How many there are.
        devices: Where the queues to each client are, by its number.
    """

    def __init__(self, name: str, index: int, count: int, devices: Sequence[Any]) -> None:
        self.name, self.index, self.count = name, index, count
        self._devices = devices

    def gathered(self, x: fs.Tensor, key: str, rows_differ: bool = False) -> list[fs.Tensor]:
        """Returns the tensors of all clients, in their order.

        Args:
            x: That of this client.
            key: Tells the exchange apart: the same for all clients.
            rows_differ: Whether first dimensions may differ.
        """
        dims = fs.TensorShape([None]).concatenate(x.shape[1:]) if rows_differ else x.shape
        put = []
        for other in self._others():
            queue = self._queue(x.dtype, key, self.index, other)
            put.append(queue.enqueue(x))
        found = []
        with fs.control_dependencies(put):
            for other in range(self.count):
                if other == self.index:
                    found.append(x)
                    continue
                taken: Any = self._queue(x.dtype, key, other, self.index).dequeue()
                taken.set_shape(dims)
                found.append(taken)
        return found

    def broadcast(self, x: fs.Tensor, key: str, source: int) -> fs.Tensor:
        """Returns the tensor of the client `source`.

        Args:
            x: That of this client; its value counts where this client is the source.
            key: Tells the exchange apart: the same for all clients.
            source: The number of the client.
        """
        if source != self.index:
            taken: Any = self._queue(x.dtype, key, source, self.index).dequeue()
            taken.set_shape(x.shape)
            return taken  # type: ignore[no-any-return]
        put = [self._queue(x.dtype, key, source, j).enqueue(x) for j in self._others()]
        with fs.control_dependencies(put):
            return fs.identity(x)

    def _others(self) -> list[int]:
        return [i for i in range(self.count) if i != self.index]

    def _queue(self, dtype: fs.DType, key: str, source: int, target: int) -> fs.FIFOQueue:
        """The queue between two clients; errors of steps that wait at it show its name."""
        name = f"{self.name}/{key}/from_replica_{source}_to_{target}"
        with fs.device(self._devices[target]), fs.container(self.name), fs.init_scope():
            return fs.FIFOQueue(_AHEAD, [dtype], shared_name=name, name="exchange")

    def meet(self, session: fs.Session, key: str, text: str) -> list[str]:
        """Tells all clients a text; returns those of all, in their order.

        It waits for them, as long as steps of the session may last.

        Args:
            session: Of this client.
            key: Tells the exchange apart: the same for all clients.
            text: The text.
        """
        found = session.run(self.gathered(fs.constant(text), f"meet/{key}"))
        return [value.decode() for value in found]

    def check_alike(self, session: fs.Session, key: str, lines: Sequence[str]) -> None:
        """Checks that all clients have built the same exchanges.

        Args:
            session: Of this client.
            key: Tells the check apart: the same for all clients.
            lines: A line per exchange: what is called, a tab, and where.

        Raises:
            InvalidArgumentError: if another client has built something else; it names both lines.
        """
        for other, text in enumerate(self.meet(session, key, "\n".join(lines))):
            theirs = text.split("\n") if text else []
            for number in range(max(len(theirs), len(lines))):
                mine = [*lines, "nothing more\t"][min(number, len(lines))].split("\t")
                line = [*theirs, "nothing more\t"][min(number, len(theirs))].split("\t")
                if mine[0] != line[0]:
                    raise InvalidArgumentError(
                        f"replica {self.index} calls {mine[0]}{mine[1]} where replica {other} "
                        f"calls {line[0]}{line[1]}: all replicas call the same primitives in the "
                        "same order"
                    )


__all__ = ["Exchanges"]
