"""RMSProp."""

from __future__ import annotations

from typing import Any

from flowscope.ops.state import training_ops
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.rules import RuleOptimizer


class RMSPropOptimizer(RuleOptimizer):
    """Gradients over the root of their running mean square, with momentum.

    A sparse gradient touches its own rows only.

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        decay: Decay of the running means.
        momentum: Decay of the sum of past steps.
        epsilon: Added to the mean square, which starts at 1.
        use_locking: Updates are always atomic.
        centered: Whether to scale by the running variance; a third slot holds the mean.
        name: Name of the update operation and the slots.

    Source: Tieleman & Hinton 2012, lecture 6.5; centered: Graves 2013, section 3.2.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        op = training_ops.ApplyCenteredRMSProp() if centered else training_ops.ApplyRMSProp()
        slots = {"rms": 1.0, "momentum": 0.0}
        hyper = {
            "learning_rate": learning_rate,
            "decay": decay,
            "momentum": momentum,
            "epsilon": epsilon,
        }
        super().__init__(op, {"mg": 0.0, **slots} if centered else slots, hyper, use_locking, name)

    def _create_slots(self, var_list: list[Variable]) -> None:
        # TensorFlow's order, by which the slots are named.
        for v in var_list:
            for slot_name in ("rms", "mg", "momentum"):
                if slot_name in self._first:
                    self._constant_slot(v, self._first[slot_name], slot_name, self._name)
