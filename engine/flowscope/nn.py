"""Neural-network functions, under TensorFlow 1's names."""

from flowscope.ops import (
    convolution as _convolution,
    embedding as _embedding,
    nn as _nn,
    normalization as _normalization,
    pooling as _pooling,
    sparse_embedding as _sparse_embedding,
)
from flowscope.ops.convolution import *
from flowscope.ops.embedding import *
from flowscope.ops.moving import (
    batch_to_space as batch_to_space,
    depth_to_space as depth_to_space,
    space_to_batch as space_to_batch,
    space_to_depth as space_to_depth,
)
from flowscope.ops.nn import *
from flowscope.ops.normalization import *
from flowscope.ops.pooling import *
from flowscope.ops.sparse_embedding import *

__all__ = []
__all__ += _convolution.__all__
__all__ += _embedding.__all__
__all__ += _nn.__all__
__all__ += _normalization.__all__
__all__ += _pooling.__all__
__all__ += _sparse_embedding.__all__
