"""Neural-network functions, under TensorFlow 1's names."""

import typing as _typing

from flowscope.ops import (
    candidate_sampling as _candidate_sampling,
    convolution as _convolution,
    ctc as _ctc,
    ctc_labels as _ctc_labels,
    dilating as _dilating,
    embedding as _embedding,
    learned_sampling as _learned_sampling,
    morphology as _morphology,
    nn as _nn,
    normalization as _normalization,
    pooling as _pooling,
    pooling_sequences as _pooling_sequences,
    quantized_images as _quantized_images,
    sampled_losses as _sampled_losses,
    sparse_embedding as _sparse_embedding,
)
from flowscope.ops.candidate_sampling import *
from flowscope.ops.convolution import *
from flowscope.ops.ctc import *
from flowscope.ops.ctc_labels import *
from flowscope.ops.dilating import *
from flowscope.ops.embedding import *
from flowscope.ops.learned_sampling import *
from flowscope.ops.morphology import *
from flowscope.ops.moving import (
    batch_to_space as batch_to_space,
    depth_to_space as depth_to_space,
    space_to_batch as space_to_batch,
    space_to_depth as space_to_depth,
)
from flowscope.ops.nn import *
from flowscope.ops.normalization import *
from flowscope.ops.pooling import *
from flowscope.ops.pooling_sequences import *
from flowscope.ops.quantized_images import *
from flowscope.ops.sampled_losses import *
from flowscope.ops.sparse_embedding import *
from flowscope.rnn import (
    dynamic as _dynamic,
    raw as _raw,
    rnn_cell as rnn_cell,
    static as _static,
)
from flowscope.rnn.dynamic import *
from flowscope.rnn.raw import *
from flowscope.rnn.static import *

__all__ = []
__all__ += _candidate_sampling.__all__
__all__ += _convolution.__all__
__all__ += _ctc.__all__
__all__ += _ctc_labels.__all__
__all__ += _dilating.__all__
__all__ += _embedding.__all__
__all__ += _dynamic.__all__
__all__ += _raw.__all__
__all__ += _static.__all__
__all__ += _learned_sampling.__all__
__all__ += _morphology.__all__
__all__ += _nn.__all__
__all__ += _normalization.__all__
__all__ += _pooling.__all__
__all__ += _pooling_sequences.__all__
__all__ += _quantized_images.__all__
__all__ += _sampled_losses.__all__
__all__ += _sparse_embedding.__all__
