"""What a program means: NumPy, stage by stage and rank by rank. Schedules are compared with it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowscope.coconet.chances import kept
from flowscope.coconet.sizes import BoundSizes, bounds, cut
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

_FOLDS = {
    "sum": np.add, "mean": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply,
}  # fmt: skip

#: Per name what each rank has.
RankArrays = dict[str, list[Any]]


def folded(reduction: str, xs: Sequence[Any]) -> Any:
    """The reduction of arrays in the order of the ranks; 16 bits are folded in float32."""
    if len(xs) == 1:
        return xs[0]
    dtype = xs[0].dtype
    wide = [x.astype(np.float32) if dtype.itemsize == 2 else x for x in xs]
    total = functools.reduce(_FOLDS[reduction], wide)
    return np.asarray(total / len(xs) if reduction == "mean" else total).astype(dtype)


def elementwise_function(function: str) -> Callable[..., Any]:
    """NumPy's function of a name of `FUNCTIONS`."""
    other: dict[str, Callable[..., Any]] = {
        "ite": np.where,
        "relu": lambda x: np.maximum(x, x.dtype.type(0)),
        "pow": np.power,
        "abs": np.absolute,
    }
    return other.get(function) or getattr(np, function)


class _Ranks:
    """The values of all ranks while a program runs."""

    def __init__(self, graph: StageGraph, sizes: BoundSizes, keys: Mapping[int, int]) -> None:
        self.graph = graph
        self.sizes = sizes
        self.keys = keys
        self.values: RankArrays = {}
        self.states: RankArrays = {}

    def operands(self, stage: StageNode) -> list[list[Any]]:
        """Per rank of the stage's group its operands."""
        count = self.sizes.count(stage.type)
        dtype = self.number_dtype(stage)
        columns = []
        for x in stage.inputs:
            if not isinstance(x, str):
                columns.append([dtype.type(x)] * count)
            else:
                found = self.values[x]
                columns.append(found * count if len(found) != count else found)
        return [list(row) for row in zip(*columns, strict=True)]

    def number_dtype(self, stage: StageNode) -> Any:
        """The dtype that Python numbers of a stage get."""
        found = [self.graph.by_name[x].type.dtype for x in stage.sources]
        return found[-1].np_dtype

    def run(self, stage: StageNode) -> list[Any]:
        op, spec = stage.op, stage.type
        if isinstance(op, SendStage):
            return list(self.values[stage.sources[0]])
        rows = self.operands(stage)
        first = [row[0] for row in rows]
        match op:
            case ElementwiseStage():
                function = elementwise_function(op.function)
                return [np.asarray(function(*row)).astype(spec.dtype.np_dtype) for row in rows]
            case CastStage():
                return [x.astype(spec.dtype.np_dtype) for x in first]
            case DropoutStage():
                return [self.dropped(op, spec, rank, x) for rank, x in enumerate(first)]
            case MatMulStage():
                return [np.matmul(*row) for row in rows]
            case TotalStage():
                return self.totals(op, stage, first)
            case AllReduceStage():
                return [folded(op.reduction, first)] * len(rows)
            case ReduceScatterStage():
                total = folded(op.reduction, first)
                return [cut(total, op.dim, rank, len(rows)) for rank in range(len(rows))]
            case ReduceStage():
                total = folded(op.reduction, first)
                return [total if r == op.root else np.zeros_like(total) for r in range(len(rows))]
            case BroadcastStage():
                return [first[op.root]] * len(rows)
            case SliceStage():
                return [cut(x, op.dim, rank, len(rows)) for rank, x in enumerate(first)]
            case AllGatherStage():
                dim = self.graph.by_name[stage.sources[0]].type.layout.dim
                whole = [np.concatenate(first, axis=dim)] * len(rows)
                if op.updates:
                    self.states[op.updates] = whole
                return whole
            case UpdateStage():
                found = [row[1] for row in rows]
                if self.graph.writes_state(stage):
                    self.states[op.target] = found
                return found
        raise NotImplementedError(stage.text)

    def dropped(self, op: DropoutStage, spec: ValueType, rank: int, x: Any) -> Any:
        shape, dim = self.sizes.shape(spec), spec.layout.dim or 0
        parts = (rank, self.sizes.count(spec)) if spec.layout.is_sliced else (0, 1)
        part = bounds(shape[dim], *parts) if shape else (0, 1)
        mask = kept(np, self.keys.get(op.seed, 0), shape, dim, part, op.rate)
        scaled = x / x.dtype.type(1 - op.rate)
        return np.where(mask, scaled, x.dtype.type(0))

    def totals(self, op: TotalStage, stage: StageNode, xs: Sequence[Any]) -> list[Any]:
        dtype = xs[0].dtype
        wide = [x.astype(np.float32) if dtype.itemsize == 2 else x for x in xs]
        sums = [np.asarray(np.sum(np.square(x) if op.how == "norm" else x)) for x in wide]
        if self.graph.by_name[stage.sources[0]].type.layout.is_sliced:
            sums = [folded("sum", sums)] * len(sums)
        return [np.asarray(np.sqrt(x) if op.how == "norm" else x).astype(dtype) for x in sums]


def evaluate(
    graph: StageGraph,
    values: Mapping[str, Sequence[Any]],
    ranks: Mapping[str, int],
    keys: Mapping[int, int],
) -> tuple[RankArrays, RankArrays]:
    """Runs a graph of stages by NumPy.

    Args:
        graph: The stages.
        values: Per argument an array for each rank; one for a scalar of all groups.
        ranks: Per group the number of its ranks.
        keys: Per seed of dropout the key of its chances; 0 where there is none.

    Returns:
        The outputs by their names, and the new values of arguments that were updated.
    """
    sizes = BoundSizes(ranks)
    found = _Ranks(graph, sizes, keys)
    for argument in graph.arguments:
        given = [np.asarray(x, argument.type.dtype.np_dtype) for x in values[argument.name]]
        sizes.bind_parts(argument.name, argument.type, [x.shape for x in given])
        found.values[argument.name] = given
    with np.errstate(all="ignore"):
        for stage in graph.stages:
            found.values[stage.name] = found.run(stage)
    return {name: found.values[now] for name, now in graph.outputs}, found.states


def assembled(spec: ValueType, arrays: Sequence[Any]) -> list[Any]:
    """What a value is as a whole: one array for Replicated and Sliced, all ranks' for Local."""
    if spec.layout.is_sliced:
        return [np.concatenate(list(arrays), axis=spec.layout.dim)]
    return list(arrays) if spec.layout.name == "Local" else [arrays[0]]


__all__ = ["RankArrays", "assembled", "evaluate"]
