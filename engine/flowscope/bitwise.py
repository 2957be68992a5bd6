"""Integers bit by bit, under TensorFlow's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.math import bits as _bits
from flowscope.ops.math.bits import *

__all__ = [*_bits.__all__]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
