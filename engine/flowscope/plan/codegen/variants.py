"""Variants of code: the same function with something added, made when it is first asked for.

The writer of code has a *probe*, which may add lines before and after each node, and where blocks
begin. Plain code has the one that adds nothing; that of `flowscope.plan.codegen.stamps` adds clock
readings; `Breakpoints` has the code call the safepoint's handler before chosen nodes. Results are
equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.graph.lazy import frozen
from flowscope.plan.program import Node, Program
from flowscope.plan.structured import LoopNode

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer
    from flowscope.plan.codegen.readings import StampTable


class Probe:
    """What a variant adds to one function, and those that it calls; this one adds nothing."""

    def adds_to(self, block: Program) -> bool:
        """Whether it adds lines in a block: the block has to be written line by line then."""
        return False

    def head(self, writer: Writer) -> None:
        """Writes what stands at the beginning of a function."""

    def before(self, writer: Writer, scope: BlockScope) -> None:
        """Writes what stands before the node at `scope.index`."""

    def after(self, writer: Writer, scope: BlockScope, node: Node) -> None:
        """Writes what stands after a node."""

    def branch(self, writer: Writer, is_then: bool) -> None:
        """Writes what stands at the beginning of a branch."""

    def test(self, writer: Writer, loop: LoopNode) -> None:
        """Writes what stands before a loop's condition."""

    def iteration(self, writer: Writer) -> None:
        """Writes what stands at the beginning of an iteration, behind the condition."""

    def table(self, program: Program) -> StampTable | None:
        """Returns what tells the readings that the code of a program leaves; None for none."""
        return None


@frozen
class Variant:
    """Plain code; base class of the other variants."""

    def probe(self) -> Probe:
        """Returns what is added to one function."""
        return Probe()

    def generator(self, generator: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the generator for code that is given this variant's `run`."""
        return generator


PLAIN = Variant()


@frozen
class Breakpoints(Variant):
    """Code that comes to a safepoint before each chosen node, whether the gate is raised or not.

    In an update group that is before the group's first write: nothing holds a step inside of one.

    Attributes:
        names: The names of the nodes.
    """

    names: frozenset[str]

    def probe(self) -> Probe:
        """Returns what is added to one function."""
        return _BreakpointProbe(self.names)


class _BreakpointProbe(Probe):
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        #: Per block that is being written, the positions before which it writes a safepoint.
        self._positions: dict[int, tuple[Program, frozenset[int]]] = {}

    def adds_to(self, block: Program) -> bool:
        """Whether a chosen node is in a block."""
        return any(n.name in self._names for n in block.walk())

    def before(self, writer: Writer, scope: BlockScope) -> None:
        """Writes a safepoint before a chosen node."""
        key = id(scope.program)
        if key not in self._positions:
            self._positions[key] = scope.program, self._found(scope)
        if scope.index in self._positions[key][1]:
            writer.breakpoint()

    def _found(self, scope: BlockScope) -> frozenset[int]:
        found = set()
        for i, node in enumerate(scope.nodes):
            at = i
            while at in scope.unsafe and at:
                at -= 1
            if at not in scope.unsafe and self._is_chosen(node, scope.is_closed(i)):
                found.add(at)
        return frozenset(found)

    def _is_chosen(self, node: Node, is_closed: bool) -> bool:
        inner = (n for b in node.blocks for n in b.walk()) if is_closed else ()
        return any(n.name in self._names for n in (node, *inner))


__all__ = ["PLAIN", "Breakpoints", "Probe", "Variant"]
