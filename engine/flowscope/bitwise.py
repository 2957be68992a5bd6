"""Integers bit by bit, under TensorFlow's names."""

from flowscope.ops import bits as _bits
from flowscope.ops.bits import *

__all__ = [*_bits.__all__]
