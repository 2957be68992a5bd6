"""`fs.train.replica_device_setter`: variables to parameter servers, everything else to workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.operation import Operation
from flowscope.train.cluster.cluster_spec import ClusterSpec

#: Types of operations that parameter servers have: those that own values.
_PS_OPS = ("VarHandleOp",)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Sequence[str] | None = None,
    ps_strategy: Callable[[Operation], int] | None = None,
) -> Callable[[Operation], str] | None:
    """Returns a function for `fs.device` that puts variables on parameter servers.

    Args:
        ps_tasks: How many tasks the job of the parameter servers has; not used with `cluster`.
        ps_device: The device of the parameter servers; "" for none.
        worker_device: The device of everything else; "" for none.
        merge_devices: Whether parts of a device's name that an inner block leaves open are filled
            in. If not, an operation with any wish keeps it as it is.
        cluster: A `ClusterSpec`, what makes one, or a connected `fs.cluster.Cluster`.
        ps_ops: Types of operations that parameter servers have; those of variables by default.
        ps_strategy: Returns the number of the parameter server for such an operation; by default
            they take turns.

    Returns:
        None if there are no parameter servers.

    Raises:
        DTypeError: if `cluster` is none, or `ps_strategy` cannot be called.
    """
    if cluster is not None:
        spec = ClusterSpec(cluster)
        job = DeviceSpec.from_string(ps_device).job or "ps"
        ps_tasks = spec.num_tasks(job) if job in spec.jobs else 0
    if ps_tasks == 0:
        return None
    if ps_strategy is None:
        ps_strategy = _RoundRobin(ps_tasks)
    if not callable(ps_strategy):
        raise DTypeError(f"expected a function as ps_strategy, got {ps_strategy!r}")
    types = frozenset(_PS_OPS if ps_ops is None else ps_ops)
    return _Setter(ps_device, worker_device, merge_devices, types, ps_strategy)


class _RoundRobin:
    """Numbers that take turns."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._next = 0

    def __call__(self, op: Operation) -> int:
        number, self._next = self._next, (self._next + 1) % self._count
        return number


class _Setter:
    """Says for each new operation which device it is to have."""

    def __init__(
        self,
        ps_device: str,
        worker_device: str,
        merge_devices: bool,
        ps_ops: frozenset[str],
        ps_strategy: Callable[[Operation], int],
    ) -> None:
        self._ps = DeviceSpec.from_string(ps_device) if ps_device else None
        self._worker = DeviceSpec.from_string(worker_device)
        self._merges = merge_devices
        self._ps_ops = ps_ops
        self._strategy = ps_strategy

    def __call__(self, op: Operation) -> str:
        if op.device and not self._merges:
            return op.device
        own = DeviceSpec.from_string(op.device)
        if self._ps is not None and op.type in self._ps_ops:
            if self._ps.job and own.job in (None, self._ps.job):
                return self._ps.replace(task=self._strategy(op)).make_merged_spec(own).to_string()
        return self._worker.make_merged_spec(own).to_string()


__all__ = ["replica_device_setter"]
