"""What a handle stands for in a container: a variable's value, a queue, a lock, a table."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.graph import Graph
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.runtime.datasets.resource_kinds import kept_state, new_state
from flowscope.runtime.session.reruns import variable_state
from flowscope.runtime.state.containers import Container


def state_of(graph: Graph, container: Container, handle: Any) -> Any:
    """The resource of a handle, made on first use.

    Args:
        graph: The graph in which the handle is made.
        container: Where it is kept.
        handle: The op that makes the handle.

    Raises:
        InvalidArgumentError: if the container has one of this name that differs.
    """
    if isinstance(handle, VarHandleOp):
        return variable_state(graph, container, handle)
    try:
        state = kept_state(container, handle)
    except InvalidArgumentError:
        if not _was_rerun(graph, handle):
            raise
        state = container.renewed(new_state(container, handle))
    if handle.family == "table" and graph.observer.has_rerun:
        state.may_be_refilled = not handle.container
    return state


def _was_rerun(graph: Graph, handle: Any) -> bool:
    """Whether a re-run of a notebook cell has made state another one, with all its handles."""
    if handle.container or not graph.observer.has_rerun:
        return False
    handles = [op.definition for op in graph.get_operations() if op.definition.is_handle]
    named = [h for h in handles if getattr(h, "shared_name", None) == handle.shared_name]
    return all(h == handle for h in named if h.family == handle.family)


__all__ = ["state_of"]
