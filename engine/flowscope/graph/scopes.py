"""The default graph's scopes and collections as functions, under TensorFlow 1's flat names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Convertible
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor

__all__ = [
    "add_to_collection",
    "add_to_collections",
    "colocate_with",
    "control_dependencies",
    "device",
    "get_collection",
    "get_collection_ref",
    "init_scope",
    "is_tensor",
    "name_scope",
    "op_scope",
]


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Any = None
) -> Iterator[str]:
    """Opens a name scope in the default graph; yields its name with a "/" behind it.

    Args:
        name: The scope's name, made unique; a name that ends in "/" opens that very scope again;
            None stands for `default_name`, or for the top where there is none.
        default_name: See `name`.
        values: Tensors, variables and what else the operations of the block are to take: the
            block is built in the graph of these.

    Raises:
        InvalidArgumentError: if there are `values` and no name, or the values are of several
            graphs.

    Example:
        >>> with fs.name_scope("encoder"):
        ...     y = fs.constant(1.0, name="one")
        >>> y.name
        'encoder/one:0'
    """
    if default_name is not None and not isinstance(default_name, str):
        raise DTypeError(
            f"expected default_name as a string, got {default_name!r}: values come third"
        )
    if name is None and default_name is None and values is not None:
        raise InvalidArgumentError("a name scope needs a name or a default_name")
    with graph_of(values) as graph, graph.name_scope(default_name if name is None else name) as at:
        yield at


@contextmanager
def graph_of(values: Any) -> Iterator[Graph]:
    """Makes the graph of `values` the default one, if there are any that have one.

    Raises:
        InvalidArgumentError: if they are of several graphs.
    """
    graph = get_default_graph()
    known = [v for v in values or () if isinstance(getattr(v, "graph", None), Graph)]
    if not known:
        yield graph
        return
    first = known[0]
    for value in known:
        if value.graph is not first.graph:
            raise InvalidArgumentError(
                f"expected values of one graph: {value} must be from the same graph as {first}"
            )
    with own_graph(first.graph):
        yield first.graph


@contextmanager
def own_graph(graph: Graph) -> Iterator[Graph]:
    """Makes a graph the default one, if it is not already."""
    if graph is get_default_graph():
        yield graph
        return
    with graph.as_default():
        yield graph


@contextmanager
def init_scope() -> Iterator[None]:
    """Adds the operations of the block to the graph itself, even inside a function that is traced.

    Control dependencies from outside do not count in it; the name scope stays.
    """
    graph = get_default_graph()
    with graph.enter_block(graph.root):
        yield


def op_scope(
    values: Any, name: str | None, default_name: str | None = None
) -> AbstractContextManager[str]:
    """Opens a name scope (older argument order)."""
    return name_scope(name, default_name, values)


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """Asks for a device for the operations of the block, see `Graph.device`.

    Example:
        >>> with fs.device("/cpu:0"):
        ...     y = fs.constant(1.0)
        >>> y.device
        '/device:CPU:0'
    """
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Any) -> AbstractContextManager[None]:
    """Makes operations of the block wait for `control_inputs`; None clears those outside.

    Example:
        >>> w = fs.Variable(1.0)
        >>> with fs.control_dependencies([fs.assign(w, 5.0)]):
        ...     y = fs.constant(2.0) + w
        >>> sess = fs.Session()
        >>> sess.run(w.initializer)
        >>> sess.run(y)
        np.float32(7.0)
    """
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Asks that the operations of the block share a device with `op`."""
    return get_default_graph().colocate_with(op, ignore_existing)


def add_to_collection(name: Any, value: Any) -> None:
    """Appends `value` to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Appends `value` to several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """Returns a copy of a collection; with `scope`, the entries whose name matches it."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """Returns a collection itself: changes to the list change it."""
    return get_default_graph().get_collection_ref(key)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor or stands for one, as a variable does."""
    return isinstance(x, Tensor | Convertible) or hasattr(type(x), "_as_graph_element")
