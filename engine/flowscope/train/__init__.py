"""Training: optimizers, built of variables and ops, without any help of the runtime.

In: a loss. Out: an operation that runs one update. Called by users.
"""

from flowscope.train.adadelta import AdadeltaOptimizer
from flowscope.train.adagrad import (
    AdagradDAOptimizer,
    AdagradOptimizer,
    ProximalAdagradOptimizer,
)
from flowscope.train.adam import AdamOptimizer
from flowscope.train.ftrl import FtrlOptimizer
from flowscope.train.gradient_descent import (
    GradientDescentOptimizer,
    ProximalGradientDescentOptimizer,
)
from flowscope.train.meta_graph import (
    export_meta_graph,
    import_meta_graph,
    read_meta_graph,
    write_graph,
)
from flowscope.train.momentum import MomentumOptimizer
from flowscope.train.optimizer import Optimizer
from flowscope.train.rmsprop import RMSPropOptimizer
from flowscope.train.steps import (
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
    "create_global_step",
    "export_meta_graph",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "read_meta_graph",
    "write_graph",
]
