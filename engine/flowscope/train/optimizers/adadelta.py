"""Adadelta."""

from __future__ import annotations

from typing import Any

from flowscope.ops.state import training_ops
from flowscope.train.optimizers.rules import RuleOptimizer


class AdadeltaOptimizer(RuleOptimizer):
    """Steps of the running size of steps, over that of gradients: no unit needs to be chosen.

    Args:
        learning_rate: Factor of the steps (the paper has 1).
        rho: Decay of the running sizes.
        epsilon: Added to them under the roots.
        use_locking: Updates are always atomic.
        name: Name of the update operation and the slots.

    Source: Zeiler 2012, "ADADELTA: an adaptive learning rate method".
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        slots = {"accum": 0.0, "accum_update": 0.0}
        hyper = {"lr": learning_rate, "rho": rho, "epsilon": epsilon}
        super().__init__(training_ops.ApplyAdadelta(), slots, hyper, use_locking, name)
