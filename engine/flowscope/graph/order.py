"""Program order with dependencies first: what walks over graphs visits operations in it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from operator import attrgetter

from flowscope.graph.operation import Operation, is_back_edge


def in_order(operations: Iterable[Operation]) -> list[Operation]:
    """Returns the operations so that each comes after those whose values it takes.

    That is program order, unless a notebook cell was run again and took what a later one had made:
    then it is the order nearest to it.
    """
    ordered = sorted(operations, key=attrgetter("order"))
    place = {op: i for i, op in enumerate(ordered)}
    is_sound = all(
        place.get(t.op, -1) <= i or is_back_edge(t, op)
        for i, op in enumerate(ordered)
        for t in op.inputs
    )
    return ordered if is_sound else _repaired(ordered, place)


def _repaired(ordered: list[Operation], place: dict[Operation, int]) -> list[Operation]:
    before = {
        op: {t.op for t in op.inputs if t.op in place and not is_back_edge(t, op)} for op in ordered
    }
    after: dict[Operation, list[Operation]] = {}
    for op, earlier in before.items():
        for p in earlier:
            after.setdefault(p, []).append(op)
    ready = [i for i, op in enumerate(ordered) if not before[op]]
    done: list[Operation] = []
    while ready:
        op = ordered[heapq.heappop(ready)]
        done.append(op)
        for later in after.get(op, ()):
            before[later].discard(op)
            if not before[later]:
                heapq.heappush(ready, place[later])
    return done


__all__ = ["in_order"]
