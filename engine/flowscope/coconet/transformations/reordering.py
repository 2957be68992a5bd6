"""`reorder`: computations behind an all-gather are done on slices before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from flowscope.coconet.layouts import Layout, Local, Replicated
from flowscope.coconet.stage_graph import OperandName, StageGraph, StageNode, renamed
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    MatMulStage,
    SendStage,
    SliceStage,
    TotalStage,
    UpdateStage,
    covers,
)
from flowscope.coconet.transformations.transformation import (
    ScheduleTransformation,
    check_free,
    stage_of,
)
from flowscope.coconet.values import ValueType
from flowscope.errors import InvalidArgumentError


class ReorderAllGather(ScheduleTransformation):
    """Computations behind an all-gather compute slices; what others use of them is gathered."""

    name: ClassVar[str] = "reorder"
    condition: ClassVar[str] = (
        "The first stage is an all_gather that one of the computations uses; the computations are "
        "element-wise, norms, products by a whole matrix or sends, Replicated and without a Local "
        "operand, and no group is given in part."
    )

    def apply(self, graph: StageGraph, name: Any, *computations: Any) -> StageGraph:
        gather = stage_of(graph, name, AllGatherStage, "all_gather")
        check_free(graph, [gather.name])
        if not computations:
            raise InvalidArgumentError("expected computations to move before the all_gather")
        members = [self._computation(graph, x) for x in dict.fromkeys(computations)]
        names = {m.name for m in members}
        if gather.name in names or gather.name not in {x for m in members for x in m.sources}:
            raise InvalidArgumentError(f"none of {', '.join(sorted(names))} uses {gather.name}")
        _check_groups(graph, names)
        return _Reordering(graph, gather, names).made()

    @staticmethod
    def _computation(graph: StageGraph, name: Any) -> StageNode:
        found = graph.named(name)
        if not isinstance(found, StageNode) or not _may_move(found):
            what = found.text if isinstance(found, StageNode) else "an argument"
            raise InvalidArgumentError(f"{name} is no computation, it is {what}")
        for x in found.sources:
            if graph.by_name[x].type.layout == Local:
                raise InvalidArgumentError(f"{x}, an operand of {name}, is Local")
        if found.type.layout != Replicated:
            raise InvalidArgumentError(f"{name} is {found.type.layout}, it computes slices already")
        return found

    def candidates(self, graph: StageGraph) -> Iterator[tuple[Any, ...]]:
        for stage in graph.stages:
            if isinstance(stage.op, AllGatherStage):
                direct = [u.name for u in graph.users[stage.name] if _may_move(u)]
                after = graph.following([stage.name])
                every = [s.name for s in graph.stages if s.name in after and _may_move(s)]
                yield (stage.name, *_longest(self, graph, stage.name, every))
                for name in direct:
                    yield (stage.name, name)


def _longest(
    how: ReorderAllGather, graph: StageGraph, gather: str, names: list[str]
) -> tuple[str, ...]:
    """Of stages in order as many as can be moved together."""
    found: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    for name in names:
        group = graph.group_of.get(name)
        pending = (*pending, name)
        if group is not None and not set(group.members) <= {*found, *pending}:
            continue
        try:
            how.apply(graph, gather, *found, *pending)
        except InvalidArgumentError:
            pending = ()
            continue
        found, pending = (*found, *pending), ()
    return found


def _may_move(stage: StageNode) -> bool:
    return stage.op.is_elementwise or isinstance(stage.op, TotalStage | SendStage | MatMulStage)


def _check_groups(graph: StageGraph, names: set[str]) -> None:
    for name in names:
        if name in graph.chain_of:
            raise InvalidArgumentError(f"{name} is in an overlap")
        group = graph.group_of.get(name)
        if group is not None and not (group.kind == "computation" and names >= set(group.members)):
            raise InvalidArgumentError(
                f"{name} is in the fused group {group.name}, of which all stages have to be given"
            )


class _Reordering:
    """One reorder: the stages as they become."""

    def __init__(self, graph: StageGraph, gather: StageNode, names: set[str]) -> None:
        self.graph = graph
        self.gather = gather
        self.names = names
        self.part = gather.sources[0]
        spec = graph.by_name[self.part].type
        assert spec.layout.dim is not None
        self.right = spec.rank - spec.layout.dim
        #: What operands outside are as slices, by their names.
        self.slices: dict[str, str] = {}
        self.stages: list[StageNode] = []
        self.types: dict[str, ValueType] = {a.name: a.type for a in graph.arguments}
        #: The gathered values of computations, by their names.
        self.gathered: dict[str, str] = {}
        self.fresh_names: set[str] = set()

    def made(self) -> StageGraph:
        for stage in self.graph.stages:
            if stage.name in self.names:
                self.add_moved(stage)
            else:
                self.add(renamed(stage, lambda x: self.gathered.get(x, x)))
        outputs = tuple([(key, self.gathered.get(x, x)) for key, x in self.graph.outputs])
        made = replace(self.graph, stages=tuple(self.stages), outputs=outputs)
        if not self.gather.op.updates and not made.is_used_outside(self.gather.name, ()):  # type: ignore[attr-defined]
            left = tuple([s for s in made.stages if s.name != self.gather.name])
            made = replace(made, stages=left)
        return made.changed()

    def add(self, stage: StageNode) -> None:
        self.stages.append(stage)
        self.types[stage.name] = stage.type

    def add_moved(self, stage: StageNode) -> None:
        inputs = tuple([self.operand(stage, x) for x in stage.inputs])
        types = [self.types[x] if isinstance(x, str) else None for x in inputs]
        spec = stage.op.infer(*types)
        if spec.layout not in (Replicated, _sliced(spec, self.right)):
            raise InvalidArgumentError(f"{stage.name} would be {spec.layout}")
        if spec.shape != stage.type.shape:
            raise InvalidArgumentError(f"{stage.name} would have another shape")
        self.add(replace(stage, inputs=inputs, type=spec))
        is_state = isinstance(stage.op, UpdateStage)
        if not spec.layout.is_sliced:
            return
        needs_whole = is_state and self.types[stage.op.target].layout == Replicated  # type: ignore[attr-defined]
        if needs_whole or self.graph.is_used_outside(stage.name, self.names):
            op = AllGatherStage(stage.op.target if needs_whole else "")  # type: ignore[attr-defined]
            name = self.fresh(f"ag_{stage.name}")
            self.add(StageNode(name, op, (stage.name,), op.infer(spec), stage.origin))
            self.gathered[stage.name] = name

    def operand(self, stage: StageNode, x: OperandName) -> OperandName:
        """What a moved computation takes in the place of an operand."""
        if not isinstance(x, str) or x in self.names:
            return x
        if x == self.gather.name:
            return self.part
        spec = self.types[x]
        is_cut = stage.op.is_elementwise or isinstance(stage.op, TotalStage | SendStage)
        if not is_cut or spec.layout != Replicated or not covers(spec, self.right):
            return x
        if isinstance(stage.op, SendStage):
            raise InvalidArgumentError(f"{stage.name} sends {x}, which is not gathered there")
        return self.slice_of(stage, x, spec)

    def slice_of(self, stage: StageNode, x: str, spec: ValueType) -> str:
        op = SliceStage(spec.rank - self.right)
        source = self.graph.by_name[x]
        if isinstance(source, StageNode) and isinstance(source.op, AllGatherStage):
            if self.types[source.sources[0]].layout.dim == op.dim:
                return source.sources[0]
        known = [s for s in self.stages if s.op == op and s.inputs == (x,)]
        if known:
            return known[0].name
        if x not in self.slices:
            name = self.slices[x] = self.fresh(f"slice_{x}")
            self.add(StageNode(name, op, (x,), op.infer(spec), stage.origin))
        return self.slices[x]

    def fresh(self, wanted: str) -> str:
        found, number = self.graph.fresh(wanted), 1
        while found in self.fresh_names:
            found, number = self.graph.fresh(f"{wanted}_{number}"), number + 1
        self.fresh_names.add(found)
        return found


def _sliced(spec: ValueType, right: int) -> Layout | None:
    return Layout("Sliced", spec.rank - right) if spec.rank >= right else None


__all__ = ["ReorderAllGather"]
