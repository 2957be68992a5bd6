"""The global step: a variable that counts updates."""

from __future__ import annotations

from typing import Any

from flowscope.errors import GraphError
from flowscope.graph.default import get_default_graph
from flowscope.graph.dtypes import int64
from flowscope.graph.graph import Graph
from flowscope.ops.arrays import zeros
from flowscope.ops.variables import GraphKeys, Variable


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Returns the graph's global step, None if it has none."""
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


def create_global_step(graph: Graph | None = None) -> Variable:
    """Makes the graph's global step, an int64 scalar that starts at 0.

    Raises:
        GraphError: if the graph has one.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise GraphError("the graph has a global step already")
    with graph.as_default(), graph.name_scope(None):
        return Variable(
            lambda: zeros([], int64),
            trainable=False,
            name="global_step",
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Returns the graph's global step, made on first use."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: Any, global_step_tensor: Variable) -> int:
    """Returns the value of the global step in a session."""
    return int(sess.run(global_step_tensor))
