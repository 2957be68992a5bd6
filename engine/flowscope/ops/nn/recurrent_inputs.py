"""Checks of what recurrent blocks take: one error that names the input and its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import Dims, text
from flowscope.ops.core.build import apply

#: Inputs of an LSTM and of a GRU in their order, with what their axes are; a block over time has
#: one axis more at the front of the first.
LSTM = (
    ("x", ("batch", "depth")),
    ("cs_prev", ("batch", "units")),
    ("h_prev", ("batch", "units")),
    ("wci", ("units",)),
    ("wcf", ("units",)),
    ("wco", ("units",)),
    ("w", ("depth + units", "4 * units")),
    ("b", ("4 * units",)),
)
GRU = (
    ("x", ("batch", "depth")),
    ("h_prev", ("batch", "units")),
    ("w_ru", ("depth + units", "2 * units")),
    ("w_c", ("depth + units", "units")),
    ("b_ru", ("2 * units",)),
    ("b_c", ("units",)),
)
Inputs = tuple[tuple[str, tuple[str, ...]], ...]


@frozen
class CheckBlockInputs(Op, views=(0,)):
    """The first input of a recurrent block, once all of them are known to fit each other.

    Attributes:
        inputs: The inputs' names, and what their axes are: sizes, their sums and multiples.

    Raises: InvalidArgumentError if one has another rank or size.
    """

    inputs: Inputs

    def infer(self, *inputs: Spec) -> Spec:
        check_sizes(self.inputs, [spec.shape for spec in inputs])
        return inputs[0].like()

    def grad(self, g: Tensor, y: Tensor, *inputs: Tensor) -> Any:
        return g, *[None] * (len(inputs) - 1)

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Array:
        check_sizes(self.inputs, [np.shape(x) for x in inputs])
        return inputs[0]


def check_sizes(inputs: Inputs, shapes: Sequence[Dims]) -> None:
    """Raises InvalidArgumentError if shapes, as far as they are known, do not fit each other."""
    sizes: dict[str, int | None] = {}
    for (name, axes), dims in zip(inputs, shapes, strict=True):
        if dims is None:
            continue
        known = [_size(axis, sizes) for axis in axes]
        if len(dims) != len(axes) or any(
            d is not None and k is not None and d != k for d, k in zip(dims, known, strict=True)
        ):
            what = f"[{', '.join(axes)}]"
            wanted = f", that is {text(tuple(known))}" if any(k is not None for k in known) else ""
            raise InvalidArgumentError(f"expected {name} of shape {what}{wanted}, got {text(dims)}")
        sizes.update((a, d) for a, d in zip(axes, dims, strict=True) if d is not None)


def _size(axis: str, sizes: dict[str, int | None]) -> int | None:
    """The known size of an axis: one size, a sum of two or a multiple of one."""
    if axis in sizes:
        return sizes[axis]
    one, sign, other = axis.partition(" + ")
    if sign:
        terms = sizes.get(one), sizes.get(other)
        return None if terms[0] is None or terms[1] is None else terms[0] + terms[1]
    factor, sign, one = axis.partition(" * ")
    size = sizes.get(one) if sign else None
    return None if size is None else int(factor) * size


def checked(inputs: Inputs, tensors: Sequence[Tensor], name: str) -> Tensor:
    """Returns the first of a block's inputs, checked against the others: now, or as it runs.

    Args:
        inputs: What they are called, and what their axes are.
        tensors: The inputs.
        name: The block, for errors.

    Raises:
        InvalidArgumentError: if what is known of their shapes does not fit.
    """
    try:
        check_sizes(inputs, [t.spec.shape for t in tensors])
    except InvalidArgumentError as e:
        raise InvalidArgumentError(f"{name}: {e.message}") from None
    if all(t.spec.is_static for t in tensors):
        return tensors[0]
    return apply(CheckBlockInputs(inputs), *tensors)


__all__ = ["GRU", "LSTM", "CheckBlockInputs", "checked"]
