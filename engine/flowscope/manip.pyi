"""Moving elements about, under TensorFlow 1's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.array.gathering import (
    gather_nd as gather_nd,
    scatter_nd as scatter_nd,
)
from flowscope.ops.array.moving import (
    reverse as reverse,
    roll as roll,
)
from flowscope.ops.array.padding import (
    tile as tile,
)
from flowscope.ops.array.shaping import (
    reshape as reshape,
)
from flowscope.ops.array.space_to_batch import (
    batch_to_space_nd as batch_to_space_nd,
    space_to_batch_nd as space_to_batch_nd,
)

__all__ = [
    "batch_to_space_nd",
    "gather_nd",
    "reshape",
    "reverse",
    "roll",
    "scatter_nd",
    "space_to_batch_nd",
    "tile",
]
