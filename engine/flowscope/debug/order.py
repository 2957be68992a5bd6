"""Order: what of a program comes before what, also across the blocks of branches and loops."""

from __future__ import annotations

from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode

#: A place in a program: (block, position of the node), from the outermost block.
Place = tuple[tuple[int, int], ...]


class Order:
    """Where the nodes of a program stand.

    Args:
        program: The program.
    """

    def __init__(self, program: Program) -> None:
        self._places: dict[Node, Place] = {}
        self._names: dict[str, Node] = {}
        self._ends: dict[Node, Place] = {}
        #: Blocks are numbered as they stand in the program.
        self._numbers: dict[int, int] = {}
        self._enter(program, ())
        self._program = program

    def _enter(self, block: Program, around: Place) -> None:
        self._numbers[id(block)] = len(self._numbers)
        for i, node in enumerate(block.nodes):
            place = self._places[node] = (*around, (id(block), i))
            self._names.setdefault(node.name, node)
            for inner in node.blocks:
                self._enter(inner, place)
                self._ends[node] = (*place, (id(inner), len(inner.nodes)))

    def place_of_node(self, node: Node) -> Place | None:
        """Returns the place of a node, or of the one with its name; None where there is none."""
        found = node if node in self._places else self._names.get(node.name)
        return None if found is None else self._places[found]

    def place(self, node: Node | None, loop: Node | None) -> Place:
        """Returns the place of the node that comes next: at the end of a loop's body, of none."""
        if node is not None:
            return self.place_of_node(node) or ()
        found = None if loop is None else self._names.get(loop.name)
        return self._ends.get(found, ()) if found is not None else ()

    def is_before(self, at: Place, other: Place) -> bool:
        """Whether a step that stands at a place has still to end the node at another one.

        Not a node of the branch that is not taken: of a loop's test and body the test comes first.
        """
        for (block, index), (other_block, other_index) in zip(at, other, strict=False):
            if block != other_block:
                return self._numbers[block] < self._numbers[other_block]
            if index != other_index:
                return index < other_index
        return True

    def is_untaken(self, at: Place, other: Place) -> bool:
        """Whether a place is in the branch that a step does not take which stands in the other."""
        for depth, ((block, _), (other_block, _)) in enumerate(zip(at, other, strict=False)):
            if block != other_block:
                around = next(n for n, p in self._places.items() if p == at[:depth])
                return isinstance(around, CondNode)
            if at[depth] != other[depth]:
                return False
        return False

    def last_reader(self, value: Value) -> Node | None:
        """Returns the node that reads a value last; None where none does."""
        found: Node | None = None
        for node in self._program.walk():
            if any(v.identity is value.identity for v in node.inputs):
                found = node
        return found


__all__ = ["Order", "Place"]
