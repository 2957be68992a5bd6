"""Training: optimizers, built of variables and ops, without any help of the runtime.

In: a loss. Out: an operation that runs one update. Called by users.
"""

from flowscope.train.adam import AdamOptimizer
from flowscope.train.gradient_descent import GradientDescentOptimizer
from flowscope.train.meta_graph import (
    export_meta_graph,
    import_meta_graph,
    read_meta_graph,
    write_graph,
)
from flowscope.train.optimizer import Optimizer
from flowscope.train.steps import (
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)

__all__ = [
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "Optimizer",
    "create_global_step",
    "export_meta_graph",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "read_meta_graph",
    "write_graph",
]
