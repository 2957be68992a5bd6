"""`overlap`: producers and consumers work at the same time, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from flowscope.coconet.stage_graph import StageGraph, StageNode
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    AllReduceStage,
    MatMulStage,
    ReduceScatterStage,
    SendStage,
    SliceStage,
    covers,
)
from flowscope.coconet.transformations.transformation import ScheduleTransformation
from flowscope.errors import InvalidArgumentError


class OverlapStages(ScheduleTransformation):
    """Stages and fused groups of a chain run in chunks, in the order of the ring."""

    name: ClassVar[str] = "overlap"
    condition: ClassVar[str] = (
        "Each stage or fused group uses a result of the one before it, one of them communicates, a "
        "product of matrices comes first, none needs all chunks before it starts (as a norm does), "
        "all cut the same dimension, and no stage outside lies between two of them."
    )

    def apply(self, graph: StageGraph, *names: Any) -> StageGraph:
        chain = tuple(dict.fromkeys([self._unit(graph, x) for x in names]))
        if len(chain) < 2:
            raise InvalidArgumentError("expected a producer and a consumer at least")
        members = {m for x in chain for m in graph.members(x)}
        stages = [s for s in graph.stages if s.name in members]
        for s in stages:
            if s.name in graph.chain_of:
                raise InvalidArgumentError(f"{s.name} is in an overlap already")
        for one, other in zip(chain, chain[1:], strict=False):
            made = set(graph.members(one))
            if not any(made & set(graph.by_name[m].sources) for m in graph.members(other)):
                raise InvalidArgumentError(f"{other} uses nothing that {one} makes")
        if not any(s.op.communicates for s in stages):
            raise InvalidArgumentError("none of them communicates")
        chunk_dim(graph, stages)
        if between := graph.between(members):
            raise InvalidArgumentError(
                f"it makes a circle: {', '.join(sorted(between))} lies between"
            )
        return graph.changed(overlaps=(*graph.overlaps, chain))

    @staticmethod
    def _unit(graph: StageGraph, name: Any) -> str:
        if any(g.name == name for g in graph.fused):
            return str(name)
        found = graph.named(name)
        if not isinstance(found, StageNode):
            raise InvalidArgumentError(f"{name} is an argument, no stage")
        group = graph.group_of.get(found.name)
        return found.name if group is None else group.name

    def candidates(self, graph: StageGraph) -> Iterator[tuple[Any, ...]]:
        for stage in graph.stages:
            if stage.name not in graph.chain_of:
                yield from self._chains(graph, self._unit(graph, stage.name))

    def _chains(self, graph: StageGraph, first: str) -> Iterator[tuple[Any, ...]]:
        chain: tuple[str, ...] = (first,)
        while True:
            users = [
                self._unit(graph, u.name)
                for m in graph.members(chain[-1])
                for u in graph.users[m]
                if u.name not in graph.chain_of
            ]
            users = [u for u in dict.fromkeys(users) if u not in chain]
            if len(users) != 1:
                yield from [(*chain, u) for u in users]
                return
            chain = (*chain, users[0])
            yield chain


def chunk_dim(graph: StageGraph, stages: list[StageNode]) -> int:
    """The dimension that chunks cut, counted from the last one, which is 1.

    Raises:
        InvalidArgumentError: if stages cannot be cut in the same dimension.
    """
    names = {s.name for s in stages}
    found = dict.fromkeys([r for s in stages if (r := _own_dim(graph, s)) is not None])
    if len(found) > 1:
        raise InvalidArgumentError("they cut different dimensions")
    ranks = [s.type.rank for s in stages]
    right = next(iter(found), max(ranks))
    length = None
    for s in stages:
        if isinstance(s.op, MatMulStage) and any(x in names for x in s.sources):
            raise InvalidArgumentError(f"{s.name} is a product of matrices that is not first")
        if not _in_chunks(s):
            raise InvalidArgumentError(f"{s.name} needs all of its operand before it starts")
        if not covers(s.type, right):
            raise InvalidArgumentError(f"{s.name} has not the dimension that chunks cut")
        length = s.type.shape[-right] if length is None else length
        if s.type.shape[-right] != length:
            raise InvalidArgumentError(f"{s.name} has another length in the dimension of chunks")
    return right


def _own_dim(graph: StageGraph, stage: StageNode) -> int | None:
    """The dimension that a stage cuts, from the last one; None if any will do."""
    if isinstance(stage.op, ReduceScatterStage | SliceStage):
        return stage.type.rank - stage.op.dim
    if isinstance(stage.op, AllGatherStage):
        spec = graph.by_name[stage.sources[0]].type
        return int(spec.rank - spec.layout.dim)
    return None if stage.type.layout.dim is None else stage.type.rank - stage.type.layout.dim


def _in_chunks(stage: StageNode) -> bool:
    kinds = (
        MatMulStage, AllReduceStage, ReduceScatterStage, AllGatherStage, SendStage, SliceStage,
    )  # fmt: skip
    return stage.op.is_elementwise or isinstance(stage.op, kinds)


def all_free(graph: StageGraph) -> StageGraph:
    """The same stages, none fused and none overlapped."""
    return replace(graph, fused=(), overlaps=()).changed()


__all__ = ["OverlapStages", "chunk_dim"]
