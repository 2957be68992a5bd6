"""Numbers rounded to those of a range, with gradients inside of it: training for quantised use."""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.selection import where
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.broadcasting import sum_to
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.quantized.quantization import _floats, _rounded

__all__ = [
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
]


def _nudged(xp: ArrayModule, low: Array, high: Array, bits: int, narrow: bool) -> Any:
    """Returns a range moved so that 0 is one of its steps, and the size of a step."""
    least, most = int(narrow), 2**bits - 1
    is_empty = (low == 0) & (high == 0)
    scale = xp.where(is_empty, xp.float32(1), (high - low) / xp.float32(most - least))
    zero = xp.clip(_rounded(xp, xp.float32(least) - low / scale), least, most)
    first, last = (xp.float32(least) - zero) * scale, (xp.float32(most) - zero) * scale
    return is_empty, first, last, scale


@frozen
class _FakeQuantized(Op, abstract=True):
    """Base: x, and the ends of its range, for all or for each index of the last axis."""

    num_bits: int = 8
    narrow_range: bool = False

    def _check(self, x: Spec, low: Spec, high: Spec) -> None:
        for s in (x, low, high):
            if s.dtype is not dtypes.float32:
                raise expected_dtype("float32", s.dtype)
        for s in (low, high):
            if s.rank not in (None, 0, 1):
                raise expected("ends of rank 0 or 1", s.shape)
            if s.rank == 1 and x.shape is not None and not compatible(s.shape, x.shape[-1:]):
                raise expected(f"one end per index of the last axis of {text(x.shape)}", s.shape)


class FakeQuantWithMinMaxVars(_FakeQuantized, grad_reads=("x", "low", "high")):
    """x cut to a range, and rounded to the numbers that integers of some bits can stand for.

    Shapes: x [..., n], min and max [] or [n] -> [..., n]
    """

    def infer(self, x: Spec, low: Spec, high: Spec) -> Spec:
        self._check(x, low, high)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor, low: Tensor, high: Tensor) -> Any:
        return _fake_grads(g, x, low, high, self.num_bits, self.narrow_range)

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Array:
        is_empty, first, last, scale = _nudged(xp, low, high, self.num_bits, self.narrow_range)
        inside = xp.minimum(xp.maximum(x, first), last) - first
        found = xp.floor(inside * (1 / scale) + xp.float32(0.5)) * scale + first
        return xp.where(is_empty, xp.float32(0), found)[()]


class FakeQuantOutside(_FakeQuantized, is_differentiable=False):
    """Where x lies below the range of FakeQuantWithMinMaxVars, and where above."""

    def infer(self, x: Spec, low: Spec, high: Spec) -> Any:
        self._check(x, low, high)
        return x.like(dtypes.bool_), x.like(dtypes.bool_)

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Any:
        is_empty, first, last, _ = _nudged(xp, low, high, self.num_bits, self.narrow_range)
        return (x < first) & ~is_empty, (x > last) & ~is_empty


def _fake_grads(
    g: Tensor, x: Tensor, low: Tensor, high: Tensor, bits: int, narrow: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the cotangents of x and of the ends: an element outside the range moves its end."""
    below, above = apply_many(FakeQuantOutside(bits, narrow), x, low, high)
    zero = zeros_like(g)
    to_x = where(below, zero, where(above, zero, g))
    to_low = sum_to(where(below, g, zero), shape_of(low))
    return to_x, to_low, sum_to(where(above, g, zero), shape_of(high))


def _check_bits(num_bits: int) -> int:
    if not 2 <= num_bits <= 16:
        raise expected("num_bits in [2, 16]", num_bits)
    return int(num_bits)


def fake_quant_with_min_max_vars(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns numbers rounded as if they were kept in integers of `num_bits` bits.

    Gradients pass where a number is inside the range; elsewhere they reach the range's end.

    Args:
        inputs: float32 numbers.
        min: Lower end of the range, a scalar; the range is moved so that 0 is exact.
        max: Upper end.
        num_bits: From 2 to 16.
        narrow_range: Whether the lowest integer is not used.
        name: Name of the operation.
    """
    op = FakeQuantWithMinMaxVars(_check_bits(num_bits), bool(narrow_range))
    return apply(op, *_floats(inputs, min, max), name=name)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the same with a range for each index of the last axis: the ends are vectors."""
    name = name or "FakeQuantWithMinMaxVarsPerChannel"
    return fake_quant_with_min_max_vars(inputs, min, max, num_bits, narrow_range, name)


def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the same as `fake_quant_with_min_max_vars` for a range of two numbers."""
    name = name or "FakeQuantWithMinMaxArgs"
    return fake_quant_with_min_max_vars(
        inputs, float(min), float(max), num_bits, narrow_range, name
    )


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient for the inputs of `fake_quant_with_min_max_args`."""
    return fake_quant_with_min_max_vars_gradient(
        gradients, inputs, float(min), float(max), num_bits, narrow_range, name
    )[0]


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients for inputs, min and max of `fake_quant_with_min_max_vars`."""
    g, x, low, high = _floats(gradients, inputs, min, max)
    with g.graph.name_scope(name or "FakeQuantWithMinMaxVarsGradient"):
        return _fake_grads(g, x, low, high, _check_bits(num_bits), bool(narrow_range))


fake_quant_with_min_max_vars_per_channel_gradient = fake_quant_with_min_max_vars_gradient
