"""`split`: an all-reduce becomes two stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from flowscope.coconet.stage_graph import StageGraph, StageNode, renamed
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    AllReduceStage,
    BroadcastStage,
    ReduceScatterStage,
    ReduceStage,
    StageOp,
)
from flowscope.coconet.transformations.transformation import (
    ScheduleTransformation,
    check_free,
    stage_of,
)
from flowscope.errors import InvalidArgumentError


class SplitAllReduce(ScheduleTransformation):
    """An all-reduce becomes reduce-scatter and all-gather, or reduce and broadcast."""

    name: ClassVar[str] = "split"
    condition: ClassVar[str] = (
        "The stage is an all_reduce in no fused group and no overlap; for slices its tensor has "
        "the dimension that is cut."
    )

    def apply(self, graph: StageGraph, name: Any, into: Any = "slices", at: Any = 0) -> StageGraph:
        stage = stage_of(graph, name, AllReduceStage, "all_reduce")
        check_free(graph, [stage.name])
        reduction = stage.op.reduction  # type: ignore[attr-defined]
        if isinstance(at, bool) or not isinstance(at, int) or at < 0:
            raise InvalidArgumentError(f"expected a dimension or a rank of at least 0, got {at!r}")
        first: StageOp
        second: StageOp
        if into == "slices":
            first, second, names = ReduceScatterStage(reduction, at), AllGatherStage(), "rs ag"
        elif into == "root":
            first, second, names = ReduceStage(reduction, at), BroadcastStage(at), "r b"
        else:
            raise InvalidArgumentError(f'expected "slices" or "root" to split into, got {into!r}')
        one, two = [graph.fresh(f"{short}_{stage.name}") for short in names.split()]
        half = first.infer(graph.by_name[stage.sources[0]].type)
        made = [
            StageNode(one, first, stage.inputs, half, stage.origin),
            StageNode(two, second, (one,), second.infer(half), stage.origin),
        ]
        return replaced(graph, stage.name, made, two)

    def candidates(self, graph: StageGraph) -> Iterator[tuple[Any, ...]]:
        for stage in graph.stages:
            if isinstance(stage.op, AllReduceStage):
                yield from [(stage.name, "slices", dim) for dim in range(stage.type.rank)]
                yield (stage.name, "root", 0)


def replaced(graph: StageGraph, name: str, made: list[StageNode], now: str) -> StageGraph:
    """A graph with other stages in the place of one, whose users take a value of another name."""
    stages: list[StageNode] = []
    for stage in graph.stages:
        if stage.name == name:
            stages += made
        else:
            stages.append(renamed(stage, lambda x: now if x == name else x))
    outputs = tuple([(key, now if value == name else value) for key, value in graph.outputs])
    return replace(graph, stages=tuple(stages), outputs=outputs)


__all__ = ["SplitAllReduce"]
