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
from flowscope.plan.analysis.locations import NestedRun
from flowscope.plan.codegen.readings import StampTable
from flowscope.plan.codegen.variants import Probe, Variant
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer

#: Readings that are in a list at most when an iteration begins.
MOST = 1 << 14
#: The words of a buffer before its readings: how many there are, how many fit, when to flush.
HEAD = 3


@frozen
class Stamped:
    """The run of stamped code.

    Attributes:
        run: The run of the step.
        stamps: Where readings are kept: a list, or for `BufferStamps` what has two functions that
            read a clock: `stamp`, and `turn`, which keeps a negative reading and returns whether
            they are to be taken away.
        flush: Takes them away; it is called where an iteration begins, once there are `MOST`.
    """

    run: Any
    stamps: Any
    flush: Callable[[], None] = lambda: None


def _stamped_generator(variant: Variant, generator: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the generator for code whose `run` is a `Stamped`."""

    def made(run: Stamped, *counts: int) -> Any:
        return generator(run.run, *counts)

    return made


@frozen
class Stamps(Variant):
    """Code that reads a clock after every node; its `run` is a `Stamped`.

    Attributes:
        clock: Returns the time, a positive integer.
    """

    clock: Callable[[], int]

    def probe(self) -> Probe:
        """A new probe, for one function."""
        return _StampProbe(self.clock)

    generator = _stamped_generator


@frozen
class BufferStamps(Variant):
    """The same, where what keeps the readings reads the clock itself."""

    def probe(self) -> Probe:
        """A new probe, for one function."""
        return _BufferProbe()

    generator = _stamped_generator


class _StampProbe(Probe):
    """Reads a clock of Python's into a list."""

    reading, turn = "stamp(clock())", "stamp(-clock())"
    iteration_text = f"stamp(-clock()) or len(stamps) < {MOST} or flush()"

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = clock
        #: The nodes of each block that have one, by the block's id.
        self._nodes: dict[int, tuple[Program, list[Node]]] = {}

    def adds_to(self, block: Program) -> bool:
        """Every block has lines of its own."""
        return True

    def head(self, writer: Writer) -> None:
        """Finds the list."""
        writer.namespace.update(clock=self._clock, stamps_of=_stamps_of)
        writer.emit("stamps, flush = stamps_of(run); stamp = stamps.append")

    def after(self, writer: Writer, scope: BlockScope, node: Node) -> None:
        """Writes a reading."""
        if not isinstance(node.op, (Const, NoOp)) and not node.op.is_handle:
            self._nodes.setdefault(id(scope.program), (scope.program, []))[1].append(node)
            writer.emit(self.reading)

    def branch(self, writer: Writer, is_then: bool) -> None:
        """Writes a reading whose sign tells the branch."""
        writer.emit(self.turn if is_then else self.reading)

    def test(self, writer: Writer, loop: LoopNode) -> None:
        """Writes a reading where the count may end the loop in place of the condition."""
        if loop.count is not None:
            writer.emit(self.turn)

    def iteration(self, writer: Writer) -> None:
        """Writes a reading whose sign tells that there is another iteration."""
        writer.emit(self.iteration_text)

    def table(self, program: Program) -> StampTable:
        """Returns the table of a program."""
        nodes = tuple(self._nodes.get(id(program), (program, []))[1])
        blocks = {n: tuple([self.table(b) for b in n.blocks]) for n in nodes if n.blocks}
        return StampTable(nodes, blocks)


class _BufferProbe(_StampProbe):
    """Has a buffer keep readings."""

    reading, turn = "stamp()", "stamp_turn()"
    iteration_text = "stamp_turn() and flush()"

    def head(self, writer: Writer) -> None:
        """Finds the buffer."""
        writer.namespace.update(stamps_of=_stamps_of)
        writer.emit("stamps, flush = stamps_of(run); stamp, stamp_turn = stamps.stamp, stamps.turn")


def _stamps_of(run: Any) -> tuple[Any, Callable[[], None]]:
    while isinstance(run, NestedRun):
        run = run.run
    return run.stamps, run.flush


__all__ = ["HEAD", "MOST", "BufferStamps", "Stamped", "Stamps"]
