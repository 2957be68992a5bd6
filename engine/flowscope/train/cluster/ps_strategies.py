"""Which parameter server gets a variable: strategies for `fs.train.replica_device_setter`.

    strategy = fs.contrib.training.GreedyLoadBalancingStrategy(
        num_tasks=3, load_fn=fs.contrib.training.byte_size_load_fn
    )
    with fs.device(fs.train.replica_device_setter(ps_tasks=3, ps_strategy=strategy)):
        table = fs.Variable(fs.zeros([1000, 64]))

The names are those of TensorFlow 1's `contrib.training`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.operation import Operation
from flowscope.graph.values.expected import expected


class GreedyLoadBalancingStrategy:
    """Gives each operation to the task with the least load so far; of equal ones to the first.

    Args:
        num_tasks: How many parameter servers there are.
        load_fn: Returns the load of an operation, a number from 0 on, in any unit.

    Raises:
        InvalidArgumentError: if there is no task; when it is called, if a load is below 0.
        DTypeError: if `load_fn` cannot be called.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Operation], float]) -> None:
        if not callable(load_fn):
            raise DTypeError(f"expected a function as load_fn, got {load_fn!r}")
        self._loads = [0.0] * _count(num_tasks)
        self._load_fn = load_fn

    def __call__(self, op: Operation) -> int:
        """Returns the number of the task for an operation, and counts its load there."""
        load = self._load_fn(op)
        if not load >= 0:
            raise InvalidArgumentError(f'expected a load >= 0 of "{op.name}", got {load!r}')
        task = self._loads.index(min(self._loads))
        self._loads[task] += load
        return task


class RandomStrategy:
    """Gives operations to tasks at random, by their names alone: the same in every process.

    Args:
        num_ps_tasks: How many parameter servers there are.
        seed: Another one gives another order.

    Raises:
        InvalidArgumentError: if there is no task.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._count = _count(num_ps_tasks)
        self._seed = seed

    def __call__(self, op: Operation) -> int:
        """Returns the number of the task for an operation: of MD5 of "<name>_<seed>"."""
        digest = hashlib.md5(f"{op.name}_{self._seed}".encode(), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self._count


def byte_size_load_fn(op: Operation) -> int:
    """Returns how many bytes a variable has, or the output of an operation that has one.

    Args:
        op: The operation; that of a variable's handle counts as the variable.

    Raises:
        InvalidArgumentError: if it has not one output, or if the output's shape is not known.
    """
    if len(op.outputs) != 1:
        raise expected(f'one output of "{op.name}"', f"{len(op.outputs)}")
    spec = op.outputs[0].spec
    nbytes = (spec.variable or spec).nbytes
    if nbytes is None:
        raise InvalidArgumentError(
            f'expected a known shape of "{op.name}", got {spec.variable or spec}'
        )
    return nbytes


def _count(tasks: int) -> int:
    if tasks < 1:
        raise expected("one task at least", tasks)
    return tasks


__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"]
