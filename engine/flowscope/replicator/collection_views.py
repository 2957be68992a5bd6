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
        #: Per replica and collection.
        self._own: dict[int, dict[Any, list[Any]]] = {}

    @contextmanager
    def view(self, replica: int) -> Iterator[None]:
        """Has the default graph's collections hold what a replica sees, in the block."""
        graph = fs.get_default_graph()
        before = {key: list(graph.get_collection_ref(key)) for key in _keys(graph)}
        first = {id(e) for entries in self._own.get(0, {}).values() for e in entries}
        own = self._own.setdefault(replica, {})
        if replica:
            for key, entries in before.items():
                common = [e for e in entries if _is_common(e) or id(e) not in first]
                graph.get_collection_ref(key)[:] = [*common, *own.get(key, ())]
        seen = {key: set(map(id, graph.get_collection_ref(key))) for key in before}
        try:
            yield
        finally:
            for key in _keys(graph):
                entries = graph.get_collection_ref(key)
                added = [e for e in entries if id(e) not in seen.get(key, ())]
                own.setdefault(key, []).extend(added)
                if replica:
                    entries[:] = before.get(key, [])


def _keys(graph: fs.Graph) -> list[Any]:
    return [key for key in graph.get_all_collection_keys() if key not in _SHARED]


def _is_common(entry: Any) -> bool:
    return isinstance(entry, fs.Variable)


__all__ = ["CollectionViews"]
