"""Programs that people need, and the schedules of them that are known to pay.

Data-parallel optimizers, the projection of a model-parallel layer, and a stage of a pipeline.

Source: Jangda et al. 2022, sections 2, 4 and 5; Adam: Kingma and Ba 2014; LAMB: You et al. 2020,
"Large Batch Optimization for Deep Learning".
"""

from __future__ import annotations

from typing import Any

import flowscope as fs
from flowscope.coconet import functions as cc
from flowscope.coconet.layouts import Local, RankGroup, Replicated, Sliced, SymbolicSize
from flowscope.coconet.pipeline import StagePipeline
from flowscope.coconet.program import (
    ProgramScalar,
    ProgramTensor,
    ProgramValue,
    ProgramVariable,
    elementwise,
)
from flowscope.coconet.schedule import Schedule, schedule
from flowscope.coconet.stage_graph import StageNode
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    AllReduceStage,
    MatMulStage,
    ReduceScatterStage,
    SendStage,
    SliceStage,
)
from flowscope.errors import InvalidArgumentError


def _mean(g: ProgramTensor, dtype: fs.DType) -> ProgramValue:
    """The mean of the ranks' gradients, in the dtype of the parameters."""
    mean = cc.all_reduce(g, "mean", name="mean")
    return mean if g.dtype is dtype else cc.cast(mean, dtype, name="wide_mean")


def _arguments(dtype: Any, grad_dtype: Any, state: str) -> list[Any]:
    n, dtype = SymbolicSize("N"), fs.as_dtype(dtype)
    grad = dtype if grad_dtype is None else fs.as_dtype(grad_dtype)
    g = ProgramTensor("g", grad, [n], Local)
    return [g, *[ProgramTensor(x, dtype, [n], Replicated) for x in ("p", *state)]]


def sgd(dtype: Any = fs.float32, grad_dtype: Any = None) -> StagePipeline:
    """Gradient descent on the mean of the ranks' gradients.

    Args:
        dtype: Of parameters.
        grad_dtype: Of gradients; that of parameters by default.

    Returns:
        A program of `g` [N] Local, `p` [N] and the scalar `lr`.
    """
    g, p = _arguments(dtype, grad_dtype, "")
    lr = ProgramScalar("lr", p.dtype)
    return StagePipeline("sgd", [g, p, lr], [cc.update(p, p - lr * _mean(g, p.dtype))])


def _moments(g: Any, p: Any, m: Any, v: Any, beta1: float, beta2: float) -> tuple[Any, Any]:
    mean = _mean(g, p.dtype)
    new_m = cc.update(m, m * beta1 + mean * (1.0 - beta1))
    return new_m, cc.update(v, v * beta2 + cc.square(mean) * (1.0 - beta2))


