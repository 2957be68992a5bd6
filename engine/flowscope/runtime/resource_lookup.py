"""What a handle stands for in a container: a variable's value, a queue, a lock."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InternalError, InvalidArgumentError
from flowscope.graph.graph import Graph
from flowscope.ops.state.locks import MutexHandle
from flowscope.ops.state.queue_ops import QueueHandle
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.runtime.containers import Container
from flowscope.runtime.mutex_state import MutexState
from flowscope.runtime.queue_state import QueueState, check_same
from flowscope.runtime.reruns import variable_state


def state_of(graph: Graph, container: Container, handle: Any) -> Any:
    """Returns what the handle stands for, made on first use.

    Args:
        graph: The graph in which the handle is made.
        container: Where it is kept.
        handle: The op that makes the handle.

    Raises:
        InvalidArgumentError: if the container has one of this name that differs.
    """
    match handle:
        case VarHandleOp():
            return variable_state(graph, container, handle)
        case QueueHandle():
            return _queue(graph, container, handle)
        case MutexHandle():
            return container.other(MutexState(handle.shared_name), lambda found, fresh: None)
    raise InternalError(f"nothing is known of the state behind {handle!r}")


def _queue(graph: Graph, container: Container, handle: QueueHandle) -> QueueState:
    from flowscope.runtime.queue_kinds import queue_of  # loaded with the first queue

    fresh = queue_of(handle)
    try:
        return container.other(fresh, check_same)
    except InvalidArgumentError:
        if not _was_rerun(graph, handle):
            raise
        return container.renewed(fresh)


def _was_rerun(graph: Graph, handle: QueueHandle) -> bool:
    """Whether a re-run of a notebook cell has made the queue another one, with all its handles."""
    if handle.container or not graph.observer.has_rerun:
        return False
    handles = [op.definition for op in graph.get_operations() if op.definition.is_handle]
    named = [h for h in handles if getattr(h, "shared_name", None) == handle.shared_name]
    return all(h == handle for h in named if isinstance(h, QueueHandle))


__all__ = ["state_of"]
