"""The nodes of a plan as a recording tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from flowscope.graph.constant import Const
from flowscope.graph.values.shapes import size_of
from flowscope.ops.core.flow import NoOp
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.codegen.readings import SlotTable
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.structured import CondNode, LoopNode
from flowscope.tracing.recording import Phase, RecordedLine, TracedNode


class PlanNodes:
    """The nodes of one plan that take time.

    Args:
        program: The plan's program.
        plan: The plan's position in the recording.
        first: The position of its first node there.

    Attributes:
        nodes: The nodes.
        traced: What the recording tells of them.
        parents: Per node the position of the loop or branch around it in this plan, -1 for none.
        index: The positions of nodes in this plan.
    """

    def __init__(self, program: Program, plan: int = 0, first: int = 0) -> None:
        self.plan = plan
        self.first = first
        self.nodes: list[Node] = []
        self.parents: list[int] = []
        self.index: dict[Node, int] = {}
        phases: dict[Node, Phase] = {}
        for node, parent in _walk(program.nodes, None):
            self.parents.append(-1 if parent is None else self.index[parent])
            self.index[node] = len(self.nodes)
            self.nodes.append(node)
            phases[node] = _phase(node, phases)
        self._named = {n.name: i for i, n in enumerate(self.nodes)}
        #: The positions of transfers by their keys.
        self._keyed = {n.op.key: i for i, n in enumerate(self.nodes) if isinstance(n.op, Transfer)}
        self._around: dict[int, tuple[int, ...]] = {}
        pairs = zip(self.nodes, self.parents, strict=True)
        self._positions: tuple[SlotTable | None, Any] = None, None
        waits = self._dependencies()
        self.traced = [
            traced_node(n, -1 if p < 0 else first + p, w, plan, phases[n])
            for (n, p), w in zip(pairs, waits, strict=True)
        ]

    def _dependencies(self) -> list[tuple[int, ...]]:
        """Returns for each node the positions of those that it waits for, in the recording."""
        latest: dict[Node, int] = {}
        found: list[tuple[int, ...]] = []
        for i, node in enumerate(self.nodes):
            before = [v.node for v in node.inputs if v.node is not None] + list(node.control)
            waits = [self.index[n] for n in before if n in self.index]
            if self.parents[i] < 0:
                for handle in node.handles:
                    if handle in latest:
                        waits.append(latest[handle])
                    if node.writes_state:
                        latest[handle] = i
            found.append(tuple([self.first + w for w in dict.fromkeys(waits)]))
        return found

    def of_table(self, table: SlotTable) -> Any:
        """Returns the positions of the nodes of a table, int32."""
        known, found = self._positions
        if known is not table:
            found = np.array([self.index[n] for n in table.nodes], np.int32)
            self._positions = table, found
        return found

    def find(self, node: Node) -> int:
        """Returns the position of a node, or of what it stands for once lowered; -1 for none."""
        found = self.index.get(node)
        return self._named.get(node.name, -1) if found is None else found

    def positions(self, names: Sequence[str], keyed: Iterable[tuple[int, str]]) -> list[int]:
        """Returns the positions of what a partition has; -1 of what the plan has not.

        Args:
            names: The names that nodes have there.
            keyed: Positions among them of what sends or receives, with the key: it stands for the
                transfer of that key.
        """
        found = [self._named.get(name, -1) for name in names]
        for i, key in keyed:
            found[i] = self._keyed.get(key, -1)
        return found

    def around(self, position: int) -> tuple[int, ...]:
        """Returns the positions of the loops and branches around a node, from the outermost."""
        found = self._around.get(position)
        if found is None:
            parent = self.parents[position]
            found = () if parent < 0 else (*self.around(parent), parent)
            self._around[position] = found
        return found


def takes_time(node: Node) -> bool:
    """Whether a node does anything while a step runs."""
    return not isinstance(node.op, (Const, NoOp)) and not node.op.is_handle


def _walk(nodes: Sequence[Node], parent: Node | None) -> Iterator[tuple[Node, Node | None]]:
    for node in nodes:
        if takes_time(node):
            yield node, parent
            for block in node.blocks:
                yield from _walk(block.nodes, node)


def traced_node(
    node: Node, parent: int, waits_for: tuple[int, ...], plan: int, phase: Phase
) -> TracedNode:
    """A recording's figures of a node."""
    origins = node.origins
    return TracedNode(
        node.name,
        node.op.type,
        tuple([o.id for o in origins]),
        tuple([o.name for o in origins]),
        _line(origins[0].origin) if origins else None,
        node.name.rpartition("/")[0],
        node.device,
        phase,
        _kind(node),
        parent,
        waits_for,
        plan,
    )


def sent_bytes(node: Node) -> int:
    """Returns how many bytes a transfer brings over, where shapes tell that; -1 of other nodes."""
    if not isinstance(node.op, Transfer):
        return -1
    spec = node.outputs[0].spec
    size = size_of(spec.shape)
    if size is None or not spec.dtype.size:
        return -1
    nbytes: int = size * spec.dtype.size
    return nbytes // 2 if node.op.is_lossy else nbytes


def _kind(node: Node) -> Literal["op", "loop", "branch"]:
    if isinstance(node, LoopNode):
        return "loop"
    return "branch" if isinstance(node, CondNode) else "op"


def _phase(node: Node, known: Mapping[Node, Phase]) -> Phase:
    if node.writes_state:
        return "update"
    if any(o.forward is not None for o in node.origins):
        return "gradient"
    # What joins gradients, or changes them before they are applied, is no operation's gradient.
    before = [known.get(v.node) for v in node.inputs if v.node is not None]
    return "gradient" if "gradient" in before else "forward"


def _line(origin: Any) -> RecordedLine | None:
    place = origin.place
    if place is None:
        return None
    file = None if place.cell is not None else place.filename
    return RecordedLine(file, place.cell, place.line, place.text)


__all__ = ["PlanNodes", "sent_bytes", "takes_time", "traced_node"]
