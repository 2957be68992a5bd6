"""The global step: a variable that counts updates."""

from __future__ import annotations

from typing import Any

from flowscope.errors import DTypeError, GraphError, NotFoundError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import int64, resource
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.array.arrays import zeros
from flowscope.ops.state.variable_scope import get_variable
from flowscope.ops.state.variables import GraphKeys, Variable


def get_global_step(graph: Graph | None = None) -> Variable | Tensor | None:
    """Returns the graph's global step, None if it has none.

    It is the one in the collection "global_step", or else the variable or tensor of that name.

    Args:
        graph: The graph; the default graph by default.

    Raises:
        InvalidArgumentError: if the collection has several.
        DTypeError: if it is no integer scalar.
    """
    graph = get_default_graph() if graph is None else graph
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise expected(f'one global step in the collection "{GraphKeys.GLOBAL_STEP}"', len(found))
    step = found[0] if found else _of_that_name(graph)
    if step is not None:
        assert_global_step(step)
    return step


def _of_that_name(graph: Graph) -> Variable | Tensor | None:
    for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        if v.name == "global_step:0":
            return v  # type: ignore[no-any-return]
    try:
        step = graph.get_tensor_by_name("global_step:0")
    except NotFoundError:
        return None
    # The handle of a variable that is listed no more: its cell runs again, and makes it anew.
    return None if step.dtype is resource else step


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises DTypeError unless it is a variable or a tensor, of integers and of rank 0."""
    step = global_step_tensor
    if not isinstance(step, Variable | Tensor):
        raise expected_dtype("a variable or a tensor as global step", repr(step))
    if not step.dtype.is_integer:
        raise DTypeError(f'expected a global step of integers, "{step.name}" is of {step.dtype}')
    if step.shape.ndims not in (0, None):
        raise DTypeError(f'expected a scalar as global step, "{step.name}" has shape {step.shape}')


def create_global_step(graph: Graph | None = None) -> Variable:
    """Makes the graph's global step, an int64 scalar that starts at 0.

    Args:
        graph: The graph; the default graph by default.

    Raises:
        GraphError: if the graph has one.
    """
    graph = get_default_graph() if graph is None else graph
    if get_global_step(graph) is not None:
        raise GraphError("the graph has a global step already")
    with graph.as_default(), graph.name_scope(None):
        return get_variable(  # type: ignore[no-any-return]
            "global_step",
            [],
            int64,
            lambda *_, **__: zeros([], int64),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Variable | Tensor:
    """Returns the graph's global step, made on first use.

    Example:
        >>> step = fs.train.get_or_create_global_step()
        >>> step.name, step is fs.train.get_or_create_global_step()
        ('global_step:0', True)
    """
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Returns the value of the global step, a variable or a tensor, in a session."""
    return int(sess.run(global_step_tensor))
