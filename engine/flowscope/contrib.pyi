"""Parts of TensorFlow 1's contrib that programs need: tables and staging areas, under its names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.data import (
    framework as framework,
)
from flowscope.ops.collective import (
    nccl as nccl,
)
from flowscope.ops.state.containers import (
    staging as staging,
)
from flowscope.ops.tables import (
    contrib as lookup,
)
from flowscope.train.cluster import (
    ps_strategies as training,
)
from flowscope.train.optimizers import (
    lazy_adam as opt,
)

__all__ = [
    "framework",
    "lookup",
    "nccl",
    "opt",
    "staging",
    "training",
]