def adam(
    dtype: Any = fs.float32,
    grad_dtype: Any = None,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> StagePipeline:
    """Adam on the mean of the ranks' gradients.

    Args:
        dtype: Of parameters and moments.
        grad_dtype: Of gradients; that of parameters by default.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: Added to the root of the second moment.

    Returns:
        A program of `g` [N] Local, `p`, `m` and `v` [N], the scalar `lr`, and the variable `t`,
        which counts the updates.
    """
    g, p, m, v = _arguments(dtype, grad_dtype, "mv")
    lr, t = ProgramScalar("lr", p.dtype), ProgramVariable("t", p.dtype)
    new_m, new_v = _moments(g, p, m, v, beta1, beta2)
    new_t = cc.update(t, t + 1.0)
    step = lr * cc.sqrt(1.0 - beta2**new_t) / (1.0 - beta1**new_t)
    new_p = cc.update(p, p - step * new_m / (cc.sqrt(new_v) + epsilon))
    return StagePipeline("adam", [g, p, m, v, lr, t], [new_p])


def lamb(
    dtype: Any = fs.float32,
    grad_dtype: Any = None,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    weight_decay: float = 0.01,
) -> StagePipeline:
    """LAMB on the mean of the ranks' gradients: Adam's step, scaled to the size of the parameters.

    Args:
        dtype: Of parameters and moments.
        grad_dtype: Of gradients; that of parameters by default.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: Added to the root of the second moment.
        weight_decay: How much of the parameters is added to the step.

    Returns:
        A program of the arguments of `adam`.
    """
    g, p, m, v = _arguments(dtype, grad_dtype, "mv")
    lr, t = ProgramScalar("lr", p.dtype), ProgramVariable("t", p.dtype)
    new_m, new_v = _moments(g, p, m, v, beta1, beta2)
    new_t = cc.update(t, t + 1.0)
    right_m, right_v = new_m / (1.0 - beta1**new_t), new_v / (1.0 - beta2**new_t)
    step = right_m / (cc.sqrt(right_v) + epsilon) + p * weight_decay
    size, length = cc.norm(p, name="size"), cc.norm(step, name="length")
    ratio = cc.ite(length > 0.0, cc.ite(size > 0.0, size / length, 1.0), 1.0)
    new_p = cc.update(p, p - lr * ratio * step)
    return StagePipeline("lamb", [g, p, m, v, lr, t], [new_p])


def projection(rate: float = 0.1, dtype: Any = fs.float32, seed: int = 0) -> StagePipeline:
    """The last part of a model-parallel attention or MLP block: product, all-reduce, residual.

    Args:
        rate: Of dropout; 0 for none.
        dtype: The element type.
        seed: Seed of dropout.

    Returns:
        A program of `x` [T,K] Sliced(1), `w` [K,M] Sliced(0), `b` [M] and `r` [T,M], whose output
        is `out` = dropout(x @ w + b) + r.
    """
    rows, inner, columns = [SymbolicSize(x) for x in "TKM"]
    x = ProgramTensor("x", dtype, [rows, inner], Sliced(1))
    w = ProgramTensor("w", dtype, [inner, columns], Sliced(0))
    b, r = ProgramTensor("b", dtype, [columns]), ProgramTensor("r", dtype, [rows, columns])
    total = cc.all_reduce(cc.matmul(x, w, name="product"), name="total")
    biased = cc.dropout(total + b, rate, seed) if rate else total + b
    out = elementwise("add", biased, r, name="out")
    return StagePipeline("projection", [x, w, b, r], [out])


def pipeline_stage(
    here: RankGroup, there: RankGroup, rate: float = 0.1, dtype: Any = fs.float32, seed: int = 0
) -> StagePipeline:
    """What one stage of a pipeline hands to the next: the sum of partial results, and a residual.

    Args:
        here: The ranks of the stage.
        there: As many ranks of the next one.
        rate: Of dropout; 0 for none.
        dtype: The element type.
        seed: Seed of dropout.

    Returns:
        A program of `x` [T,M] Local and `r` [T,M], on `here`, whose output `out` is on `there`.
    """
    shape = [SymbolicSize("T"), SymbolicSize("M")]
    x = ProgramTensor("x", dtype, shape, Local, here)
    r = ProgramTensor("r", dtype, shape, Replicated, here)
    total = cc.all_reduce(x, name="total")
    kept = cc.dropout(total, rate, seed, name="kept") if rate else total
    return StagePipeline("pipeline_stage", [x, r], [cc.send(kept + r, there, name="out")])


def known_schedules(pipeline: StagePipeline) -> dict[str, Schedule]:
    """Schedules that are known to pay, by the names that they have in the paper.

    Args:
        pipeline: A program with one all-reduce: of this module, or of that form.

    Returns:
        "AR-C": all-reduce, then all computations, fused. "RS-C-AG": computations on slices between
        reduce-scatter and all-gather, with state kept in slices. "fuse(RS-C-AG)": the same as one.
        With a product before the all-reduce names begin with "MM-", and there is
        "ol(MM,fuse(RS-C-AG))";
        with a send behind it "AR-C-P2P", "RS-C-P2P-AG" and "ol(RS,fuse(C-P2P),AG)".

    Raises:
        InvalidArgumentError: if the program has not one all-reduce.
    """
    start = schedule(pipeline)
    reduces = [s.name for s in start.graph.stages if isinstance(s.op, AllReduceStage)]
    if len(reduces) != 1:
        raise InvalidArgumentError(f"expected a program with one all_reduce, got {len(reduces)}")
    (name,) = reduces
    parted = start.split(name)
    moved = [s.name for s in parted.graph.stages if _moves(s)]
    parted = _with_sliced_state(parted.reorder(f"ag_{name}", *moved))
    if any(isinstance(s.op, SendStage) for s in start.graph.stages):
        return _with_sends(start, parted)
    fused = parted.fuse(*[s.name for s in parted.graph.stages if _fuses(parted, s)])
    found = {"AR-C": _computations_fused(start), "RS-C-AG": _computations_fused(parted)}
    products = [s.name for s in start.graph.stages if isinstance(s.op, MatMulStage)]
    if not products:
        return {**found, "fuse(RS-C-AG)": fused}
    group = fused.graph.fused[0].name
    return {
        **{f"MM-{key}": one for key, one in found.items()},
        "MM-fuse(RS-C-AG)": fused,
        "ol(MM,fuse(RS-C-AG))": fused.overlap(products[-1], group),
    }


def _moves(stage: StageNode) -> bool:
    scatters = (AllGatherStage, ReduceScatterStage, MatMulStage)
    return bool(stage.type.rank or not stage.op.is_elementwise) and not isinstance(
        stage.op, scatters
    )


def _with_sliced_state(found: Schedule) -> Schedule:
    """Keeps in slices what can be, and leaves out the gathers of it."""
    state = [a.name for a in found.graph.arguments if a.is_state]
    for name in state:
        gathers = [
            s.name
            for s in found.graph.stages
            if isinstance(s.op, AllGatherStage) and s.op.updates == name
        ]
        if any(found.graph.is_used_outside(x, ()) for x in gathers):
            continue
        try:
            found = found.as_slice(name)
        except InvalidArgumentError:
            continue
        for x in gathers:
            found = found.dead(x)
    return found


def _fuses(found: Schedule, stage: StageNode) -> bool:
    """Whether a stage belongs to the fused all-reduce."""
    if isinstance(stage.op, ReduceScatterStage | AllGatherStage | SliceStage):
        return True
    if isinstance(stage.op, MatMulStage):
        return False
    return stage.type.layout.is_sliced or _between(found, stage)


def _between(found: Schedule, stage: StageNode) -> bool:
    """Whether a number stands between slices: it follows from some, and others follow from it."""
    slices = [s.name for s in found.graph.stages if s.type.layout.is_sliced]
    return stage.name in found.graph.between(slices) or not stage.op.is_elementwise


def _computations_fused(found: Schedule) -> Schedule:
    """Fuses the largest set of computations that hang together."""
    steps = [step for step in found.legal() if step.name == "fuse"]
    labels = {s.name: s.op for s in found.graph.stages}
    steps = [
        s
        for s in steps
        if not any(isinstance(labels[x], ReduceScatterStage | SendStage) for x in s.arguments)
    ]
    return found.apply(max(steps, key=lambda s: len(s.arguments))) if steps else found


def _with_sends(start: Schedule, parted: Schedule) -> dict[str, Schedule]:
    stages = parted.graph.stages
    scatter, gather = [
        next(s.name for s in stages if isinstance(s.op, kind))
        for kind in (ReduceScatterStage, AllGatherStage)
    ]
    chain = [s.name for s in stages if s.name not in (scatter, gather)]
    fused = parted.fuse(*chain)
    return {
        "AR-C-P2P": start,
        "RS-C-P2P-AG": parted,
        "ol(RS,fuse(C-P2P),AG)": fused.overlap(scatter, fused.graph.fused[0].name, gather),
    }


__all__ = ["adam", "known_schedules", "lamb", "pipeline_stage", "projection", "sgd"]
