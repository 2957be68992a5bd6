"""The base class of optimizers: compute gradients, apply them, keep slots (SPEC O10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowscope.autodiff.gradients import gradients
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops import state
from flowscope.ops.arrays import zeros
from flowscope.ops.build import apply
from flowscope.ops.flow import group
from flowscope.ops.variables import GraphKeys, Variable, trainable_variables


class Optimizer:
    """Base class: a subclass says which slots a variable needs and which op applies an update.

    All writes of one `apply_gradients` form a group: a step that is stopped has done all of them or
    none.

    Args:
        use_locking: Updates are always atomic per variable.
        name: Name of the update operation and of the slots.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool = False, name: str = "Optimizer") -> None:
        del use_locking
        if not name:
            raise InvalidArgumentError("an optimizer needs a name")
        self._name = name
        self._slots: dict[str, dict[Variable, Variable]] = {}

    def get_name(self) -> str:
        """Returns the name."""
        return self._name

    def minimize(
        self,
        loss: Tensor,
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """Returns an operation that updates the variables once so that `loss` falls.

        Args:
            loss: A scalar, usually.
            global_step: Variable to which each update adds one.
            var_list: Variables to train; all trainable ones by default.
            gate_gradients: `GATE_GRAPH` computes all gradients before any is used.
            aggregation_method: See `fs.AggregationMethod`.
            colocate_gradients_with_ops: See `fs.gradients`.
            name: Name of the operation.
            grad_loss: Cotangent of `loss`.

        Raises:
            InvalidArgumentError: if no variable has influence on the loss.
        """
        grads_and_vars = self.compute_gradients(
            loss,
            var_list,
            gate_gradients,
            aggregation_method,
            colocate_gradients_with_ops,
            grad_loss,
        )
        if all(g is None for g, _ in grads_and_vars):
            names = ", ".join(v.name for _, v in grads_and_vars)
            raise InvalidArgumentError(f"no variable has influence on {loss!r}; looked at {names}")
        return self.apply_gradients(grads_and_vars, global_step, name)

    def compute_gradients(
        self,
        loss: Tensor,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Tensor | None, Variable]]:
        """Returns (gradient, variable) pairs; None for a variable without influence."""
        if callable(loss):
            loss = loss()
        loss = convert_to_tensor(loss)
        variables = list(trainable_variables() if var_list is None else var_list)
        if not variables:
            raise InvalidArgumentError("there are no variables to train")
        for v in variables:
            if not isinstance(v, Variable):
                raise DTypeError(f"expected variables to train, got {v!r}")
        dtypes = {loss.name: loss.dtype} | {v.name: v.dtype for v in variables}
        for name, dtype in dtypes.items():
            if not dtype.is_differentiable:
                raise DTypeError(f'expected a floating-point or complex "{name}", got {dtype}')
        grads = gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_GRAPH,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        return list(zip(grads, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Tensor | None, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Returns an operation that applies the gradients once.

        Args:
            grads_and_vars: What `compute_gradients` returned, perhaps changed.
            global_step: Variable to which each update adds one.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: if there is no gradient at all.
        """
        pairs = [(g, v) for g, v in grads_and_vars]
        used = [(convert_to_tensor(g, v.dtype), v) for g, v in pairs if g is not None]
        if not used:
            names = ", ".join(v.name for _, v in pairs) or "none"
            raise InvalidArgumentError(f"no gradients were given for any variable: {names}")
        graph = used[0][1].graph
        with graph.control_dependencies(None):
            self._create_slots([v for _, v in used])
        with graph.name_scope(name or self._name) as scope:
            together = scope.rstrip("/")
            self._prepare(graph)
            updates = [self._update(g, v, together) for g, v in used]
            finish = self._finish(updates, together)
            if global_step is not None:
                with graph.control_dependencies(finish):
                    one = convert_to_tensor(1, global_step.dtype, name="value")
                    op = state.AssignAddVariable(group=together)
                    finish = [apply(op, global_step.handle, one, name="global_step_update").op]
        train_op = group(*updates, *finish, name=scope)
        _collect_train_op(graph, train_op)
        return train_op

    def _update(self, grad: Tensor, var: Variable, together: str) -> Operation:
        with var.graph.name_scope(f"update_{var.op.name}"):
            update = self._apply_dense(grad, var, together)
            if var.constraint is None:
                return update
            with var.graph.control_dependencies([update]):
                return var._write(  # type: ignore[no-any-return]
                    state.AssignVariable(group=together),
                    var.constraint(var.read_value()),
                    "constraint",
                    False,
                )

    # -- slots ----------------------------------------------------------------------------------

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Returns the slot `name` of `var`, None if there is none."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Returns the names of the slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Returns all variables that the optimizer made."""
        slots = [v for by_var in self._slots.values() for v in by_var.values()]
        return sorted([*slots, *self._other_variables()], key=lambda v: v.name)

    def _zeros_slot(self, var: Variable, slot_name: str) -> Variable:
        slots = self._slots.setdefault(slot_name, {})
        if var not in slots:
            with var.graph.name_scope(None), var.graph.colocate_with(var.op):
                suffix = "" if slot_name in _FIRST_SLOTS else "_1"
                name = f"{var.op.name}/{self._name}{suffix}"
                slots[var] = Variable(
                    lambda: zeros(var.shape, var.dtype), trainable=False, name=name
                )
        return slots[var]

    # -- for subclasses -------------------------------------------------------------------------

    def _create_slots(self, var_list: list[Variable]) -> None:
        """Makes the slots of the variables; called once per `apply_gradients`."""

    def _prepare(self, graph: Graph) -> None:
        """Makes the tensors that all updates share, such as the learning rate."""

    def _apply_dense(self, grad: Tensor, var: Variable, together: str) -> Operation:
        """Returns the operation that updates `var`; its writes carry the group `together`."""
        raise NotImplementedError

    def _finish(self, updates: list[Operation], together: str) -> list[Operation]:
        """Returns what must run after all updates: by default the updates themselves."""
        del together
        return updates

    def _other_variables(self) -> list[Variable]:
        return []


#: Slots that carry the optimizer's bare name, as in TensorFlow: "w/Adam" is m, "w/Adam_1" is v.
_FIRST_SLOTS = frozenset({"m", "momentum", "accumulator"})


def _collect_train_op(graph: Graph, op: Operation) -> None:
    if op not in graph.get_collection(GraphKeys.TRAIN_OP):
        graph.add_to_collection(GraphKeys.TRAIN_OP, op)


def hyperparameter(value: Any, name: str) -> Tensor:
    """Returns a number, tensor or function (called now) as a tensor in the current name scope."""
    return convert_to_tensor(value() if callable(value) else value, name=name)


def as_dtype_of(value: Tensor, var: Variable) -> Tensor:
    """Returns a hyperparameter in the variable's dtype."""
    from flowscope.ops.elementwise import cast

    return value if value.dtype is var.dtype else cast(value, var.dtype)


__all__ = ["Optimizer", "as_dtype_of", "hyperparameter"]
