"""The order of a whole step over the partitions of its plan: which of them comes next."""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.cluster.debug.held_partitions import PartitionPosition
from flowscope.ops.core.send_recv import Recv
from flowscope.plan.analysis.locations import LoopAt
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.program import Node, Program

#: Where a node stands: its number in the plan, and what crosses behind it (1) or before it (-1).
Key = tuple[int, int]
#: Where a partition stands: the loops around with the numbers of their iterations, then the node.
Position = tuple[tuple[int, int, int], ...]
#: At the beginning of an iteration, before all its nodes.
_FIRST = (-1, 0, -1)


class PartOrder:
    """Where the nodes of a partition are in the order of the plan's program.

    A partition is a subsequence of it, but for what crosses: a Send stands directly behind what
    makes the value, a Recv before what comes next where it is.

    Args:
        plan: The plan's program.
        part: The partition's.

    Attributes:
        nodes: The partition's nodes by their numbers.
        numbers: The numbers of the plan's nodes, and of the beginnings and ends of blocks.
    """

    def __init__(self, plan: Program, part: Program) -> None:
        self.nodes: list[Node] = [*part.walk()]
        self._keys: dict[Node, Key] = {}
        self.numbers: dict[object, int] = {}
        self._number(plan)
        #: Behind the last node.
        self.end: Position = ((self.numbers[id(plan), "end"], 0, -1),)
        self._match(part, plan)

    def loops(self, stand: PartitionPosition) -> tuple[LoopAt, ...]:
        """Returns the loops around a partition."""
        return tuple([LoopAt(self.nodes[s[0]], *s[1:]) for s in stand.loops])

    def node(self, stand: PartitionPosition) -> Node | None:
        """Returns the node that comes next in a partition; None at the end of an iteration."""
        return None if stand.node < 0 else self.nodes[stand.node]

    def position(self, stand: PartitionPosition) -> Position:
        """Returns where a partition stands: the least of several comes next."""
        loops = [(*self._keys[self.nodes[s[0]]], s[1]) for s in stand.loops]
        if stand.node >= 0:
            return (*loops, (*self._keys[self.nodes[stand.node]], -1))
        return (*loops, _FIRST) if loops else self.end

    def _number(self, block: Program) -> None:
        """Numbers a block's beginning, its nodes with those in them, and its end."""
        self.numbers[id(block), "begin"] = len(self.numbers)
        for node in block.nodes:
            self.numbers[node] = len(self.numbers)
            for inner in node.blocks:
                self._number(inner)
        self.numbers[id(block), "end"] = len(self.numbers)

    def _match(self, part: Program, plan: Program) -> None:
        """Finds the keys of a block's nodes."""
        numbers = self.numbers
        places: dict[str, list[int]] = {}
        for i, node in enumerate(plan.nodes):
            places.setdefault(node.name, []).append(i)
        first, last = 0, numbers[id(plan), "begin"]
        late: list[Node] = []  # what comes before the next node that the plan has, too
        for node in part.nodes:
            found = places.get(node.name, ()) if not is_ambient(node) else ()
            at = next((i for i in found if i >= first), None)
            if at is None:
                is_late = isinstance(node.op, Recv) or any(v.node in late for v in node.inputs)
                if is_late:
                    late.append(node)
                else:
                    self._keys[node] = (last, 1)
                continue
            other, first = plan.nodes[at], at + 1
            last = numbers[other]
            self._keys[node] = (last, 0)
            self._keys.update(dict.fromkeys(late, (last, -1)))
            late.clear()
            for one, like in zip(reversed(node.blocks), reversed(other.blocks), strict=False):
                self._match(one, like)
        self._keys.update(dict.fromkeys(late, (numbers[id(plan), "end"], -1)))


def least(positions: Sequence[Position | None]) -> list[int]:
    """Returns which of several positions is the least: of equal ones at back edges all."""
    known = [p for p in positions if p is not None]
    if not known:
        return []
    first = min(known)
    found = [i for i, p in enumerate(positions) if p == first]
    return found if first[-1] == _FIRST else found[:1]


__all__ = ["PartOrder", "Position", "least"]
