"""One of several queues, which each step chooses by number: `fs.QueueBase.from_list`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.control.branches import switch_case
from flowscope.errors import DTypeError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims
from flowscope.ops.array.gathering import gather
from flowscope.ops.state.containers.queues import QueueBase, choosers


class _ChosenQueue(QueueBase):
    """The queue with a number: each of its operations is that of one queue, chosen when it runs.

    Args:
        index: The number, an integer or an integer scalar tensor.
        queues: The queues, with the same dtypes and names of components.
    """

    def __init__(self, index: Any, queues: Sequence[QueueBase]) -> None:
        first = queues[0]
        self._queues = list(queues)
        self.dtypes = list(first.dtypes)
        self.names = None if first.names is None else list(first.names)
        self._shapes = _common_shapes(queues)
        self._given_name = get_default_graph().unique_name("chosen_queue")
        self._number: int | None = None
        if isinstance(index, Tensor):
            numbers = np.arange(len(queues), dtype=np.int32)
            # The numbers' own error, where there is no such queue.
            self._index = gather(numbers, convert_to_tensor(index), name=self._given_name + "/")
            return
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise expected_dtype("the number of a queue, an integer", repr(index))
        self._number = int(index)
        if not 0 <= self._number < len(queues):
            raise expected(f"the number of a queue, 0 to {len(queues) - 1}", index)

    @property
    def name(self) -> str:
        """A name after which its operations are called."""
        return self._given_name

    @property
    def queue_ref(self) -> Tensor:  # type: ignore[override]
        """There is none: raises UnimplementedError."""
        names = ", ".join(f'"{q.name}"' for q in self._queues)
        raise UnimplementedError(
            f"a queue chosen of {names} has no handle of its own: choose what is done with the "
            "queues, by fs.switch_case"
        )

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        return _operation(self._of_chosen(lambda q: q.enqueue(vals), name, "enqueue"))

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        return _operation(self._of_chosen(lambda q: q.enqueue_many(vals), name, "EnqueueMany"))

    def dequeue(self, name: str | None = None) -> Any:
        return self._shaped(self._of_chosen(lambda q: q.dequeue(), name, "Dequeue"), ())

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        found = self._of_chosen(lambda q: q.dequeue_many(n), name, "DequeueMany")
        return self._shaped(found, (None,))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        found = self._of_chosen(lambda q: q.dequeue_up_to(n), name, "DequeueUpTo")
        return self._shaped(found, (None,))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        found = self._of_chosen(lambda q: q.close(cancel_pending_enqueues), name, "Close")
        return _operation(found)

    def is_closed(self, name: str | None = None) -> Tensor:
        return self._of_chosen(lambda q: q.is_closed(), name, "Is_Closed")  # type: ignore[no-any-return]

    def size(self, name: str | None = None) -> Tensor:
        return self._of_chosen(lambda q: q.size(), name, "Size")  # type: ignore[no-any-return]

    def _of_chosen(self, what: Callable[[QueueBase], Any], name: str | None, kind: str) -> Any:
        """What a function makes of the chosen queue; each queue's is made now."""
        if self._number is not None:
            with get_default_graph().name_scope(name or f"{self._last}_{kind}"):
                return what(self._queues[self._number])
        functions = [lambda q=q: what(q) for q in self._queues]
        return switch_case(self._index, functions, name=name or f"{self._last}_{kind}")

    def _shaped(self, found: Any, leading: tuple[None, ...]) -> Any:
        """What was taken; its shapes say what all queues have in common."""
        tensors = found.values() if isinstance(found, dict) else found
        listed = list(tensors) if isinstance(tensors, Sequence) or self.names else [found]
        for tensor, dims in zip(listed, self._shapes or ()):
            if dims is not None:
                tensor.set_shape((*leading, *dims))
        return found


def _operation(found: Any) -> Operation:
    return found if isinstance(found, Operation) else found.op


def _common_shapes(queues: Sequence[QueueBase]) -> tuple[Dims, ...] | None:
    """Shapes of components, unknown where queues differ."""
    listed = [q._shapes for q in queues]
    known = [shapes for shapes in listed if shapes is not None]
    if len(known) < len(listed):
        return None
    return tuple([_common(column) for column in zip(*known, strict=True)])


def _common(column: Sequence[Dims]) -> Dims:
    known = [dims for dims in column if dims is not None]
    if len(known) < len(column) or len({len(dims) for dims in known}) > 1:
        return None
    sizes = [set(axis) for axis in zip(*known, strict=True)]
    return tuple([next(iter(axis)) if len(axis) == 1 else None for axis in sizes])


def _chosen(index: Any, queues: Any) -> QueueBase:
    is_list = isinstance(queues, list | tuple) and len(queues) > 0
    if not is_list or not all(isinstance(q, QueueBase) for q in queues):
        raise expected_dtype("a list of queues, one at least", repr(queues))
    first = queues[0]
    for other in queues[1:]:
        for what in ("dtypes", "names"):
            has, wanted = getattr(other, what), getattr(first, what)
            if has != wanted:
                raise DTypeError(
                    f"expected queues whose components have the same {what}, got {wanted} of "
                    f'"{first.name}" and {has} of "{other.name}"'
                )
    return _ChosenQueue(index, queues)


choosers.append(_chosen)

__all__: list[str] = []
