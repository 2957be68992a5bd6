"""The structure of `Session.run`'s fetches: flattened before the step, put together after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError, NotFoundError
from flowscope.graph.block import misplaced
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import resource, variant
from flowscope.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue

#: Puts a structure together from the values of all fetched tensors.
Rebuild = Callable[[tuple[Any, ...]], Any]


def structure_key(fetches: Any) -> Hashable:
    """Returns a hashable key: equal for equal structures of the same fetches."""
    if isinstance(fetches, Tensor | Operation | str):
        return fetches
    if isinstance(fetches, list | tuple):
        return (type(fetches), *map(structure_key, fetches))
    if isinstance(fetches, Mapping):
        return (type(fetches), tuple(fetches), *map(structure_key, fetches.values()))
    if hasattr(type(fetches), "__attrs_attrs__"):
        return (type(fetches), *map(structure_key, _attributes(fetches).values()))
    return fetches  # type: ignore[no-any-return]


def _attributes(fetches: Any) -> dict[str, Any]:
    """Returns the attributes of an object of a class that `attrs` has made, by their names."""
    return {a.name: getattr(fetches, a.name) for a in type(fetches).__attrs_attrs__}


def is_bare_handle(tensor: Tensor) -> bool:
    """Whether it is the handle of something that is no variable: it has no value."""
    return tensor.spec.dtype is resource and tensor.spec.variable is None


def decoded(fetch: Any) -> Any:
    """Returns a name that is given as bytes as a string, and all else as it is."""
    return fetch.decode() if isinstance(fetch, bytes) else fetch


class Flattened:
    """Fetches as flat lists.

    Attributes:
        tensors: Tensors to fetch, each once.
        targets: Operations to run.
        rebuild: Makes the caller's structure from the tensors' values.
    """

    def __init__(self, graph: Graph, fetches: Any) -> None:
        self._graph = graph
        self._position: dict[Tensor, int] = {}
        self._targets: dict[Operation, None] = {}
        self.rebuild = self._flatten(fetches)
        self.tensors = tuple(self._position)
        self.targets = tuple(self._targets)

    def _flatten(self, fetches: Any) -> Rebuild:
        if isinstance(fetches, Mapping):
            return self._mapping(fetches)
        if isinstance(fetches, list | tuple):
            return self._sequence(fetches)
        if isinstance(fetches, IndexedSlices):
            return self._slices(fetches)
        if hasattr(type(fetches), "__attrs_attrs__"):
            parts = {k: self._flatten(v) for k, v in _attributes(fetches).items()}
            kind = type(fetches)
            return lambda values: kind(*[part(values) for part in parts.values()])
        if isinstance(fetches, SparseTensor):
            return self._sparse(fetches)
        if fetches is None:
            raise DTypeError(
                "expected a tensor, an operation, a name or a structure of them to fetch, got None "
                "(fs.gradients gives None for an x that the ys do not depend on)"
            )
        try:
            element = self._graph.as_graph_element(decoded(fetches))
        except NotFoundError as e:
            raise InvalidArgumentError(f"cannot fetch {fetches!r}: {e.message}") from None
        if isinstance(element, Tensor) and is_bare_handle(element):
            raise InvalidArgumentError(
                f'"{element.name}" is the handle of a queue or a lock, which has no value to fetch'
            )
        if not self._graph.is_fetchable(element):
            op = element.op if isinstance(element, Tensor) else element
            if op.block is not self._graph.root:
                raise misplaced(element, "fetched")
            raise InvalidArgumentError(f'"{op.name}" may not be fetched: Graph.prevent_fetching')
        if isinstance(element, Operation):
            self._targets[element] = None
            return lambda values: None
        if element.spec.dtype is variant:  # the flow of a TensorArray: 0.0, as in TensorFlow
            self._targets[element.op] = None
            return lambda values: np.float32(0)
        i = self._position.setdefault(element, len(self._position))
        return lambda values: values[i]

    def _slices(self, fetches: IndexedSlices) -> Rebuild:
        values, indices = self._flatten(fetches.values), self._flatten(fetches.indices)
        if fetches.dense_shape is None:
            return lambda found: IndexedSlicesValue(values(found), indices(found))
        shape = self._flatten(fetches.dense_shape)
        return lambda found: IndexedSlicesValue(values(found), indices(found), shape(found))

    def _sparse(self, fetches: SparseTensor) -> Rebuild:
        parts = (fetches.indices, fetches.values, fetches.dense_shape)
        found = [self._flatten(part) for part in parts]
        return lambda values: SparseTensorValue(*[part(values) for part in found])

    def _mapping(self, fetches: Mapping[Any, Any]) -> Rebuild:
        parts = {k: self._flatten(v) for k, v in fetches.items()}
        kind: Any = type(fetches) if isinstance(fetches, dict) else dict
        if isinstance(fetches, defaultdict):
            kind = partial(kind, fetches.default_factory)
        elif kind.__init__ is not dict.__init__ and not issubclass(kind, dict):
            kind = dict
        return lambda values: kind((k, part(values)) for k, part in parts.items())

    def _sequence(self, fetches: Any) -> Rebuild:
        parts = [self._flatten(v) for v in fetches]
        if hasattr(fetches, "_fields"):
            make: Any = type(fetches)
            return lambda values: make(*[part(values) for part in parts])
        if isinstance(fetches, list):
            return lambda values: [part(values) for part in parts]
        return lambda values: tuple([part(values) for part in parts])
