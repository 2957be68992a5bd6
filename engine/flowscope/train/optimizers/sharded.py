"""`fs.train.sharded`: each rank keeps the slots of its part of the variables, and updates that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.scopes import colocate_with, control_dependencies, device
from flowscope.graph.values.expected import expected
from flowscope.ops.array.shaping import reshape
from flowscope.ops.collective.functions import all_gather, reduce_scatter, scatter
from flowscope.ops.core.flow import group
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.groups import regroup
from flowscope.train.optimizers.optimizer import Optimizer


class ShardedOptimizer(Optimizer):
    """Has another optimizer update parts of variables, each on a rank's device.

    A rank's part of a variable of d elements has d / n of them, and so have its slots. Gradients of
    all ranks are reduced in parts; what the ranks have updated is gathered, and assigned.

    Args:
        optimizer: The other optimizer; its update of an element depends on that element alone.
        devices: The device of each rank.
    """

    def __init__(self, optimizer: Optimizer, devices: Sequence[Any]) -> None:
        super().__init__(False, f"sharded_{optimizer.get_name()}")
        self._optimizer = optimizer
        self._devices = list(devices)
        self._shards: dict[Variable, list[Variable]] = {}

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Returns (gradient, variable) pairs: those of the other optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def shards(self, var: Variable) -> list[Variable]:
        """Returns the parts of a variable, one per rank; empty before it was updated."""
        return list(self._shards.get(var, ()))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Returns an operation that applies the gradients once.

        Args:
            grads_and_vars: Pairs. A gradient is a tensor, or a list with one for each rank, whose
                mean is applied. A variable is one, or a list of copies of it, such as one for
                each rank; all get the same value.
            global_step: Variable to which each update adds one.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: if there is no gradient at all, another number of them than ranks,
                or a variable of an unknown shape.
        """
        pairs = [(_grads(g), _copies(v)) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise InvalidArgumentError("no gradients were given for any variable")
        graph = pairs[0][1][0].graph
        for _, copies in pairs:
            with graph.control_dependencies(None):
                self._make_shards(copies[0])
        with graph.name_scope(name or self._name) as scope:
            parts: list[tuple[Tensor, Variable]] = []
            fresh: list[Operation] = []
            for grads, copies in pairs:
                shards = self._shards[copies[0]]
                fresh += self._refreshed(copies[0], shards)
                parts += zip(self._parts(grads, copies[0]), shards, strict=True)
            before = len(graph)
            with control_dependencies(fresh):
                updated = self._optimizer.apply_gradients(parts, global_step)
            with control_dependencies([updated]):
                writes = [w for _, copies in pairs for w in self._gathered(copies)]
            train_op = group(updated, *writes, name=scope)
        regroup(graph.operations_since(before), updated.name, scope.rstrip("/"))
        return train_op

    def _make_shards(self, var: Variable) -> None:
        if var in self._shards:
            return
        if not var.shape.is_fully_defined():
            raise expected(f"a known shape of {var.name} to part it", str(var.shape))
        size, count = int(var.shape.num_elements() or 0), len(self._devices)
        whole = reshape(var.initialized_value(), [-1])
        self._shards[var] = []
        for i, place in enumerate(self._devices):
            first, last = size * i // count, size * (i + 1) // count
            with device(place):
                part = Variable(
                    whole[first:last], trainable=False, name=f"{var.op.name}/{self._name}_{i}"
                )
            self._shards[var].append(part)

    def _refreshed(self, var: Variable, shards: Sequence[Variable]) -> list[Operation]:
        """The operations that give the parts the variable's value, which may have been loaded."""
        values = scatter(reshape(var.value(), [-1]), self._devices)
        return [s.assign(x, read_value=False) for s, x in zip(shards, values, strict=True)]

    def _parts(self, grads: Sequence[Tensor], var: Variable) -> list[Tensor]:
        """The ranks' parts of a gradient, or of the mean of several."""
        flat = []
        for g in grads:
            with colocate_with(g.op):
                flat.append(reshape(g, [-1]))
        if len(flat) == 1:
            return scatter(flat[0], self._devices)
        if len(flat) != len(self._devices):
            raise expected(f"{len(self._devices)} gradients of {var.name}, or one", len(flat))
        return reduce_scatter(flat, "mean", self._devices)

    def _gathered(self, copies: Sequence[Variable]) -> list[Operation]:
        """The operations that give a variable, and its copies, the value of the parts."""
        shards = self._shards[copies[0]]
        values = []
        for shard in shards:
            with colocate_with(shard.op):
                values.append(shard.read_value())
        wholes = all_gather(values, self._devices)
        found = []
        for i, v in enumerate(copies):
            with colocate_with(v.op):
                whole = reshape(wholes[i % len(wholes)], v.shape.as_list())
                found.append(v.assign(whole, read_value=False))
        return found


def _grads(g: Any) -> list[Tensor]:
    found = list(g) if isinstance(g, list | tuple) and not isinstance(g, IndexedSlices) else [g]
    return [convert_to_tensor(x) for x in found]


def _copies(v: Any) -> list[Variable]:
    found = list(v) if isinstance(v, list | tuple) else [v]
    for x in found:
        if not isinstance(x, Variable):
            raise DTypeError(f"expected a variable, or a list of copies of one, got {x!r}")
    return found


def sharded(optimizer: Optimizer, devices: Sequence[Any]) -> ShardedOptimizer:
    """Cuts the slots of an optimizer into parts, of which each device keeps and updates one.

    With n devices each keeps 1/n of the slots, and computes 1/n of the update. Bits are those of
    the other optimizer, if its update of an element depends on that element alone: Adam, momentum
    and gradient descent, not those that use norms.

    Args:
        optimizer: An optimizer.
        devices: The device of each rank, as `fs.device` takes it.

    Raises:
        DTypeError: if that is no optimizer.
        InvalidArgumentError: if there is no device.

    Source: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models" (stages 1 and 2).

    Example:
        >>> w = fs.Variable([1.0, 2.0, 3.0, 4.0])
        >>> momentum = fs.train.MomentumOptimizer(0.5, 0.9)
        >>> optimizer = fs.train.sharded(momentum, ["/cpu:0", "/cpu:0"])
        >>> train = optimizer.minimize(fs.reduce_sum(w))
        >>> sess = fs.Session()
        >>> sess.run(fs.global_variables_initializer())
        >>> sess.run(train)
        >>> sess.run(w)
        array([0.5, 1.5, 2.5, 3.5], dtype=float32)
    """
    if not isinstance(optimizer, Optimizer):
        raise DTypeError(f"expected an optimizer, got {optimizer!r}")
    if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
        raise InvalidArgumentError(f"expected a device for each rank, got {devices!r}")
    return ShardedOptimizer(optimizer, devices)


__all__ = ["ShardedOptimizer", "sharded"]
