"""Pools of windows that differ in size by one element, so that images shrink by any ratio.

Source: Graham 2014, "Fractional max-pooling".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import range as range_of
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.shaping import expand_dims, reshape, shape_of
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_rank
from flowscope.ops.linalg.einsum import einsum
from flowscope.ops.math.elementwise import (
    greater_equal,
    less,
    logical_and,
    minimum,
    realdiv,
)
from flowscope.ops.math.reductions import reduce_sum
from flowscope.ops.random.seeds import seed_of as op_seed

__all__ = ["fractional_avg_pool", "fractional_max_pool"]


class FractionalPooled(NamedTuple):
    """What the fractional pools return."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


@frozen
class PoolingSequence(Op, is_random=True, is_differentiable=False, devices=("CPU",)):
    """Where the windows of a fractional pool begin, and where the last one ends.

    Attributes:
        ratio: The length divided by the number of windows.
        pseudo_random: Whether both sizes lie evenly, from a random start, or are shuffled.
        seed: The op's seed.
    Shapes: length [] -> [number of windows + 1]
    Source: Graham 2014, section 2.
    """

    ratio: float
    pseudo_random: bool
    seed: int

    def infer(self, length: Spec) -> Spec:
        if length.dtype is not dtypes.int32 or length.shape not in (None, ()):
            raise expected("an int32 scalar as length", length)
        known = length.constant
        count = None if known is None else int(int(known) / self.ratio) + 1
        return Spec(dtypes.int64, (count,))

    def kernel(self, xp: ArrayModule, rng: Any, length: Array) -> Array:
        size = int(length)
        count = int(size / self.ratio)
        if count < 1:
            raise expected(f"at least {self.ratio} elements for one window", size)
        if self.pseudo_random:
            return self._even(rng, size, count)
        short = size // count
        steps = np.full(count, short)
        steps[: size - short * count] += 1
        return np.concatenate([[0], np.cumsum(rng.permutation(steps))]).astype(np.int64)

    def _even(self, rng: Any, size: int, count: int) -> Array:
        """Returns the multiples of the ratio, from a random start, rounded up."""
        ratio = size / count
        short = int(ratio)
        limit = min((short + 2) / ratio - 1, (size + 1 - short) / ratio - (count - 1))
        places = np.ceil(ratio * (np.arange(1, count) + rng.random() * limit))
        # The first window begins at element 1.
        return np.concatenate([[0], places - 1, [size]]).astype(np.int64)


@frozen
class FractionalArgmax(Op, is_differentiable=False, host_inputs=(1, 2)):
    """The number, within all of x, of the first largest element in each window.

    Shapes: x [n, height, width, c], rows [h + 1], columns [w + 1] -> [n, h, w, c]
    """

    overlapping: bool

    def infer(self, x: Spec, rows: Spec, columns: Spec) -> Spec:
        check_kind(x.dtype, "fiu")
        _check_image(x)
        counts = [_windows(s) for s in (rows, columns)]
        dims = x.shape or (None,) * 4
        return Spec(dtypes.int64, (dims[0], *counts, dims[3]))

    def kernel(self, xp: ArrayModule, x: Array, rows: Array, columns: Array) -> Array:
        numbers = xp.arange(x.size).reshape(x.shape)
        down = _ranges(rows, x.shape[1], self.overlapping)
        across = _ranges(columns, x.shape[2], self.overlapping)
        out = xp.empty((len(x), len(down), len(across), x.shape[-1]), xp.int64)
        if not out.size:
            return out
        for i, some in enumerate(down):
            for j, those in enumerate(across):
                part = x[:, some, those].reshape(len(x), -1, x.shape[-1])
                places = part.argmax(1)[:, None]
                inside = numbers[:, some, those].reshape(part.shape)
                out[:, i, j] = xp.take_along_axis(inside, places, 1)[:, 0]
        return out


def _check_image(x: Spec) -> None:
    check_rank(x, 4, "images of rank 4")


