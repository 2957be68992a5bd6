"""What sessions do about notebook cells that are run again.

A variable that has another shape or dtype since then loses its value in every session, and gets its
initial value as soon as a run needs it.
"""

from __future__ import annotations

from typing import Any

from flowscope.graph.graph import Graph
from flowscope.runtime.planning.calls import PreparedCall
from flowscope.runtime.state.containers import Container
from flowscope.runtime.state.resources import VariableState


def variable_state(graph: Graph, container: Container, handle: Any) -> VariableState:
    """Returns where a container keeps the value of the variable with this `VarHandleOp`."""
    name, restart = handle.shared_name, graph.observer.restarts.get(handle.shared_name)
    if restart is not None and handle in (restart, restart.opened()):
        return container.restarted(name, handle.shape, handle.dtype.np_dtype)
    return container.variable(name, handle.shape)


def initialize(session: Any, call: PreparedCall) -> None:
    """Gives the variables their initial values that have lost theirs and that `call` reads."""
    for state in call.required:
        if not state.is_lost:
            continue
        state.take_loss()
        handle = session.graph.get_operation_by_name(state.name)
        owner = session.graph.observer.owner(handle)
        if owner is not None:
            session.run(owner.initializer)


__all__ = ["initialize", "variable_state"]
