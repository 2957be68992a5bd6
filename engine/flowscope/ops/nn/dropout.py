"""Dropout: elements set to 0 at random, the others scaled up."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.broadcasting import as_shape
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.math.elementwise import (
    add,
    floor,
    multiply,
    realdiv,
)
from flowscope.ops.random.normal_and_uniform import random_uniform

__all__ = ["dropout"]


@op_function("x", scope="dropout")
def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Returns `x` with elements set to 0 at random, the others scaled up so that the mean stays.

    Args:
        x: A floating-point tensor.
        keep_prob: The probability that an element is kept.
        noise_shape: Shape of the random choices, broadcast to x's; x's own by default, and where it
            says None.
        seed: Seed of the op.
        rate: 1 - keep_prob, in its place.

    Raises:
        InvalidArgumentError: unless one of keep_prob and rate is given, and is a probability.

    Example:
        >>> x = fs.nn.dropout(fs.ones([10_000]), rate=0.25, seed=1)
        >>> fs.Session().run(fs.reduce_mean(x)).round(1)
        np.float32(1.0)
    """
    if (keep_prob is None) == (rate is None):
        raise expected("one of keep_prob and rate", "both or none")
    check_kind(x.dtype, "f")
    keep = 1 - rate if keep_prob is None else keep_prob
    known = get_static_value(keep)
    if known is not None:
        if not 0 < known <= 1:
            raise expected("a keep_prob in (0, 1]", known)
        if known == 1:
            return x  # type: ignore[no-any-return]
    keep = convert_to_tensor(keep, None if isinstance(keep, Tensor) else x.dtype)
    chance = random_uniform(_noise_shape(x, noise_shape), dtype=x.dtype, seed=seed)
    return multiply(realdiv(x, keep), floor(add(chance, keep)))


def _noise_shape(x: Tensor, noise_shape: Any) -> Tensor:
    """Returns the shape of the random choices, with x's sizes in place of None."""
    if noise_shape is None:
        return shape_of(x)
    if isinstance(noise_shape, list | tuple) and any(d is None for d in noise_shape):
        sizes = shape_of(x)
        noise_shape = [sizes[i] if d is None else d for i, d in enumerate(noise_shape)]
    return as_shape(noise_shape, None, "noise_shape")
