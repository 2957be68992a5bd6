"""Adagrad and its relatives: rates that fall with the squares of gradients seen so far."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.values.dtypes import int64
from flowscope.ops.core.casting import cast
from flowscope.ops.state import training_ops
from flowscope.train.optimizers.rules import RuleOptimizer, check_sign


class AdagradOptimizer(RuleOptimizer):
    """accumulator += gradient^2; var -= learning_rate * gradient / sqrt(accumulator).

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        initial_accumulator_value: What the accumulators start with; > 0.
        use_locking: Updates are always atomic.
        name: Name of the update operation and the slot.

    Raises:
        InvalidArgumentError: if the initial value is not positive.

    Source: Duchi, Hazan & Singer 2011, "Adaptive subgradient methods".
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: Any = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        check_sign("initial_accumulator_value", initial_accumulator_value, 0, is_allowed=False)
        slots = {"accumulator": initial_accumulator_value}
        hyper = {"learning_rate": learning_rate}
        super().__init__(training_ops.ApplyAdagrad(), slots, hyper, use_locking, name)


class ProximalAdagradOptimizer(RuleOptimizer):
    """Adagrad, then a step that minimizes the penalties: many weights become exactly 0.

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        initial_accumulator_value: What the accumulators start with; > 0.
        l1_regularization_strength: Weight of the sum of absolute values; >= 0.
        l2_regularization_strength: Weight of half the sum of squares; >= 0.
        use_locking: Updates are always atomic.
        name: Name of the update operation and the slot.

    Raises:
        InvalidArgumentError: if the initial value is not positive, or a strength is negative.

    Source: Duchi & Singer 2009, with the rates of Duchi, Hazan & Singer 2011.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: Any = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        check_sign("initial_accumulator_value", initial_accumulator_value, 0, is_allowed=False)
        check_sign("l1_regularization_strength", l1_regularization_strength, 0)
        check_sign("l2_regularization_strength", l2_regularization_strength, 0)
        slots = {"accumulator": initial_accumulator_value}
        hyper = {
            "learning_rate": learning_rate,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        super().__init__(training_ops.ApplyProximalAdagrad(), slots, hyper, use_locking, name)


class AdagradDAOptimizer(RuleOptimizer):
    """Adagrad with dual averaging: a weight follows from the sum of its gradients alone.

    Weights start from 0 whatever their initial value. For sparse linear models.

    Args:
        learning_rate: A number, a scalar tensor, or a function that returns one.
        global_step: Variable that counts the updates; pass it to `minimize` too.
        initial_gradient_squared_accumulator_value: What the sums of squares start with; > 0.
        l1_regularization_strength: Weight of the sum of absolute values.
        l2_regularization_strength: Weight of half the sum of squares.
        use_locking: Updates are always atomic.
        name: Name of the update operation and the slots.

    Raises:
        InvalidArgumentError: if the initial value is not positive.

    Source: Duchi, Hazan & Singer 2011, "Adaptive subgradient methods", section 5.
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: Any = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        first = initial_gradient_squared_accumulator_value
        check_sign("initial_gradient_squared_accumulator_value", first, 0, is_allowed=False)
        slots = {"gradient_accumulator": 0.0, "gradient_squared_accumulator": first}
        hyper = {
            "learning_rate": learning_rate,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            # The number of this update, counted from 1.
            "global_step": lambda: cast(convert_to_tensor(global_step), int64) + 1,
        }
        super().__init__(training_ops.ApplyAdagradDA(), slots, hyper, use_locking, name)
