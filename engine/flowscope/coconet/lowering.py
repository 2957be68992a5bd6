"""Schedules become operations: per rank those of its stages, on its device.

What communicates becomes collectives of `fs.collectives`. What is fused becomes one operation per
rank between two collectives; a fused all-reduce reads the other ranks' slices in it. Shapes are
known when a schedule is built: sizes follow from the tensors that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.coconet.chances import ChanceKey, KeptElements
from flowscope.coconet.fused_kernel import operation_of
from flowscope.coconet.sizes import BoundSizes, bounds
from flowscope.coconet.stage_graph import StageGraph, StageNode
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    AllReduceStage,
    BroadcastStage,
    CastStage,
    DropoutStage,
    ElementwiseStage,
    MatMulStage,
    ReduceScatterStage,
    ReduceStage,
    SendStage,
    SliceStage,
    TotalStage,
    UpdateStage,
)
from flowscope.coconet.values import ValueType

#: Per rank a tensor.
RankTensors = list[Any]


class Lowering:
    """One use of a schedule: the tensors of each stage, per rank.

    Args:
        graph: The stages.
        sizes: Lengths and numbers of ranks.
        devices: Per group the device of each rank, None for any.
        values: Per argument the tensor of each rank.
    """

    def __init__(
        self,
        graph: StageGraph,
        sizes: BoundSizes,
        devices: Mapping[str, Sequence[Any]],
        values: Mapping[str, RankTensors],
    ) -> None:
        self.graph = graph
        self.sizes = sizes
        self.devices = devices
        self.values: dict[str, RankTensors] = dict(values)
        #: New values of arguments that are updated.
        self.states: dict[str, RankTensors] = {}
        self._keys: dict[int, Any] = {}

    # -- where ranks are

    def places(self, spec: ValueType) -> Sequence[Any]:
        """The device of each rank that has a value."""
        return [None] if spec.group is None else self.devices[spec.group.name]

    def on(self, spec: ValueType, rank: int) -> AbstractContextManager[None]:
        """The scope of a rank's device."""
        place = self.places(spec)[rank]
        return nullcontext() if place is None else fs.device(place)

    def ranks(self, name: str, like: ValueType) -> RankTensors:
        """A value per rank of another value's group."""
        found = self.values[name]
        count = self.sizes.count(like)
        return found * count if len(found) != count else found

    def part(self, spec: ValueType, rank: int, right: int) -> tuple[int, int]:
        """Where a rank's part begins and ends in a dimension, counted from the last one."""
        length = self.sizes.length(spec.shape[-right])
        if spec.layout.dim == spec.rank - right:
            return bounds(length, rank, self.sizes.count(spec))
        return 0, length

    # -- stages

    def add(self, stage: StageNode) -> None:
        """Adds the operations of a stage."""
        self.finish(stage, self.lowered(stage))

    def finish(self, stage: StageNode, found: RankTensors) -> None:
        """Notes the tensors of a stage; those of an update are new values of an argument."""
        self.values[stage.name] = found
        if self.graph.writes_state(stage):
            op = stage.op
            name = op.target if isinstance(op, UpdateStage) else op.updates  # type: ignore[attr-defined]
            self.states[name] = found

    def lowered(self, stage: StageNode) -> RankTensors:
        """The tensors of a stage, per rank."""
        op, spec = stage.op, stage.type
        match op:
            case SendStage():
                return self.sent(stage, self.values[stage.sources[0]])
            case TotalStage():
                return self.totals(op, stage)
            case MatMulStage():
                a, b = [self.ranks(x, spec) for x in stage.sources]
                return self.each(spec, lambda r: fs.matmul(a[r], b[r]))
            case SliceStage():
                xs = self.ranks(stage.sources[0], spec)
                right = spec.rank - op.dim
                return self.each(spec, lambda r: cut(xs[r], right, self.part(spec, r, right)))
        if op.communicates:
            return self.communicated(stage, self.ranks(stage.sources[0], spec))
        columns = [self.ranks(x, spec) if isinstance(x, str) else None for x in stage.inputs]

        def one(rank: int) -> Any:
            given = [
                x if c is None else c[rank] for x, c in zip(stage.inputs, columns, strict=True)
            ]
            return self.elementwise(stage, rank, given)

        return self.each(spec, one)

    def each(self, spec: ValueType, build: Any) -> RankTensors:
        """Per rank what a function of the rank builds, on its device."""
        found = []
        for rank in range(self.sizes.count(spec)):
            with self.on(spec, rank):
                found.append(build(rank))
        return found

    def sent(self, stage: StageNode, xs: RankTensors) -> RankTensors:
        """Each rank's tensor, on the device of the rank of its number in another group."""
        return self.each(stage.type, lambda r: fs.identity(xs[r]))

    def elementwise(
        self, stage: StageNode, rank: int, given: Sequence[Any], part: Any = None
    ) -> Any:
        """The result of an element-wise stage on one rank.

        Args:
            stage: The stage.
            rank: The rank.
            given: Its operands there: tensors and numbers.
            part: For a part of the rank's value: the dimension, from the last one, and where the
                part begins and ends in the whole.
        """
        op = stage.op
        if isinstance(op, UpdateStage):
            return fs.identity(given[1])
        if isinstance(op, CastStage):
            return fs.cast(given[0], op.dtype)
        if isinstance(op, DropoutStage):
            keep, scaled = self.kept(stage, rank, part), given[0] / (1 - op.rate)
            return fs.where(keep, scaled, fs.zeros_like(scaled))
        assert isinstance(op, ElementwiseStage)
        tensors = [x for x in given if not isinstance(x, int | float)]
        dtype = tensors[-1].dtype
        values = [fs.constant(x, dtype) if isinstance(x, int | float) else x for x in given]
        if op.function == "ite":
            shape = list(np.broadcast_shapes(*[tuple(x.shape.as_list()) for x in values]))
            values = [
                x if x.shape.as_list() == shape else fs.broadcast_to(x, shape) for x in values
            ]
        return operation_of(op.function, values)

    def kept(self, stage: StageNode, rank: int, part: Any = None) -> Any:
        """Which elements dropout keeps of a rank's value, or of a part of it."""
        op, spec = stage.op, stage.type
        assert isinstance(op, DropoutStage)
        if op.seed not in self._keys:
            (self._keys[op.seed],) = outputs_of(ChanceKey(op.seed))
        right = 1 if not spec.rank else spec.rank - (spec.layout.dim or 0)
        shape = self.sizes.shape(spec)
        if not shape:
            begin, end = 0, 1
        elif part is None:
            begin, end = self.part(spec, rank, right)
        else:
            right, begin, end = part
        dim = max(0, spec.rank - right)
        (found,) = outputs_of(KeptElements(shape, dim, begin, end, op.rate), self._keys[op.seed])
        return found

    def totals(self, op: TotalStage, stage: StageNode) -> RankTensors:
        """A number of all elements per rank; 16 bits are added in float32."""
        source = self.graph.by_name[stage.sources[0]].type
        xs = self.ranks(stage.sources[0], stage.type)
        dtype = source.dtype
        is_wide = dtype.size == 2

        def one(rank: int) -> Any:
            x = fs.cast(xs[rank], fs.float32) if is_wide else xs[rank]
            return fs.reduce_sum(fs.square(x) if op.how == "norm" else x)

        sums = self.each(stage.type, one)
        if source.layout.is_sliced:
            sums = fs.collectives.all_reduce(sums, "sum", self.places(stage.type))

        def last(rank: int) -> Any:
            x = fs.sqrt(sums[rank]) if op.how == "norm" else sums[rank]
            return fs.cast(x, dtype) if is_wide else x

        return self.each(stage.type, last)

    def communicated(self, stage: StageNode, xs: RankTensors) -> RankTensors:
        """The tensors of a collective."""
        op, spec, places = stage.op, stage.type, list(self.places(stage.type))
        fc = fs.collectives
        match op:
            case AllReduceStage():
                return fc.all_reduce(xs, op.reduction, places)
            case ReduceScatterStage():
                turned = self.each(spec, lambda r: _to_front(xs[r], op.dim))
                found = fc.reduce_scatter(turned, op.reduction, places)
                return self.each(spec, lambda r: _from_front(found[r], op.dim))
            case AllGatherStage():
                dim = self.graph.by_name[stage.sources[0]].type.layout.dim
                turned = self.each(spec, lambda r: _to_front(xs[r], dim))
                found = fc.all_gather(turned, places)
                return self.each(spec, lambda r: _from_front(found[r], dim))
            case ReduceStage():
                total = fc.reduce(xs, op.reduction, places[op.root], places)
                return self.each(
                    spec, lambda r: fs.identity(total) if r == op.root else fs.zeros_like(xs[r])
                )
            case BroadcastStage():
                return fc.broadcast(xs[op.root], places)
        raise NotImplementedError(stage.text)


def outputs_of(op: fs.Op, *inputs: Any, name: str | None = None) -> list[Any]:
    """The outputs of an op on tensors."""
    return list(fs.get_default_graph().add(op, inputs, name).outputs)


def cut(x: Any, right: int, part: tuple[int, int]) -> Any:
    """A part of a tensor in a dimension, counted from the last one."""
    dim = x.shape.ndims - right
    return x[(slice(None),) * dim + (slice(*part),)]


def joined(xs: Sequence[Any], dim: int) -> Any:
    """Tensors one after the other in a dimension."""
    return xs[0] if len(xs) == 1 else fs.concat(list(xs), dim)


def _to_front(x: Any, dim: int) -> Any:
    return x if dim == 0 else fs.transpose(x, _turned(x.shape.ndims, dim))


def _from_front(x: Any, dim: int) -> Any:
    if dim == 0:
        return x
    order = _turned(x.shape.ndims, dim)
    return fs.transpose(x, [order.index(i) for i in range(len(order))])


def _turned(rank: int, dim: int) -> list[int]:
    return [dim, *[d for d in range(rank) if d != dim]]


__all__ = ["Lowering"]
