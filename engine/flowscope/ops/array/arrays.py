"""Arrays from shapes and shapes from arrays: fill, zeros, ones, shape, size, rank, range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph import constant as constants
from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import (
    as_dims,
    compatible,
    is_known,
    merge_dims,
    size_of,
)
from flowscope.graph.values.string_values import boxed, zeros as empty_or_zeros
from flowscope.ops.array.joining import concat, stack
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.broadcasting import as_shape, as_sizes, broadcast_to, check_shape_vector
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.flow import identity
from flowscope.ops.core.shape_rules import check_kind, check_rank
from flowscope.ops.math.elementwise import (
    maximum,
    multiply,
    realdiv,
    subtract,
)
from flowscope.ops.math.reductions import reduce_prod, reduce_sum

__all__ = [
    "fill",
    "lin_space",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "range",
    "rank",
    "shape",
    "shape_n",
    "size",
    "zeros",
    "zeros_like",
]


@frozen
class Shape(
    Op, is_differentiable=False, needs_shape_only=True, host_outputs=(0,), keeps_finite=True
):
    """The shape of the input, which need not be kept for it.

    Shapes: [...] of rank n -> [n]
    """

    out_type: DType = dtypes.int32

    def infer(self, x: Spec) -> Spec:
        dims = x.shape
        if dims is None:
            return Spec(self.out_type, (None,))
        value = np.array(dims, self.out_type.np_dtype) if None not in dims else None
        return Spec(self.out_type, (len(dims),), value, dims)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return np.array(np.shape(x), self.out_type.np_dtype)


@frozen
class Size(Op, is_differentiable=False, needs_shape_only=True, host_outputs=(0,)):
    """The number of elements of the input."""

    out_type: DType = dtypes.int32

    def infer(self, x: Spec) -> Spec:
        n = size_of(x.shape)
        if n is None:
            return Spec(self.out_type, (), dims=(None,))
        return Spec(self.out_type, (), self.out_type.np_dtype.type(n), (n,))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return self.out_type.np_dtype.type(np.size(x))


class Rank(Op, is_differentiable=False, needs_shape_only=True, host_outputs=(0,)):
    """The rank of the input."""

    def infer(self, x: Spec) -> Spec:
        if x.shape is None:
            return Spec(dtypes.int32, ())
        return Spec(dtypes.int32, (), np.int32(len(x.shape)), (len(x.shape),))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return np.int32(np.ndim(x))


class Fill(Op, memory_order="C", host_inputs=(0,), fills_with=1, keeps_finite=True):
    """One value everywhere.

    Shapes: dims [n], value [] -> dims
    Raises: InvalidArgumentError if the value is no scalar or a dimension is negative.
    """

    def infer(self, dims: Spec, value: Spec) -> Spec:
        check_shape_vector(dims)
        check_rank(value, 0, "a scalar to fill with")
        if dims.constant is not None and (np.asarray(dims.constant) < 0).any():
            raise expected("no negative dimension", dims.constant.tolist())
        return Spec(value.dtype, dims.shape_value())

    def grad(self, g: Tensor, y: Tensor, dims: Tensor, value: Tensor) -> Any:
        return None, reduce_sum(g)

    def kernel(self, xp: ArrayModule, dims: Array, value: Array) -> Array:
        sizes = as_sizes(dims)
        if any(d < 0 for d in sizes):
            raise expected("no negative dimension", list(sizes))
        if not sizes:
            return value
        return xp.full(sizes, boxed(value), getattr(value, "dtype", object))


class ZerosLike(Op, is_differentiable=False, memory_order="C", keeps_finite=True, native="zero"):
    """Zeros of the input's dtype and shape."""

    def infer(self, x: Spec) -> Spec:
        check_fillable(x.dtype)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (None,)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        # Contiguous whatever the input's strides are.
        x = boxed(x)
        return empty_or_zeros(xp, x.shape, x.dtype)[()]


class OnesLike(Op, is_differentiable=False, keeps_finite=True, native="one"):
    """Ones of the input's dtype and shape."""

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiucb", "numbers or bools")
        return x.like()

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return xp.ones(x.shape, x.dtype)[()]


