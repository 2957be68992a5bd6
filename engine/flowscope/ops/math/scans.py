"""Positions of extremes, and cumulative sums and products, along an axis."""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected
from flowscope.ops.core import builder
from flowscope.ops.core.axes import one_axis, positive_axis, reduced
from flowscope.ops.core.build import apply, unary
from flowscope.ops.core.casting import conj
from flowscope.ops.core.shape_rules import check_kind, check_rank
from flowscope.ops.math.dynamic_axes import along, dynamic_axes, reduced_along
from flowscope.ops.math.elementwise import (
    add,
    equal,
    exp,
    greater,
    log,
    multiply,
    negative,
    realdiv,
    subtract,
)

__all__ = [
    "arg_max",
    "arg_min",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "cumulative_logsumexp",
]


@frozen
class ArgMax(Op, is_differentiable=False, calls=5):
    """The position of the largest along an axis, the first one at ties; NaN counts as largest."""

    axis: int = 0
    dtype: DType = dtypes.int64

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiub")
        if x.shape == ():
            raise expected("rank 1 at least", "[]")
        return Spec(self.dtype, reduced(x.shape, (self.axis,), False))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return _position(self, x, x.argmax)


@frozen
class ArgMin(Op, is_differentiable=False, calls=5):
    """The position of the smallest along an axis, the first one at ties; NaN counts as smallest."""

    axis: int = 0
    dtype: DType = dtypes.int64

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiub")
        if x.shape == ():
            raise expected("rank 1 at least", "[]")
        return Spec(self.dtype, reduced(x.shape, (self.axis,), False))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return _position(self, x, x.argmin)


def _position(op: ArgMax | ArgMin, x: Array, find: Any) -> Array:
    axis = positive_axis(op.axis, x.ndim)
    if x.shape[axis] == 0:
        raise expected(f"elements along axis {op.axis}", x.shape)
    return find(axis=axis).astype(op.dtype.np_dtype)[()]


@frozen
class _Cumulative(Op, abstract=True, accumulates=True):
    axis: int = 0
    exclusive: bool = False
    reverse: bool = False

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiuc")
        if x.shape is not None:
            positive_axis(self.axis, len(x.shape))
        return x.like()

    def _run(self, xp: ArrayModule, x: Array, accumulate: Any, neutral: float) -> Array:
        axis = positive_axis(self.axis, x.ndim)
        if self.reverse:
            x = xp.flip(x, axis)
        out = accumulate(x, axis=axis, dtype=x.dtype)
        if self.exclusive and x.shape[axis]:
            shifted = xp.empty_like(out)
            head = (slice(None),) * axis
            shifted[(*head, slice(0, 1))] = neutral
            shifted[(*head, slice(1, None))] = out[(*head, slice(0, -1))]
            out = shifted
        return xp.ascontiguousarray(xp.flip(out, axis)) if self.reverse else out


