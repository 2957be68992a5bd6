"""Reductions over devices under the names of TensorFlow's contrib.nccl, on devices of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.ops.collective.functions import all_reduce, reduce
from flowscope.ops.core.flow import identity

__all__ = ["all_max", "all_min", "all_prod", "all_sum", "broadcast", "reduce_sum"]


def all_sum(tensors: Sequence[Any]) -> list[Tensor]:
    """Returns the sum of tensors, once on the device of each; see `fs.collectives.all_reduce`."""
    return all_reduce(tensors, "sum")


def all_prod(tensors: Sequence[Any]) -> list[Tensor]:
    """Returns the product of tensors, once on the device of each."""
    return all_reduce(tensors, "prod")


def all_min(tensors: Sequence[Any]) -> list[Tensor]:
    """Returns the minimum of tensors, once on the device of each."""
    return all_reduce(tensors, "min")


def all_max(tensors: Sequence[Any]) -> list[Tensor]:
    """Returns the maximum of tensors, once on the device of each."""
    return all_reduce(tensors, "max")


def reduce_sum(tensors: Sequence[Any]) -> Tensor:
    """Returns the sum of tensors, on the current device."""
    return reduce(tensors, "sum")


def broadcast(tensor: Any) -> Tensor:
    """Returns a tensor that operations on several devices may use: each gets it once."""
    return identity(convert_to_tensor(tensor))
