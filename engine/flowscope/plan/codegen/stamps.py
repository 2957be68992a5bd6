"""Stamps: the variant of code that reads a clock after every node.

A reading is appended to one list, without saying whose it is: the end of one node is the beginning
of the next, and a static table per block says which node left which reading. What the table cannot
say is in the sign: a branch begins with a negative reading where it is the first one, and a
positive one where it is the second; an iteration begins with a negative reading, where the reading
after the loop is positive. (So does the condition of a loop that has a count, too, which may end it
before the condition is asked.) Constants and handles take no time and leave no reading.

The table can be read along a list that ends anywhere: that of a step that failed or was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.flow import NoOp
from flowscope.plan.codegen.variants import Probe, Variant
from flowscope.plan.locations import NestedRun
from flowscope.plan.program import Node, Program
from flowscope.plan.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer


@frozen
class Stamped:
    """The run of stamped code.

    Attributes:
        run: The run of the step.
        stamps: Where readings are appended.
    """

    run: Any
    stamps: list[int]


@frozen
class Stamps(Variant):
    """Code that reads a clock after every node; its `run` is a `Stamped`.

    Attributes:
        clock: Returns the time, a positive integer.
    """

    clock: Callable[[], int]

    def probe(self) -> Probe:
        """Returns what is added to one function."""
        return _StampProbe(self.clock)

    def generator(self, generator: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the generator for code whose `run` is a `Stamped`."""

        def made(run: Stamped, *counts: int) -> Any:
            return generator(run.run, *counts)

        return made


@frozen
class StampTable:
    """Which nodes of a block leave a reading, in order.

    Attributes:
        nodes: The nodes.
        blocks: The tables of the blocks of those that have some.
    """

    nodes: tuple[Node, ...]
    blocks: Mapping[Node, tuple[StampTable, ...]]


class Span(NamedTuple):
    """One invocation of a node, as it was measured.

    Attributes:
        node: The node; of a branch or a loop as a whole, too.
        iterations: Numbers of the iterations of the loops around, from the outermost.
        begin, end: By the clock.
    """

    node: Node
    iterations: tuple[int, ...]
    begin: int
    end: int


class _StampProbe(Probe):
    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        #: The nodes of each block that have one, by the block's id.
        self._nodes: dict[int, tuple[Program, list[Node]]] = {}

    def adds_to(self, block: Program) -> bool:
        """Every block has lines of its own."""
        return True

    def head(self, writer: Writer) -> None:
        """Finds the list."""
        writer.namespace.update(clock=self._clock, stamps_of=_stamps_of)
        writer.emit("stamp = stamps_of(run)")

    def after(self, writer: Writer, scope: BlockScope, node: Node) -> None:
        """Writes a reading."""
        if not isinstance(node.op, (Const, NoOp)) and not node.op.is_handle:
            self._nodes.setdefault(id(scope.program), (scope.program, []))[1].append(node)
            writer.emit("stamp(clock())")

    def branch(self, writer: Writer, is_then: bool) -> None:
        """Writes a reading whose sign tells the branch."""
        writer.emit("stamp(-clock())" if is_then else "stamp(clock())")

    def test(self, writer: Writer, loop: LoopNode) -> None:
        """Writes a reading where the count may end the loop in place of the condition."""
        if loop.count is not None:
            writer.emit("stamp(-clock())")

    def iteration(self, writer: Writer) -> None:
        """Writes a reading whose sign tells that there is another iteration."""
        writer.emit("stamp(-clock())")

    def table(self, program: Program) -> StampTable:
        """Returns the table of a program."""
        nodes = tuple(self._nodes.get(id(program), (program, []))[1])
        blocks = {n: tuple([self.table(b) for b in n.blocks]) for n in nodes if n.blocks}
        return StampTable(nodes, blocks)


def _stamps_of(run: Any) -> Callable[[int], None]:
    while isinstance(run, NestedRun):
        run = run.run
    stamps: list[int] = run.stamps
    return stamps.append


def decoded(table: StampTable, start: int, stamps: Sequence[int]) -> list[Span]:
    """Returns the spans of one run, each behind those inside of it.

    Args:
        table: The code's table.
        start: When the code began.
        stamps: What it has appended; of a run that did not end as far as it came.
    """
    return list(_Decoder(start, stamps).block(table, ()))


class _Decoder:
    def __init__(self, start: int, stamps: Sequence[int]) -> None:
        self._last = start
        self._stamps = stamps
        self._at = 0

    def block(self, table: StampTable, iterations: tuple[int, ...]) -> Iterator[Span]:
        """Yields the spans of a block."""
        for node in table.nodes:
            begin = self._last
            blocks = table.blocks.get(node)
            if isinstance(node, LoopNode):
                assert blocks is not None
                yield from self._loop(node, blocks, iterations)
            elif blocks is not None:
                is_then = self._peek() < 0
                if self._next():
                    yield from self.block(blocks[0 if is_then else 1], iterations)
            if not self._next():
                return
            yield Span(node, iterations, begin, self._last)

    def _loop(
        self, node: LoopNode, blocks: tuple[StampTable, ...], iterations: tuple[int, ...]
    ) -> Iterator[Span]:
        *tests, body = blocks
        number = 0
        while True:
            inner = (*iterations, number)
            if tests:
                if node.count is not None and not (self._peek() < 0 and self._next()):
                    return
                yield from self.block(tests[0], inner)
            if not (self._peek() < 0 and self._next()):
                return
            yield from self.block(body, inner)
            number += 1

    def _peek(self) -> int:
        return self._stamps[self._at] if self._at < len(self._stamps) else 0

    def _next(self) -> bool:
        """Takes a reading; returns whether there was one."""
        if self._at >= len(self._stamps):
            return False
        self._last = abs(self._stamps[self._at])
        self._at += 1
        return True


__all__ = ["Span", "StampTable", "Stamped", "Stamps", "decoded"]
