"""The node that makes a value, through loops and branches: the value lives there.

A loop's variable lives where its next value is made, a list that a loop keeps where the kept values
are made, an element of a list where the list lies. What a branch gives is made by its first block,
unless that gives a feed.
"""

from __future__ import annotations

from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode


class Makers:
    """Finds the nodes that make a program's values; those with blocks never count as makers."""

    def __init__(self, program: Program) -> None:
        #: Per variable or element of a loop, as its blocks know it: the loop, and its number.
        self._carried: dict[Value, tuple[LoopNode, int]] = {}
        for node in program.walk():
            if isinstance(node, LoopNode):
                for block in node.blocks:
                    self._carried.update((v, (node, i)) for i, v in enumerate(block.feeds))

    def maker(self, value: Value) -> Node | None:
        """Returns the node that makes a value; None for a feed of the step."""
        seen: set[Value] = set()
        stack = [value]
        while stack:
            one = stack.pop()
            if one in seen:
                continue
            seen.add(one)
            if one.node is not None and not one.node.blocks:
                return one.node
            stack += reversed(self._sources(one))
        return None

    def decider(self, node: Node) -> Node | None:
        """Returns who makes what a loop or a branch goes by; None where that is fed."""
        if isinstance(node, CondNode):
            return self.maker(node.pred)
        if not isinstance(node, LoopNode):
            return None
        if node.condition is not None:
            return self.maker(node.condition.fetches[0])
        return None if node.count is None else self.maker(node.count)

    def _sources(self, value: Value) -> list[Value]:
        """Returns the values that a value of a loop or a branch comes from, best first."""
        node, i = value.node, value.index
        if isinstance(node, CondNode):
            return [node.then.fetches[i], node.orelse.fetches[i]]
        if isinstance(node, LoopNode):
            if i < node.variables:
                return [node.next_values[i], node.starts[i]]
            if i > node.variables:
                return [node.kept_values[i - node.variables - 1]]
            return [b.fetches[0] for b in node.conditions] or [v for v in [node.count] if v]
        if value not in self._carried:
            return []
        loop, i = self._carried[value]
        if i < loop.variables:
            return [loop.next_values[i], loop.starts[i]]
        return [loop.taken[i - loop.variables]]


__all__ = ["Makers"]