class Range(Op, is_differentiable=False, host_inputs=(0, 1, 2), keeps_finite=True):
    """start, start + delta, ... below (or, for a negative delta, above) limit.

    Shapes: [], [], [] -> [n]
    """

    def infer(self, start: Spec, limit: Spec, delta: Spec) -> Spec:
        for s in (start, limit, delta):
            if s.dtype is not start.dtype or s.dtype.kind not in "fiu":
                raise expected_dtype(
                    "three of one real dtype", start.dtype, limit.dtype, delta.dtype
                )
            check_rank(s, 0, "scalars")
        if start.constant is None or limit.constant is None or delta.constant is None:
            return Spec(start.dtype, (None,))
        size = _range_size(start.constant, limit.constant, delta.constant)
        small = size <= 16 and start.dtype.kind in "iu"
        # A long one is not made to learn its length.
        value = self.kernel(np, start.constant, limit.constant, delta.constant) if small else None
        return Spec(start.dtype, (size,), value)

    def kernel(self, xp: ArrayModule, start: Array, limit: Array, delta: Array) -> Array:
        if delta == 0:
            raise expected("a delta that is not 0", "0")
        if start.dtype.kind == "f":
            return xp.arange(start, limit, delta, dtype=start.dtype)
        # Python's integers: differences of unsigned and of small ones wrap around.
        return xp.arange(int(start), int(limit), int(delta), dtype=start.dtype)


