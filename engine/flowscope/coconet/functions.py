"""Functions of which programs are written: collectives, products, element-wise functions."""

from __future__ import annotations

from typing import Any

import flowscope as fs
from flowscope.coconet.layouts import RankGroup
from flowscope.coconet.program import (
    ProgramStage,
    elementwise,
    made_stage,
    update,
    with_slices,
)
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    AllReduceStage,
    BroadcastStage,
    CastStage,
    DropoutStage,
    MatMulStage,
    ReduceScatterStage,
    ReduceStage,
    SendStage,
    SliceStage,
    StageOp,
    TotalStage,
)
from flowscope.errors import InvalidArgumentError

_REDUCTIONS = ("sum", "mean", "min", "max", "prod")


def _reduction(name: Any) -> str:
    if name not in _REDUCTIONS:
        raise InvalidArgumentError(
            f"expected a reduction of {', '.join(_REDUCTIONS)}, got {name!r}"
        )
    return str(name)


def _whole(number: Any, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InvalidArgumentError(f"expected {what} of at least 0, got {number!r}")
    return number


def all_reduce(x: Any, reduction: str = "sum", name: str | None = None) -> ProgramStage:
    """The elementwise reduction of all ranks' tensors, for each rank: Local -> Replicated.

    Args:
        x: A Local tensor.
        reduction: "sum", "mean", "min", "max" or "prod", in the order of the ranks.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if it is not Local.
    """
    return made_stage(AllReduceStage(_reduction(reduction)), x, name=name)


def reduce_scatter(
    x: Any, reduction: str = "sum", dim: int = 0, name: str | None = None
) -> ProgramStage:
    """A part of the elementwise reduction for each rank: Local -> Sliced(dim).

    Args:
        x: A Local tensor.
        reduction: See `all_reduce`.
        dim: The dimension that is cut.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if it is not Local, or has no such dimension.
    """
    op = ReduceScatterStage(_reduction(reduction), _whole(dim, "a dimension"))
    return made_stage(op, x, name=name)


def all_gather(x: Any, name: str | None = None) -> ProgramStage:
    """The parts of all ranks, joined for each rank: Sliced -> Replicated.

    Args:
        x: A Sliced tensor.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if it is not Sliced.
    """
    return made_stage(AllGatherStage(), x, name=name)


def reduce(x: Any, reduction: str = "sum", root: int = 0, name: str | None = None) -> ProgramStage:
    """The elementwise reduction on one rank, zeros on the others: Local -> Local.

    Args:
        x: A Local tensor.
        reduction: See `all_reduce`.
        root: The rank that gets it.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if it is not Local.
    """
    return made_stage(ReduceStage(_reduction(reduction), _whole(root, "a rank")), x, name=name)


def broadcast(x: Any, root: int = 0, name: str | None = None) -> ProgramStage:
    """The tensor of one rank, for each rank: Local -> Replicated.

    Args:
        x: A Local tensor.
        root: The rank whose tensor it is.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if it is not Local.
    """
    return made_stage(BroadcastStage(_whole(root, "a rank")), x, name=name)


def slice(x: Any, dim: int = 0, name: str | None = None) -> ProgramStage:
    """Its part of a tensor for each rank, without communication: Replicated -> Sliced(dim).

    Args:
        x: A Replicated tensor.
        dim: The dimension that is cut.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if it is not Replicated, or has no such dimension.
    """
    return made_stage(SliceStage(_whole(dim, "a dimension")), x, name=name)


def send(x: Any, to: RankGroup, name: str | None = None) -> ProgramStage:
    """The values of each rank, on the rank of the same number in another group.

    Args:
        x: A tensor.
        to: The group that gets it, of as many ranks.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if it is on that group already.
    """
    if not isinstance(to, RankGroup):
        raise InvalidArgumentError(f"send: expected a Group to send to, got {to!r}")
    return made_stage(SendStage(to), x, name=name)


def matmul(a: Any, b: Any, name: str | None = None) -> ProgramStage:
    """The matrix product of a [..., m, k] and b [k, n].

    Sliced(d) @ Replicated is Sliced(d) where d is not the inner dimension, Replicated @ Sliced(1)
    is sliced in the last one, and both sliced in the inner dimension give Local partial sums. With
    a Local operand it is Local.

    Args:
        a: A tensor of rank 2 at least.
        b: A matrix.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if shapes or layouts do not fit.
        DTypeError: if dtypes differ, or are no floating-point ones.
    """
    return made_stage(MatMulStage(), a, b, name=name)


def sqrt(x: Any, name: str | None = None) -> ProgramStage:
    """The square root of each element."""
    return elementwise("sqrt", x, name=name)


def square(x: Any, name: str | None = None) -> ProgramStage:
    """The square of each element."""
    return elementwise("square", x, name=name)


def tanh(x: Any, name: str | None = None) -> ProgramStage:
    """The hyperbolic tangent of each element."""
    return elementwise("tanh", x, name=name)


def relu(x: Any, name: str | None = None) -> ProgramStage:
    """Each element, or 0 where it is negative."""
    return elementwise("relu", x, name=name)


def exp(x: Any, name: str | None = None) -> ProgramStage:
    """The exponential of each element."""
    return elementwise("exp", x, name=name)


def log(x: Any, name: str | None = None) -> ProgramStage:
    """The natural logarithm of each element."""
    return elementwise("log", x, name=name)


def abs(x: Any, name: str | None = None) -> ProgramStage:
    """The absolute value of each element."""
    return elementwise("abs", x, name=name)


def pow(x: Any, y: Any, name: str | None = None) -> ProgramStage:
    """The power x ** y of each element."""
    return elementwise("pow", x, y, name=name)


def maximum(x: Any, y: Any, name: str | None = None) -> ProgramStage:
    """The larger one of two elements."""
    return elementwise("maximum", x, y, name=name)


def minimum(x: Any, y: Any, name: str | None = None) -> ProgramStage:
    """The smaller one of two elements."""
    return elementwise("minimum", x, y, name=name)


def ite(condition: Any, x: Any, y: Any, name: str | None = None) -> ProgramStage:
    """The element of x where a condition holds, else that of y.

    Args:
        condition: A tensor of dtype bool, such as `a > b`.
        x: A tensor, a scalar or a number.
        y: The same, of x's dtype.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if shapes or layouts do not fit.
        DTypeError: if the condition is no bool, or dtypes differ.
    """
    return elementwise("ite", condition, x, y, name=name)


def cast(x: Any, dtype: Any, name: str | None = None) -> ProgramStage:
    """The same values in another dtype.

    Args:
        x: A tensor or scalar of the program.
        dtype: The dtype.
        name: Name of the stage.
    """
    return _on_value(CastStage(fs.as_dtype(dtype)), x, name)


def dropout(x: Any, rate: float, seed: int = 0, name: str | None = None) -> ProgramStage:
    """Elements set to 0 at random, the others scaled up so that the mean stays.

    An element's chance follows from the seed, the run and its place in the whole tensor. So the
    mask is the same however the tensor is cut, and the same on all ranks of a Local tensor.

    Args:
        x: A floating-point tensor.
        rate: The probability that an element is set to 0, in [0, 1).
        seed: Seed of the chances.
        name: Name of the stage.

    Raises:
        InvalidArgumentError: if the rate is no such probability.
        DTypeError: if the tensor is no floating-point one.
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise InvalidArgumentError(f"dropout: expected a rate in [0, 1), got {rate!r}")
    return _on_value(DropoutStage(float(rate), _whole(seed, "a seed")), x, name)


def norm(x: Any, name: str | None = None) -> ProgramStage:
    """The Euclidean norm of all elements, a scalar.

    Of a Sliced tensor each rank computes the sum of squares of its part, and the ranks add one
    number each: Sliced and Replicated -> Replicated, Local -> Local.

    Args:
        x: A floating-point tensor.
        name: Name of the stage.

    Raises:
        DTypeError: if the tensor is no floating-point one.
    """
    return _on_value(TotalStage("norm"), x, name)


def reduce_sum(x: Any, name: str | None = None) -> ProgramStage:
    """The sum of all elements, a scalar; for layouts see `norm`."""
    return _on_value(TotalStage("sum"), x, name)


def _on_value(op: StageOp, x: Any, name: str | None) -> ProgramStage:
    if isinstance(x, int | float):
        raise InvalidArgumentError(f"{op.label}: expected a value of the program, got {x!r}")
    return made_stage(op, *with_slices([x]), name=name)


__all__ = [
    "abs", "all_gather", "all_reduce", "broadcast", "cast", "dropout", "exp", "ite", "log",
    "matmul", "maximum", "minimum", "norm", "pow", "reduce", "reduce_scatter", "reduce_sum",
    "relu", "send", "slice", "sqrt", "square", "tanh", "update",
]  # fmt: skip
