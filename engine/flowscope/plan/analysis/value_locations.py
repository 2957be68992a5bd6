"""Where the values of a placed program lie: on which device, and in which memory.

What a node gives lies on its device. For branches and loops that follows from what is in them: a
loop's variable lies where its next value is made (one that stays as it is, where it starts), a
branch's result where the branch makes it that makes one at all, `then` before `else`, and a list
where the values lie that it keeps. An op that hands on what it takes (`Op.follows_memory`) takes it
in whichever memory of its device it lies. Variables that only take each other's values lie
together, where the first of them starts that starts somewhere. So it does not matter which one is
asked for first, and transfers of values change none of it: whoever asks before and after they are
put in hears the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowscope.graph.op import Memory
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.memories import is_host
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode


class ValueLocation(NamedTuple):
    """A device, and whether a value is in the host's memory there though the device has another."""

    device: str
    in_host: Memory


def located(device: str, in_host: Memory = False) -> ValueLocation:
    """Returns a device's own memory or the host's: for a CPU both are one."""
    return ValueLocation(device, False if is_host(device) else in_host)


class ValueLocations:
    """Where values lie. What is fed, constants and handles lie nowhere: they are there everywhere.

    A result, a variable or an element lies where the first of its sources does that lies somewhere.
    Those whose sources lead back to themselves are one *unit*, whose sources are those of all.

    Args:
        program: A placed program.
    """

    def __init__(self, program: Program) -> None:
        self._known: dict[Value, ValueLocation] = {}
        #: The loop that a parameter or an element belongs to, and its number there.
        self._loops: dict[Value, tuple[LoopNode, int]] = {}
        #: The numbers of branches and loops: in their order, those around before those inside.
        self._numbers: dict[Node, int] = {}
        #: The units of more than one member, by member.
        self._units: dict[Value, tuple[Value, ...]] = {}
        #: What is handed on, and whose location is being found.
        self._asked: set[Value] = set()
        self._enter(program)

    def _enter(self, program: Program) -> None:
        for node in program.nodes:
            if node.blocks:
                self._numbers[node] = len(self._numbers)
            for block in node.blocks:
                if isinstance(node, LoopNode):
                    self._loops.update((v, (node, i)) for i, v in enumerate(block.feeds))
                self._enter(block)

    def of(self, value: Value) -> ValueLocation | None:
        """Returns where a value lies; None where it is there everywhere."""
        node = value.node
        if self._follows(value):
            return self._settled(self._member(value))
        if node is None or is_ambient(node):
            return None
        if isinstance(node, LoopNode):  # how often it runs
            return located(node.device, True)
        if node.op.follows_memory:
            return self._handed_on(value, node)
        in_host = node.op.outputs_on_host(len(node.outputs))
        return located(node.device, value.index in in_host)

    def of_input(self, node: Node, value: Value) -> ValueLocation:
        """Returns where a node takes an input that it hands on: wherever it lies on its device."""
        at = self.of(value)
        return located(node.device) if at is None or at.device != node.device else at

    def _handed_on(self, value: Value, node: Node) -> ValueLocation:
        if value in self._asked:  # it is handed round in a loop: whatever else it is tells
            return located(node.device)
        self._asked.add(value)
        memories = [self.of_input(node, x).in_host for x in node.inputs]
        self._asked.discard(value)
        return located(node.device, node.op.output_memory(memories))

    def variable(self, loop: LoopNode, index: int) -> ValueLocation:
        """Returns where a variable of a loop lies."""
        return self._settled(loop.body.feeds[index])

    def _follows(self, value: Value) -> bool:
        """Whether a value lies where others do: what branches and loops take and give."""
        node = value.node
        if isinstance(node, LoopNode):
            return value.index != node.variables
        return isinstance(node, CondNode) or (node is None and value in self._loops)

    def _member(self, value: Value) -> Value:
        """The representative of a value of a branch or loop: a variable has several values."""
        node = value.node
        if node is None:
            loop, index = self._loops[value]
            return loop.body.feeds[index]
        if isinstance(node, LoopNode) and value.index < node.variables:
            return node.body.feeds[value.index]
        return value

    def _settled(self, member: Value) -> ValueLocation:
        """Returns where a member of a unit lies, once all are known that it follows."""
        if member in self._known:
            return self._known[member]
        path = [self._units.get(member, (member,))]
        steps = dict.fromkeys(path[0], 0)
        while not isinstance(ahead := self._ahead(path[-1]), ValueLocation):
            at = steps.get(ahead)
            if at is None:
                path.append(self._units.get(ahead, (ahead,)))
            else:
                path[at:] = [self._joined(path[at:])]
            steps.update(dict.fromkeys(path[-1], len(path) - 1))
        self._known.update((one, ahead) for unit in path for one in unit)
        return ahead

    def _joined(self, units: Sequence[tuple[Value, ...]]) -> tuple[Value, ...]:
        """Makes one unit of some that follow each other in a circle."""
        made = tuple(sorted((v for unit in units for v in unit), key=self._order))
        self._units.update(dict.fromkeys(made, made))
        return made

    def _order(self, member: Value) -> tuple[int, bool, int]:
        if member.node is not None:
            return self._numbers[member.node], True, member.index
        loop, index = self._loops[member]
        return self._numbers[loop], False, index

    def _ahead(self, unit: tuple[Value, ...]) -> ValueLocation | Value:
        """Returns where a unit lies, or the member of another one that it follows."""
        for value in (v for one in unit for v in self._sources(one)):
            if not self._follows(value):
                if (at := self.of(value)) is not None:
                    return at
            elif (member := self._member(value)) not in unit:
                return self._known.get(member, member)
        first = unit[0].node or self._loops[unit[0]][0]
        return located(first.device)

    def _sources(self, member: Value) -> Sequence[Value]:
        """The values that a member may lie beside, the best first."""
        node, index = member.node, member.index
        if isinstance(node, CondNode):
            values = [(b.fetches[index], b) for b in node.blocks]
            made = [v for v, b in values if v.node in b.nodes]
            return [*made, *[v for v, _ in values]]
        if isinstance(node, LoopNode):
            return (node.kept_values[index - node.variables - 1],)
        loop, index = self._loops[member]
        if index < loop.variables:
            return loop.next_values[index], loop.starts[index]
        return (loop.taken[index - loop.variables],)


__all__ = ["ValueLocation", "ValueLocations", "located"]
