"""What steps have run one operation at a time, for those who tell it."""

from __future__ import annotations

from collections import deque

from flowscope.plan.locations import Moved

#: What happens between two messages to a view is told from here; older moves are forgotten.
MOVES = 1000


class Moves:
    """What has run one operation at a time, for any number of those who tell it."""

    def __init__(self) -> None:
        self._latest: deque[tuple[int, Moved]] = deque(maxlen=MOVES)
        self.count = 0

    def append(self, move: Moved) -> None:
        """Notes a move."""
        self.count += 1
        self._latest.append((self.count, move))

    def since(self, count: int) -> list[Moved]:
        """Returns the moves after the first `count`, as far as they are not forgotten."""
        return [move for number, move in list(self._latest) if number > count]


__all__ = ["MOVES", "Moves"]
