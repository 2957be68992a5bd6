"""Collectives for users: one tensor per rank goes in, and each rank gets its result beside it.

    sums = fs.collectives.all_reduce([gradient_on_gpu_0, gradient_on_gpu_1])

A call takes the tensors of all ranks at once. So no rank can issue collectives in another order
than the others, and none waits for a call that never comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.collective.hubs import (
    AllGather,
    AllReduce,
    AllToAll,
    RankBroadcast,
    RankReduce,
    RankScatter,
    ReduceScatter,
)
from flowscope.ops.collective.pieces import check_reduction
from flowscope.ops.core.build import apply, apply_many

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "reduce",
    "reduce_scatter",
    "scatter",
]

#: What `fs.device` takes as a name.
Device = Any


def all_reduce(
    tensors: Sequence[Any],
    reduction: str = "sum",
    devices: Iterable[Device] | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Returns the elementwise reduction of the ranks' tensors, once for each rank.

    Each element is reduced in the order of the ranks, so every rank gets the same bits, and the
    bits do not depend on devices, sizes or timing. Elements of 16 bits are reduced in float32 and
    rounded once. Between processes, few bytes go from each to each; of many bytes each process
    reduces a slice and collects the other slices: with tensors of K bytes on N processes, each
    sends 2K(N-1)/N bytes.

    Args:
        tensors: One tensor per rank, of one dtype and one shape.
        reduction: "sum", "mean", "min", "max" or "prod".
        devices: The device of each rank, as `fs.device` takes it; None for those of the tensors.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if there is no tensor, or if shapes differ; it names both lines. What
            is found when the step runs names the operation's line.
        DTypeError: if dtypes differ, or have no such reduction.

    Source: reduce-scatter and all-gather, Thakur, Rabenseifner and Gropp 2005.
    """
    xs = _alike(tensors)
    check_reduction(reduction, xs[0].dtype)
    return list(apply_many(AllReduce(_places(xs, devices), reduction), *xs, name=name))


