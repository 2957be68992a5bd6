"""Follow the regularized leader."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.ops.state import training_ops
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.rules import RuleOptimizer, check_sign


class FtrlOptimizer(RuleOptimizer):
    """Follow the regularized leader, "FTRL-Proximal": for large sparse linear models.

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        learning_rate_power: How rates fall with the sum of squares; <= 0, 0 keeps them.
        initial_accumulator_value: What the sums of squares start with; >= 0.
        l1_regularization_strength: Weight of the sum of absolute values; >= 0.
        l2_regularization_strength: Weight of half the sum of squares; >= 0.
        use_locking: Updates are always atomic.
        name: Name of the update operation and the slots.
        accum_name: Another name for the slots of sums of squares.
        linear_name: Another name for the slots of linear terms.
        l2_shrinkage_regularization_strength: Weight of a penalty on the size of weights that does
            not pull those to 0 whose gradient is 0; >= 0.
        beta: The paper's beta, added as beta / (2 * learning_rate) to the l2 strength.

    Raises:
        InvalidArgumentError: if a number is out of its range.

    Source: McMahan et al. 2013, "Ad click prediction: a view from the trenches".
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: Any = -0.5,
        initial_accumulator_value: Any = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: Any = 0.0,
        beta: Any = None,
    ) -> None:
        check_sign("initial_accumulator_value", initial_accumulator_value, 0)
        check_sign("l1_regularization_strength", l1_regularization_strength, 0)
        check_sign("l2_regularization_strength", l2_regularization_strength, 0)
        check_sign("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength, 0)
        if isinstance(learning_rate_power, int | float):
            check_sign("-learning_rate_power", -learning_rate_power, 0)
        hyper = {
            "learning_rate": learning_rate,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
            "learning_rate_power": learning_rate_power,
        }
        slots = {"accum": initial_accumulator_value, "linear": 0.0}
        super().__init__(training_ops.ApplyFtrl(), slots, hyper, use_locking, name)
        self._slot_names = {"accum": accum_name or name, "linear": linear_name or name}
        self._beta = beta

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            for slot_name, number in self._first.items():
                self._constant_slot(v, number, slot_name, self._slot_names[slot_name])

    def _prepare(self) -> None:
        super()._prepare()
        if self._beta is not None:
            rate, l2 = self._numbers[0], self._numbers[2]
            beta = convert_to_tensor(self._call_if_callable(self._beta), rate.dtype, name="beta")
            self._numbers[2] = l2 + beta / (2.0 * rate)
