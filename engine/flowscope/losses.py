"""Losses, under TensorFlow 1's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.objectives.losses import *

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