def reduce(
    tensors: Sequence[Any],
    reduction: str = "sum",
    device: Device = None,
    devices: Iterable[Device] | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the elementwise reduction of the ranks' tensors, in the order of the ranks.

    Args:
        tensors: One tensor per rank, of one dtype and one shape.
        reduction: "sum", "mean", "min", "max" or "prod".
        device: Where the result is wanted; None for the current device.
        devices: See `all_reduce`.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: see `all_reduce`.
        DTypeError: see `all_reduce`.
    """
    xs = _alike(tensors)
    check_reduction(reduction, xs[0].dtype)
    return apply(RankReduce(_places(xs, devices), reduction, _place(device)), *xs, name=name)


def reduce_scatter(
    tensors: Sequence[Any],
    reduction: str = "sum",
    devices: Iterable[Device] | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Returns for each rank its part of the rows of the elementwise reduction.

    Of d rows and n ranks, rank i gets the rows from d * i // n to d * (i + 1) // n.

    Args:
        tensors: One tensor per rank, of one dtype and one shape, and of rank 1 at least.
        reduction: "sum", "mean", "min", "max" or "prod".
        devices: See `all_reduce`.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: see `all_reduce`; also for scalars.
        DTypeError: see `all_reduce`.
    """
    xs = _alike(tensors)
    check_reduction(reduction, xs[0].dtype)
    return list(apply_many(ReduceScatter(_places(xs, devices), reduction), *xs, name=name))


def all_gather(
    tensors: Sequence[Any], devices: Iterable[Device] | None = None, name: str | None = None
) -> list[Tensor]:
    """Returns the rows of all ranks' tensors, in the order of the ranks, once for each rank.

    Args:
        tensors: One tensor [di, ...] per rank, of one dtype; the numbers of rows may differ.
        devices: See `all_reduce`.
        name: Name of the operation.

    Returns:
        Per rank a tensor [sum of di, ...].

    Raises:
        InvalidArgumentError: if other dimensions than the first differ, or for scalars; it names
            both lines.
        DTypeError: if dtypes differ.
    """
    xs = _alike(tensors, rows_differ=True)
    return list(apply_many(AllGather(_places(xs, devices)), *xs, name=name))


def all_to_all(
    tensors: Sequence[Any], devices: Iterable[Device] | None = None, name: str | None = None
) -> list[Tensor]:
    """Returns for rank j the j-th part of each rank's rows, in the order of the ranks.

    Args:
        tensors: One tensor [d, ...] per rank, of one dtype and one shape; d is a multiple of the
            number of ranks.
        devices: See `all_reduce`.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if shapes differ or cannot be parted evenly; it names both lines.
        DTypeError: if dtypes differ.
    """
    xs = _alike(tensors)
    return list(apply_many(AllToAll(_places(xs, devices)), *xs, name=name))


def broadcast(tensor: Any, devices: Iterable[Device], name: str | None = None) -> list[Tensor]:
    """Returns a tensor once for each device; the gradient is the sum of the ranks' gradients.

    Args:
        tensor: The tensor.
        devices: The device of each rank, as `fs.device` takes it; None for any.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if there is no device.
    """
    x = convert_to_tensor(tensor)
    return list(apply_many(RankBroadcast(_places([], devices)), x, name=name))


def scatter(tensor: Any, devices: Iterable[Device], name: str | None = None) -> list[Tensor]:
    """Returns for each device its part of a tensor's rows.

    Of d rows and n devices, number i gets the rows from d * i // n to d * (i + 1) // n.

    Args:
        tensor: A tensor [d, ...].
        devices: The device of each rank, as `fs.device` takes it; None for any.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if there is no device, or for a scalar.
    """
    x = convert_to_tensor(tensor)
    return list(apply_many(RankScatter(_places([], devices)), x, name=name))


def _places(xs: Sequence[Tensor], devices: Iterable[Device] | None) -> tuple[str, ...]:
    """Returns the device of each rank."""
    if devices is None:
        return tuple([x.device for x in xs])
    found = tuple([_place(d) for d in devices])
    if not found or (xs and len(found) != len(xs)):
        raise expected(f"a device for each of {len(xs) or 'some'} ranks", len(found))
    return found


def _place(device: Device) -> str:
    return DeviceSpec.from_string(str(device)).to_string() if device else ""


def _alike(tensors: Sequence[Any], rows_differ: bool = False) -> list[Tensor]:
    """Returns the tensors of the ranks; raises if they are not of one dtype and one shape.

    Args:
        tensors: What a user has given.
        rows_differ: Whether first dimensions may differ.
    """
    if isinstance(tensors, Tensor):
        raise expected("a list of tensors, one per rank", tensors.spec)
    xs = [convert_to_tensor(t) for t in tensors]
    if not xs:
        raise expected("a tensor of one rank at least", "none")
    first = xs[0]
    for rank, x in enumerate(xs):
        if x.dtype is not first.dtype:
            raise _differs(expected_dtype, first.dtype.name, x.dtype.name, first, x, rank)
        a, b = first.spec.shape, x.spec.shape
        if rows_differ and a and b:
            a, b = (None, *a[1:]), (None, *b[1:])
        if not compatible(a, b):
            known = text(first.spec.shape), text(x.spec.shape)
            raise _differs(expected, *known, first, x, rank)
    return xs


def _differs(
    error: Callable[..., InvalidArgumentError | Any],
    wanted: str,
    got: str,
    first: Tensor,
    other: Tensor,
    rank: int,
) -> Any:
    """Returns the error for a rank whose tensor differs from that of rank 0."""
    return error(
        f"{wanted} as rank 0 has, by {first.name!r}{_made(first)}",
        f"{got} of rank {rank}, by {other.name!r}{_made(other)}",
    )


def _made(tensor: Tensor) -> str:
    """Where a tensor was made, as a sentence goes on."""
    place = tensor.op.origin.place
    return f", made in {place}" if place is not None else ""
