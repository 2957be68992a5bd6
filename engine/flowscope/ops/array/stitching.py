"""Slices dealt out to several tensors, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, check_outputs, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import int32
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims, compatible, merge_dims, text
from flowscope.graph.values.string_values import boxed, zeros
from flowscope.ops.array.arrays import range as range_of, size
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.shaping import reshape, shape_of, zeros_of
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.kernels.bounds import bounds
from flowscope.ops.kernels.scatter_rows import set_rows

__all__ = ["dynamic_partition", "dynamic_stitch", "parallel_dynamic_stitch"]


@frozen
class DynamicPartition(Op, grad_reads=("partitions",)):
    """The slices of x dealt out to `num_partitions` outputs, in order, as the partitions say.

    Shapes: x p + s, partitions p -> num_partitions times [?] + s
    Raises: InvalidArgumentError if a partition is not in [0, num_partitions).
    """

    num_partitions: int

    def infer(self, x: Spec, partitions: Spec) -> Any:
        if partitions.dtype is not int32:
            raise expected_dtype("int32 partitions", partitions.dtype)
        if self.num_partitions < 1:
            raise expected("one partition at least", self.num_partitions)
        check_outputs(self.num_partitions)
        tail: Dims = None
        if x.shape is not None and partitions.shape is not None:
            k = len(partitions.shape)
            tail = (None, *x.shape[k:])
            if not compatible(x.shape[:k], partitions.shape):
                raise expected(
                    f"a partition per slice of {text(x.shape)}",
                    f"partitions of shape {text(partitions.shape)}",
                )
        return tuple([Spec(x.dtype, tail)] * self.num_partitions)

    def grad(self, g: Any, y: Any, x: Tensor, partitions: Tensor) -> Any:
        places = reshape(range_of(size(partitions)), shape_of(partitions))
        dealt = dynamic_partition(places, partitions, self.num_partitions)
        parts = [zeros_of(t) if d is None else d for d, t in zip(g, y)]
        return reshape(dynamic_stitch(dealt, parts), shape_of(x)), None

    def kernel(self, xp: ArrayModule, x: Array, partitions: Array) -> Any:
        partitions = xp.asarray(partitions)
        k = partitions.ndim
        if np.shape(x)[:k] != partitions.shape:
            raise expected(
                f"a partition per slice of {text(np.shape(x))}",
                f"partitions of shape {text(partitions.shape)}",
            )
        low, high = bounds(partitions) if partitions.size else (0, -1)
        if low < 0 or high >= self.num_partitions:
            raise expected(f"partitions in [0, {self.num_partitions})", f"{low} to {high}")
        flat = xp.asarray(boxed(x)).reshape(partitions.size, *np.shape(x)[k:])
        chosen = partitions.reshape(-1)
        return tuple([flat[chosen == i] for i in range(self.num_partitions)])


@frozen
class DynamicStitch(Op, grad_reads=("inputs",)):
    """A tensor whose slices are those of the data, at the places that the indices say.

    Of slices for one place the last counts; places without any are zero.

    Shapes: n indices i, n data i + s -> [largest index + 1] + s
    """

    n: int

    def infer(self, *inputs: Spec) -> Spec:
        indices, data = inputs[: self.n], inputs[self.n :]
        tail: Dims = None
        for i, d in zip(indices, data, strict=True):
            if i.dtype is not int32 or d.dtype is not data[0].dtype:
                raise expected_dtype("int32 indices and data of one dtype", i, d)
            if i.shape is None or d.shape is None:
                continue
            k = len(i.shape)
            if not compatible(i.shape, d.shape[:k]):
                raise expected("a slice per index", f"{text(d.shape)} for {text(i.shape)}")
            tail = merge_dims(tail, d.shape[k:])
        known = [i.constant for i in indices]
        length = None if any(c is None for c in known) else _length(known)
        return Spec(data[0].dtype, None if tail is None else (length, *tail))

    def grad(self, g: Tensor, y: Tensor, *inputs: Tensor) -> Any:
        return (*[None] * self.n, *[gather(g, i) for i in inputs[: self.n]])

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Array:
        indices, data = inputs[: self.n], inputs[self.n :]
        tail = np.shape(data[0])[np.ndim(indices[0]) :]
        out = zeros(xp, (_length(indices), *tail), boxed(data[0]).dtype)
        for i, d in zip(indices, data, strict=True):
            if np.shape(d) != (*np.shape(i), *tail):
                raise expected(
                    f"a slice of shape {text(tail)} per index",
                    f"{text(np.shape(d))} for {text(np.shape(i))}",
                )
            if np.size(i) and (low := on_host(i.min())) < 0:
                raise expected("indices of 0 or more", low)
            set_rows(xp, out, i, d)
        return out


def _length(indices: Any) -> int:
    return max((int(on_host(i.max())) + 1 for i in indices if np.size(i)), default=0)


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Returns `num_partitions` tensors; `partitions` says to which one each slice of `data` goes.

    Args:
        data: A tensor.
        partitions: int32: for each slice the number of its tensor; its shape begins data's.
        num_partitions: How many tensors.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if a number is not in [0, num_partitions).
    """
    return list(
        apply_many(
            DynamicPartition(int(num_partitions)),
            convert_to_tensor(data),
            convert_to_tensor(partitions, int32),
            name=name,
        )
    )


def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Returns one tensor of the slices of all `data`, put where `indices` say.

    Args:
        indices: A list of int32 tensors; the last one wins where a place is named again.
        data: A list of tensors: a slice for each index.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the lists or shapes do not fit each other.
    """
    places = [convert_to_tensor(i, int32) for i in indices]
    slices = [convert_to_tensor(d) for d in data]
    if not places or len(places) != len(slices):
        raise expected("as many indices as data, one at least", len(places), len(slices))
    return apply(DynamicStitch(len(places)), *places, *slices, name=name)


parallel_dynamic_stitch = dynamic_stitch
