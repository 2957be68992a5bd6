"""Fused groups become operations: one per rank and run of element-wise stages.

What collectives need between them, and numbers of all elements, end a run. A fused all-reduce folds
the slices of all ranks within the run: neither the sum nor what follows from it is written to
memory before it is gathered, but for what stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.coconet.fused_kernel import FusedElementwise, Instruction, written
from flowscope.coconet.lowering import Lowering, cut, outputs_of
from flowscope.coconet.sizes import bounds
from flowscope.coconet.stage_graph import StageNode
from flowscope.coconet.stage_ops import (
    CastStage,
    DropoutStage,
    ElementwiseStage,
    ReduceScatterStage,
    UpdateStage,
)


class GroupLowering:
    """The operations of one fused group.

    Args:
        lowering: Where tensors of operands are, and where those of the stages go.
        stages: The members, in order.
    """

    def __init__(self, lowering: Lowering, stages: Sequence[StageNode]) -> None:
        self.lowering = lowering
        self.stages = stages
        self.pending: list[StageNode] = []

    def add(self) -> None:
        """Adds the operations of all members."""
        for stage in self.stages:
            joins = stage.op.is_elementwise or isinstance(stage.op, ReduceScatterStage)
            if joins and stage.type.rank:
                if self.pending and not self._fits(stage):
                    self.flush()
                self.pending.append(stage)
            else:
                if {s.name for s in self.pending} & set(stage.sources):
                    self.flush()
                self.lowering.add(stage)
        self.flush()

    def _fits(self, stage: StageNode) -> bool:
        """Whether a stage can be computed with those that wait: it has their shape everywhere."""
        last = self.pending[-1].type
        is_same = (last.shape, last.layout, last.group) == (
            stage.type.shape,
            stage.type.layout,
            stage.type.group,
        )
        return is_same and all(
            self.lowering.graph.by_name[x].type.rank <= stage.type.rank for x in stage.sources
        )

    def flush(self) -> None:
        """Adds one operation per rank for the stages that wait."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        graph = self.lowering.graph
        names = {s.name for s in pending}
        live = [s for s in pending if graph.is_used_outside(s.name, names) or graph.writes_state(s)]
        found = self.lowering.each(
            pending[0].type, lambda r: _Run(self.lowering, pending, live, r).tensors()
        )
        for i, stage in enumerate(live):
            self.lowering.finish(stage, [row[i] for row in found])


class _Run:
    """The operation of a run of stages on one rank."""

    def __init__(
        self,
        lowering: Lowering,
        stages: Sequence[StageNode],
        live: Sequence[StageNode],
        rank: int,
    ) -> None:
        self.lowering = lowering
        self.rank = rank
        self.stages = stages
        self.live = live
        self.inputs: list[Any] = []
        #: Instructions whose operands are the numbers of inputs, or ("r", number of a result).
        self.made: list[tuple[str, tuple[Any, ...]]] = []
        self.values: dict[str, Any] = {}

    def tensors(self) -> list[Any]:
        """The tensors of the stages that others use."""
        for stage in self.stages:
            self.values[stage.name] = self.instructions(stage)
        results = [self.values[s.name] for s in self.live]
        wanted = list(dict.fromkeys([x for x in results if isinstance(x, tuple)]))
        if not wanted:
            return [self.inputs[x] for x in results]
        count = len(self.inputs)

        def number(x: Any) -> int | float:
            return count + int(x[1]) if isinstance(x, tuple) else x

        program: list[Instruction] = [
            (name, tuple([number(x) for x in operands])) for name, operands in self.made
        ]
        dtypes = {self.values[s.name]: s.type.dtype.name for s in self.live}
        op = FusedElementwise(
            written(program),
            tuple([int(number(x)) for x in wanted]),
            tuple([dtypes[x] for x in wanted]),
        )
        outputs = dict(zip(wanted, outputs_of(op, *self.inputs, name=self.name()), strict=True))
        return [outputs[x] if x in outputs else self.inputs[x] for x in results]

    def name(self) -> str:
        """The operation is called after its last stage."""
        return f"fused_{self.stages[-1].name}"

    def input(self, tensor: Any) -> int:
        """The number of a tensor among the inputs."""
        for i, known in enumerate(self.inputs):
            if known is tensor:
                return i
        self.inputs.append(tensor)
        return len(self.inputs) - 1

    def value(self, stage: StageNode, x: Any) -> Any:
        """The operand of an instruction that stands for the operand of a stage."""
        if not isinstance(x, str):
            return float(x)
        if x in self.values:
            return self.values[x]
        return self.input(self.lowering.ranks(x, stage.type)[self.rank])

    def noted(self, name: str, *operands: Any) -> Any:
        """Adds an instruction; returns what stands for its result."""
        self.made.append((name, operands))
        return "r", len(self.made) - 1

    def instructions(self, stage: StageNode) -> Any:
        """Adds those of a stage."""
        op = stage.op
        if isinstance(op, ReduceScatterStage):
            return self.noted(f"fold.{op.reduction}", *self.slices(stage, op))
        given = [self.value(stage, x) for x in stage.inputs]
        match op:
            case UpdateStage():
                return given[1]
            case CastStage():
                return self.noted(f"cast.{op.dtype.name}", given[0])
            case DropoutStage():
                keep = self.input(self.lowering.kept(stage, self.rank))
                return self.noted("ite", keep, self.noted("divide", given[0], 1 - op.rate), 0.0)
        assert isinstance(op, ElementwiseStage)
        return self.noted(op.function, *given)

    def slices(self, stage: StageNode, op: ReduceScatterStage) -> list[int]:
        """The rank's slice of each rank's tensor, cut where that is."""
        lowering, source = self.lowering, stage.sources[0]
        xs = lowering.ranks(source, stage.type)
        right = stage.type.rank - op.dim
        length = lowering.sizes.length(stage.type.shape[op.dim])
        at = bounds(length, self.rank, len(xs))
        found = []
        for rank, x in enumerate(xs):
            with lowering.on(stage.type, rank):
                part = cut(x, right, at)
            self.inputs.append(part)
            found.append(len(self.inputs) - 1)
        return found


__all__ = ["GroupLowering"]
