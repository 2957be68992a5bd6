"""Numbers rounded to those that a few bits can stand for: what training for quantised use sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import bool_
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import text
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.selection import where
from flowscope.ops.core.axes import positive_axis
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_same

__all__ = ["quantize_and_dequantize", "quantize_and_dequantize_v2"]


@frozen
class _Rounding(Op, abstract=True, grad_reads=("x", "low", "high")):
    """What rounding and its gradient share.

    Attributes:
        signed: Whether the integers are signed.
        bits: How many bits they have.
        range_given: Whether the range is given, and not that of x.
        half_up: Whether halves are rounded up, and not to the even integer.
        narrow: Whether the smallest signed integer is left out.
        axis: The axis along which each slice has its own range, or None.
        passes: Whether the gradient passes everywhere, and not inside the range alone.
    """

    signed: bool = True
    bits: int = 8
    range_given: bool = False
    half_up: bool = False
    narrow: bool = False
    axis: int | None = None
    passes: bool = False

    def infer(self, x: Spec, low: Spec, high: Spec) -> Spec:
        check_kind(x.dtype, "f")
        wanted: Any = ()
        if self.axis is not None:
            if x.shape is not None:
                positive_axis(self.axis, len(x.shape))
            wanted = None if x.shape is None else (x.shape[self.axis],)
        for end in (low, high):
            check_same(x, end)
            if None not in (wanted, end.shape) and (
                len(end.shape or ()) != len(wanted)
                or any(a != b and None not in (a, b) for a, b in zip(end.shape or (), wanted))
            ):
                raise expected(f"ends of shape {text(wanted)}", end.shape)
        return x.like()

    def steps(self) -> tuple[int, int]:
        """Returns the lowest and the highest integer."""
        if not self.signed:
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)) + self.narrow, 2 ** (self.bits - 1) - 1

    def ends(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Returns the range, to be broadcast along x."""
        if self.axis is None:
            if not self.range_given:
                low, high = (x.min(), x.max()) if x.size else (x.dtype.type(0),) * 2
            return xp.asarray(low), xp.asarray(high)
        axis = positive_axis(self.axis, x.ndim)
        others = tuple(i for i in range(x.ndim) if i != axis)
        if not self.range_given:
            return x.min(others, keepdims=True), x.max(others, keepdims=True)
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        return low.reshape(shape), high.reshape(shape)

    def scales(self, xp: ArrayModule, low: Array, high: Array) -> tuple[Array, Array, Array, Array]:
        """Returns the scale, its inverse, and the range that the integers really cover."""
        least, most = self.steps()
        largest = xp.finfo(low.dtype).max
        with np.errstate(all="ignore"):
            from_low = xp.where(least * low > 0, least / low, largest)
            from_high = xp.where(most * high > 0, most / high, largest)
            is_low = from_low < from_high
            scale = xp.where(is_low, from_low, from_high).astype(low.dtype)
            lows = low / least if least else xp.zeros_like(low)
            inverse = xp.where(is_low, lows, high / most).astype(low.dtype)
        return scale, inverse, least * inverse, most * inverse


class QuantizeAndDequantize(_Rounding):
    """The nearest numbers that integers of a few bits stand for, 0 among them.

    Shapes: x s, low [] or [size of the axis], high the same -> s
    """

    def grad(self, g: Tensor, y: Tensor, x: Tensor, low: Tensor, high: Tensor) -> Any:
        if self.passes:
            return g, None, None
        inside = apply(QuantizeInside(**self.attributes()), x, low, high)
        return where(inside, g, zeros_like(g)), None, None

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Array:
        if x.dtype.kind == "V":  # NumPy knows too little of bfloat16
            wide = [a.astype(xp.float32) for a in (x, low, high)]
            return self.kernel(xp, *wide).astype(x.dtype)
        scale, inverse, first, last = self.scales(xp, *self.ends(xp, x, low, high))
        inside = xp.clip(x, first, last) if self.range_given else x
        whole = inside * scale
        whole = xp.floor(whole + x.dtype.type(0.5)) if self.half_up else xp.rint(whole)
        return (whole * inverse).astype(x.dtype)


class QuantizeInside(_Rounding, is_differentiable=False):
    """Whether numbers lie in the range that the integers cover.

    Shapes: x s, low [] or [size of the axis], high the same -> s
    """

    def infer(self, x: Spec, low: Spec, high: Spec) -> Spec:
        return super().infer(x, low, high).like(bool_)

    def kernel(self, xp: ArrayModule, x: Array, low: Array, high: Array) -> Array:
        if x.dtype.kind == "V":
            x, low, high = [a.astype(xp.float32) for a in (x, low, high)]
        ends = self.ends(xp, x, low, high)
        if not self.range_given:
            return (x >= ends[0]) & (x <= ends[1])
        *_, first, last = self.scales(xp, *ends)
        return (x >= first) & (x <= last)


def _rounded(
    input: Any, low: Any, high: Any, op: QuantizeAndDequantize, round_mode: str, name: str | None
) -> Tensor:
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise expected('round_mode "HALF_TO_EVEN" or "HALF_UP"', repr(round_mode))
    if not (1 if not op.signed else 2) <= op.bits <= 62:
        raise expected("num_bits from 2 to 62", op.bits)
    x = convert_to_tensor(input)
    ends = [convert_to_tensor(v, None if isinstance(v, Tensor) else x.dtype) for v in (low, high)]
    return apply(op, x, *ends, name=name)


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Returns the nearest numbers that integers of a few bits stand for, 0 among them.

    Args:
        input: A floating-point tensor.
        input_min: Lower end of the range; one number, or one per slice along `axis`.
        input_max: Upper end.
        signed_input: Whether the integers are signed.
        num_bits: How many bits they have.
        range_given: Whether the range is the one given, and not that of the input.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        name: Name of the operation.
        narrow_range: Whether the smallest signed integer is left out.
        axis: The axis along which each slice has a range of its own.

    Source: gradient: 1 inside the range, 0 outside.
    """
    half_up = round_mode == "HALF_UP"
    op = QuantizeAndDequantize(
        bool(signed_input), int(num_bits), bool(range_given), half_up, bool(narrow_range), axis
    )
    return _rounded(input, input_min, input_max, op, round_mode, name)


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """Returns `quantize_and_dequantize_v2`, with a gradient that passes everywhere."""
    half_up = round_mode == "HALF_UP"
    op = QuantizeAndDequantize(
        bool(signed_input),
        int(num_bits),
        bool(range_given),
        half_up,
        bool(narrow_range),
        axis,
        passes=True,
    )
    return _rounded(input, input_min, input_max, op, round_mode, name)
