"""Stamps: the variant of code that reads a clock after every node.

A reading is appended to one list, without saying whose it is: the end of one node is the beginning
of the next, and a static table per block says which node left which reading. What the table cannot
say is in the sign: a branch begins with a negative reading where it is the first one, and a
positive one where it is the second; an iteration begins with a negative reading, where the reading
after the loop is positive. (So does the condition of a loop that has a count, too, which may end it
before the condition is asked.) Constants and handles take no time and leave no reading.

Where an iteration begins and many readings have come together they are taken away, so a loop may
run for as long as it likes. `flowscope.plan.codegen.readings` tells what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.flow import NoOp
from flowscope.plan.codegen.readings import StampTable
from flowscope.plan.codegen.variants import Probe, Variant
from flowscope.plan.locations import NestedRun
from flowscope.plan.program import Node, Program
from flowscope.plan.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer

#: Readings that are in a list at most when an iteration begins.
MOST = 1 << 14


@frozen
class Stamped:
    """The run of stamped code.

    Attributes:
        run: The run of the step.
        stamps: Where readings are appended.
        flush: Takes them away; it is called where an iteration begins, once there are `MOST`.
    """

    run: Any
    stamps: list[int]
    flush: Callable[[], None] = lambda: None


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
        writer.emit("stamps, stamp, flush = stamps_of(run)")

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
        writer.emit(f"stamp(-clock()) or len(stamps) < {MOST} or flush()")

    def table(self, program: Program) -> StampTable:
        """Returns the table of a program."""
        nodes = tuple(self._nodes.get(id(program), (program, []))[1])
        blocks = {n: tuple([self.table(b) for b in n.blocks]) for n in nodes if n.blocks}
        return StampTable(nodes, blocks)


def _stamps_of(run: Any) -> tuple[list[int], Callable[[int], None], Callable[[], None]]:
    while isinstance(run, NestedRun):
        run = run.run
    return run.stamps, run.stamps.append, run.flush


__all__ = ["MOST", "Stamped", "Stamps"]
