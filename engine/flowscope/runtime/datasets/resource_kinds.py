"""The kinds of what containers hold besides variables: queues, accumulators, locks, tables."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InternalError, InvalidArgumentError
from flowscope.runtime.state.containers import Container
from flowscope.runtime.state.queue_state import QueueState, bounded


def kept_state(container: Container, handle: Any) -> Any:
    """What a handle that is no variable's stands for in a container, made on first use.

    Args:
        container: The container.
        handle: The op that makes the handle.

    Raises:
        InvalidArgumentError: if the container has one of this name that differs.
    """
    return container.other(new_state(container, handle), check_same)


def new_state(container: Container, handle: Any) -> Any:
    """New state of the kind that a handle is of; each kind is loaded with its first one."""
    match handle.family:
        case "queue":
            return _queue(container, handle)
        case "staging area":
            from flowscope.runtime.state.staging_state import StagingState

            return StagingState(handle)
        case "accumulator":
            from flowscope.runtime.state.accumulator_state import AccumulatorState

            return AccumulatorState(handle)
        case "lock":
            from flowscope.runtime.state.mutex_state import MutexState

            return MutexState(handle.shared_name)
        case "reader":
            from flowscope.runtime.state.reader_state import ReaderState

            return ReaderState(handle)
        case "table":
            from flowscope.runtime.state.table_state import table_of

            return table_of(handle)
    raise InternalError(f"nothing is known of the state behind {handle!r}")


def _queue(container: Container, handle: Any) -> Any:
    """A new queue of the kind that a handle is of."""
    from flowscope.ops.state.containers import queue_ops as ops
    from flowscope.ops.state.iterator_ops import FeedableIteratorHandle, IteratorHandle
    from flowscope.runtime.datasets import queue_kinds as kinds

    name = handle.shared_name
    match handle:
        case ops.BarrierHandle():
            from flowscope.runtime.datasets.barrier_state import BarrierState

            return BarrierState(name, handle)
        case ops.RandomShuffleQueueHandle():
            return kinds.RandomShuffleQueueState(name, handle)
        case ops.PriorityQueueHandle():
            return kinds.PriorityQueueState(name, handle)
        case IteratorHandle():
            from flowscope.runtime.datasets.iterator_state import (
                IteratorState,  # few programs have one
            )

            return IteratorState(name, handle.container, handle.dtypes, handle.shapes)
        case FeedableIteratorHandle():
            from flowscope.runtime.datasets.iterator_state import FeedableState

            return FeedableState(handle, container.find)
    is_padding = isinstance(handle, ops.PaddingFIFOQueueHandle)
    kind = kinds.PaddingFIFOQueueState if is_padding else QueueState
    return kind(name, bounded(handle.capacity), handle.dtypes, handle.shapes)


def check_same(found: Any, wanted: Any) -> None:
    """Raises InvalidArgumentError if what has this name is there and is another one."""
    for what in wanted.identity:
        has, asked = getattr(found, what, None), getattr(wanted, what)
        if has != asked:
            raise InvalidArgumentError(
                f'the container has a {found.family} "{found.name}" with {what} {_shown(has)}, '
                f"expected {_shown(asked)}: give one of them another name, or drop the "
                "container's with fs.Session.reset"
            )


def _shown(value: Any) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


__all__ = ["check_same", "kept_state", "new_state"]
