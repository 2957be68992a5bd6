"""Adam for variables of which a step uses few rows."""

from __future__ import annotations

from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation
from flowscope.ops.state.training_ops import ApplyLazyAdam
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.adam import AdamOptimizer


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that changes only the rows that a sparse gradient has, and their moments.

    `fs.train.AdamOptimizer` takes the other rows' gradients as zeros, so that all rows move in each
    step. Here they stay as they are: for a large table of embeddings a step costs as much as the
    rows that it has used, and the result is another one. Dense gradients are taken as there.

    Args:
        learning_rate: Step size, a number, a scalar tensor, or a function that returns one.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: Added to the root of the second moment.
        use_locking: Updates are always atomic per variable.
        name: Name of the update operation and the slots.

    Source: TensorFlow 1's `contrib.opt.LazyAdamOptimizer`; Kingma & Ba 2014 for dense gradients.

    Example:
        >>> table = fs.Variable(fs.ones([4, 2]))
        >>> loss = fs.reduce_sum(fs.square(fs.gather(table, [1])))
        >>> train = fs.contrib.opt.LazyAdamOptimizer(0.1).minimize(loss)
        >>> sess = fs.Session()
        >>> sess.run(fs.global_variables_initializer())
        >>> for _ in range(2):
        ...     sess.run(train)
        >>> sess.run(table)[:, 0].round(1)
        array([1. , 0.8, 1. , 1. ], dtype=float32)
    """

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        return self._apply(ApplyLazyAdam(), var, grad.values, grad.indices)


__all__ = ["LazyAdamOptimizer"]
