"""Operations of queues as TensorFlow's `raw_ops` name them; a handle may be an `fs.FIFOQueue`, too.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.dtypes import as_dtype
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.core.handles import in_container
from flowscope.ops.state.containers.queues import (
    FIFOQueue as _FIFOQueue,
    PaddingFIFOQueue as _PaddingFIFOQueue,
    PriorityQueue as _PriorityQueue,
    QueueBase,
    RandomShuffleQueue as _RandomShuffleQueue,
)


def FIFOQueueV2(
    *,
    component_types: Any,
    shapes: Any = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a queue whose elements come out in the order in which they went in.

    Args:
        component_types: Dtypes of the components of an element.
        shapes: Shapes of the components, fully known; none: each element may have its own.
        capacity: Most elements that it holds; negative: no limit.
        container: Container of the queue; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.
    """
    with in_container(container):
        return _FIFOQueue(
            capacity,
            list(component_types),
            list(shapes) or None,
            None,
            shared_name or None,
            name or "FIFOQueueV2",
        ).queue_ref


def PaddingFIFOQueueV2(
    *,
    component_types: Any,
    shapes: Any = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a queue that fills elements up to one shape where they are stacked.

    Args:
        component_types: Dtypes of the components of an element.
        shapes: Shapes of the components, of known rank.
        capacity: Most elements that it holds; negative: no limit.
        container: Container of the queue; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.
    """
    with in_container(container):
        return _PaddingFIFOQueue(
            capacity,
            list(component_types),
            list(shapes) or None,
            None,
            shared_name or None,
            name or "PaddingFIFOQueueV2",
        ).queue_ref


def RandomShuffleQueueV2(
    *,
    component_types: Any,
    shapes: Any = (),
    capacity: int = -1,
    min_after_dequeue: int = 0,
    seed: int = 0,
    seed2: int = 0,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a queue whose elements come out in random order.

    Args:
        component_types: Dtypes of the components of an element.
        shapes: Shapes of the components, fully known; none: each element may have its own.
        capacity: Most elements that it holds; negative: no limit.
        min_after_dequeue: So many elements stay in until it is closed.
        seed: Says the order, with `seed2`; both 0: another order each time.
        seed2: See `seed`.
        container: Container of the queue; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.
    """
    with in_container(container):
        return _RandomShuffleQueue(
            capacity,
            min_after_dequeue,
            list(component_types),
            list(shapes) or None,
            None,
            (seed << 32) + seed2 if seed or seed2 else None,
            shared_name or None,
            name or "RandomShuffleQueueV2",
        ).queue_ref


def PriorityQueueV2(
    *,
    shapes: Any,
    component_types: Any = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """The handle of a queue whose elements come out by their first component, the least first.

    Args:
        shapes: Shapes of the components behind the priority, fully known; none: each element may
            have its own.
        component_types: Their dtypes.
        capacity: Most elements that it holds; negative: no limit.
        container: Container of the queue; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.
    """
    with in_container(container):
        return _PriorityQueue(
            capacity,
            list(component_types),
            list(shapes) or None,
            None,
            shared_name or None,
            name or "PriorityQueueV2",
        ).queue_ref


def _queue(handle: Any, timeout_ms: int = -1) -> QueueBase:
    refuse("raw_ops.QueueEnqueueV2", timeout_ms=timeout_ms)
    if isinstance(handle, QueueBase):
        return handle
    made: Any = handle.op.definition if isinstance(handle, Tensor) else None
    if not hasattr(made, "capacity"):
        raise expected_dtype("the handle of a queue", repr(handle))
    return QueueBase(made.dtypes, made.shapes, None, handle)


def QueueEnqueueV2(*, handle: Any, components: Sequence[Any], timeout_ms: int = -1,
                   name: str | None = None) -> Operation:  # fmt: skip
    """Returns an operation that puts one element in, and waits while the queue is full."""
    return _queue(handle, timeout_ms).enqueue(list(components), name or "QueueEnqueueV2")


def QueueEnqueueManyV2(*, handle: Any, components: Sequence[Any], timeout_ms: int = -1,
                       name: str | None = None) -> Operation:  # fmt: skip
    """Returns an operation that puts the slices of the components in, in order."""
    return _queue(handle, timeout_ms).enqueue_many(list(components), name or "QueueEnqueueManyV2")


def _taken(queue: QueueBase, component_types: Any, found: Any) -> list[Tensor]:
    wanted = [as_dtype(d) for d in component_types]
    if wanted != queue.dtypes:
        raise expected_dtype(f"component_types {queue.dtypes}, the queue's", wanted)
    return found if isinstance(found, list) else [found]


def QueueDequeueV2(*, handle: Any, component_types: Any, timeout_ms: int = -1,
                   name: str | None = None) -> list[Tensor]:  # fmt: skip
    """Returns the components of one element, and waits for one."""
    queue = _queue(handle, timeout_ms)
    return _taken(queue, component_types, queue.dequeue(name or "QueueDequeueV2"))


def QueueDequeueManyV2(*, handle: Any, n: Any, component_types: Any, timeout_ms: int = -1,
                       name: str | None = None) -> list[Tensor]:  # fmt: skip
    """Returns `n` elements, stacked by component, and waits until there are as many."""
    queue = _queue(handle, timeout_ms)
    return _taken(queue, component_types, queue.dequeue_many(n, name or "QueueDequeueManyV2"))


def QueueDequeueUpToV2(*, handle: Any, n: Any, component_types: Any, timeout_ms: int = -1,
                       name: str | None = None) -> list[Tensor]:  # fmt: skip
    """Returns `n` elements, stacked by component; of a closed queue what it has left."""
    queue = _queue(handle, timeout_ms)
    return _taken(queue, component_types, queue.dequeue_up_to(n, name or "QueueDequeueUpToV2"))


def QueueCloseV2(*, handle: Any, cancel_pending_enqueues: bool = False,
                 name: str | None = None) -> Operation:  # fmt: skip
    """Returns an operation that closes the queue: it takes in nothing new."""
    return _queue(handle).close(cancel_pending_enqueues, name or "QueueCloseV2")


def QueueIsClosedV2(*, handle: Any, name: str | None = None) -> Tensor:
    """Returns whether the queue is closed, a bool scalar."""
    return _queue(handle).is_closed(name or "QueueIsClosedV2")


def QueueSizeV2(*, handle: Any, name: str | None = None) -> Tensor:
    """Returns the number of elements in the queue, an int32 scalar."""
    return _queue(handle).size(name or "QueueSizeV2")


FIFOQueue, QueueEnqueue, QueueEnqueueMany = FIFOQueueV2, QueueEnqueueV2, QueueEnqueueManyV2
QueueDequeue, QueueDequeueMany = QueueDequeueV2, QueueDequeueManyV2
QueueDequeueUpTo, QueueClose = QueueDequeueUpToV2, QueueCloseV2
QueueIsClosed, QueueSize = QueueIsClosedV2, QueueSizeV2
PaddingFIFOQueue, PriorityQueue = PaddingFIFOQueueV2, PriorityQueueV2
RandomShuffleQueue = RandomShuffleQueueV2
