"""Optimizers whose update of a variable is one op of `flowscope.ops.state.training_ops`."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expected import expected
from flowscope.ops.core.build import apply
from flowscope.ops.state.training_ops import Apply
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.optimizer import Optimizer
from flowscope.train.optimizers.slots import as_dtype_of


class RuleOptimizer(Optimizer):
    """Base class: a subclass names the op, its slots and its hyperparameters.

    Args:
        op: The op that applies an update.
        slots: Name and first number of each of the op's slots, in the op's order. A number may be a
            tensor or a function of no arguments.
        hyper: The op's numbers by name, in the op's order: numbers, tensors, variables, or
            functions of no arguments that return one.
        use_locking: Updates are always atomic per variable.
        name: Name of the update operation and of the slots.
    """

    def __init__(
        self,
        op: Apply,
        slots: dict[str, Any],
        hyper: dict[str, Any],
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._op = op
        self._first = slots
        self._hyper = hyper
        self._numbers: list[Tensor] = []

    def _create_slots(self, var_list: list[Variable]) -> None:
        for v in var_list:
            for slot_name, number in self._first.items():
                self._constant_slot(v, number, slot_name, self._name)

    def _prepare(self) -> None:
        self._numbers = [
            convert_to_tensor(self._call_if_callable(value), name=name)
            for name, value in self._hyper.items()
        ]

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        return self._apply(self._op, var, grad)

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        return self._apply(self._op, var, grad.values, grad.indices)

    def _op_numbers(self) -> list[Tensor]:
        """Returns the op's numbers as tensors, in the op's order."""
        return self._numbers

    def _apply(self, op: Apply, var: Variable, *grad: Tensor) -> Operation:
        """Applies an op that takes the slots and numbers to a variable."""
        slots = [self._slots[name][var].handle for name in self._first]
        numbers = [as_dtype_of(t, var) for t in self._op_numbers()]
        kind = "Sparse" if len(grad) > 1 else ""
        return apply(op, var.handle, *slots, *numbers, *grad, name=kind + op.type).op


def check_sign(name: str, value: Any, least: float, is_allowed: bool = True) -> None:
    """Raises InvalidArgumentError if a plain number is below `least` (or is it, if not allowed)."""
    if not isinstance(value, int | float) or value > least or (value == least and is_allowed):
        return
    relation = ">=" if is_allowed else ">"
    raise expected(f"{name} {relation} {least}", value)


__all__ = ["RuleOptimizer", "check_sign"]