def _windows(sequence: Spec) -> int | None:
    if sequence.dtype is not dtypes.int64 or sequence.rank not in (None, 1):
        raise expected("a vector of int64 as sequence", sequence)
    if sequence.shape == (0,):
        raise expected("a sequence of 1 element at least", "none")
    return sequence.shape[0] - 1 if sequence.shape and sequence.shape[0] is not None else None


def _ranges(sequence: Array, size: int, overlapping: bool) -> list[slice]:
    """Returns the windows along an axis; overlapping ones share an element with the next."""
    places = sequence.tolist()
    return [slice(a, min(b + overlapping, size)) for a, b in zip(places, places[1:])]


def _sequences(
    x: Tensor, ratio: Any, pseudo_random: bool, deterministic: bool, seeds: tuple[int, int]
) -> list[Tensor]:
    """Returns rows' and columns' sequences."""
    _check_image(x.spec)
    ratios: Sequence[float] = [1.0, ratio, ratio, 1.0] if isinstance(ratio, int | float) else ratio
    if len(ratios) == 2:
        ratios = [1.0, *ratios, 1.0]
    if len(ratios) != 4 or ratios[0] != 1 or ratios[3] != 1 or min(ratios) < 1:
        raise expected(
            "pooling_ratio: four numbers of 1 at least, 1 for batch and channels", repr(ratio)
        )
    seed = hash(seeds) if any(seeds) else (0 if deterministic else None)
    sizes = shape_of(x)
    found = []
    for i in (1, 2):
        own = op_seed(None if seed is None else (seed + i) % 2**31, "FractionalPool")
        op = PoolingSequence(float(ratios[i]), bool(pseudo_random), own)
        found.append(apply(op, sizes[i], name=("row" if i == 1 else "col") + "_pooling_sequence"))
    return found


@op_function("value", scope="FractionalMaxPool")
def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalPooled:
    """Returns the largest elements of windows whose sizes differ by one, at random.

    Args:
        value: Images, [n, height, width, channels].
        pooling_ratio: By which factors each axis shrinks: 1 for batch and channels.
        pseudo_random: Whether the windows of both sizes lie evenly, from a random start.
        overlapping: Whether neighbouring windows share the elements at their border.
        deterministic: Whether the windows are the same in all sessions, also without a seed.
        seed: Seed of the op.
        seed2: A second one.

    Returns:
        The pool, and where the windows begin along rows and columns, with the ends behind.

    Source: Graham 2014, "Fractional max-pooling"; gradient: to the first of the largest elements.
    """
    rows, columns = _sequences(value, pooling_ratio, pseudo_random, deterministic, (seed, seed2))
    places = apply(FractionalArgmax(bool(overlapping)), value, rows, columns)
    return FractionalPooled(gather(reshape(value, [-1]), places), rows, columns)


@op_function("value", scope="FractionalAvgPool")
def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalPooled:
    """Returns the means of windows whose sizes differ by one; as `fractional_max_pool`."""
    rows, columns = _sequences(value, pooling_ratio, pseudo_random, deterministic, (seed, seed2))
    sizes = shape_of(value)
    down, across = (_shares(s, sizes[i], overlapping, value) for i, s in ((1, rows), (2, columns)))
    y = einsum("ir,nrsc,js->nijc", down, value, across)
    return FractionalPooled(y, rows, columns)


def _shares(sequence: Tensor, size: Tensor, overlapping: bool, x: Tensor) -> Tensor:
    """Returns how much each element counts in each window's mean, [windows, elements]."""
    count = shape_of(sequence)[0] - 1
    first = gather(sequence, range_of(count))
    last = minimum(gather(sequence, range_of(1, count + 1)) + int(overlapping), cast(size, "int64"))
    at = expand_dims(range_of(cast(size, "int64")), 0)
    inside = logical_and(greater_equal(at, expand_dims(first, 1)), less(at, expand_dims(last, 1)))
    ones = cast(inside, x.dtype)
    return realdiv(ones, reduce_sum(ones, 1, keepdims=True))
