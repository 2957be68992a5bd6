"""Layers: parts of a model that own their variables. Users enter by `fs.layers`.

In come tensors, out go tensors; variables are made at a layer's first call. Models call them.
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.layers.base import InputSpec as InputSpec, Layer as Layer
from flowscope.layers.convolutional import *
from flowscope.layers.core import *
from flowscope.layers.normalization import *
from flowscope.layers.pooling import *
from flowscope.layers.separable import *
from flowscope.layers.transposed import *

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
