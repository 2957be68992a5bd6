"""Reductions along axes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import size_of
from flowscope.ops.core import builder
from flowscope.ops.core.axes import ReductionOp, as_axes, positive_axis, reduced
from flowscope.ops.core.broadcasting import broadcast_to
from flowscope.ops.core.build import unary
from flowscope.ops.core.casting import cast, conj, real, widened
from flowscope.ops.core.declare import named, op_function
from flowscope.ops.core.flow import stop_gradient
from flowscope.ops.kernels.sums import max_along, sum_along
from flowscope.ops.math import logical
from flowscope.ops.math.dynamic_axes import axes_last, dynamic_axes, reduce_axes
from flowscope.ops.math.elementwise import (
    _floordiv,
    add,
    equal,
    exp,
    is_finite,
    log,
    maximum,
    multiply,
    not_equal,
    realdiv,
    sqrt,
    square,
    subtract,
)
from flowscope.ops.math.scans import (
    cumprod,
)

__all__ = [
    "count_nonzero",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
]


def _spread(t: Tensor, x: Tensor) -> Tensor:
    """Returns `t` broadcast to the shape of x."""
    if t.spec.shape == x.spec.shape and x.spec.is_static:
        return t
    return broadcast_to(t, builder.shape(x))


@frozen
class Sum(ReductionOp, memory_order="K", accumulates=True):
    """The sum along axes; 0 for no elements. Integers keep their dtype and wrap around."""

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (_spread(self._kept(g), x),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return sum_along(xp, x, self._axes(x), self.keepdims, x.dtype)[()]


@frozen
class Mean(ReductionOp, accumulates=True):
    """The mean along axes: of integers cut off towards 0; of no elements NaN, or 0 for integers."""

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        wide = widened(self._kept(g))
        return (cast(realdiv(_spread(wide, x), _count(x, y, wide.dtype)), x.dtype),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        axes = self._axes(x)
        if x.dtype.kind in "iu":
            return _integer_mean(xp, x, axes, self.keepdims)
        total = sum_along(xp, x, axes, self.keepdims, x.dtype)
        n = x.size // total.size if total.size else 0
        return (total / total.dtype.type(n))[()]


def _integer_mean(xp: ArrayModule, x: Array, axes: Any, keepdims: bool) -> Array:
    """Returns means of integers, cut off towards 0: exact, also where the sum has no place."""
    wide = xp.int64 if x.dtype.kind == "i" else xp.uint64
    total = x.sum(axis=axes, dtype=wide, keepdims=keepdims)
    n = x.size // total.size if total.size else 0
    if not n:
        return total.astype(x.dtype)[()]
    whole, rest = 0, total
    if x.dtype.itemsize == 8:
        parts = xp.divmod(x, n)
        whole, rest = [p.sum(axis=axes, dtype=wide, keepdims=keepdims) for p in parts]
    whole, rest = whole + rest // n, rest % n
    return (whole + ((whole < 0) & (rest != 0))).astype(x.dtype)[()]


def _count(x: Tensor, y: Tensor, dtype: Any) -> Tensor:
    """Returns how many elements of x went into each of y."""
    n, m = size_of(x.spec.shape), size_of(y.spec.shape)
    if n is not None and m is not None:
        return convert_to_tensor(n / max(m, 1), dtype)
    return cast(_floordiv(builder.size(x), maximum(builder.size(y), 1)), dtype)


@frozen
class Prod(ReductionOp, grad_reads=("x",), accumulates=True):
    """The product along axes; 1 for no elements. Integers keep their dtype and wrap around."""

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (_prod_grad(self, g, x),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x.prod(axis=self._axes(x), dtype=x.dtype, keepdims=self.keepdims)[()]


def _prod_grad(op: Prod, g: Tensor, x: Tensor) -> Tensor:
    """Returns g times the product of all other elements: exact where elements are 0.

    The reduced axes are moved to the end and flattened to one; the product of the others is that of
    those before times that of those after.
    """
    whole = builder.shape(x)
    if op.axis is None:
        flat = builder.reshape(x, [-1])
        before = cumprod(flat, exclusive=True)
        others = builder.reshape(
            multiply(before, cumprod(flat, exclusive=True, reverse=True)), whole
        )
        return multiply(_spread(builder.reshape(g, []), x), conj(others))
    rank = x.spec.rank
    if op.axis == (-1,):
        before = cumprod(x, axis=-1, exclusive=True)
        others = multiply(before, cumprod(x, axis=-1, exclusive=True, reverse=True))
        return multiply(g if op.keepdims else builder.expand_axes(g, op.axis), conj(others))
    if not op.axis:
        return g
    kept: Any
    inverse: Any
    if rank is None:
        moved, kept, gone = axes_last(x, convert_to_tensor(list(op.axis)))
        inverse = builder.invert_permutation(builder.concat([kept, gone], 0))
    else:
        axes = [positive_axis(a, rank) for a in op.axis]
        kept = [i for i in range(rank) if i not in axes]
        moved = builder.transpose(x, kept + axes)
        inverse = [(kept + axes).index(i) for i in range(rank)]
    flat = builder.reshape(moved, builder.concat([builder.gather(whole, kept), [-1]], 0))
    before = cumprod(flat, axis=-1, exclusive=True)
    others = multiply(before, cumprod(flat, axis=-1, exclusive=True, reverse=True))
    back = builder.transpose(builder.reshape(others, builder.shape(moved)), inverse)
    return multiply(g if op.keepdims else builder.expand_axes(g, op.axis), conj(back))


@frozen
class _Extremum(ReductionOp, abstract=True, kinds="fiu", grad_reads=("y", "x")):
    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        """Ties share the cotangent, as in TensorFlow."""
        chosen = cast(equal(x, self._kept(y)), x.dtype)
        ties = reduce_sum(chosen, self.axis, keepdims=self.keepdims or self.axis is not None)
        return (multiply(realdiv(chosen, ties), self._kept(g)),)

    def _of_nothing(self, xp: ArrayModule, x: Array, value: Any) -> Array:
        """The reduction of an array without elements."""
        dims = reduced(x.shape, self.axis, self.keepdims) or ()
        return xp.full(dims, value, x.dtype)[()]


@frozen
class Max(_Extremum, keeps_finite=True):
    """The largest along axes, NaN if one is; of no elements the lowest number of the dtype."""

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if x.size:
            return max_along(xp, x, self._axes(x), self.keepdims)[()]
        return self._of_nothing(xp, x, _lowest(x.dtype))


@frozen
class Min(_Extremum, keeps_finite=True):
    """The smallest along axes, NaN if one is; of no elements the highest number of the dtype."""

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        if x.size:
            return max_along(xp, x, self._axes(x), self.keepdims, "min")[()]
        highest = -_lowest(x.dtype) if x.dtype.kind not in "iu" else np.iinfo(x.dtype).max
        return self._of_nothing(xp, x, highest)


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


_ARGUMENTS = """

    Args:
        input_tensor: The tensor to reduce.
        axis: An axis or a list of them, negative ones from the end; all if None.
        keepdims: Whether the reduced axes stay, of length 1.
        name: Name of the operation.
        reduction_indices: Old name of `axis`.
        keep_dims: Old name of `keepdims`.
    """


class ReductionFunction(Protocol):
    """An op function that reduces a tensor along axes."""

    def __call__(
        self,
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        """Adds the operation and returns its output."""


def _reduction(op: type[ReductionOp], function: str, what: str) -> ReductionFunction:
    """Returns the op function of a reduction."""

    def call(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        if axis is None:
            axis = reduction_indices
        elif reduction_indices is not None:
            raise expected("axis or its old name reduction_indices", "both")
        if keepdims is None:
            keepdims = keep_dims
        elif keep_dims is not None:
            raise expected("keepdims or its old name keep_dims", "both")
        dynamic = dynamic_axes(axis)
        if dynamic is None:
            return unary(op(as_axes(axis), bool(keepdims)), input_tensor, name)
        one = lambda m, a: unary(op((a,)), m)  # noqa: E731
        return reduce_axes(input_tensor, dynamic, one, bool(keepdims), name or op.__name__)

    return named(call, function, f"Returns {what}.{_ARGUMENTS}")


reduce_sum = _reduction(Sum, "reduce_sum", "the sum along axes")
reduce_mean = _reduction(Mean, "reduce_mean", "the mean along axes")
reduce_prod = _reduction(Prod, "reduce_prod", "the product along axes")
reduce_max = _reduction(
    Max,
    "reduce_max",
    "the largest along axes, NaN if one is; of no elements the dtype's lowest number",
)
reduce_min = _reduction(
    Min,
    "reduce_min",
    "the smallest along axes, NaN if one is; of no elements the dtype's highest number",
)
reduce_all = _reduction(logical.All, "reduce_all", "whether all along axes are true")
reduce_any = _reduction(logical.Any, "reduce_any", "whether one along axes is true")


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Returns log(sum(exp(x))) along axes, without overflow.

    Example:
        >>> fs.Session().run(fs.reduce_logsumexp([1000.0, 1000.0])).round(3)
        np.float32(1000.693)
    """
    x = convert_to_tensor(input_tensor)
    axis = reduction_indices if axis is None else axis
    dynamic = dynamic_axes(axis)
    if dynamic is not None:
        keep = bool(keepdims or keep_dims)
        return reduce_axes(
            x, dynamic, lambda m, a: reduce_logsumexp(m, a), keep, name or "logsumexp"
        )
    axes = as_axes(axis)
    with x.graph.name_scope(name or "ReduceLogSumExp"):
        dtype, x = x.dtype, widened(x)
        top = reduce_max(x, axes, keepdims=True)
        top = stop_gradient(builder.where(is_finite(top), top, builder.zeros_like(top)))
        result = add(log(reduce_sum(exp(subtract(x, top)), axes, keepdims=True)), top)
        result = cast(result, dtype)
        if keepdims or keep_dims:
            return result
        return reduce_sum(result) if axes is None else builder.squeeze_axes(result, axes)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Returns the variance along axes: the mean squared distance from the mean, real numbers."""
    x = convert_to_tensor(input_tensor)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise expected_dtype("floating-point or complex numbers", f"input_tensor {x}")
    with x.graph.name_scope(name or "reduce_variance"):
        dtype, x = x.dtype.real_dtype, widened(x)
        centred = subtract(x, reduce_mean(x, axis, keepdims=True))
        is_complex = x.dtype.is_complex
        squares = real(multiply(centred, conj(centred))) if is_complex else square(centred)
        return cast(reduce_mean(squares, axis, keepdims=keepdims), dtype)


@op_function("input_tensor", scope="reduce_std")
def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Returns the standard deviation along axes: the root of the variance."""
    root = sqrt(reduce_variance(widened(input_tensor), axis, keepdims))
    return cast(root, input_tensor.dtype.real_dtype)


@op_function("input_tensor", scope="EuclideanNorm")
def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Returns the root of the sum of squares along axes; that of integers is cut off."""
    wide = widened(input_tensor)
    total = reduce_sum(real(multiply(wide, conj(wide))), axis, keepdims)
    root = sqrt(cast(total, dtypes.float64) if input_tensor.dtype.is_integer else total)
    return cast(root, input_tensor.dtype)


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """Returns how many elements along axes are not 0 (strings: not empty)."""
    x = convert_to_tensor(input if input_tensor is None else input_tensor)
    zero: Any = {"s": b"", "b": False}.get(x.dtype.kind, 0)
    with x.graph.name_scope(name or "count_nonzero"):
        found = cast(not_equal(x, zero), dtype)
        return reduce_sum(found, axis, keepdims, None, reduction_indices, keep_dims)
