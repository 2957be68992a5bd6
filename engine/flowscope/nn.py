"""Neural-network functions, under TensorFlow 1's names."""

from flowscope.ops import embedding as _embedding, nn as _nn
from flowscope.ops.embedding import *
from flowscope.ops.nn import *

__all__ = []
__all__ += _embedding.__all__
__all__ += _nn.__all__
