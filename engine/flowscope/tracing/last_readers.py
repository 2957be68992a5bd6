"""Which span of a step is the last that may read a value: behind it the memory is given back.

A value may be read beyond the block that makes it: as the next value of a loop's variable in the
next iteration, as a result behind the loop or branch. Where the operations of a loop or branch tell
their own spans and it tells none, as in a machine of tokens, the last of them is its end.
"""

from __future__ import annotations

from collections import defaultdict

from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import LoopNode
from flowscope.tracing.decoding import StepSpans
from flowscope.tracing.nodes import PlanNodes

#: A frame's row and an iteration of it; -1 for none.
Place = tuple[int, int]


class LastReaders:
    """The last spans that may read the values of one step.

    Args:
        program: The plan's program.
        found: The spans, by their ends.
        nodes: The nodes of the plan.
    """

    def __init__(self, program: Program, found: StepSpans, nodes: PlanNodes) -> None:
        self._program = program
        self._nodes = nodes
        self._frames = found.frames
        #: The last row of each node, and of what is inside of it, by the place where the node runs.
        self._rows: dict[int, dict[Place, int]] = defaultdict(dict)
        #: The last row of each iteration.
        self._ends: dict[Place, int] = {}
        #: Per value the nodes of its block that read it, and the blocks that it is a result of.
        self._readers: dict[Value, list[Node]] = defaultdict(list)
        self._results: dict[Value, list[tuple[Program, int]]] = defaultdict(list)
        self._owners: dict[Program, Node] = {}
        self._note_program(program)
        spans = found.spans
        places = zip(
            spans.node.tolist(), spans.frame.tolist(), spans.iteration.tolist(), strict=True
        )
        for row, (node, frame, iteration) in enumerate(places):
            if node >= 0:
                self._note_row(row, node, (frame, iteration))

    def _note_program(self, program: Program) -> None:
        for node in program.nodes:
            for value in dict.fromkeys(node.inputs):
                self._readers[value].append(node)
            for block in node.blocks:
                self._owners[block] = node
                self._note_program(block)
        for index, value in enumerate(program.fetches):
            self._results[value].append((program, index))

    def _note_row(self, row: int, node: int, place: Place) -> None:
        """Notes a row, which ends behind all before it, for its node and for what is around."""
        self._rows[node][place] = self._ends[place] = row
        around = self._nodes.parents[node]
        while around >= 0:
            if isinstance(self._nodes.nodes[around], LoopNode) and place[0] >= 0:
                frame = place[0]
                place = int(self._frames.parent[frame]), int(self._frames.iteration[frame])
                self._ends[place] = row
            self._rows[around][place] = row
            around = self._nodes.parents[around]

    def last(self, value: Value, place: Place) -> int | None:
        """Returns the row of the last span that may read a value; None where the user gets it.

        Args:
            value: What a node has made.
            place: Where it has made it.
        """
        readers = [self._nodes.index.get(node, -1) for node in self._readers[value]]
        rows = [-1, *[self._rows[reader].get(place, -1) for reader in readers]]
        for block, index in self._results[value]:
            owner = self._owners.get(block)
            found = None if owner is None else self._behind(owner, block, index, place)
            if found is None:
                return None
            rows.append(found)
        return max(rows)

    def _behind(self, owner: Node, block: Program, index: int, place: Place) -> int | None:
        """Returns the last row that may read a result of a block, -1 for none; see `last`."""
        if not isinstance(owner, LoopNode):
            return self.last(owner.outputs[index], place)
        frame, iteration = place
        if frame < 0 or block is not owner.body:
            return -1  # the condition's value is read where it is made
        following = frame, iteration + 1
        outside = int(self._frames.parent[frame]), int(self._frames.iteration[frame])
        if index >= owner.variables:
            return self.last(owner.kept[index - owner.variables], outside)
        ids = [self._nodes.index.get(n, -1) for n in owner.body.nodes]
        if any(following in self._rows[i] for i in ids):
            return self._ends[following]
        return self.last(owner.results[index], outside)


__all__ = ["LastReaders"]
