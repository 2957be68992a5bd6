"""Slots: variables that accompany others, such as an optimizer's running averages."""

from __future__ import annotations

import dataclasses
from typing import Any

from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.ops.array.arrays import fill
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.casting import cast
from flowscope.ops.state.variable_scope import get_variable_scope
from flowscope.ops.state.variables import SaveSliceInfo, Variable


class Slots:
    """The variables that an optimizer keeps: slots, one per variable and name, and others.

    Args:
        name: What slots are called: "w/<name>", "w/<name>_1" and so on.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._slots: dict[str, dict[Variable, Variable]] = {}
        self._non_slots: dict[tuple[str, Graph], Variable] = {}

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Returns the slot `name` of `var`, None if there is none."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Returns the names of the slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Returns the variables that were made in the default graph, sorted by name."""
        graph = get_default_graph()
        slots = [v for by_var in self._slots.values() for v in by_var.values()]
        made = [v for v in (*slots, *self._non_slots.values()) if v.graph is graph]
        return sorted(made, key=lambda v: v.name)

    def tracked_slots(self) -> list[tuple[str, Variable, Variable]]:
        """Returns (slot's name, variable, slot) of the default graph."""
        graph = get_default_graph()
        return [
            (name, v, slot)
            for name, by_var in self._slots.items()
            for v, slot in by_var.items()
            if v.graph is graph
        ]

    def tracked_non_slots(self) -> dict[str, Variable]:
        """Returns the default graph's variables that are no slots, by name."""
        graph = get_default_graph()
        return {name: v for (name, g), v in self._non_slots.items() if g is graph}

    # -- for subclasses -------------------------------------------------------------------------

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        """Returns the slot, made of zeros on first use; `op_name` follows the variable's name."""
        return self._constant_slot(var, 0.0, slot_name, op_name)

    def _get_or_make_slot(self, var: Variable, val: Any, slot_name: str, op_name: str) -> Variable:
        """Returns the slot, made with the initial value `val` (or a function's) on first use."""
        slots = self._slots.setdefault(slot_name, {})
        if var not in slots:
            slots[var] = make_slot(var, val, op_name)
        return slots[var]

    def _constant_slot(self, var: Variable, number: Any, slot_name: str, op_name: str) -> Variable:
        return self._get_or_make_slot(var, lambda: filled_like(var, number), slot_name, op_name)

    def _create_non_slot_variable(
        self, initial_value: Any, name: str, colocate_with: Variable
    ) -> Variable:
        """Returns the variable `name` of the graph, made beside another on first use.

        It lies in the name scope that is open then.
        """
        key = (name, colocate_with.graph)
        if key not in self._non_slots:
            graph = colocate_with.graph
            with graph.colocate_with(colocate_with.op):
                self._non_slots[key] = Variable(initial_value, trainable=False, name=name)
        return self._non_slots[key]

    def _get_non_slot_variable(self, name: str, graph: Graph) -> Variable:
        return self._non_slots[name, graph]


def make_slot(var: Variable, initial_value: Any, name: str) -> Variable:
    """Returns a new variable "<var's name>/<name>" on the device of `var`.

    As for `fs.get_variable`, the variable scope that is open comes before the name.
    """
    with var.graph.name_scope(None), var.graph.colocate_with(var.op):
        slot = Variable(
            initial_value,
            trainable=False,
            name=slot_name(var, name),
            validate_shape=var.shape.is_fully_defined(),
        )
    slot._set_save_slice_info(_part_beside(var, slot))
    slot._primary = var
    return slot


def slot_name(primary: Variable | Tensor, name: str) -> str:
    """The name of a variable that accompanies another, or a tensor."""
    scope = get_variable_scope().name
    full = f"{primary.op.name}/{name}"
    return f"{scope}/{full}" if scope else full


def _part_beside(var: Variable, slot: Variable) -> SaveSliceInfo | None:
    """Returns which part of a larger slot it is, where `var` is a part of a larger variable."""
    part = var._get_save_slice_info()
    if part is None or slot.shape != var.shape:
        return None
    name = slot.op.name.removeprefix(var.op.name)
    return dataclasses.replace(part, full_name=part.full_name + name)


def filled_like(var: Variable, number: Any) -> Tensor:
    """Returns a tensor of a variable's shape and dtype, every element `number`."""
    is_tensor = isinstance(number, Tensor | Convertible)
    value = as_dtype_of(convert_to_tensor(number, None if is_tensor else var.dtype), var)
    if var.shape.is_fully_defined():
        return fill(var.shape.as_list(), value)
    return fill(shape_of(var.initialized_value()), value)


def hyperparameter(value: Any, name: str) -> Tensor:
    """Returns a number, tensor or function (called now) as a tensor in the current name scope."""
    return convert_to_tensor(value() if callable(value) else value, name=name)


def as_dtype_of(value: Tensor, var: Variable) -> Tensor:
    """Returns a hyperparameter in the variable's dtype."""
    return value if value.dtype is var.dtype else cast(value, var.dtype)


__all__ = ["Slots", "as_dtype_of", "filled_like", "hyperparameter", "make_slot", "slot_name"]
