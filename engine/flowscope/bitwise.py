"""Integers bit by bit, under TensorFlow's names."""

from flowscope.ops.math import bits as _bits
from flowscope.ops.math.bits import *

__all__ = [*_bits.__all__]
