"""`as_slice`: an argument is kept in slices. `dead`: a gather that nobody needs is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from flowscope.coconet.layouts import Layout, Replicated
from flowscope.coconet.stage_graph import ArgumentNode, StageGraph, inferred, renamed
from flowscope.coconet.stage_ops import AllGatherStage, SliceStage, UpdateStage
from flowscope.coconet.transformations.transformation import (
    ScheduleTransformation,
    stage_of,
    without,
)
from flowscope.errors import InvalidArgumentError


class KeepAsSlice(ScheduleTransformation):
    """An argument of which each rank uses its part is kept in parts.

    Source: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models", section 5.1.
    """

    name: ClassVar[str] = "as_slice"
    condition: ClassVar[str] = (
        "The argument is Replicated, and all stages that use it take the same slice of it; if it "
        "is updated, its update computes that slice."
    )

    def apply(self, graph: StageGraph, name: Any) -> StageGraph:
        argument = graph.named(name)
        if not isinstance(argument, ArgumentNode):
            raise InvalidArgumentError(f"{name} is no argument, it is {argument.text}")
        if argument.type.layout != Replicated or not argument.type.rank:
            raise InvalidArgumentError(f"{name} is no Replicated tensor, it is {argument.type}")
        users = graph.users[argument.name]
        dims = {u.op.dim if isinstance(u.op, SliceStage) else None for u in users}
        if len(dims) != 1 or None in dims:
            whole = [u.name for u in users if not isinstance(u.op, SliceStage)]
            why = f"{', '.join(whole)} takes all of it" if whole else "its slices differ"
            raise InvalidArgumentError(f"{name} is not used through one slice: {why}")
        (dim,) = dims
        if argument.name in graph.output_names:
            raise InvalidArgumentError(f"{name} is an output")
        gone = {u.name for u in users}
        if chained := sorted(gone & set(graph.chain_of)):
            raise InvalidArgumentError(f"{chained[0]} is in an overlap")
        sliced = replace(argument, type=argument.type.with_layout(Layout("Sliced", dim)))
        stages = []
        for stage in graph.stages:
            if stage.name in gone:
                continue
            stage = renamed(stage, lambda x: argument.name if x in gone else x)
            if isinstance(stage.op, AllGatherStage) and stage.op.updates == argument.name:
                stage = replace(stage, op=AllGatherStage())
            stages.append(stage)
        for s in stages:
            if isinstance(s.op, UpdateStage) and s.op.target == argument.name:
                if not s.type.layout.is_sliced:
                    raise InvalidArgumentError(f"{s.name} updates all of {name}")
        arguments = tuple([sliced if a.name == argument.name else a for a in graph.arguments])
        outputs = tuple([(k, argument.name if v in gone else v) for k, v in graph.outputs])
        return replace(
            graph,
            arguments=arguments,
            stages=inferred(graph, stages, arguments),
            outputs=outputs,
            fused=without(graph, gone),
        ).changed()

    def candidates(self, graph: StageGraph) -> Iterator[tuple[Any, ...]]:
        for argument in graph.arguments:
            if argument.type.layout == Replicated and argument.type.rank:
                yield (argument.name,)


class DropDeadGather(ScheduleTransformation):
    """An all-gather whose result nobody uses is left out."""

    name: ClassVar[str] = "dead"
    condition: ClassVar[str] = (
        "The stage is an all_gather whose result no stage uses, that is no output, and that no "
        "replicated argument takes as its new value."
    )

    def apply(self, graph: StageGraph, name: Any) -> StageGraph:
        stage = stage_of(graph, name, AllGatherStage, "all_gather")
        if stage.op.updates:  # type: ignore[attr-defined]
            target = stage.op.updates  # type: ignore[attr-defined]
            raise InvalidArgumentError(f"{target}, which is Replicated, takes {name} as new value")
        if stage.name in graph.output_names:
            raise InvalidArgumentError(f"{name} is an output")
        if graph.users[stage.name]:
            users = ", ".join([u.name for u in graph.users[stage.name]])
            raise InvalidArgumentError(f"{users} uses {name}")
        if stage.name in graph.chain_of:
            raise InvalidArgumentError(f"{name} is in an overlap")
        left = tuple([s for s in graph.stages if s.name != stage.name])
        return replace(graph, stages=left, fused=without(graph, [stage.name])).changed()

    def candidates(self, graph: StageGraph) -> Iterator[tuple[Any, ...]]:
        for stage in graph.stages:
            if isinstance(stage.op, AllGatherStage) and not graph.users[stage.name]:
                yield (stage.name,)


__all__ = ["DropDeadGather", "KeepAsSlice"]
