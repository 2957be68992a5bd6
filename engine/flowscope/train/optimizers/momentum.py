"""Gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from flowscope.ops.state import training_ops
from flowscope.train.optimizers.rules import RuleOptimizer


class MomentumOptimizer(RuleOptimizer):
    """accumulation = momentum * accumulation + gradient; var -= learning_rate * accumulation.

    A sparse gradient touches its own rows only: the accumulations of others do not decay.

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        momentum: The same.
        use_locking: Updates are always atomic.
        name: Name of the update operation and the slot.
        use_nesterov: Whether to look one step ahead; see
        `flowscope.ops.state.training_ops.ApplyMomentum`.

    Source: Sutskever et al. 2013, "On the importance of initialization and momentum".

    Example:
        >>> w = fs.Variable(4.0)
        >>> train = fs.train.MomentumOptimizer(0.25, 0.5).minimize(w * w)
        >>> sess = fs.Session()
        >>> sess.run(fs.global_variables_initializer())
        >>> for _ in range(2):
        ...     sess.run(train)
        >>> sess.run(w)
        np.float32(0.0)
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        op = training_ops.ApplyMomentum(use_nesterov=bool(use_nesterov))
        hyper = {"learning_rate": learning_rate, "momentum": momentum}
        super().__init__(op, {"momentum": 0.0}, hyper, use_locking, name)
