"""Joining tensors and parting them: concat, split, stack, unstack."""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph import constant as constants
from flowscope.graph.constant import (
    Convertible,
    convert_to_tensor,
    get_static_value,
    holds_tensor,
    to_array,
)
from flowscope.graph.op import FROM_1, Array, ArrayModule, Op, Spec, check_outputs, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, merge_dims
from flowscope.ops.array.shaping import known_values, shape_of, zeros_of
from flowscope.ops.core.axes import (
    length_at,
    one_axis,
    positive_axis,
    with_axis,
    with_new_axis,
)
from flowscope.ops.core.broadcasting import as_sizes
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_index_dtype, check_one_dtype, check_shape
from flowscope.ops.math.dynamic_axes import Lines, dynamic_axes

__all__ = [
    "concat",
    "parallel_stack",
    "split",
    "stack",
    "unstack",
]


@frozen
class Concat(Op, memory_order="K", keeps_finite=True):
    """Tensors one after the other along an axis.

    Shapes: n times [..., di, ...] -> [..., sum of di, ...]
    Raises: InvalidArgumentError if the other dimensions differ; DTypeError if the dtypes do.
    """

    axis: int = 0

    def infer(self, *xs: Spec) -> Spec:
        dims: Dims = None
        for x in xs:
            check_one_dtype(xs[0], x)
            dims = self._joined(dims, x.shape)
        lengths = [length_at(x, self.axis) for x in xs]
        total = None if None in lengths else sum(n for n in lengths if n is not None)
        spec = with_axis(Spec(xs[0].dtype, dims), self.axis, total)
        return known_values(self, spec, *xs) if spec.rank == 1 else spec

    def _joined(self, a: Dims, b: Dims) -> Dims:
        """The dimensions known from either shape, which must agree; None at the axis."""
        for s in (a, b):
            if s == ():
                raise expected("rank 1 at least to concatenate", "[]: use fs.stack")
        if a is None or b is None:
            return b if a is None else a
        if len(a) != len(b):
            raise expected("all of one rank", a, b)
        axis = positive_axis(self.axis, len(a))
        x, y = (*a[:axis], None, *a[axis + 1 :]), (*b[:axis], None, *b[axis + 1 :])
        if not compatible(x, y):
            raise expected(f"equal dimensions but at axis {axis}", a, b)
        return merge_dims(x, y)

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        if len(xs) == 1:
            return (g,)
        lengths = [None if x.spec.shape is None else x.spec.shape[self.axis] for x in xs]
        if None not in lengths:
            return apply_many(Split(tuple(n for n in lengths if n is not None), self.axis), g)
        return apply_many(ConcatGrad(self.axis), g, *[shape_of(x) for x in xs])

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        try:
            return xp.concatenate(xs, axis=self.axis)
        except ValueError:
            dims: Dims = None
            for x in xs:
                dims = self._joined(dims, x.shape)
            raise


@frozen
class ConcatGrad(Op, views=(0,), host_inputs=FROM_1):
    """The cotangents of concatenated tensors, from that of the whole and their shapes.

    Shapes: g, then n shapes -> n tensors of those shapes
    """

    axis: int

    def infer(self, g: Spec, *shapes: Spec) -> Any:
        return tuple([Spec(g.dtype, s.shape_value()) for s in shapes])

    def grad(self, g: Any, y: Any, x: Tensor, *shapes: Tensor) -> Any:
        return (concat(_whole(g, y), self.axis), *[None] * len(shapes))

    def kernel(self, xp: ArrayModule, g: Array, *shapes: Array) -> Any:
        axis = positive_axis(self.axis, g.ndim)
        places = _slices(axis, [as_sizes(s)[axis] for s in shapes])
        return _outputs([g[place] for place in places])


class _Splitting(Op, abstract=True, views=(0,), memory_order="R"):
    """Base of what cuts a tensor into parts along an axis; lengths may be further inputs."""

    axis: int

    def _lengths(self, n: int) -> list[int]:
        """Returns the lengths of the parts of an axis of length n."""
        raise NotImplementedError

    def grad(self, g: Any, y: Any, x: Tensor, *lengths: Tensor) -> Any:
        return (concat(_whole(g, y), self.axis), *[None] * len(lengths))

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        return _outputs([x[place] for place in _places(self, x.shape)])


