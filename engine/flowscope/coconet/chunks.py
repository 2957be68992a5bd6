"""Overlaps become operations: the stages of a chain work chunk by chunk.

A rank's part of the dimension that is cut falls into chunks. The chain is built chunk by chunk: a
consumer's operations for a chunk stand behind the producer's for it, and before those for the next.
So devices that work at the same time overlap: while one sends or reduces a chunk, another computes.
The first stage computes the ranks' parts in the order in which a ring sends them: rank r begins
with part r + 1, which travels farthest.

A kernel that is launched once and signals chunk by chunk has no counterpart here: each chunk is an
operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowscope as fs
from flowscope.coconet.lowering import Lowering, cut, joined
from flowscope.coconet.sizes import bounds
from flowscope.coconet.stage_graph import StageNode
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    AllReduceStage,
    MatMulStage,
    ReduceScatterStage,
    SendStage,
    SliceStage,
)
from flowscope.coconet.transformations.overlapping import chunk_dim
from flowscope.coconet.values import ValueType

#: The tensors of a chunk by (rank, part): all parts where the ranks have all, else their own.
Grid = dict[tuple[int, int], Any]


class ChainLowering:
    """The operations of one overlap.

    Args:
        lowering: Where tensors of operands are, and where those of the stages go.
        stages: The stages of the chain, in order.
        chunks: How many chunks a rank's part falls into.
    """

    def __init__(self, lowering: Lowering, stages: Sequence[StageNode], chunks: int) -> None:
        self.lowering = lowering
        self.stages = list(stages)
        self.chunks = chunks
        self.right = chunk_dim(lowering.graph, self.stages)
        self.grids: dict[str, list[Grid]] = {s.name: [] for s in self.stages}

    def add(self) -> None:
        """Adds the operations of all chunks, and joins what others use."""
        for chunk in range(self.chunks):
            for stage in self.stages:
                self.grids[stage.name].append(self.lowered(stage, chunk))
        names = set(self.grids)
        for stage in self.stages:
            graph = self.lowering.graph
            if graph.is_used_outside(stage.name, names) or graph.writes_state(stage):
                self.lowering.finish(stage, self.whole(stage))

    def count(self, spec: ValueType) -> int:
        """The number of parts."""
        return self.lowering.sizes.count(spec)

    def cells(self, spec: ValueType) -> list[tuple[int, int]]:
        """The (rank, part) pairs that a value has, in the order of the ring."""
        n = self.count(spec)
        if spec.layout.is_sliced:
            return [(r, r) for r in range(n)]
        return [(r, (r + 1 + k) % n) for k in range(n) for r in range(n)]

    def at(self, spec: ValueType, part: int, chunk: int) -> tuple[int, int]:
        """Where a chunk of a part begins and ends in the whole."""
        length = self.lowering.sizes.length(spec.shape[-self.right])
        begin, end = bounds(length, part, self.count(spec))
        first, last = bounds(end - begin, chunk, self.chunks)
        return begin + first, begin + last

    def operand(self, name: str, stage: StageNode, chunk: int, cell: tuple[int, int]) -> Any:
        """A chunk of an operand, on a rank."""
        if name in self.grids:
            return self.grids[name][chunk][cell]
        rank, part = cell
        spec = self.lowering.graph.by_name[name].type
        x = self.lowering.ranks(name, stage.type)[rank]
        if spec.rank < self.right or spec.shape[-self.right] == 1:
            return x
        return self.piece(x, spec, stage.type, rank, part, chunk)

    def piece(
        self, x: Any, spec: ValueType, like: ValueType, rank: int, part: int, chunk: int
    ) -> Any:
        """A chunk of what a rank has of a value."""
        begin, end = self.at(like, part, chunk)
        own, _ = self.lowering.part(spec, rank, self.right)
        return cut(x, self.right, (begin - own, end - own))

    def lowered(self, stage: StageNode, chunk: int) -> Grid:
        """A chunk of a stage, of all parts that ranks have."""
        op, spec = stage.op, stage.type
        if isinstance(op, AllReduceStage | ReduceScatterStage):
            return self.reduced(stage, chunk)
        if isinstance(op, AllGatherStage):
            return self.gathered(stage, chunk)
        found: Grid = {}
        for cell in self.cells(spec):
            with self.lowering.on(spec, cell[0]):
                found[cell] = self.one(stage, chunk, cell)
        return found

    def one(self, stage: StageNode, chunk: int, cell: tuple[int, int]) -> Any:
        """A chunk of a stage that does not communicate within its group."""
        op, (rank, part) = stage.op, cell
        if isinstance(op, MatMulStage):
            return self.product(stage, chunk, cell)
        if isinstance(op, SendStage):
            return fs.identity(self.sent_operand(stage, chunk, cell))
        if isinstance(op, SliceStage):
            return self.operand(stage.sources[0], stage, chunk, cell)
        given = [
            self.operand(x, stage, chunk, cell) if isinstance(x, str) else x for x in stage.inputs
        ]
        where = (self.right, *self.at(stage.type, part, chunk))
        return self.lowering.elementwise(stage, rank, given, where)

    def sent_operand(self, stage: StageNode, chunk: int, cell: tuple[int, int]) -> Any:
        """A chunk of what is sent, on the rank that sends it."""
        name = stage.sources[0]
        if name in self.grids:
            return self.grids[name][chunk][cell]
        spec = self.lowering.graph.by_name[name].type
        x = self.lowering.values[name][cell[0]]
        with self.lowering.on(spec, cell[0]):
            return self.piece(x, spec, stage.type, cell[0], cell[1], chunk)

    def product(self, stage: StageNode, chunk: int, cell: tuple[int, int]) -> Any:
        """A chunk of a product: of columns where the last dimension is cut, else of rows."""
        rank, part = cell
        left, other = stage.sources
        a, b = [self.lowering.ranks(x, stage.type)[rank] for x in (left, other)]
        by_name = self.lowering.graph.by_name
        if self.right == 1:
            b = self.piece(b, by_name[other].type, stage.type, rank, part, chunk)
        else:
            a = self.piece(a, by_name[left].type, stage.type, rank, part, chunk)
        return fs.matmul(a, b)

    def reduced(self, stage: StageNode, chunk: int) -> Grid:
        """A chunk of a reduction: each part on all ranks, or on the one whose part it is."""
        op, spec, places = stage.op, stage.type, list(self.lowering.places(stage.type))
        name, n = stage.sources[0], self.count(stage.type)
        found: Grid = {}
        for part in range(n):
            xs = []
            for rank in range(n):
                with self.lowering.on(spec, rank):
                    xs.append(self.operand(name, stage, chunk, (rank, part)))
            if isinstance(op, AllReduceStage):
                wholes = fs.collectives.all_reduce(xs, op.reduction, places)
                found.update({(rank, part): wholes[rank] for rank in range(n)})
            else:
                reduction = op.reduction  # type: ignore[attr-defined]
                found[part, part] = fs.collectives.reduce(xs, reduction, places[part], places)
        return found

    def gathered(self, stage: StageNode, chunk: int) -> Grid:
        """A chunk of all parts, on all ranks."""
        places, n = list(self.lowering.places(stage.type)), self.count(stage.type)
        found: Grid = {}
        for part in range(n):
            with self.lowering.on(stage.type, part):
                x = self.operand(stage.sources[0], stage, chunk, (part, part))
            for rank, y in enumerate(fs.collectives.broadcast(x, places)):
                found[rank, part] = y
        return found

    def whole(self, stage: StageNode) -> list[Any]:
        """The chunks of a stage joined, per rank."""
        spec, grids = stage.type, self.grids[stage.name]
        dim = spec.rank - self.right

        def one(rank: int) -> Any:
            parts = [rank] if spec.layout.is_sliced else range(self.count(spec))
            return joined([grid[rank, part] for part in parts for grid in grids], dim)

        return self.lowering.each(spec, one)


__all__ = ["ChainLowering"]
