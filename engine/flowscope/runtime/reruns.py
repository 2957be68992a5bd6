"""What sessions do about notebook cells that are run again (SPEC D18).

A variable that has another shape or dtype since then loses its value in every session, and gets its
initial value as soon as a run needs it.
"""

from __future__ import annotations

import weakref
from typing import Any

from flowscope.graph.cells.notebook import steps_of
from flowscope.graph.graph import Graph
from flowscope.runtime.calls import Call
from flowscope.runtime.resources import Container, VariableState

#: Steps of sessions that were closed.
_closed: weakref.WeakKeyDictionary[Graph, int] = weakref.WeakKeyDictionary()


def variable_state(graph: Graph, container: Container, handle: Any) -> VariableState:
    """Returns where a container keeps the value of the variable with this `VarHandleOp`."""
    name = handle.shared_name
    if graph.cells.restarts.get(name) == handle:
        return container.restarted(name, handle.shape, handle.dtype.np_dtype)
    return container.variable(name, handle.shape)


def initialize(session: Any, call: Call) -> None:
    """Gives the variables their initial values that have lost theirs and that `call` reads."""
    for state in call.required:
        if not state.is_lost:
            continue
        state.take_loss()
        handle = session.graph.get_operation_by_name(state.name)
        owner = session.graph.cells.owner(handle)
        if owner is not None:
            session.run(owner.initializer)


def note_closed(session: Any) -> None:
    """Keeps count of the steps of a session that is closed."""
    _closed[session.graph] = _closed.get(session.graph, 0) + session.attempts


def count_steps(sessions: Any) -> None:
    """Lets cells ask how many steps have run on a graph, in `sessions` and closed ones."""

    def steps(graph: Graph) -> int:
        running: int = sum(s.attempts for s in list(sessions) if s.graph is graph)
        return running + _closed.get(graph, 0)

    steps_of.append(steps)


__all__ = ["count_steps", "initialize", "note_closed", "variable_state"]
