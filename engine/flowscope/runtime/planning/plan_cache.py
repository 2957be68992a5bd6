"""A bounded cache whose hits cost one dict lookup.

Who looks up reads the dict and nothing else; whoever changes something has the lock. So a reader
may miss what has just become one of the old ones, and then asks `find`, which has the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from flowscope.graph.graph import Graph

#: So many nodes of plans are kept at most; one takes about two kilobytes.
MOST_NODES = 100_000
#: So many plans a generation may have, however large they are.
FEW = 16


class _Planned(Protocol):
    """Something that was planned."""

    def is_current(self, graph: Graph) -> bool:
        """Whether none of its operations was edited since."""


T = TypeVar("T", bound=_Planned)


class PlanCache(dict[Hashable, T], Generic[T]):
    """What was planned, by what was asked for, in two generations.

    The dict itself holds the young ones. Once they are half of a bound they become the old ones,
    in place of those that were; what is found among the old ones is young again. So what is
    dropped was not used while half the bound of others were: nearly the longest unused, at no cost
    for those who look up.

    Args:
        max_size: How many are kept at most.
        size_of: Returns how many nodes one has.

    Attributes:
        misses: How often `add` was called.
    """

    def __init__(self, max_size: int, size_of: Callable[[T], int]) -> None:
        super().__init__()
        self.max_size = max_size
        self.misses = 0
        #: Entered again by `forget_stale`.
        self._lock = threading.RLock()
        self._size_of = size_of
        self._old: dict[Hashable, T] = {}
        #: Nodes of the young ones.
        self._nodes = 0
        self._edits = 0

    def find(self, key: Hashable) -> T | None:
        """The entry of either generation; None if there is none."""
        with self._lock:
            found = self.get(key)
            if found is None:
                found = self._old.pop(key, None)
                if found is not None:
                    self._keep(key, found)
            return found

    def add(self, key: Hashable, planned: T) -> None:
        """Adds something that was just planned."""
        with self._lock:
            self.misses += 1
            self._old.pop(key, None)
            self._keep(key, planned)

    def _keep(self, key: Hashable, planned: T) -> None:
        if key not in self and self._is_full():
            self._old = dict(self)
            self.clear()
            self._nodes = 0
        self._nodes += self._size_of(planned)
        self[key] = planned

    def _is_full(self) -> bool:
        is_large = self._nodes >= MOST_NODES // 2 and len(self) >= FEW
        return is_large or len(self) >= self.max_size // 2

    def forget_stale(self, graph: Graph) -> None:
        """Drops what uses operations that were edited or are gone: nobody else may hold these.

        Not while a cell is building: what it makes anew may yet turn out to be the same.
        """
        with self._lock:
            if self._edits == graph.edits or (graph.run is not None and graph.run.has_built):
                return
            self._edits = graph.edits
            self.forget(lambda planned: not planned.is_current(graph))

    def forget(self, is_meant: Callable[[T], bool]) -> None:
        """Drops what is meant."""
        with self._lock:
            for kept in (self, self._old):
                for key, planned in list(kept.items()):
                    if is_meant(planned):
                        kept.pop(key, None)
            self._nodes = sum(map(self._size_of, self.values()))

    def drop(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._old = {}
            self._nodes = 0
            self.clear()

    def all(self) -> list[T]:
        """Returns all that are kept."""
        with self._lock:
            return [*self.values(), *self._old.values()]

    @property
    def size(self) -> int:
        """How many are kept."""
        return len(self) + len(self._old)


__all__ = ["PlanCache"]
