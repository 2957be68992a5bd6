"""Plain gradient descent."""

from __future__ import annotations

from typing import Any

from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops import training
from flowscope.ops.build import apply
from flowscope.ops.variables import Variable
from flowscope.train.optimizer import Optimizer, as_dtype_of, hyperparameter


class GradientDescentOptimizer(Optimizer):
    """var -= learning_rate * gradient.

    Args:
        learning_rate: A number or a scalar tensor.
        use_locking: Updates are always atomic.
        name: Name of the update operation.
    """

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self, graph: Graph) -> None:
        self._rate = hyperparameter(self._learning_rate, "learning_rate")

    def _apply_dense(self, grad: Tensor, var: Variable, together: str) -> Operation:
        rate = as_dtype_of(self._rate, var)
        return apply(training.ApplyGradientDescent(group=together), var.handle, rate, grad).op