def _range_size(start: Any, limit: Any, delta: Any) -> int:
    """Returns the length of a `Range` of these NumPy scalars; raises InvalidArgumentError."""
    if delta == 0:
        raise expected("a delta that is not 0", "0")
    if start.dtype.kind != "f":
        return max(0, -((int(start) - int(limit)) // int(delta)))
    with np.errstate(all="ignore"):
        steps = float((limit - start) / delta)
    if not math.isfinite(steps):
        raise InvalidArgumentError(
            f"expected a finite number of steps from {start} to {limit} by {delta}"
        )
    return max(0, math.ceil(steps))


@frozen
class LinSpace(Op, grad_reads=("num",), host_inputs=(2,)):
    """Numbers at equal distances from start to stop, both included, along a new axis.

    Shapes: start s, stop s, num [] -> s with num at the axis
    """

    axis: int = 0

    def infer(self, start: Spec, stop: Spec, num: Spec) -> Spec:
        if start.dtype is not stop.dtype or start.dtype.kind != "f":
            raise expected_dtype("two of one floating-point dtype", start.dtype, stop.dtype)
        if num.dtype.kind not in "iu" or num.shape not in (None, ()):
            raise expected_dtype("an integer scalar as num", num)
        if not compatible(start.shape, stop.shape):
            raise expected("both of one shape", start.shape, stop.shape)
        n = None if num.constant is None else int(num.constant)
        if n is not None and n < 1:
            raise expected("at least one number", n)
        dims = merge_dims(start.shape, stop.shape)
        if dims is None:
            return Spec(start.dtype, None)
        axis = positive_axis(self.axis, len(dims) + 1)
        return Spec(start.dtype, (*dims[:axis], n, *dims[axis:]))

    def grad(self, g: Tensor, y: Tensor, start: Tensor, stop: Tensor, num: Tensor) -> Any:
        """Each number is start * (1 - part) + stop * part."""
        steps = cast(maximum(subtract(num, 1), 1), g.dtype)
        part = realdiv(cast(range(cast(num, dtypes.int32)), g.dtype), steps)
        if self.axis >= 0:
            behind = fill(reshape(subtract(rank(g), self.axis + 1), [1]), 1)
            part = reshape(part, concat([[-1], behind], 0))
        else:
            part = reshape(part, [-1] + [1] * (-self.axis - 1))
        later = reduce_sum(multiply(g, part), self.axis)
        return subtract(reduce_sum(g, self.axis), later), later, None

    def kernel(self, xp: ArrayModule, start: Array, stop: Array, num: Array) -> Array:
        if start.shape != stop.shape:
            raise expected("both of one shape", start.shape, stop.shape)
        n = int(num)
        if n < 1:
            raise expected("at least one number", n)
        return xp.linspace(start, stop, n, dtype=start.dtype, axis=self.axis)


_SHAPES = {t: Shape(t) for t in (dtypes.int32, dtypes.int64)}
_SIZES = {t: Size(t) for t in (dtypes.int32, dtypes.int64)}
_RANK, _FILL, _ZEROS_LIKE, _ONES_LIKE, _RANGE = Rank(), Fill(), ZerosLike(), OnesLike(), Range()


def check_fillable(dtype: DType) -> None:
    """Raises DTypeError for handles, which have no zero."""
    if dtype.kind in "rv":
        raise expected_dtype("numbers, bools or strings", dtype)


def _index_type(out_type: Any) -> DType:
    dtype = as_dtype(out_type)
    if dtype not in _SHAPES:
        raise expected_dtype("int32 or int64 for out_type", dtype)
    return dtype


def shape(
    input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True
) -> Tensor:
    """Returns the shape of `input` as a vector: a constant if it is known.

    Args:
        input: A tensor.
        name: Name of the operation.
        out_type: int32 or int64.
        optimize: Whether a known shape becomes a constant.

    Example:
        >>> x = fs.placeholder(fs.float32, [None, 3])
        >>> x.shape.as_list(), fs.Session().run(fs.shape(x), {x: np.zeros([2, 3])})
        ([None, 3], array([2, 3], dtype=int32))
    """
    dtype = _index_type(out_type)
    if hasattr(input, "with_values"):
        return _dense_shape(input, dtype, name)
    x = convert_to_tensor(input)
    if optimize and x.spec.is_static:
        return constant(np.array(x.spec.shape, dtype.np_dtype), dtype, name=name or "Shape")
    return apply(_SHAPES[dtype], x, name=name)


def _dense_shape(input: Any, dtype: DType, name: str | None = None) -> Tensor:
    """Returns the shape of a SparseTensor."""
    return identity(cast(input.dense_shape, dtype), name or "Shape")


def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """Returns the shapes of several tensors."""
    return [shape(x, name, out_type) for x in input]


def size(
    input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True
) -> Tensor:
    """Returns the number of elements of `input`: a constant if it is known.

    Example:
        >>> fs.Session().run(fs.size([[1, 2, 3], [4, 5, 6]]))
        np.int32(6)
    """
    dtype = _index_type(out_type)
    if hasattr(input, "with_values"):
        return reduce_prod(_dense_shape(input, dtype), name=name or "Size")
    x = convert_to_tensor(input)
    if optimize and x.spec.is_static:
        return constant(dtype.np_dtype.type(size_of(x.spec.shape)), dtype, name=name or "Size")
    return apply(_SIZES[dtype], x, name=name)


def rank(input: Any, name: str | None = None) -> Tensor:
    """Returns the rank of `input`: a constant if it is known.

    Example:
        >>> fs.Session().run(fs.rank([[1, 2, 3], [4, 5, 6]]))
        np.int32(2)
    """
    if hasattr(input, "with_values"):
        return size(input.dense_shape, name or "Rank")
    x = convert_to_tensor(input)
    if x.spec.rank is not None:
        return constant(np.int32(x.spec.rank), name=name or "Rank")
    return apply(_RANK, x, name=name)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """Returns a tensor of shape `dims` with `value` everywhere.

    Example:
        >>> fs.Session().run(fs.fill([2, 2], 7))
        array([[7, 7],
               [7, 7]], dtype=int32)
    """
    shape = as_shape(dims, name or "Fill", "dims")
    return apply(_FILL, shape, convert_to_tensor(value, None, "Fill/value"), name=name)


def _full(shape: Any, value: int, dtype: Any, name: str) -> Tensor:
    dtype = as_dtype(dtype)
    check_fillable(dtype)
    number: Any = {"s": b"", "b": bool(value)}.get(dtype.kind, value)
    if not isinstance(shape, Tensor) and not _holds_tensors(shape):
        dims = as_dims(shape)
        if not is_known(dims):
            raise expected("a fully known shape", dims)
        size = size_of(dims) or 0
        if size <= 1000:
            return constant(number, dtype, dims, name) if size else _empty(dims, dtype, name)
        shape = list(dims or ())
    return fill(shape, constant(number, dtype, name=f"{name}/Const"), name)


def _empty(dims: Any, dtype: DType, name: str) -> Tensor:
    return constant(np.zeros(dims, dtype.np_dtype), dtype, name=name)


def _holds_tensors(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and any(isinstance(d, Tensor) for d in shape)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Returns zeros (empty strings, False).

    Args:
        shape: A shape, or an integer vector.
        dtype: Element type.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.zeros([2]))
        array([0., 0.], dtype=float32)
    """
    return _full(shape, 0, dtype, name or "zeros")


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Returns ones (True); the arguments are those of `zeros`.

    Example:
        >>> fs.Session().run(fs.ones([2], fs.int32))
        array([1, 1], dtype=int32)
    """
    if as_dtype(dtype).kind == "s":
        raise expected_dtype("numbers or bools for ones", "string: see fs.fill")
    return _full(shape, 1, dtype, name or "ones")


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Returns zeros of the tensor's shape.

    Args:
        tensor: A tensor.
        dtype: Element type; the tensor's own by default.
        name: Name of the operation.
        optimize: Whether zeros of a known shape need not wait for the tensor.

    Example:
        >>> fs.Session().run(fs.zeros_like([1, 2]))
        array([0, 0], dtype=int32)
    """
    return _like(tensor, dtype, name or "zeros_like", optimize, zeros, _ZEROS_LIKE)


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Returns ones of the tensor's shape; the arguments are those of `zeros_like`."""
    return _like(tensor, dtype, name or "ones_like", optimize, ones, _ONES_LIKE)


def _like(tensor: Any, dtype: Any, name: str, optimize: bool, known: Any, like: Op) -> Tensor:
    if hasattr(tensor, "with_values"):
        want = tensor.dtype if dtype is None else as_dtype(dtype)
        return known(shape(tensor), want, name)  # type: ignore[no-any-return]
    x = convert_to_tensor(tensor)
    want = x.dtype if dtype is None else as_dtype(dtype)
    if optimize and x.spec.is_static:
        return known(x.spec.shape, want, name)  # type: ignore[no-any-return]
    if want is not x.dtype:
        return known(shape(x), want, name)  # type: ignore[no-any-return]
    return apply(like, x, name=name)


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range"
) -> Tensor:
    """Returns start, start + delta, ... as long as it is below limit; `range(n)` starts at 0.

    Args:
        start: First number; the limit if there is no other.
        limit: Where to stop; it is left out.
        delta: Step; a negative one counts down.
        dtype: Element type; by default that of the arguments, the widest of them.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.range(2, 10, 3))
        array([2, 5, 8], dtype=int32)
    """
    if limit is None:
        start, limit = 0, start
    given = [start, limit, delta]
    if dtype is None:
        tensors = [
            convert_to_tensor(v) for v in given if isinstance(v, Tensor) or hasattr(v, "dtype")
        ]
        found = [t.dtype for t in tensors] or [dtypes.int32]
        if any(isinstance(v, float) for v in given):
            found.append(dtypes.float32)
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        dtype = max(found, key=lambda d: order.index(d) if d in order else -1)
    dtype = as_dtype(dtype)
    a, b, c = [
        cast(v, dtype) if isinstance(v, Tensor) else convert_to_tensor(v, dtype) for v in given
    ]
    return apply(_RANGE, a, b, c, name=name)


@op_function("start stop~start num:int32")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """Returns numbers at equal distances from start to stop, both included.

    Args:
        start: First number, or a tensor of them.
        stop: Last number, of the same dtype and shape.
        num: How many, an integer.
        axis: Where the new axis stands in the result.

    Example:
        >>> fs.Session().run(fs.linspace(0.0, 1.0, 5))
        array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return apply(LinSpace(axis), start, stop, num, name=name)


lin_space = linspace


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Returns the coordinates of a grid: tensors of one shape, one per vector given.

    Args:
        *args: Vectors.
        **kwargs: `indexing`, "xy" (the default: the first vector runs along the second axis) or
            "ij"; `name`.
    """
    indexing, name = kwargs.pop("indexing", "xy"), kwargs.pop("name", "meshgrid")
    if kwargs:
        raise expected("indexing and name only", ", ".join(kwargs))
    if indexing not in ("xy", "ij"):
        raise expected('indexing "xy" or "ij"', repr(indexing))
    vectors = [convert_to_tensor(a) for a in args]
    if not vectors:
        return []
    axes = [i for i, _ in enumerate(vectors)]  # `range` is the op function here
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    with vectors[0].graph.name_scope(name):
        lengths: list[Any] = [None] * len(axes)
        for a, v in zip(axes, vectors):
            lengths[a] = size(v)
        whole = stack(lengths)
        lines = [[-1 if i == a else 1 for i, _ in enumerate(axes)] for a in axes]
        return [broadcast_to(reshape(v, s), whole) for v, s in zip(vectors, lines)]


constants.filler.append(fill)
