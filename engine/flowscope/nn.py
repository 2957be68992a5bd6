"""Neural-network functions, under TensorFlow 1's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.array.space_to_batch import (
    batch_to_space as batch_to_space,
    depth_to_space as depth_to_space,
    space_to_batch as space_to_batch,
    space_to_depth as space_to_depth,
)
from flowscope.ops.math.elementwise import (
    log_sigmoid as log_sigmoid,
    sigmoid as sigmoid,
    softplus as softplus,
    tanh as tanh,
)
from flowscope.ops.nn.activations import *
from flowscope.ops.nn.bias import *
from flowscope.ops.nn.candidate_sampling import *
from flowscope.ops.nn.convolution import *
from flowscope.ops.nn.ctc import *
from flowscope.ops.nn.ctc_labels import *
from flowscope.ops.nn.dropout import *
from flowscope.ops.nn.fractional_pooling import *
from flowscope.ops.nn.learned_sampling import *
from flowscope.ops.nn.moments import *
from flowscope.ops.nn.morphology import *
from flowscope.ops.nn.normalization import *
from flowscope.ops.nn.pooling import *
from flowscope.ops.nn.softmax import *
from flowscope.ops.nn.top_k import *
from flowscope.ops.nn.with_space_to_batch import *
from flowscope.ops.objectives.cross_entropy import *
from flowscope.ops.objectives.l2_loss import *
from flowscope.ops.objectives.sampled_losses import *
from flowscope.ops.quantized.images import *
from flowscope.ops.sparse.embedding import *
from flowscope.rnn import rnn_cell as rnn_cell
from flowscope.rnn.dynamic import *
from flowscope.rnn.raw import *
from flowscope.rnn.static import *

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