@frozen
class Split(_Splitting, keeps_finite=True):
    """Parts of the given lengths along an axis; one length may be -1, which is worked out.

    Shapes: [..., n, ...] -> [..., sizes[i], ...] for each i
    """

    sizes: tuple[int, ...]
    axis: int = 0

    def infer(self, x: Spec) -> Any:
        if self.sizes.count(-1) > 1 or min(self.sizes, default=0) < -1:
            raise expected("lengths with at most one -1", list(self.sizes))
        n = length_at(x, self.axis)
        sizes = self.sizes if n is None else self._lengths(n)
        return tuple([with_axis(x, self.axis, None if d < 0 else d) for d in sizes])

    def _lengths(self, n: int) -> list[int]:
        known = sum(d for d in self.sizes if d >= 0)
        if known > n or (known != n and -1 not in self.sizes):
            raise expected(f"lengths that add up to {n} at axis {self.axis}", list(self.sizes))
        return [n - known if d < 0 else d for d in self.sizes]


@frozen
class SplitEven(_Splitting, keeps_finite=True):
    """`num` parts of equal length along an axis.

    Shapes: [..., n, ...] -> num times [..., n / num, ...]
    Raises: InvalidArgumentError if n is no multiple of num.
    """

    num: int
    axis: int = 0

    def infer(self, x: Spec) -> Any:
        if self.num < 1:
            raise expected("one part at least", self.num)
        check_outputs(self.num)
        n = length_at(x, self.axis)
        part = None if n is None else self._lengths(n)[0]
        return (with_axis(x, self.axis, part),) * self.num

    def _lengths(self, n: int) -> list[int]:
        if n % self.num:
            raise expected(f"a multiple of {self.num} at axis {self.axis}", n)
        return [n // self.num] * self.num


@frozen
class SplitBy(_Splitting, host_inputs=(1,)):
    """`num` parts along an axis, of the lengths given; one may be -1, which is worked out.

    Shapes: [..., n, ...], lengths [num] -> [..., lengths[i], ...] for each i
    """

    num: int
    axis: int = 0

    def infer(self, x: Spec, lengths: Spec) -> Any:
        check_index_dtype(lengths, "lengths")
        check_outputs(self.num)
        check_shape(lengths, (self.num,), f"{self.num} lengths")
        return (with_axis(x, self.axis, None),) * self.num

    def kernel(self, xp: ArrayModule, x: Array, lengths: Array) -> Any:  # type: ignore[override]
        return Split(tuple(lengths.tolist()), self.axis).kernel(xp, x)


@frozen
class Pack(Op, memory_order="K", keeps_finite=True):
    """Tensors of one shape, stacked along a new axis.

    Shapes: n times s -> s with n at the new axis
    """

    axis: int = 0

    def infer(self, *xs: Spec) -> Spec:
        dims = xs[0].shape
        for x in xs:
            check_one_dtype(xs[0], x)
            if not compatible(dims, x.shape):
                raise expected("all of one shape", dims, x.shape)
            dims = merge_dims(dims, x.shape)
        if dims is None:
            return Spec(xs[0].dtype, None)
        spec = with_new_axis(Spec(xs[0].dtype, dims), self.axis, len(xs))
        return known_values(self, spec, *xs)

    def grad(self, g: Tensor, y: Tensor, *xs: Tensor) -> Any:
        return apply_many(Unpack(len(xs), self.axis), g)

    def kernel(self, xp: ArrayModule, *xs: Array) -> Array:
        first = np.shape(xs[0])
        for x in xs:
            if np.shape(x) != first:
                raise expected("all of one shape", first, x.shape)
        if first == ():
            return xp.array(xs, getattr(xs[0], "dtype", object))
        return xp.stack(xs, axis=self.axis)


@frozen
class Unpack(Op, views=(0,), memory_order="R", keeps_finite=True):
    """The slices along an axis.

    Shapes: s with num at the axis -> num times s without it
    """

    num: int
    axis: int = 0

    def infer(self, x: Spec) -> Any:
        check_outputs(self.num)
        self._check(length_at(x, self.axis))
        values = x.shape_value() if x.shape == (self.num,) and x.dtype.kind == "i" else None
        if values is None:
            return (with_axis(x, self.axis),) * self.num
        fixed = [None] * self.num if x.constant is None else list(np.asarray(x.constant))
        return tuple([Spec(x.dtype, (), c, (d,)) for c, d in zip(fixed, values)])

    def _check(self, n: int | None) -> None:
        if n not in (None, self.num):
            raise expected(f"{self.num} slices at axis {self.axis}", n)

    def grad(self, g: Any, y: Any, x: Tensor) -> Any:
        return (stack(_whole(g, y), self.axis),)

    def kernel(self, xp: ArrayModule, x: Array) -> Any:
        axis = positive_axis(self.axis, x.ndim)
        self._check(x.shape[axis])
        head = (slice(None),) * axis
        return _outputs([x[(*head, i)] for i in range(self.num)])


@functools.lru_cache(maxsize=256)
def _places(op: Split | SplitEven, dims: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Returns where the parts lie in an array of a shape; `numpy.split` takes 18 us for four."""
    axis = positive_axis(op.axis, len(dims))
    return _slices(axis, op._lengths(dims[axis]))


def _slices(axis: int, lengths: list[int]) -> list[tuple[slice, ...]]:
    """Returns the indices of parts of some lengths along an axis."""
    head = (slice(None),) * axis
    ends = list(accumulate(lengths))
    return [(*head, slice(b - n, b)) for b, n in zip(ends, lengths, strict=True)]


def _outputs(parts: list[Array]) -> Any:
    """A kernel's result: a tuple of outputs, or the only one."""
    return tuple(parts) if len(parts) != 1 else parts[0]


def _whole(g: Any, y: Any) -> list[Tensor]:
    """Returns the cotangents of all outputs, zeros for those without influence."""
    gs, ys = (g, y) if isinstance(g, tuple) else ((g,), (y,))
    return [zeros_of(t) if d is None else d for d, t in zip(gs, ys, strict=True)]


def _same_dtype(values: Any, dtype: DType | None = None) -> list[Tensor]:
    """Returns values as tensors; Python values take the dtype of the first tensor among them."""
    values = list(values)
    if dtype is None:
        typed = next(
            (v.dtype for v in values if hasattr(v, "_as_tensor") or isinstance(v, Tensor)), None
        )
        dtype = dtypes.as_dtype(typed) if typed is not None else None
    out: list[Tensor] = []
    for v in values:
        is_tensor = isinstance(v, Tensor) or hasattr(v, "_as_tensor")
        out.append(
            convert_to_tensor(v, None if is_tensor else dtype or (out[0].dtype if out else None))
        )
    return out


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Returns tensors one after the other along an axis.

    Args:
        values: A list of tensors of one dtype and rank.
        axis: The axis.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.concat([[1, 2], [3]], 0))
        array([1, 2, 3], dtype=int32)
    """
    if isinstance(values, Tensor) or hasattr(values, "_as_tensor"):
        values = [values]
    if isinstance(values, int):
        raise expected_dtype(
            "a list of tensors", f"{values}: the axis comes second, concat(values, axis)"
        )
    tensors, dynamic = _same_dtype(values), dynamic_axes(axis)
    if not tensors:
        raise expected("one tensor at least", "none")
    if dynamic is not None:
        return _concat_dynamic(tensors, dynamic, name or "concat")
    return apply(Concat(one_axis(axis)), *tensors, name=name or "concat")


def _concat_dynamic(tensors: list[Tensor], axis: Tensor, name: str) -> Tensor:
    with axis.graph.name_scope(name):
        lines = [Lines(t, axis) for t in tensors]
        return lines[0].back(apply(Concat(1), *[line.tensor for line in lines]))


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Returns tensors of one shape, stacked along a new axis.

    Args:
        values: A list of tensors, or what can be made tensors.
        axis: Where the new axis stands in the result.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.stack([[1, 2], [3, 4]], axis=1))
        array([[1, 3],
               [2, 4]], dtype=int32)
    """
    if isinstance(values, Tensor):
        return values if axis == 0 else stack(unstack(values), axis, name)
    # Arrays keep their dtypes, as in TensorFlow; lists of numbers become float32 or int32.
    if not holds_tensor(values) and not any(isinstance(v, np.ndarray) for v in values):
        values = to_array(values, None)
    tensors = _same_dtype(list(values))
    if not tensors:
        raise expected("one tensor at least", "none")
    return apply(Pack(axis), *tensors, name=name or "stack")


def parallel_stack(values: Any, name: str | None = "parallel_stack") -> Tensor:
    """Returns tensors of one shape, stacked along a new first axis."""
    return stack(values, 0, name or "parallel_stack")


@op_function("value")
def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """Returns the slices of a tensor along an axis.

    Args:
        value: A tensor.
        num: How many; worked out if the shape is known.
        axis: The axis.

    Raises:
        InvalidArgumentError: if the number is neither given nor known.

    Example:
        >>> first, second = fs.unstack([[1, 2], [3, 4]])
        >>> fs.Session().run(second)
        array([3, 4], dtype=int32)
    """
    if num is None:
        dims = value.spec.shape
        num = None if dims is None else dims[positive_axis(axis, len(dims))]
        if num is None:
            raise InvalidArgumentError(
                f"expected `num`, for axis {axis} of {value.spec} is not known"
            )
    return list(apply_many(Unpack(num, axis), value, name=name or "unstack"))


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Returns parts of a tensor along an axis.

    Args:
        value: A tensor.
        num_or_size_splits: Number of equal parts, or a list of lengths (one may be -1).
        axis: The axis.
        num: How many parts, where the lengths are a tensor of unknown length.
        name: Name of the operation.

    Example:
        >>> left, right = fs.split(fs.range(6), [2, 4])
        >>> fs.Session().run([left, right])
        [array([0, 1], dtype=int32), array([2, 3, 4, 5], dtype=int32)]
    """
    x, dynamic = convert_to_tensor(value), dynamic_axes(axis)
    if dynamic is not None:
        with x.graph.name_scope(name or "split"):
            lines = Lines(x, dynamic)
            return [lines.back(p) for p in split(lines.tensor, num_or_size_splits, 1, num)]
    at, lengths = one_axis(axis), dynamic_axes(num_or_size_splits)
    if lengths is not None:
        return _split_by(x, lengths, at, num, name or "split")
    sizes = get_static_value(num_or_size_splits)
    if np.ndim(sizes) == 0:
        return list(apply_many(SplitEven(int(sizes), at), x, name=name or "split"))
    op = Split(tuple(int(n) for n in np.asarray(sizes)), at)
    return list(apply_many(op, x, name=name or "split"))


def _split_by(x: Tensor, lengths: Tensor, axis: int, num: int | None, name: str) -> list[Tensor]:
    n = lengths.spec.shape[0] if lengths.spec.shape else num
    n = num if n is None else n
    if lengths.spec.shape == () or n is None:
        raise expected(
            "a number of parts known while the graph is built", f"lengths {lengths.spec}"
        )
    return list(apply_many(SplitBy(n, axis), x, lengths, name=name))


def _packed(values: Any, dtype: Any, name: str | None) -> Tensor:
    """Packs a (nested) list that holds tensors; the dtype is the first tensor's.

    Where another one is asked for, numbers among the tensors are cast to it, as in TensorFlow.
    """
    first = _first_dtype(values)
    dtype = dtype or first
    casts = first is not None and dtype is not first and "s" not in (dtype.kind, first.kind)

    def part(v: Any) -> Tensor:
        if isinstance(v, list | tuple):
            return _packed(v, dtype, None)
        is_tensor = isinstance(v, Tensor | Convertible)
        return cast(v, dtype) if casts and is_tensor else convert_to_tensor(v, dtype)

    parts = [part(v) for v in values]
    return apply(Pack(0), *parts, name=name or "packed")


def _first_dtype(values: Any) -> Any:
    for v in values:
        found = _first_dtype(v) if isinstance(v, list | tuple) else getattr(v, "dtype", None)
        if found is not None:
            return found
    return None


constants.packer.append(_packed)
