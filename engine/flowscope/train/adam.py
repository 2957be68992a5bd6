"""Adam."""

from __future__ import annotations

from typing import Any

from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops import state, training
from flowscope.ops.build import apply
from flowscope.ops.variables import Variable
from flowscope.train.optimizer import Optimizer, as_dtype_of, hyperparameter


class AdamOptimizer(Optimizer):
    """Adam: steps of the size of the learning rate, scaled by running moments of the gradient.

    Args:
        learning_rate: Step size, a number or a scalar tensor.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        epsilon: Added to the root of the second moment.
        use_locking: Updates are always atomic per variable.
        name: Name of the update operation and the slots.

    Source: Kingma & Ba 2014, "Adam: A Method for Stochastic Optimization".
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._given = (learning_rate, beta1, beta2, epsilon)
        self._powers: dict[Graph, tuple[Variable, Variable]] = {}

    def _create_slots(self, var_list: list[Variable]) -> None:
        first = min(var_list, key=lambda v: v.name)
        if first.graph not in self._powers:
            with first.graph.name_scope(None), first.graph.colocate_with(first.op):
                self._powers[first.graph] = (
                    Variable(
                        self._given[1], trainable=False, name="beta1_power", dtype=first.dtype
                    ),
                    Variable(
                        self._given[2], trainable=False, name="beta2_power", dtype=first.dtype
                    ),
                )
        for v in var_list:
            self._zeros_slot(v, "m")
            self._zeros_slot(v, "v")

    def _prepare(self, graph: Graph) -> None:
        names = ("learning_rate", "beta1", "beta2", "epsilon")
        self._hyper = [hyperparameter(v, n) for v, n in zip(self._given, names, strict=True)]
        self._power_values = [p.value() for p in self._powers[graph]]

    def _apply_dense(self, grad: Tensor, var: Variable, together: str) -> Operation:
        m, v = self._slots["m"][var], self._slots["v"][var]
        numbers = [as_dtype_of(t, var) for t in (*self._power_values, *self._hyper)]
        op = training.ApplyAdam(group=together)
        return apply(op, var.handle, m.handle, v.handle, *numbers, grad).op

    def _finish(self, updates: list[Operation], together: str) -> list[Operation]:
        graph = updates[0].graph
        done = []
        with graph.control_dependencies(updates):
            for power, value, beta in zip(
                self._powers[graph], self._power_values, self._hyper[1:3], strict=True
            ):
                product = value * as_dtype_of(beta, power)
                op = state.AssignVariable(group=together)
                done.append(apply(op, power.handle, product, name="Assign").op)
        return done

    def _other_variables(self) -> list[Variable]:
        return [v for powers in self._powers.values() for v in powers]
