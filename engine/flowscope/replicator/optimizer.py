"""`Replicator.wrap_optimizer`: an optimizer that applies the gradients of all replicas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.replicator.building import current_replica
from flowscope.replicator.primitives import all_reduce, gather_rows, num_replicas_in_sync
from flowscope.replicator.values import ReduceOp


class ReplicatedOptimizer(fs.train.Optimizer):
    """Has another optimizer apply the mean, or the sum, of the replicas' gradients.

    All replicas apply the same bits, so their variables stay equal.

    Args:
        optimizer: The other optimizer.
        op: MEAN or SUM.

    Raises:
        DTypeError: if that is no optimizer.
        InvalidArgumentError: for another reduction.
    """

    def __init__(self, optimizer: fs.train.Optimizer, op: ReduceOp) -> None:
        if not isinstance(optimizer, fs.train.Optimizer):
            raise DTypeError(f"expected an optimizer, got {optimizer!r}")
        if op not in (ReduceOp.MEAN, ReduceOp.SUM):
            raise InvalidArgumentError(f"expected MEAN or SUM for gradients, got {op.name}")
        super().__init__(False, f"replicated_{optimizer.get_name()}")
        self._optimizer = optimizer
        self._op = op

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, fs.Variable]]:
        """Returns this replica's (gradient, variable) pairs: those of the other optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, fs.Variable]],
        global_step: fs.Variable | None = None,
        name: str | None = None,
    ) -> fs.Operation:
        """Returns the operation that updates this replica's variables by all replicas' gradients.

        Args:
            grads_and_vars: What `compute_gradients` returned, perhaps changed.
            global_step: See `fs.train.Optimizer`.
            name: See `fs.train.Optimizer`.

        Raises:
            FailedPreconditionError: outside of step functions.
        """
        pairs = list(grads_and_vars)
        dense = [g for g, _ in pairs if g is not None and not isinstance(g, fs.IndexedSlices)]
        reduced = iter(all_reduce(dense, self._op) if dense else [])
        means: list[tuple[Any, fs.Variable]] = []
        for grad, var in pairs:
            if isinstance(grad, fs.IndexedSlices):
                means.append((self._rows(grad), var))
            else:
                means.append((None if grad is None else next(reduced), var))
        replicator = current_replica().replicator
        return replicator.apply(self._optimizer, means, global_step, name)

    def _rows(self, grad: fs.IndexedSlices) -> fs.IndexedSlices:
        """The rows of all replicas' sparse gradients."""
        values, indices = gather_rows([grad.values, grad.indices])
        if self._op is ReduceOp.MEAN:
            values = values / num_replicas_in_sync()
        return fs.IndexedSlices(values, indices, grad.dense_shape)

    def get_slot(self, var: fs.Variable, name: str) -> fs.Variable | None:
        """Returns a slot of the other optimizer, None if there is none."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Returns the names of the other optimizer's slots, sorted."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[fs.Variable]:
        """Returns the variables that the other optimizer has made in the default graph."""
        return self._optimizer.variables()

    def tracked_slots(self) -> list[tuple[str, fs.Variable, fs.Variable]]:
        """Returns (slot's name, variable, slot) of the other optimizer."""
        return self._optimizer.tracked_slots()

    def tracked_non_slots(self) -> dict[str, fs.Variable]:
        """Returns the other optimizer's variables that are no slots, by name."""
        return self._optimizer.tracked_non_slots()


__all__ = ["ReplicatedOptimizer"]
