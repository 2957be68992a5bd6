"""Integers bit by bit."""

from __future__ import annotations

from typing import Any

from flowscope.graph.op import Array, ArrayModule
from flowscope.ops.core.table import BinaryFunction, UnaryFunction, binary_op, unary_op

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]


def _places(xp: ArrayModule, b: Array) -> Array:
    """Returns by how much to shift, in [0, bits - 1]: beyond, C's shifts are undefined."""
    return xp.minimum(xp.maximum(b, 0), 8 * b.dtype.itemsize - 1)


def _left(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    return xp.left_shift(a, _places(xp, b))


def _right(self: Any, xp: ArrayModule, a: Array, b: Array) -> Array:
    return xp.right_shift(a, _places(xp, b))


# fmt: off
bitwise_and: BinaryFunction = binary_op(
    "bitwise_and", "BitwiseAnd", "The bits that x and y both have.", "{0} & {1}", "iu", folds=True)
bitwise_or: BinaryFunction = binary_op(
    "bitwise_or", "BitwiseOr", "The bits that x or y have.", "{0} | {1}", "iu", folds=True)
bitwise_xor: BinaryFunction = binary_op(
    "bitwise_xor", "BitwiseXor", "The bits in which x and y differ.", "{0} ^ {1}", "iu", folds=True)
invert: UnaryFunction = unary_op(
    "invert", "Invert", "The bits that x lacks.", "~{0}", "iu", folds=True)
left_shift: BinaryFunction = binary_op(
    "left_shift", "LeftShift", "x's bits moved up by y places, at most one less than there are.",
    "", "iu", kernel=_left, native="shift_left")
right_shift: BinaryFunction = binary_op(
    "right_shift", "RightShift",
    "x's bits moved down by y places, at most one less than there are; "
    "a sign stays.", "", "iu", kernel=_right, native="shift_right")
# fmt: on
