"""Variants of code: the same function with something added, made when it is first asked for.

The writer of code has a *probe*, which may add lines before and after each node, and where blocks
begin. Plain code has the one that adds nothing; that of `flowscope.plan.codegen.stamps` adds clock
readings; `Breakpoints` has the code ask at chosen nodes whether to come to a safepoint. Results are
equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.graph.lazy import frozen
from flowscope.plan.ir.breakpoints import BlockBreakpoint, BreakpointTable, stands
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer
    from flowscope.plan.codegen.readings import StampTable


class Probe:
    """What a variant adds to one function, and those that it calls; this one adds nothing.

    Attributes:
        asks: Whether the code asks at breakpoints.
    """

    asks = False

    def adds_to(self, block: Program) -> bool:
        """Whether it adds lines in a block: the block has to be written line by line then."""
        return False

    def head(self, writer: Writer) -> None:
        """Writes what stands at the beginning of a function."""

    def before(self, writer: Writer, scope: BlockScope) -> None:
        """Writes what stands before the node at `scope.index`."""

    def after(self, writer: Writer, scope: BlockScope, node: Node) -> None:
        """Writes what stands after a node."""

    def end(self, writer: Writer, scope: BlockScope) -> None:
        """Writes what stands behind the last node of a block."""

    def branch(self, writer: Writer, is_then: bool) -> None:
        """Writes what stands at the beginning of a branch."""

    def test(self, writer: Writer, loop: LoopNode) -> None:
        """Writes what stands before a loop's condition."""

    def iteration(self, writer: Writer) -> None:
        """Writes what stands at the beginning of an iteration, behind the condition."""

    def table(self, program: Program) -> StampTable | None:
        """The table that decodes the readings of a program's code; None if it takes none."""
        return None


@frozen
class Variant:
    """Plain code; base class of the other variants."""

    def probe(self) -> Probe:
        """A new probe, for one function."""
        return Probe()

    def generator(self, generator: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the generator for code that is given this variant's `run`."""
        return generator


PLAIN = Variant()


@frozen
class Breakpoints(Variant):
    """Code that asks before and after chosen nodes whether to come to a safepoint there.

    Attributes:
        before, after: The names of the nodes.
    """

    before: frozenset[str]
    after: frozenset[str] = frozenset()

    def probe(self) -> Probe:
        """A new probe, for one function."""
        return _BreakpointProbe(self)


class _BreakpointProbe(Probe):
    asks = True

    def __init__(self, chosen: Breakpoints) -> None:
        self._chosen = chosen
        self._asked = BreakpointTable()
        #: Per block that is being written, where steps come to breakpoints.
        self._stands: dict[int, tuple[Program, dict[int, list[BlockBreakpoint]]]] = {}

    def adds_to(self, block: Program) -> bool:
        """Whether a chosen node is in a block."""
        chosen = self._chosen
        return any(n.name in chosen.before or n.name in chosen.after for n in block.walk())

    def head(self, writer: Writer) -> None:
        """Finds what is asked."""
        if self.adds_to(writer.program):
            writer.namespace.update(tests_of=self._asked.of)
            writer.emit("asks, only, tests = tests_of(gate.breakpoints())")

    def before(self, writer: Writer, scope: BlockScope) -> None:
        """Writes the breakpoints that stand before a node."""
        key = id(scope.program)
        if key not in self._stands:
            self._stands[key] = scope.program, self._found(scope)
        for stand in self._stands[key][1].get(scope.index, ()):
            name = stand.node.name
            if name in (self._chosen.after if stand.is_after else self._chosen.before):
                writer.breakpoint(stand, self._asked.place(stand.is_after, name))

    def end(self, writer: Writer, scope: BlockScope) -> None:
        """Writes the breakpoints that stand behind the last node of a block."""
        self.before(writer, scope)

    def _found(self, scope: BlockScope) -> dict[int, list[BlockBreakpoint]]:
        closed = [i for i in range(len(scope.nodes)) if scope.is_closed(i)]
        return stands(scope.nodes, scope.unsafe, closed, self._chosen.before, self._chosen.after)


__all__ = ["PLAIN", "Breakpoints", "Probe", "Variant"]
