"""Operations of queues as TensorFlow's `raw_ops` name them; a handle may be an `fs.FIFOQueue`, too.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.graph.default import get_default_graph
from flowscope.graph.dtypes import as_dtype
from flowscope.graph.expected import expected_dtype
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.unsupported import refuse
from flowscope.ops.state.queues import FIFOQueue as _FIFOQueue, QueueBase


def FIFOQueueV2(
    *,
    component_types: Any,
    shapes: Any = (),
    capacity: int = -1,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """Returns the handle of a queue whose elements come out in the order in which they went in.

    Args:
        component_types: Dtypes of the components of an element.
        shapes: Shapes of the components, fully known; none: each element may have its own.
        capacity: Most elements that it holds; negative: no limit.
        container: Container of the queue; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        name: Name of the operation.
    """
    called = name or "FIFOQueueV2"
    extras = get_default_graph().extras
    before = extras.get("container", "")
    extras["container"] = container or before
    try:
        made = _FIFOQueue(
            capacity, list(component_types), list(shapes) or None, None, shared_name or None, called
        )
    finally:
        extras["container"] = before
    return made.queue_ref


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
