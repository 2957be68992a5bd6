"""Arguments of datasets as tensors: numbers and shapes; and the elements of generators."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.data.structure import Leaf, Structure, mapped
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor, to_array
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import bool_, int64
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, as_dims, compatible, text
from flowscope.ops.core.casting import cast
from flowscope.ops.core.static_values import get_static_value

#: As many as there are cores.
AUTOTUNE = -1


class Yielded:
    """The elements of a generator, as tuples of components.

    Args:
        generator: Returns an iterable of elements.
        structure: What they are.
    """

    def __init__(self, generator: Callable[..., Any], structure: Structure) -> None:
        self._generator = generator
        self._leaves = structure.leaves
        self.__name__ = getattr(generator, "__name__", "generator")

    def __call__(self, *args: Any) -> Any:
        """Yields the components of each element."""
        for number, element in enumerate(self._generator(*args)):
            found: list[Any] = []

            def take(leaf: Leaf, value: Any, found: list[Any] = found) -> None:
                found.append(_component(leaf, value))

            try:
                mapped(take, self._leaves, element)
            except (InvalidArgumentError, DTypeError, ValueError, TypeError) as e:
                told = getattr(e, "message", str(e))
                raise InvalidArgumentError(
                    f"element {number} of the generator {self.__name__}: {told}"
                ) from e
            yield tuple(found)


def _component(leaf: Leaf, value: Any) -> Any:
    found = to_array(value, leaf.dtype)
    if not compatible(leaf.dims, np.shape(found)):
        raise expected(f"shape {text(leaf.dims)}", text(np.shape(found)))
    return found


def as_number(value: Any, name: str) -> Tensor:
    """Returns a number as an int64 scalar.

    Raises:
        DTypeError: if it is no integer.
        InvalidArgumentError: if it is no scalar.
    """
    is_number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if is_number:
        return convert_to_tensor(np.int64(value), int64, name=name)
    tensor = convert_to_tensor(value, name=name)
    if not tensor.dtype.is_integer:
        raise expected_dtype(f"{name} as an integer", tensor.dtype)
    if not compatible((), tensor.spec.shape):
        raise expected(f"{name} as a scalar", f"shape {text(tensor.spec.shape)}")
    return tensor if tensor.dtype is int64 else cast(tensor, int64)


def as_parallel(count: Any) -> int:
    """How many calls run at a time, 0 for none beside who asks."""
    if count is None:
        return 0
    is_number = isinstance(count, numbers.Integral) and not isinstance(count, bool)
    if not is_number or not (count == AUTOTUNE or count > 0):
        raise expected("num_parallel_calls above 0, or AUTOTUNE", repr(count))
    return int(count)


def as_structure(value: Any) -> Any:
    """The result of a function as a structure: a list counts as a tuple."""
    return tuple(value) if isinstance(value, list) else value


def batch_inputs(batch_size: Any, drop_remainder: Any) -> tuple[list[Tensor], int | None]:
    """Returns the inputs of a batch, and how many elements each has, where that is known."""
    count = as_number(batch_size, "batch_size")
    drops = convert_to_tensor(drop_remainder, bool_, name="drop_remainder")
    size_, is_dropping = get_static_value(count), get_static_value(drops)
    if size_ is not None and size_ <= 0:
        raise expected("batch_size above 0", int(size_))
    return [count, drops], int(size_) if size_ is not None and is_dropping else None


def padded_shape(shape: Any, leaf: Leaf) -> tuple[Tensor, Dims]:
    """Returns a shape to pad to as an int64 vector, and as far as it is known."""
    if isinstance(shape, Tensor):
        return cast(shape, int64), None
    given = shape
    if isinstance(shape, list | tuple | np.ndarray):
        given = [None if d is not None and int(d) < 0 else d for d in shape]
    dims = as_dims(given)
    if dims is None or (leaf.dims is not None and len(dims) != len(leaf.dims)):
        raise expected(f"a padded shape of the rank of {leaf.described()}", str(shape))
    for wanted, has in zip(dims, leaf.dims or (None,) * len(dims)):
        if wanted is not None and has is not None and wanted < has:
            raise expected(f"a padded shape no smaller than {leaf.described()}", str(shape))
    numbers_ = np.array([-1 if d is None else d for d in dims], np.int64)
    return convert_to_tensor(numbers_, int64, name="padded_shape"), dims


__all__ = [
    "AUTOTUNE",
    "Yielded",
    "as_number",
    "as_parallel",
    "as_structure",
    "batch_inputs",
    "padded_shape",
]
