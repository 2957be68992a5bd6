"""What a plan makes of a collective: parts are cut, folded in the order of ranks, and joined.

Users do not build with them. Each piece has a device of its own, so what crosses are ordinary
transfers between devices and workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.graph.op import Array, ArrayModule, Cost, Op, Spec, frozen
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, merge_dims, size_of, text

#: The reductions, and the function that adds one more tensor; a mean is a sum that is divided.
REDUCTIONS = {"sum": "add", "mean": "add", "min": "minimum", "max": "maximum", "prod": "multiply"}
#: So many bytes of a result are folded at a time, so that they stay in the processor's caches.
BLOCK_BYTES = 1 << 17


def check_reduction(reduction: str, dtype: DType) -> None:
    """Raises DTypeError if tensors of a dtype have no such reduction.

    Args:
        reduction: One of `REDUCTIONS`.
        dtype: The dtype.
    """
    if reduction not in REDUCTIONS:
        raise expected(f"a reduction of {', '.join(REDUCTIONS)}", repr(reduction))
    if not dtype.is_numeric or dtype.is_quantized:
        raise expected_dtype("a numeric dtype", dtype)
    if reduction == "mean" and not (dtype.is_floating or dtype.is_complex):
        raise expected_dtype("a floating-point dtype for a mean", dtype)
    if reduction in ("min", "max") and dtype.is_complex:
        raise expected_dtype(f"a real dtype for a {reduction}", dtype)


def one_shape(xs: Sequence[Spec]) -> Dims:
    """Returns the shape that all ranks' tensors have; raises if they differ in dtype or shape."""
    dims = xs[0].shape
    for rank, x in enumerate(xs):
        if x.dtype is not xs[0].dtype:
            raise expected_dtype(f"{xs[0].dtype} as of rank 0", f"{x.dtype} of rank {rank}")
        if not compatible(x.shape, dims):
            raise expected(f"{text(dims)} as of rank 0", f"{text(x.shape)} of rank {rank}")
        dims = merge_dims(dims, x.shape)
    return dims


@frozen
class CollectiveFold(Op, memory_order="K", accumulates=True):
    """The reduction of all ranks' tensors: rank 0's with rank 1's, that with rank 2's, and so on.

    Attributes:
        reduction: "sum", "mean", "min", "max" or "prod".

    Shapes: n times s -> s
    Raises: InvalidArgumentError if shapes differ; DTypeError if dtypes do.
    """

    reduction: str

    def infer(self, *xs: Spec) -> Spec:
        if len(xs) < 2:
            raise expected("two tensors at least", len(xs))
        check_reduction(self.reduction, xs[0].dtype)
        return Spec(xs[0].dtype, one_shape(xs))

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        first = xs[0]
        for rank, x in enumerate(xs):
            if x.shape != first.shape:
                shape = f"{text(x.shape)} of rank {rank}"
                raise expected(f"{text(first.shape)} as of rank 0", shape)
        fold = getattr(xp, REDUCTIONS[self.reduction])
        count = len(xs) if self.reduction == "mean" else 0
        in_blocks = xp is np and first.nbytes > BLOCK_BYTES and len(xs) > 2
        if in_blocks and all(x.flags.c_contiguous for x in xs):
            return _folded_in_blocks(fold, xs, count)
        return _folded(fold, xs, count)

    def cost(self, inputs: Any, outputs: Any) -> Any:
        one = super().cost(inputs, outputs)
        return Cost(None if one.flops is None else one.flops * (len(inputs) - 1), one.nbytes)


def _folded(fold: Callable[..., Any], xs: Sequence[Array], count: int) -> Array:
    total = fold(xs[0], xs[1])
    for x in xs[2:]:
        total = fold(total, x)
    return (total / count).astype(total.dtype, copy=False) if count else total


