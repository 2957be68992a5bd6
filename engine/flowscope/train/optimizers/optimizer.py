"""The base class of optimizers: compute gradients, apply them, keep slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowscope.autodiff.gradients import gradients
from flowscope.errors import DTypeError, InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.flow import group, tuple as gated
from flowscope.ops.state.variable_lists import trainable_variables
from flowscope.ops.state.variables import GraphKeys, Variable
from flowscope.train.optimizers.groups import join_group
from flowscope.train.optimizers.slots import Slots

#: What a gradient may be.
Gradient = Tensor | IndexedSlices


class Optimizer(Slots):
    """Base class: a subclass says which slots a variable needs and which op applies an update.

    A subclass defines `_create_slots`, `_prepare`, `_apply_dense`, perhaps `_apply_sparse` and
    `_finish`. All writes of one `apply_gradients`, whoever adds them, form a group: a step that is
    stopped has done all of them or none.

    Args:
        use_locking: Updates are always atomic per variable.
        name: Name of the update operation and of the slots.

    Raises:
        InvalidArgumentError: if the name is empty.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool = False, name: str = "Optimizer") -> None:
        if not name:
            raise InvalidArgumentError("an optimizer needs a name")
        super().__init__(name)
        self._use_locking = use_locking

    def get_name(self) -> str:
        """Returns the name."""
        return self._name

    def minimize(
        self,
        loss: Any,
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
            loss: A scalar, usually; or a function without arguments that returns one.
            global_step: Variable to which each update adds one.
            var_list: Variables to train; all trainable ones by default.
            gate_gradients: `GATE_GRAPH` computes all gradients before any is used. Reads are
                snapshots here, so `GATE_OP` and `GATE_NONE` are the same.
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
        loss: Any,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Gradient | None, Variable]]:
        """Returns (gradient, variable) pairs; None for a variable without influence.

        `var_list` may hold tensors: their gradients can be looked at, and not applied.

        Raises:
            InvalidArgumentError: if there is nothing to train, or for an unknown gate.
            DTypeError: if what is to be trained is no variable or tensor, or has whole numbers.
        """
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise expected(
                "gate_gradients to be Optimizer.GATE_NONE, GATE_OP or GATE_GRAPH",
                repr(gate_gradients),
            )
        loss = convert_to_tensor(loss() if callable(loss) else loss)
        variables = _flat(trainable_variables() if var_list is None else var_list)
        if not variables:
            raise InvalidArgumentError("there are no variables to train")
        _check_trained(loss, variables)
        grads = gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        for g, v in zip(grads, variables, strict=True):
            if g is not None:
                _check_differentiable(v)
        if gate_gradients == Optimizer.GATE_GRAPH and any(g is not None for g in grads):
            grads = _all_before_any(grads)
        return list(zip(grads, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
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
        used = _used(list(grads_and_vars))
        graph = used[0][1].graph
        with graph.control_dependencies(None):
            self._create_slots([v for _, v in used])
        before = len(graph)
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            updates = self._apply_all(used)
            if global_step is None:
                train_op = self._finish(updates, scope)
            else:
                finish = self._finish(updates, "update")
                with graph.control_dependencies([finish]), graph.colocate_with(global_step.op):
                    count = global_step.assign_add(1, name="global_step_update", read_value=False)
                train_op = group(finish, count, name=scope)
        join_group(graph.operations_since(before), scope.rstrip("/"))
        _collect_train_op(graph, train_op)
        return train_op

    def _apply_all(self, grads_and_vars: list[tuple[Gradient, Variable]]) -> list[Operation]:
        """Returns the operations that update all variables."""
        return [self._update(g, v) for g, v in grads_and_vars]

    def _update(self, grad: Gradient, var: Variable) -> Operation:
        graph = var.graph
        with graph.name_scope(f"update_{var.op.name}"), graph.colocate_with(var.op):
            if isinstance(grad, IndexedSlices):
                update = self._apply_sparse(grad, var)
            else:
                update = self._apply_dense(grad, var)
            if var.constraint is None:
                return update
            with graph.control_dependencies([update]):
                allowed = var.constraint(var.read_value())
                return var.assign(allowed, read_value=False)  # type: ignore[no-any-return]

    # -- for subclasses -------------------------------------------------------------------------

    def _create_slots(self, var_list: list[Variable]) -> None:
        """Makes the slots of the variables; called once per `apply_gradients`."""

    def _prepare(self) -> None:
        """Makes the tensors that all updates share, such as the learning rate."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        """Returns the operation that updates `var`."""
        raise NotImplementedError

    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        """Returns the operation that updates `var`; by default the gradient is made dense."""
        whole = IndexedSlices(grad.values, grad.indices, var.shape.as_list())
        return self._apply_dense(convert_to_tensor(whole), var)

    def _finish(self, update_ops: list[Operation], name_scope: str) -> Operation:
        """Returns the operation `name_scope`, which is done when all updates are."""
        return group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param


def _flat(var_list: Any) -> list[Any]:
    """Returns variables; those that come in parts as their parts."""
    if isinstance(var_list, Variable | Tensor | str) or not isinstance(var_list, Iterable):
        return [var_list]
    return [v for part in var_list for v in _flat(part)]


def _check_trained(loss: Tensor, variables: list[Any]) -> None:
    for v in variables:
        if not isinstance(v, Variable | Tensor):
            raise expected_dtype("variables or tensors to train", repr(v))
    _check_differentiable(loss)


def _check_differentiable(x: Variable | Tensor) -> None:
    if not x.dtype.is_differentiable:
        raise expected_dtype(f'a floating-point or complex "{x.name}"', x.dtype)


def _all_before_any(grads: list[Any]) -> list[Any]:
    """Returns the gradients so that each waits for all of them."""
    values = gated([g.values if isinstance(g, IndexedSlices) else g for g in grads])
    return [
        IndexedSlices(v, g.indices, g.dense_shape) if isinstance(g, IndexedSlices) else v
        for g, v in zip(grads, values, strict=True)
    ]


def _used(pairs: list[tuple[Any, Any]]) -> list[tuple[Gradient, Variable]]:
    for _, v in pairs:
        if not isinstance(v, Variable):
            kind = UnimplementedError if isinstance(v, Tensor) else DTypeError
            raise kind(f"expected (gradient, variable) pairs, got {v!r} as a variable")
    used = [(convert_to_tensor_or_indexed_slices(g, v.dtype), v) for g, v in pairs if g is not None]
    if not used:
        names = ", ".join(v.name for _, v in pairs) or "none"
        raise InvalidArgumentError(f"no gradients were given for any variable: {names}")
    return used


def _collect_train_op(graph: Graph, op: Operation) -> None:
    if op not in graph.get_collection(GraphKeys.TRAIN_OP):
        graph.add_to_collection(GraphKeys.TRAIN_OP, op)


__all__ = ["Gradient", "Optimizer"]
