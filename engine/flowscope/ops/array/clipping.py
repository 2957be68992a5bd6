"""Clipping: tensors, and lists of gradients, cut down to a value or a norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import broadcast, compatible, text
from flowscope.ops.array.arrays import ones_like, size
from flowscope.ops.array.joining import stack
from flowscope.ops.array.selection import where
from flowscope.ops.core import builder
from flowscope.ops.core.broadcasting import unbroadcast
from flowscope.ops.core.build import apply, on_values
from flowscope.ops.core.casting import cast, widened
from flowscope.ops.core.flow import identity
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.math.elementwise import (
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    maximum,
    minimum,
    multiply,
    realdiv,
    rsqrt,
    sqrt,
)
from flowscope.ops.math.reductions import reduce_sum

__all__ = [
    "clip_by_average_norm",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "global_norm",
]


class ClipByValue(
    Op, template="xp.minimum(xp.maximum({0}, {1}), {2})", grad_reads=("x", "low", "high")
):
    """The input cut to a range.

    Shapes: x s, low and high broadcast to s -> s
    """

    def infer(self, x: Spec, low: Spec, high: Spec) -> Spec:
        check_same(x, low)
        check_same(x, high)
        check_kind(x.dtype, "fiu")
        for s in (low, high):
            whole = broadcast(x.shape, s.shape)
            if not compatible(whole, x.shape):
                raise expected(f"limits that fit {text(x.shape)}", s.shape)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, low: Tensor, high: Tensor) -> Any:
        zero = builder.zeros_like(g)
        return (
            where(logical_and(greater_equal(x, low), less_equal(x, high)), g, zero),
            unbroadcast(where(less(x, low), g, zero), low, x),
            unbroadcast(where(greater(x, high), g, zero), high, x),
        )

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Array:
        return xp.minimum(xp.maximum(x, low), high)


_CLIP = ClipByValue()


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Returns `t` cut to [clip_value_min, clip_value_max]; of slices, their values are cut.

    NaN stays, and comes of a limit that is NaN.

    Args:
        t: A tensor of real numbers, or IndexedSlices.
        clip_value_min: Lowest value; it is broadcast to t's shape.
        clip_value_max: Highest value.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.clip_by_value([-2.0, 0.5, 3.0], 0.0, 1.0))
        array([0. , 0.5, 1. ], dtype=float32)
    """

    def clipped(values: Tensor) -> Tensor:
        low, high = (_like(v, values) for v in (clip_value_min, clip_value_max))
        return apply(_CLIP, values, low, high, name=name or "clip_by_value")

    return _on_values(t, clipped)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Returns `t` scaled down so that its Euclidean norm is at most `clip_norm`.

    Args:
        t: A tensor of floats, or IndexedSlices, of which the values are scaled.
        clip_norm: Highest norm, a scalar; a negative one counts as 0.
        axes: Axes along which the norm is taken; all by default.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.clip_by_norm([3.0, 4.0], 1.0)).round(3)
        array([0.6, 0.8], dtype=float32)
    """

    def clipped(values: Tensor) -> Tensor:
        wide = widened(values)
        limit = _like(clip_norm, wide, 0)
        squares = reduce_sum(multiply(wide, wide), axes, keepdims=True)
        # The root's slope at 0 is infinite; there the norm is not used.
        some = squares > 0
        norm = where(some, sqrt(where(some, squares, ones_like(squares))), squares)
        return cast(realdiv(multiply(wide, limit), maximum(norm, limit)), values.dtype)

    return _on_values(t, clipped, name or "clip_by_norm")


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """Returns `t` scaled down so that its Euclidean norm per element is at most `clip_norm`.

    Args:
        t: A tensor of floats, or IndexedSlices, of which the values are scaled.
        clip_norm: Highest norm over the number of elements, a scalar > 0.
        name: Name of the operation.
    """

    def clipped(values: Tensor) -> Tensor:
        wide = widened(values)
        limit = widened(_like(clip_norm, values))
        count = cast(size(wide), wide.dtype)
        inverse = multiply(rsqrt(reduce_sum(multiply(wide, wide))), count)
        clipped = multiply(multiply(wide, limit), minimum(inverse, realdiv(1.0, limit)))
        return cast(clipped, values.dtype)

    return _on_values(t, clipped, name or "clip_by_average_norm")


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Returns the Euclidean norm of all elements of all tensors together, a scalar.

    Args:
        t_list: Tensors of one dtype, IndexedSlices (of which the values count), and None (which
            counts as nothing).
        name: Name of the operation.

    Raises:
        DTypeError: if `t_list` is not a list.
        InvalidArgumentError: if there is no tensor in it.
    """
    values = [_values(t) for t in _listed(t_list) if t is not None]
    if not values:
        raise expected("at least one tensor to take the norm of", "none")
    with values[0].graph.name_scope(name or "global_norm"):
        halves = [builder.l2_loss(widened(v)) for v in values]
        root = multiply(reduce_sum(stack(halves)), 2.0)
        if not values[0].dtype.is_half:
            return sqrt(root, name="global_norm")
        return cast(sqrt(root), values[0].dtype, name="global_norm")


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Returns tensors scaled down together so that their global norm is at most `clip_norm`, and
    that norm before.

    If the norm is infinite or no number, all elements become NaN.

    Args:
        t_list: Tensors, IndexedSlices, and None (which stays None).
        clip_norm: Highest norm, a scalar > 0.
        use_norm: The norm, if it is known; else it is computed, see `fs.global_norm`.
        name: Name scope of the operations.

    Raises:
        DTypeError: if `t_list` is not a list.

    Example:
        >>> clipped, norm = fs.clip_by_global_norm([fs.constant([3.0]), fs.constant([4.0])], 10.0)
        >>> fs.Session().run([*clipped, norm])
        [array([3.], dtype=float32), array([4.], dtype=float32), np.float32(5.0)]
    """
    tensors = _listed(t_list)
    norm = global_norm(tensors, name) if use_norm is None else convert_to_tensor(use_norm)
    with norm.graph.name_scope(name or "clip_by_global_norm") as scope:
        limit = _like(clip_norm, norm)
        scale = multiply(limit, minimum(realdiv(1.0, norm), realdiv(1.0, limit)))
        # 0 where the norm is finite, else NaN.
        scale = scale + (norm - norm)

        def scaled(i: int) -> Callable[[Tensor], Tensor]:
            return lambda v: identity(multiply(v, cast(scale, v.dtype)), f"{scope}_{i}")

        clipped = [None if t is None else _on_values(t, scaled(i)) for i, t in enumerate(tensors)]
    return clipped, norm


def _like(number: Any, values: Tensor, least: float | None = None) -> Tensor:
    """Returns a limit as a tensor of the values' dtype, cut off below at `least`."""
    if not isinstance(number, Tensor | Convertible):
        if least is not None and isinstance(number, int | float):
            number = max(number, least)
        return convert_to_tensor(number, values.dtype)
    limit = cast(convert_to_tensor(number), values.dtype) if least is not None else number
    limit = convert_to_tensor(limit)
    return limit if least is None else maximum(limit, least)


def _on_values(t: Any, function: Callable[[Tensor], Tensor], scope: str | None = None) -> Any:
    """Returns `function` of a tensor, or the same slices with their values replaced."""
    if scope is None:
        return on_values(t, function)
    with _values(t).graph.name_scope(scope):
        return on_values(t, function)


def _values(t: Any) -> Tensor:
    return t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t)


def _listed(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise expected_dtype("a list of tensors", repr(t_list))
    return list(t_list)
