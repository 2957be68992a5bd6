"""Breakpoints of a step of several processes that is stepped through from where it was met.

What stands for the step asks, where a step of one process would be asked: after an operation when
the whole step has left it, before one when it comes next. Values are asked of where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from flowscope.cluster.debug.partition_order import Position
from flowscope.plan.ir.breakpoints import BreakTest, BreakTests, next_operation
from flowscope.plan.ir.program import Node, Program, Value

#: The live values, by their identities.
Alive = Callable[[], Mapping[object, Any]]


class PlanNumbers:
    """The nodes of a plan's program by the numbers that places have of them.

    Args:
        program: The plan's program.
        numbers: The numbers of its nodes, and of what is in them: see `PartOrder`.
    """

    def __init__(self, program: Program, numbers: Mapping[object, int]) -> None:
        self._program = program
        self._numbers = numbers

    @cached_property
    def spans(self) -> dict[Node, tuple[int, int]]:
        """The number of each node, and the last one of what is in it."""
        numbers = self._numbers
        return {
            n: (numbers[n], max([numbers[n], *[numbers[id(b), "end"] for b in n.blocks]]))
            for n in self._program.walk()
        }

    @cached_property
    def following(self) -> dict[int, Node | None]:
        """The operation of the graph behind each node in its block, by the node's number."""
        found: dict[int, Node | None] = {}
        for block in [self._program, *[b for n in self._program.walk() for b in n.blocks]]:
            for i, node in enumerate(block.nodes):
                at = next_operation(block.nodes, i + 1)
                found[self._numbers[node]] = block.nodes[at] if at < len(block.nodes) else None
        return found

    @cached_property
    def inner(self) -> dict[int, frozenset[str]]:
        """The names of what is in each loop and branch, by its number."""
        return {
            self._numbers[n]: frozenset([m.name for b in n.blocks for m in b.walk()])
            for n in self._program.walk()
            if n.blocks
        }

    def named(self, names: Sequence[str]) -> list[Node]:
        """Returns the nodes that have one of these names."""
        wanted = frozenset(names)
        return [n for n in self._program.walk() if n.name in wanted]


class JointTests:
    """Asks at the breakpoints of one step, place by place.

    Args:
        numbers: The nodes of its plan.
    """

    def __init__(self, numbers: PlanNumbers) -> None:
        self._numbers = numbers
        #: The place where it was asked last.
        self._at: Position | None = None
        self._meant: tuple[BreakTests | None, list[Node], list[Node]] = None, [], []

    def met(self, tests: BreakTests, at: Position, alive: Alive) -> Iterator[BreakTest]:
        """Yields the breakpoints that hold the step at a place, once for each that it comes to.

        Args:
            tests: What is asked of the plan.
            at: Where the step stands: the least of its partitions' places.
            alive: What is alive.
        """
        before, self._at = self._at, at
        if at == before:
            return
        if self._meant[0] is not tests:
            sides = [self._numbers.named([*names]) for names in tests.names]
            self._meant = tests, sides[0], sides[1]
        _, meant_before, meant_after = self._meant
        spans = self._numbers.spans
        iterations = tuple([i for *_, i in at[:-1]])
        if before is not None:
            for node in meant_after:
                depth = _depth_in(before, spans[node])
                if depth is None or _is_in(at, before, depth, spans[node]):
                    continue
                around = tuple([i for *_, i in before[:depth]])
                test = tests.after[node.name]
                if test(None, around, _Values(node.outputs, alive)):
                    yield test
        for node in meant_before:
            if at[-1] == (spans[node][0], 0, -1):
                test = tests.before[node.name]
                if test(None, iterations, _Values(node.inputs, alive)):
                    yield test


def _depth_in(at: Position, span: tuple[int, int]) -> int | None:
    """Returns how many loops are around a node at or in which a place is; None where it is not.

    What crosses directly behind or before the node is not in it.
    """
    first, last = span
    for depth, (number, crosses, _) in enumerate(at):
        if first <= number <= last and (number > first or not crosses):
            return depth
    return None


def _is_in(at: Position, before: Position, depth: int, span: tuple[int, int]) -> bool:
    """Whether a place is in the same run of a node in which another one is."""
    return _depth_in(at, span) == depth and at[:depth] == before[:depth]


class _Values(Sequence[Any]):
    """Values of a node, looked for when a breakpoint asks of one; None for what is not alive."""

    def __init__(self, values: Sequence[Value], alive: Alive) -> None:
        self._values = values
        self._alive = alive
        self._found: Mapping[object, Any] | None = None

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        if self._found is None:
            self._found = self._alive()
        return self._found.get(self._values[index].identity)


__all__ = ["Alive", "JointTests", "PlanNumbers"]
