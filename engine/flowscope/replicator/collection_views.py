"""What a replica sees of a graph's collections: variables of all, else what it has added itself.

A step function that sums up the losses of its replica, or waits for its updates, must not find
those of other replicas. The graph's collections keep what replica 0 adds, as on one device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flowscope as fs

#: What stays in the graph's collections, whichever replica adds it.
_SHARED = frozenset(
    {
        fs.GraphKeys.QUEUE_RUNNERS,
        fs.GraphKeys.TABLE_INITIALIZERS,
        fs.GraphKeys.SAVEABLE_OBJECTS,
        fs.GraphKeys.GLOBAL_VARIABLES,
        fs.GraphKeys.LOCAL_VARIABLES,
        fs.GraphKeys.TRAINABLE_VARIABLES,
        fs.GraphKeys.GLOBAL_STEP,
    }
)


class CollectionViews:
    """What the replicas of one graph have added to its collections."""

    def __init__(self) -> None:
        #: By the scope of the step, then per replica and collection.
        self._own: dict[str, dict[int, dict[Any, list[Any]]]] = {}

    @contextmanager
    def view(self, replica: int, scope: str) -> Iterator[None]:
        """Has the default graph's collections hold what a replica sees, in the block.

        Args:
            replica: The number of the replica.
            scope: The name scope of its step; what was built there before is built anew.
        """
        graph = fs.get_default_graph()
        before = {key: list(graph.get_collection_ref(key)) for key in _keys(graph)}
        own: dict[Any, list[Any]] = {}
        self._own.setdefault(scope, {})[replica] = own
        if replica:
            first = {id(e) for _, e in self._added(0)}
            mine = [(key, e) for key, e in self._added(replica) if not _is_stale(e)]
            for key, entries in before.items():
                common = [e for e in entries if _is_common(e) or id(e) not in first]
                common += [e for k, e in mine if k == key]
                graph.get_collection_ref(key)[:] = common
        seen = {key: set(map(id, graph.get_collection_ref(key))) for key in before}
        try:
            yield
        finally:
            for key in _keys(graph):
                entries = graph.get_collection_ref(key)
                own[key] = [e for e in entries if id(e) not in seen.get(key, ())]
                if replica:
                    entries[:] = before.get(key, [])

    def _added(self, replica: int) -> list[tuple[Any, Any]]:
        """What a replica has added in all steps: (collection, entry)."""
        steps = [by_replica.get(replica, {}) for by_replica in self._own.values()]
        return [(key, e) for step in steps for key, entries in step.items() for e in entries]


def _keys(graph: fs.Graph) -> list[Any]:
    return [key for key in graph.get_all_collection_keys() if key not in _SHARED]


def _is_common(entry: Any) -> bool:
    return isinstance(entry, fs.Variable)


def _is_stale(entry: Any) -> bool:
    """Whether a cell that was run again has replaced an entry."""
    op = getattr(entry, "op", entry)
    return getattr(op, "stale", None) is not None


__all__ = ["CollectionViews"]
