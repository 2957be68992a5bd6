"""Checks of what is known while the graph is built: dtypes, and kinds of values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from flowscope.errors import DTypeError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.core.flow import no_op

__all__ = [
    "assert_integer",
    "assert_proper_iterable",
    "assert_same_float_dtype",
    "assert_type",
    "is_numeric_tensor",
]


def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """Returns an operation that does nothing, if the tensor has this dtype.

    Raises:
        DTypeError: a TypeError, if it has another one.
    """
    t, wanted = convert_to_tensor(tensor), as_dtype(tf_type)
    if t.dtype is not wanted:
        front = f"{message}: " if message else ""
        raise DTypeError(f"{front}expected {t.name} to be of dtype {wanted}, got {t.dtype}")
    return no_op(name or "statically_determined_correct_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Returns an operation that does nothing, if x is of an integer dtype.

    Raises:
        DTypeError: a TypeError, if it is not.
    """
    t = convert_to_tensor(x)
    if not t.dtype.is_integer:
        front = f"{message}: " if message else ""
        raise DTypeError(f"{front}expected {t.name} to be of an integer dtype, got {t.dtype}")
    return no_op(name or "statically_determined_was_integer")


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> DType:
    """Returns the floating-point dtype that all tensors have; float32 if there are none.

    Args:
        tensors: Tensors; what is None does not count.
        dtype: The dtype that they must have, if it is given.

    Raises:
        DTypeError: a TypeError, if they differ or are no floating-point numbers.
    """
    found = None if dtype is None else as_dtype(dtype)
    for t in [convert_to_tensor(v) for v in tensors or () if v is not None]:
        if found is not None and t.dtype is not found:
            raise expected_dtype(f"{t.name} to be of dtype {found}", t.dtype)
        found = t.dtype
    found = found or dtypes.float32
    if not found.is_floating:
        raise expected_dtype("a floating-point dtype", found)
    return found


def assert_proper_iterable(values: Any) -> None:
    """Raises unless `values` is iterable and neither a tensor, an array nor a text.

    Raises:
        DTypeError: a TypeError.
    """
    is_one = isinstance(values, Tensor | Convertible | np.ndarray | str | bytes)
    if is_one or not isinstance(values, Iterable):
        raise expected_dtype("a list or the like", type(values).__name__)


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    return isinstance(tensor, Tensor | Convertible) and convert_to_tensor(tensor).dtype.is_numeric
