"""Where the values of a placed program lie: on which device, and in which memory.

What a node gives lies on its device. For branches and loops that follows from what is in them: a
loop's variable lies where its next value is made (one that stays as it is, where it starts), a
branch's result where the branch makes it that makes one at all, `then` before `else`, and a list
where the values lie that it keeps.
"""

from __future__ import annotations

from typing import NamedTuple

from flowscope.plan.lowering import is_ambient
from flowscope.plan.memories import is_host
from flowscope.plan.program import Node, Program, Value
from flowscope.plan.structured import CondNode, LoopNode


class Location(NamedTuple):
    """A device, and whether a value is in the host's memory there though the device has another."""

    device: str
    in_host: bool


def located(device: str, in_host: bool = False) -> Location:
    """Returns a device's own memory or the host's: for a CPU both are one."""
    return Location(device, in_host and not is_host(device))


class ValueLocations:
    """Where values lie. What is fed, constants and handles lie nowhere: they are there everywhere.

    Args:
        program: A placed program.
    """

    def __init__(self, program: Program) -> None:
        self._known: dict[Value, Location | None] = {}
        #: The loop that a parameter or an element belongs to, and its number there.
        self._loops: dict[Value, tuple[LoopNode, int]] = {}
        #: Variables whose location is being found.
        self._open: set[tuple[Node, int]] = set()
        self._enter(program)

    def _enter(self, program: Program) -> None:
        for node in program.nodes:
            for block in node.blocks:
                if isinstance(node, LoopNode):
                    self._loops.update((v, (node, i)) for i, v in enumerate(block.feeds))
                self._enter(block)

    def of(self, value: Value) -> Location | None:
        """Returns where a value lies; None where it is there everywhere."""
        node = value.node
        if node is not None and not node.blocks:
            if is_ambient(node):
                return None
            in_host = node.op.outputs_on_host(len(node.outputs))
            return located(node.device, value.index in in_host)
        if value not in self._known:
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: Value) -> Location | None:
        node = value.node
        if node is None:
            return self._parameter(*self._loops[value]) if value in self._loops else None
        if isinstance(node, CondNode):
            return self._result(node, value.index)
        assert isinstance(node, LoopNode)
        n = node.variables
        if value.index < n:
            return self.variable(node, value.index)
        if value.index == n:
            return located(node.device, True)
        return self.of(node.kept_values[value.index - n - 1]) or located(node.device)

    def _parameter(self, loop: LoopNode, index: int) -> Location:
        if index < loop.variables:
            return self.variable(loop, index)
        return self.of(loop.taken[index - loop.variables]) or located(loop.device)

    def variable(self, loop: LoopNode, index: int) -> Location:
        """Returns where a variable of a loop lies."""
        if (loop, index) in self._open:
            found = None
        else:
            self._open.add((loop, index))
            found = self._made_next(loop, index)
            self._open.discard((loop, index))
        return found or self.of(loop.starts[index]) or located(loop.device)

    def _made_next(self, loop: LoopNode, index: int) -> Location | None:
        value = loop.next_values[index]
        stays = self._loops.get(value) == (loop, index)
        return None if stays else self.of(value)

    def _result(self, node: CondNode, index: int) -> Location:
        values = [b.fetches[index] for b in node.blocks]
        made = [v for v, b in zip(values, node.blocks, strict=True) if v.node in b.nodes]
        found = (self.of(v) for v in (*made, *values))
        return next((at for at in found if at is not None), located(node.device))


__all__ = ["Location", "ValueLocations", "located"]
