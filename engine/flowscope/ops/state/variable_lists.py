"""Lists of a graph's variables, and what initialises or checks all of a list; all its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops.array.arrays import rank
from flowscope.ops.array.joining import stack
from flowscope.ops.array.selection import boolean_mask
from flowscope.ops.core.flow import group, identity, no_op
from flowscope.ops.math.elementwise import logical_not
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variables import Variable

__all__ = [
    "all_variables",
    "assert_variables_initialized",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_tables",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "report_uninitialized_variables",
    "tables_initializer",
    "trainable_variables",
    "variables_initializer",
]


def _collected(key: str, scope: str | None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def global_variables(scope: str | None = None) -> list[Variable]:
    """Returns the default graph's variables but local ones; with `scope`, those that match."""
    return _collected(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """Returns the default graph's local variables."""
    return _collected(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """Returns the variables in the collection of model variables."""
    return _collected(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """Returns the variables that optimizers train."""
    return _collected(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """Returns an operation that sets the initial values of `var_list`."""
    return group(*[v.initializer for v in var_list], name=name)


def global_variables_initializer() -> Operation:
    """Returns an operation that sets the initial values of all global variables made so far.

    Example:
        >>> w = fs.Variable(3.0)
        >>> sess = fs.Session()
        >>> sess.run(fs.global_variables_initializer())
        >>> sess.run(w)
        np.float32(3.0)
    """
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Returns an operation that sets the initial values of all local variables made so far."""
    return variables_initializer(local_variables(), "init_1")


def is_variable_initialized(variable: Variable) -> Tensor:
    """Returns a bool scalar: whether the variable has a value."""
    return variable.is_initialized()


def assert_variables_initialized(
    var_list: Sequence[Variable] | None = None,
) -> Tensor | None:
    """Returns a tensor whose step fails unless all variables (by default: all) have values.

    Returns:
        The variables' ranks (of one variable: a scalar); None if there are no variables.

    Raises:
        FailedPreconditionError: when it runs, naming all variables without a value.
    """
    wanted = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    if not wanted:
        return None
    reads = [v.read_value() for v in wanted]
    with get_default_graph().control_dependencies(reads):
        ranks = [identity(rank(r)) for r in reads]
        return ranks[0] if len(ranks) == 1 else stack(ranks)


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """Returns a string vector: names of the variables (all by default) that have no value."""
    from flowscope.graph.constant import constant

    wanted = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    with get_default_graph().name_scope(name):
        if not wanted:
            return constant([], "string")
        missing = logical_not(stack([v.is_initialized() for v in wanted]))
        return boolean_mask(constant([v.op.name for v in wanted]), missing)


all_variables = global_variables
initialize_all_variables = global_variables_initializer
initialize_local_variables = local_variables_initializer
initialize_variables = variables_initializer


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Returns an operation that fills all static tables of the default graph.

    Args:
        name: Name of the operation.
    """
    found = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*found, name=name) if found else no_op(name=name)


def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    """Returns an operation that fills all static tables; the older name of `tables_initializer`.

    Args:
        name: Name of the operation.
    """
    return tables_initializer(name)
