"""All that building changes in a graph, as it was at one moment: a run that fails puts it back.

An interrupt can come between any two instructions of a builder. So nothing is worked out from what
the run has noted of itself: every operation, tensor, function, table and scope is kept as it was
before, and put back as a whole. Lists and dicts stay the same objects, for others hold them.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from flowscope.cells.lookup import cells_of
from flowscope.graph.operation import Operation

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph

#: What an operation has that can become another.
FIELDS = (
    "definition",
    "inputs",
    "control_inputs",
    "outputs",
    "device",
    "origin",
    "colocation",
    "passed_over",
    "forward",
    "gradient",
    "order",
    "stale",
    "block",
)
#: Builders' scopes among a thread's extras; the others count.
SCOPES = ("variable_scope", "container")
#: What of a graph goes on counting, or is no state.
_ASIDE = frozenset(("version", "edits", "_edited", "_next_id", "run", "cells", "known"))


class SavedOperations:
    """What the operations of a graph and their tensors were; the same while its version is.

    They are kept by columns: an object per operation would keep the garbage collector busy.
    """

    def __init__(self, graph: Graph) -> None:
        self.version = graph.version
        operations = self._operations = list(graph._operations)
        self._columns = [list(map(attrgetter(name), operations)) for name in FIELDS]
        self._counts = [len(op.outputs) for op in operations]  # outputs are added, never taken away
        self._tensors = [t for op in operations for t in op.outputs]
        self._specs = [t.spec for t in self._tensors]

    def restore(self) -> None:
        """Makes them what they were."""
        for name, values in zip(FIELDS, self._columns, strict=True):
            for op, value in zip(self._operations, values, strict=True):
                setattr(op, name, value)
        for op, count in zip(self._operations, self._counts, strict=True):
            del op.outputs[count:]
        for tensor, spec in zip(self._tensors, self._specs, strict=True):
            tensor.spec = spec


class Savepoint:
    """The state of a graph at one moment.

    Args:
        graph: The graph.
        before: What the operations were at another moment: most cells change none.

    Attributes:
        operations: The operations.
        names: The counters of names.
        first_id: The number that the next operation was to get: those made later have it or more.
    """

    def __init__(self, graph: Graph, before: SavedOperations | None = None) -> None:
        self._graph = graph
        self.first_id = graph._next_id
        is_known = before is not None and before.version == graph.version
        self.operations = before if before and is_known else SavedOperations(graph)
        #: Objects with what they had, and containers with their contents.
        self._attributes: list[tuple[Any, dict[str, Any]]] = []
        self._contents: list[tuple[Any, Any]] = []
        self._keep(graph, _ASIDE)
        self._keep(cells_of(graph), _ASIDE)
        self._owners = dict(cells_of(graph)._owners.items())
        self._keep_containers(graph._collections)
        self._keep_containers(graph.extras)
        self._keep(graph._here)
        self._keep_containers(graph.thread_extras)
        open_now = {k: v for k, v in graph.thread_extras.items() if k in SCOPES}
        self._scopes = dict(vars(graph._here)), open_now
        self._wishes = graph._wishes
        self._keep_blocks()
        self.names: dict[str, int] = dict(graph._names)

    def _keep_blocks(self) -> None:
        blocks = {self._graph.root, *(f.block for f in self._graph.functions.values())}
        self._built = [(block, block.built) for block in blocks]
        self._contents += [(block.operations, list(block.operations)) for block in blocks]
        for function in self._graph.functions.values():
            self._keep(function)
            for record in function.records:
                self._keep(record)

    def _keep(self, thing: Any, aside: frozenset[str] = frozenset()) -> None:
        values = {name: value for name, value in vars(thing).items() if name not in aside}
        self._attributes.append((thing, values))
        self._contents += [(v, v.copy()) for v in values.values() if type(v) in (dict, list, set)]

    def _keep_containers(self, table: dict[Any, Any]) -> None:
        for value in table.values():
            if type(value) in (dict, list, set):
                self._contents.append((value, value.copy()))
            elif hasattr(value, "__dict__"):
                self._keep(value)

    def restore_scopes(self) -> None:
        """Closes all scopes that were opened since, and keeps what was built in them."""
        graph, (here, scopes) = self._graph, self._scopes
        vars(graph._here).update(here)
        graph._wishes = self._wishes
        for name in SCOPES:
            graph.thread_extras.pop(name, None)
        graph.thread_extras.update(scopes)

    def restore(self) -> None:
        """Puts everything back. To be called where no interrupt can come."""
        self.operations.restore()
        for thing, values in self._attributes:
            for added in vars(thing).keys() - values.keys() - _ASIDE:
                delattr(thing, added)
            vars(thing).update(values)
        for container, contents in self._contents:
            _refill(container, contents)
        for block, built in self._built:
            block.built = built
        owners = cells_of(self._graph)._owners
        owners.clear()
        owners.update(self._owners)

    def made_since(self) -> Iterator[Operation]:
        """Yields the operations that the graph has got since."""
        graph = self._graph
        for op in {*graph._operations, *graph._by_name.values()}:
            if op.id >= self.first_id:
                yield op


def _refill(container: Any, contents: Any) -> None:
    container.clear()
    (container.extend if type(container) is list else container.update)(contents)


__all__ = ["FIELDS", "Savepoint"]
