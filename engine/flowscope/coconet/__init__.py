"""Programs of computation and communication, and their schedules. Users enter by `fs.coconet`.

In: a program of tensors with layouts, stages and collectives. Out: schedules of it, each derived
from another by transformations that are checked, and operations for each rank in a graph.

    layouts        how values lie over ranks
    values         types, and errors that name operands
    stage_ops      what a stage computes, and which layout follows
    program        values as users write them; functions has the functions
    pipeline       a whole program
    stage_graph    stages as plain data
    reference      what a program means, by NumPy
    transformations  split, reorder, as_slice and dead, fuse, overlap
    schedule       schedules for users
    cost, tuner    what a schedule costs; the quickest one, measured
    library        programs that people need, and known schedules of them
    sizes, chances, fused_kernel, lowering, fused_groups, chunks, build
                   a schedule becomes operations

It stands on the public names of the package, `fs.collectives` among them, and on operations and
tensors of `graph`. The engine does not know it.

Source: Jangda et al. 2022, "Breaking the Computation and Communication Abstraction Barrier in
Distributed Machine Learning Workloads" (CoCoNet).
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.coconet import library
from flowscope.coconet.build import BuiltSchedule
from flowscope.coconet.cost import PredictedCost, RankMachine
from flowscope.coconet.functions import (
    abs,
    all_gather,
    all_reduce,
    broadcast,
    cast,
    dropout,
    exp,
    ite,
    log,
    matmul,
    maximum,
    minimum,
    norm,
    pow,
    reduce,
    reduce_scatter,
    reduce_sum,
    relu,
    send,
    slice,
    sqrt,
    square,
    tanh,
    update,
)
from flowscope.coconet.layouts import (
    Layout,
    Local,
    RankGroup as Group,
    Replicated,
    Sliced,
    SymbolicSize as Size,
)
from flowscope.coconet.pipeline import StagePipeline as Pipeline
from flowscope.coconet.program import (
    ProgramScalar as Scalar,
    ProgramStage as Stage,
    ProgramTensor as Tensor,
    ProgramVariable as Variable,
)
from flowscope.coconet.schedule import AppliedTransformation, Schedule, schedule
from flowscope.coconet.tuner import TunedSchedule, Tuner, TuningResult

__all__ = [
    "AppliedTransformation",
    "BuiltSchedule",
    "Group",
    "Layout",
    "Local",
    "Pipeline",
    "PredictedCost",
    "RankMachine",
    "Replicated",
    "Scalar",
    "Schedule",
    "Size",
    "Sliced",
    "Stage",
    "Tensor",
    "TunedSchedule",
    "Tuner",
    "TuningResult",
    "Variable",
    "abs",
    "all_gather",
    "all_reduce",
    "broadcast",
    "cast",
    "dropout",
    "exp",
    "ite",
    "library",
    "log",
    "matmul",
    "maximum",
    "minimum",
    "norm",
    "pow",
    "reduce",
    "reduce_scatter",
    "reduce_sum",
    "relu",
    "schedule",
    "send",
    "slice",
    "sqrt",
    "square",
    "tanh",
    "update",
]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
