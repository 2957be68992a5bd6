"""The default graph's scopes and collections as functions, under TensorFlow 1's flat names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Convertible
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor

__all__ = [
    "add_to_collection",
    "add_to_collections",
    "colocate_with",
    "control_dependencies",
    "device",
    "get_collection",
    "get_collection_ref",
    "get_seed",
    "init_scope",
    "is_tensor",
    "name_scope",
    "op_scope",
    "set_random_seed",
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
        values: Not used.
    """
    del values
    with get_default_graph().name_scope(default_name if name is None else name) as scope:
        yield scope


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
    """Asks for a device for the operations of the block, see `Graph.device`."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Any) -> AbstractContextManager[None]:
    """Makes operations of the block wait for `control_inputs`; None clears those outside."""
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


def set_random_seed(seed: int) -> None:
    """Sets the default graph's seed: every session then draws the same random numbers."""
    if not isinstance(seed, int):
        raise InvalidArgumentError(f"expected an integer seed, got {seed!r}")
    get_default_graph().seed = seed


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """Returns the default graph's seed and the op's."""
    return get_default_graph().seed, op_seed


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor or stands for one, as a variable does."""
    return isinstance(x, Tensor | Convertible)
