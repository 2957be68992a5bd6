"""Plain gradient descent, and its proximal form."""

from __future__ import annotations

from typing import Any

from flowscope.ops.state import training_ops
from flowscope.train.optimizers.rules import RuleOptimizer, check_sign


class GradientDescentOptimizer(RuleOptimizer):
    """var -= learning_rate * gradient.

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        use_locking: Updates are always atomic.
        name: Name of the update operation.

    Example:
        >>> w = fs.Variable(4.0)
        >>> train = fs.train.GradientDescentOptimizer(0.25).minimize(w * w)
        >>> sess = fs.Session()
        >>> sess.run(fs.global_variables_initializer())
        >>> sess.run(train)
        >>> sess.run(w)
        np.float32(2.0)
    """

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        hyper = {"learning_rate": learning_rate}
        super().__init__(training_ops.ApplyGradientDescent(), {}, hyper, use_locking, name)


class ProximalGradientDescentOptimizer(RuleOptimizer):
    """Gradient descent, then a step that minimizes the penalties: many weights become exactly 0.

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        l1_regularization_strength: Weight of the sum of absolute values; >= 0.
        l2_regularization_strength: Weight of half the sum of squares; >= 0.
        use_locking: Updates are always atomic.
        name: Name of the update operation.

    Raises:
        InvalidArgumentError: if a strength is negative.

    Source: Duchi & Singer 2009, "Efficient online and batch learning using forward backward
        splitting".
    """

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        hyper = {
            "learning_rate": learning_rate,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        check_sign("l1_regularization_strength", l1_regularization_strength, 0)
        check_sign("l2_regularization_strength", l2_regularization_strength, 0)
        super().__init__(training_ops.ApplyProximalGradientDescent(), {}, hyper, use_locking, name)
