"""Values that are known while the graph is built, also through simple operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import OpError
from flowscope.graph import constant
from flowscope.graph.constant import Convertible
from flowscope.graph.op import kernel_of
from flowscope.graph.operation import Tensor

__all__ = ["get_static_value"]

#: Op types whose outputs are computed from values that are known.
_SEEN_THROUGH = frozenset(
    {"Cast", "Concat", "Equal", "Fill", "Identity", "NotEqual", "Pack", "Split", "StopGradient"}
    | {"Unpack", "ZerosLike", "OnesLike", "Range", "Reshape"}
)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Returns the tensor's value as an array if it is known while the graph is built, else None.

    Simple operations on constants are seen through: casts, comparisons for equality, lists of
    tensors, parts of them.

    Args:
        tensor: A tensor; what is none is returned as it is, and for a variable None.
        partial: Whether a vector of sizes, some of them known, is an array with None for others.
    """
    if isinstance(tensor, Tensor):
        found = constant.get_static_value(tensor, partial)
        return _computed(tensor) if found is None else found
    return None if isinstance(tensor, Convertible) else tensor


def _computed(tensor: Tensor) -> Any:
    """The value of an operation whose inputs are known; None if one is not."""
    op = tensor.op
    if op.type not in _SEEN_THROUGH:
        return None
    values = [get_static_value(x) for x in op.inputs]
    if any(v is None for v in values):
        return None
    specs = [x.spec for x in op.inputs], [y.spec for y in op.outputs]
    try:
        with np.errstate(all="ignore"):
            found = kernel_of(op.definition, "CPU", *specs)(np, *values)
    except OpError:
        return None  # the step says what is wrong
    return found[tensor.value_index] if isinstance(found, tuple) else found