@frozen
class Cumsum(_Cumulative):
    """Sums of the elements so far along an axis.

    Attributes: `exclusive` leaves the element itself out; `reverse` starts at the end.
    """

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(Cumsum(self.axis, self.exclusive, not self.reverse), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return self._run(xp, x, xp.cumsum, 0)


@frozen
class Cumprod(_Cumulative, grad_reads=("y", "x")):
    """Products of the elements so far along an axis.

    Attributes: `exclusive` leaves the element itself out; `reverse` starts at the end. The gradient
    divides by the elements; it is 0, as TensorFlow's, where one is 0.
    """

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        total = apply(Cumsum(self.axis, self.exclusive, not self.reverse), multiply(conj(y), g))
        is_zero = equal(x, 0.0)
        safe = builder.where(is_zero, builder.ones_like(x), x)
        return (builder.where(is_zero, builder.zeros_like(x), realdiv(total, conj(safe))),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return self._run(xp, x, xp.cumprod, 1)


@frozen
class CumulativeLogsumexp(_Cumulative, grad_reads=("y", "x")):
    """log(sum(exp(x))) of the elements so far along an axis, without overflow.

    Attributes: `exclusive` leaves the element itself out; `reverse` starts at the end.
    """

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "f")
        return super().infer(x)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        """g exp(-y) is summed the other way round, by logarithms, once for each sign of g."""
        back = CumulativeLogsumexp(self.axis, self.exclusive, not self.reverse)
        none = add(builder.zeros_like(g), float(x.dtype.min))

        def part(signed: Tensor) -> Tensor:
            is_there = greater(signed, 0.0)
            safe = builder.where(is_there, signed, exp(builder.zeros_like(signed)))
            logs = builder.where(is_there, subtract(log(safe), y), none)
            return exp(add(apply(back, logs), x))

        return (subtract(part(g), part(negative(g))),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return self._run(xp, x, _logaddexp(xp), -xp.inf)


def _logaddexp(xp: ArrayModule) -> Any:
    def accumulate(x: Array, axis: int, dtype: Any) -> Array:
        try:
            return xp.logaddexp.accumulate(x, axis=axis, dtype=dtype)
        except (AttributeError, NotImplementedError):  # CuPy
            out = x.copy()
            lines = xp.moveaxis(out, axis, 0)
            for i in range(1, lines.shape[0]):
                lines[i] = xp.logaddexp(lines[i - 1], lines[i])
            return out

    return accumulate


def argmax(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """Returns the position of the largest along an axis, the first one at ties.

    Where there is NaN it is the position of the first NaN, for `argmin` as well.

    Args:
        input: A tensor of real numbers or bools.
        axis: The axis, 0 by default.
        name: Name of the operation.
        dimension: Old name of `axis`.
        output_type: int32 or int64.

    Example:
        >>> fs.Session().run(fs.argmax([[1, 5, 2], [7, 0, 3]], axis=1))
        array([1, 0])
    """
    return _place(ArgMax, input, dimension if axis is None else axis, output_type, name)


def argmin(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """Returns the position of the smallest along an axis, the first one at ties; see `argmax`.

    Example:
        >>> fs.Session().run(fs.argmin([[1, 5, 2], [7, 0, 3]], axis=1))
        array([0, 1])
    """
    return _place(ArgMin, input, dimension if axis is None else axis, output_type, name)


def _place(op: Any, x: Any, axis: Any, output_type: Any, name: str | None) -> Tensor:
    dtype, dynamic = as_dtype(output_type), dynamic_axes(axis)
    if dynamic is not None:
        return reduced_along(x, dynamic, lambda lines: apply(op(1, dtype), lines), op.__name__)
    return unary(op(0 if axis is None else one_axis(axis), dtype), x, name)


def arg_max(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Returns the position of the largest along an axis; see `argmax`."""
    return argmax(input, dimension, name, output_type=output_type)


def arg_min(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Returns the position of the smallest along an axis; see `argmin`."""
    return argmin(input, dimension, name, output_type=output_type)


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Returns sums of the elements so far along an axis.

    Args:
        x: A tensor of numbers.
        axis: The axis.
        exclusive: Whether to leave out the element itself.
        reverse: Whether to start at the end.
        name: Name of the operation.

    Example:
        >>> fs.Session().run([fs.cumsum([1, 2, 3]), fs.cumsum([1, 2, 3], exclusive=True)])
        [array([1, 3, 6], dtype=int32), array([0, 1, 3], dtype=int32)]
    """
    return _scan(Cumsum, x, axis, exclusive, reverse, name)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Returns products of the elements so far along an axis; arguments as for `cumsum`."""
    return _scan(Cumprod, x, axis, exclusive, reverse, name)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Returns log(sum(exp(x))) of the elements so far along an axis; arguments as for `cumsum`."""
    return _scan(CumulativeLogsumexp, x, axis, exclusive, reverse, name)


def _scan(op: Any, x: Any, axis: Any, exclusive: bool, reverse: bool, name: str | None) -> Tensor:
    dynamic = dynamic_axes(axis)
    if dynamic is not None:
        check_rank(dynamic.spec, 0, "one axis")
        return along(x, dynamic, lambda t: apply(op(1, exclusive, reverse), t), name or op.__name__)
    return unary(op(one_axis(axis), bool(exclusive), bool(reverse)), x, name)
