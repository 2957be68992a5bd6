"""Adam."""

from __future__ import annotations

from typing import Any

from flowscope.graph.operation import Operation, Tensor
from flowscope.ops.core.flow import group
from flowscope.ops.state import training_ops
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.rules import RuleOptimizer
from flowscope.train.optimizers.slots import as_dtype_of


class AdamOptimizer(RuleOptimizer):
    """Adam: steps of the size of the learning rate, scaled by running moments of the gradient.

    A sparse gradient counts as zeros in the rows that it does not have: these move too.

    Args:
        learning_rate: Step size, a number, a scalar tensor, or a function that returns one.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: Added to the root of the second moment.
        use_locking: Updates are always atomic per variable.
        name: Name of the update operation and the slots.
        use_own_namescope_for_non_slot_vars: Whether the powers of the betas are named after the
            optimizer, "<name>/beta1_power".

    Source: Kingma & Ba 2014, "Adam: A Method for Stochastic Optimization".

    Example:
        >>> w = fs.Variable(1.0)
        >>> train = fs.train.AdamOptimizer(0.1).minimize(fs.square(w - 3.0))
        >>> sess = fs.Session()
        >>> sess.run(fs.global_variables_initializer())
        >>> for _ in range(300):
        ...     sess.run(train)
        >>> sess.run(w).round(2)
        np.float32(3.0)
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
        use_own_namescope_for_non_slot_vars: bool = False,
    ) -> None:
        hyper = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(training_ops.ApplyAdam(), {"m": 0.0, "v": 0.0}, hyper, use_locking, name)
        self._prefix = f"{name}/" if use_own_namescope_for_non_slot_vars else ""
        self._powers: list[Variable] = []
        self._power_values: list[Tensor] = []

    def _create_slots(self, var_list: list[Variable]) -> None:
        first = min(var_list, key=lambda v: v.name)
        self._powers = [
            self._create_non_slot_variable(
                lambda beta=beta: self._call_if_callable(self._hyper[beta]),
                f"{self._prefix}{beta}_power",
                first,
            )
            for beta in ("beta1", "beta2")
        ]
        super()._create_slots(var_list)

    def _prepare(self) -> None:
        super()._prepare()
        self._power_values = [p.value() for p in self._powers]

    def _op_numbers(self) -> list[Tensor]:
        return [*self._power_values, *self._numbers]

    def _finish(self, update_ops: list[Operation], name_scope: str) -> Operation:
        done = []
        with self._powers[0].graph.control_dependencies(update_ops):
            for power, value, beta in zip(
                self._powers, self._power_values, self._numbers[1:3], strict=True
            ):
                with power.graph.colocate_with(power.op):
                    product = value * as_dtype_of(beta, power)
                    done.append(power.assign(product, read_value=False))
        return group(*update_ops, *done, name=name_scope)