def _folded_in_blocks(fold: Callable[..., Any], xs: Sequence[Array], count: int) -> Array:
    """Folds block by block: the same operations per element, so the same bits."""
    found = np.empty_like(xs[0])
    flat, step = found.reshape(-1), BLOCK_BYTES // found.itemsize
    parts = [x.reshape(-1) for x in xs]
    for begin in range(0, flat.size, step):
        at = slice(begin, begin + step)
        block = fold(parts[0][at], parts[1][at], out=flat[at])
        for part in parts[2:]:
            fold(block, part[at], out=block)
        if count:
            np.divide(block, count, out=block)
    return found


def bounds(length: int, index: int, parts: int) -> tuple[int, int]:
    """Returns where part `index` of `parts` begins and ends; lengths differ by one at most."""
    return length * index // parts, length * (index + 1) // parts


@frozen
class CollectivePart(Op, views=(0,)):
    """One of several parts of a rank's tensor, along its first axis or of all its elements.

    Attributes:
        index: Which part.
        parts: How many there are; their lengths differ by one at most.
        is_flat: Whether elements are parted, in C order, not rows.
        is_even: Whether all parts must have one length.

    Shapes: [d, ...] -> [about d / parts, ...]; flat: s -> [about size / parts]
    Raises: InvalidArgumentError for a scalar that has no rows, and for uneven parts where even ones
        are expected.
    """

    index: int
    parts: int
    is_flat: bool = False
    is_even: bool = False

    def infer(self, x: Spec) -> Spec:
        if self.is_flat:
            size = size_of(x.shape)
            return Spec(x.dtype, (None if size is None else self._length(size),))
        if x.shape is None:
            return Spec(x.dtype, None)
        if not x.shape:
            raise expected("rank 1 at least, to part the first axis", x.shape)
        length = None if x.shape[0] is None else self._length(x.shape[0])
        return Spec(x.dtype, (length, *x.shape[1:]))

    def _length(self, length: int) -> int:
        begin, end = self._bounds(length)
        return end - begin

    def _bounds(self, length: int) -> tuple[int, int]:
        if self.is_even and length % self.parts:
            raise expected(f"a multiple of {self.parts}, the ranks, as first dimension", length)
        return bounds(length, self.index, self.parts)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if self.is_flat:
            x = x.reshape(-1)
        elif not x.shape:
            raise expected("rank 1 at least, to part the first axis", x.shape)
        begin, end = self._bounds(len(x))
        return x[begin:end]


@frozen
class CollectiveJoin(Op):
    """Parts one after the other along the first axis.

    Attributes:
        shape: The shape that the whole has; None where it is that of the parts in a row.
        is_even: Whether all parts must have one shape.

    Shapes: n times [di, ...] -> [sum of di, ...], or `shape`
    Raises: InvalidArgumentError if dimensions other than the first differ; DTypeError if dtypes do.
    """

    shape: tuple[int, ...] | None = None
    is_even: bool = False

    def infer(self, *xs: Spec) -> Spec:
        rows = one_shape([_one_row(x) for x in xs])
        if self.is_even:
            one_shape(xs)
        if self.shape is not None or rows is None:
            return Spec(xs[0].dtype, self.shape)
        lengths = [None if x.shape is None else x.shape[0] for x in xs]
        known = [n for n in lengths if n is not None]
        total = sum(known) if len(known) == len(xs) else None
        return Spec(xs[0].dtype, (total, *rows[1:]))

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        for rank, x in enumerate(xs):
            if not x.shape or not xs[0].shape:
                raise expected("rank 1 at least, to join along the first axis", x.shape)
            first, other = xs[0].shape, x.shape
            if other[1:] != first[1:] or (self.is_even and other != first):
                raise expected(f"{text(first)} as of rank 0", f"{text(other)} of rank {rank}")
        whole = xp.concatenate(xs)
        return whole if self.shape is None else whole.reshape(self.shape)


def _one_row(x: Spec) -> Spec:
    """Returns a Spec whose first dimension is left open."""
    if x.shape == ():
        raise expected("rank 1 at least, to join along the first axis", x.shape)
    return x if x.shape is None else Spec(x.dtype, (None, *x.shape[1:]))


__all__: list[str] = []
