"""Lossy transfers: numbers that go to another device by 16 bits in place of 32.

What goes over is the upper half of a float32: its sign, exponent and 7 bits of its fraction, which
is a bfloat16. The lower half is dropped, not rounded, and comes back as zeros.
"""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import float32, uint16
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.core.build import unary

__all__ = ["lossy_transfer"]

#: The highest bit of a fraction: it keeps a NaN one whose other bits are all dropped.
_QUIET = 0x40


class LossyTransfer(Op, views=(0,), memory_order="R", template="{0}"):
    """The input as it is; other devices get the upper half of each number."""

    def infer(self, x: Spec) -> Spec:
        if x.dtype is not float32:
            raise expected_dtype("float32", x.dtype)
        return x.like()

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        return None  # it is what says how its output goes to other devices

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (g,)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


class UpperHalf(Op, is_differentiable=False):
    """The upper 16 bits of float32 numbers; a NaN stays one."""

    def infer(self, x: Spec) -> Spec:
        return x.like(uint16)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        half = (x.view(xp.uint32) >> xp.uint32(16)).astype(xp.uint16)
        return half | (x != x).astype(xp.uint16) * xp.uint16(_QUIET)


class FromUpperHalf(Op, is_differentiable=False):
    """The float32 numbers of which these are the upper 16 bits, the others being 0."""

    def infer(self, x: Spec) -> Spec:
        return x.like(float32)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return (x.astype(xp.uint32) << xp.uint32(16)).view(xp.float32)


def lossy_transfer(x: Any, name: str | None = None) -> Tensor:
    """Returns `x`; on its way to other devices it is cut to the upper 16 bits of each number.

    Half of the bytes go over, with 7 bits of each fraction: what arrives differs by less than 1 in
    128. Infinities and NaNs stay what they are. Who uses it on its own device gets it as it is, and
    gradients flow through as they are.

    Args:
        x: A float32 tensor.
        name: Name of the operation.

    Raises:
        DTypeError: if `x` has another dtype.
    """
    x = convert_to_tensor(x)
    with x.graph.colocate_with(x):
        return unary(LossyTransfer(), x, name)
