"""Breakpoints in a block: before which of its nodes a step comes to those that were chosen.

A breakpoint before a node stands there, one after a node before what comes next: at the end of the
block where nothing does. Inside of an update group nobody is held: what is chosen there is met
before the group's first write, or after its last. Transfers are no operations of the graph: a step
that stands before one is told to stand before the operation behind it (`next_operation`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Crossing
from flowscope.plan.ir.program import Node

#: Whether a step is to be held at a breakpoint: (run, numbers of the iterations around, values).
BreakTest = Callable[..., object]


@frozen
class BreakTests:
    """The breakpoints of a plan: what is asked there, by the names of the nodes.

    Attributes:
        before: Asked before a node, with the values that it takes.
        after: Asked after a node, with the values that it gives.
    """

    before: Mapping[str, BreakTest]
    after: Mapping[str, BreakTest]
    #: Is called where NumPy raises a floating-point error's flag; None where nobody asks.
    flagged: Callable[[str, int], None] | None = None
    #: Of what is asked after a node and only where this is not empty: by the names of the nodes.
    guards: Mapping[str, Collection[Any]] = field(default_factory=dict)
    #: Whether a step that begins is to be held for what it is fed; None where nobody asks.
    fed: Callable[[Any], bool] | None = None

    @property
    def names(self) -> tuple[Collection[str], Collection[str]]:
        """The names of the nodes before which, and after which, it is asked."""
        return self.before.keys(), self.after.keys()

    def without(self, names: Collection[str]) -> BreakTests:
        """Returns the same but for some nodes."""
        if not any(name in side for name in names for side in self.names):
            return self
        before, after = (
            {name: test for name, test in side.items() if name not in names}
            for side in (self.before, self.after)
        )
        return replace(self, before=before, after=after)


#: See `BreakpointTable.of`.
Answers = tuple[list[Any], list[int | None], list[BreakTest | None]]


class BreakpointTable:
    """What code asks, by the numbers of the places where it does.

    Attributes:
        places: The places: whether it is after a node, and the node's name.
    """

    def __init__(self) -> None:
        self.places: list[tuple[bool, str]] = []
        self._latest: tuple[BreakTests, Answers] = NO_TESTS, ([], [], [])

    def place(self, is_after: bool, name: str) -> int:
        """Returns the number of a new place."""
        self.places.append((is_after, name))
        return len(self.places) - 1

    def of(self, tests: BreakTests) -> Answers:
        """Returns by place what is true where a test has to be asked; the only iteration of the
        innermost loop in which it has to be, None for any; the tests.
        """
        known, answers = self._latest
        if known is not tests:
            sides = tests.before, tests.after
            found = [sides[is_after].get(name) for is_after, name in self.places]
            guards = [is_after and tests.guards.get(name) for is_after, name in self.places]
            asks = [
                test is not None if guard in (None, False) else guard
                for test, guard in zip(found, guards, strict=True)
            ]
            only = [getattr(test, "iteration", None) for test in found]
            answers = asks, only, found
            self._latest = tests, answers
        return answers


NO_TESTS = BreakTests({}, {})


@frozen
class BlockBreakpoint:
    """A breakpoint as it stands in a block: before or after a node."""

    node: Node
    is_after: bool


def stands(
    nodes: Sequence[Node],
    unsafe: Collection[int],
    closed: Collection[int],
    before: Collection[str],
    after: Collection[str],
) -> dict[int, list[BlockBreakpoint]]:
    """Returns where a step comes to breakpoints, by the position of the node that comes next.

    Args:
        nodes: The nodes of a block.
        unsafe: Positions before which nobody is held.
        closed: Positions of nodes in whose blocks nobody is held.
        before, after: The names of the chosen nodes.
    """
    found: dict[int, list[BlockBreakpoint]] = {}
    for i, node in enumerate(nodes):
        inner = [n for b in node.blocks for n in b.walk()] if i in closed else []
        names = [n.name for n in (node, *inner)]
        if any(n in before for n in names):
            at = i
            while at in unsafe and at:
                at -= 1
            if at not in unsafe:
                found.setdefault(at, []).append(BlockBreakpoint(node, False))
        if any(n in after for n in names):
            at = i + 1
            while at < len(nodes) and (at in unsafe or _is_no_work(nodes[at])):
                at += 1
            if at not in unsafe:
                found.setdefault(at, []).append(BlockBreakpoint(node, True))
    return found


def next_operation(nodes: Sequence[Node], at: int) -> int:
    """Returns the position of the first node from a position on that is no transfer.

    Args:
        nodes: The nodes of a block.
        at: The position.
    """
    found = at
    while found < len(nodes) and isinstance(nodes[found].op, Crossing):
        found += 1
        while found < len(nodes) and _is_no_work(nodes[found]):
            found += 1
    return found


def _is_no_work(node: Node) -> bool:
    return isinstance(node.op, Const) or node.op.is_handle


__all__ = [
    "NO_TESTS",
    "BlockBreakpoint",
    "BreakTest",
    "BreakTests",
    "BreakpointTable",
    "next_operation",
    "stands",
]
