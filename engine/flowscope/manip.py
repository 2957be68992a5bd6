"""Moving elements about, under TensorFlow 1's names."""

from flowscope.ops.gathering import gather_nd as gather_nd, scatter_nd as scatter_nd
from flowscope.ops.moving import (
    batch_to_space_nd as batch_to_space_nd,
    roll as roll,
    space_to_batch_nd as space_to_batch_nd,
)
from flowscope.ops.padding import tile as tile
from flowscope.ops.shaping import reshape as reshape
from flowscope.ops.slicing import reverse as reverse
