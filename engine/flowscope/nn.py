"""Neural-network functions, under TensorFlow 1's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.array.moving import (
    batch_to_space as batch_to_space,
    depth_to_space as depth_to_space,
    space_to_batch as space_to_batch,
    space_to_depth as space_to_depth,
)
from flowscope.ops.nn import (
    basic as _nn,
    candidate_sampling as _candidate_sampling,
    convolution as _convolution,
    ctc as _ctc,
    ctc_labels as _ctc_labels,
    dilating as _dilating,
    learned_sampling as _learned_sampling,
    morphology as _morphology,
    normalization as _normalization,
    pooling as _pooling,
    pooling_sequences as _pooling_sequences,
)
from flowscope.ops.nn.basic import *
from flowscope.ops.nn.candidate_sampling import *
from flowscope.ops.nn.convolution import *
from flowscope.ops.nn.ctc import *
from flowscope.ops.nn.ctc_labels import *
from flowscope.ops.nn.dilating import *
from flowscope.ops.nn.learned_sampling import *
from flowscope.ops.nn.morphology import *
from flowscope.ops.nn.normalization import *
from flowscope.ops.nn.pooling import *
from flowscope.ops.nn.pooling_sequences import *
from flowscope.ops.objectives import sampled_losses as _sampled_losses
from flowscope.ops.objectives.sampled_losses import *
from flowscope.ops.quantized import images as _quantized_images
from flowscope.ops.quantized.images import *
from flowscope.ops.sparse import embedding as _sparse_embedding, lookup as _embedding
from flowscope.ops.sparse.embedding import *
from flowscope.ops.sparse.lookup import *
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

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
