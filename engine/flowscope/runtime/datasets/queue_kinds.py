"""Queues whose elements come out in another order than they went in: shuffled, or by priority.

They differ from a first-in, first-out queue in their buffer alone; who waits, and what closing
means, is that of `QueueState`.
"""

from __future__ import annotations

import heapq
import os
import sys
from collections import deque
from collections.abc import Iterable, Sequence, Set
from typing import ClassVar

from flowscope.ops.state.containers.queue_ops import QueueHandle, RandomShuffleQueueHandle
from flowscope.runtime.state.queue_state import Element, QueueState, bounded
from flowscope.runtime.state.random_generators import philox

#: So many random numbers are drawn at once.
_BLOCK = 256


class PaddingFIFOQueueState(QueueState):
    """A first-in, first-out queue whose elements are filled up when they are stacked."""

    kind = "PaddingFIFOQueue"

    __slots__ = ()


class RandomShuffleQueueState(QueueState):
    """A queue whose elements come out in random order.

    The number of a draw says which random number decides it. With a seed and `min_after_dequeue` it
    chooses from the `min_after_dequeue` + 1 elements that have been in longest, which are there
    whenever it may draw: the order follows from seed and elements alone, not from how far those who
    put in are ahead. Else it chooses from all. What is given back counts as put in anew.

    Attributes:
        min_after_dequeue: Until it is closed, so many elements stay in, to be mixed with.
        seed: The key of the random numbers; None: the system's entropy is.
    """

    kind = "RandomShuffleQueue"
    identity: ClassVar[tuple[str, ...]] = (*QueueState.identity, "min_after_dequeue", "seed")

    __slots__ = ("_block", "_draws", "_key", "min_after_dequeue", "seed")

    def __init__(self, name: str, handle: RandomShuffleQueueHandle) -> None:
        super().__init__(name, bounded(handle.capacity), handle.dtypes, handle.shapes)
        self.min_after_dequeue = handle.min_after_dequeue
        self.seed = handle.seed
        self._key = handle.seed or _entropy()
        self._draws = 0
        self._block: list[float] = []
        is_fixed = self.seed is not None and self.min_after_dequeue > 0
        self._elements = _Pool(self.min_after_dequeue + 1 if is_fixed else sys.maxsize)

    def _contents(self) -> Iterable[Element]:
        return [*self._elements.pool, *self._elements.later]

    def _ready(self) -> int:
        kept = 0 if self._is_closed and not self._enqueues else self.min_after_dequeue
        return max(0, len(self._elements) - kept)

    def _pull(self, count: int) -> list[Element]:
        out = []
        for _ in range(count):
            pool = self._elements.filled()
            chosen = int(self._uniform() * len(pool))
            # The last one takes the place of the chosen one: an element comes out in constant time.
            out.append(pool[chosen])
            last = pool.pop()
            if chosen < len(pool):
                pool[chosen] = last
        return out

    def _uniform(self) -> float:
        """The next random number, of [0, 1)."""
        position = self._draws % _BLOCK
        if not position:
            counter = (0, 0, 0, self._draws // _BLOCK)
            self._block = philox(self._key, counter).random(_BLOCK).tolist()
        self._draws += 1
        return self._block[position]

    def _restore(self, elements: Sequence[Element]) -> None:
        self._elements.extend(elements)

    def _remove(self, identities: Set[int]) -> None:
        self._elements.remove(identities)


class _Pool:
    """Elements of which some can be chosen now: those that came first.

    Args:
        most: So many can be chosen from.

    Attributes:
        pool: Those that can be chosen.
        later: The others, in the order in which they came.
    """

    __slots__ = ("_most", "later", "pool")

    def __init__(self, most: int) -> None:
        self._most = most
        self.pool: list[Element] = []
        self.later: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self.pool) + len(self.later)

    def extend(self, elements: Iterable[Element]) -> None:
        """Adds elements behind the others."""
        self.later.extend(elements)

    def clear(self) -> None:
        """Forgets all."""
        self.pool.clear()
        self.later.clear()

    def remove(self, identities: Set[int]) -> None:
        """Takes the elements with these `id`s out."""
        self.pool = [e for e in self.pool if id(e) not in identities]
        self.later = deque([e for e in self.later if id(e) not in identities])

    def filled(self) -> list[Element]:
        """The pool, filled up with those that came next."""
        pool, later = self.pool, self.later
        while later and len(pool) < self._most:
            pool.append(later.popleft())
        return pool


class PriorityQueueState(QueueState):
    """A queue whose elements come out by their first component, the least first, then by age."""

    kind = "PriorityQueue"

    __slots__ = ("_first", "_next")

    def __init__(self, name: str, handle: QueueHandle) -> None:
        super().__init__(name, bounded(handle.capacity), handle.dtypes, handle.shapes)
        #: A heap of (priority, age, element).
        self._elements: list[tuple[int, int, Element]] = []
        self._next = 0
        self._first = 0

    def _contents(self) -> Iterable[Element]:
        return [element for _, _, element in self._elements]

    def _add(self, elements: Sequence[Element]) -> None:
        for element in elements:
            heapq.heappush(self._elements, (int(element[0]), self._next, element))
            self._next += 1

    def _pull(self, count: int) -> list[Element]:
        return [heapq.heappop(self._elements)[2] for _ in range(count)]

    def _restore(self, elements: Sequence[Element]) -> None:
        for element in reversed(elements):
            self._first -= 1
            heapq.heappush(self._elements, (int(element[0]), self._first, element))

    def _remove(self, identities: Set[int]) -> None:
        self._elements = [e for e in self._elements if id(e[2]) not in identities]
        heapq.heapify(self._elements)


def _entropy() -> tuple[int, int]:
    numbers = os.urandom(16)
    return int.from_bytes(numbers[:8]), int.from_bytes(numbers[8:])


__all__ = ["PaddingFIFOQueueState", "PriorityQueueState", "RandomShuffleQueueState"]
