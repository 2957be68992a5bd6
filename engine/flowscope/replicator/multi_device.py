"""`fs.replicator.MultiDevice`: replicas on several devices, in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.replicator.inputs import InputMode
from flowscope.replicator.replicator import Replicator


class MultiDevice(Replicator):
    """Runs a replica of a step function on each of several devices, of a process or of a cluster.

    Args:
        devices: The devices, as `fs.device` takes them: of each replica the next
            `num_logical_devices` ones. A number: so many replicas wherever the planner puts them.
        num_logical_devices: How many devices a replica has, see `logical_device`.
        target: What sessions connect with, see `fs.Session`: a cluster, for its workers' devices.
        input_mode: How many input pipelines there are.

    Raises:
        InvalidArgumentError: if there are no devices, or not so many for each replica.

    Example:
        >>> replicator = fs.replicator.MultiDevice(2)
        >>> def step():
        ...     return fs.replicator.all_sum(fs.replicator.current_replica_id() + 1)
        >>> y = replicator.run(step)
        >>> with replicator.session() as sess:
        ...     print(sess.run(y))
        (np.int32(3), np.int32(3))
    """

    def __init__(
        self,
        devices: Sequence[Any] | int,
        num_logical_devices: int = 1,
        target: Any = "",
        *,
        input_mode: InputMode = InputMode.PER_WORKER,
    ) -> None:
        if isinstance(devices, bool | str):
            raise InvalidArgumentError(f"expected a list of devices, got {devices!r}")
        if isinstance(num_logical_devices, bool) or num_logical_devices < 1:
            raise InvalidArgumentError(
                f"expected 1 or more logical devices, got {num_logical_devices!r}"
            )
        size = num_logical_devices
        listed = [None] * devices * size if isinstance(devices, int) else list(devices)
        if not listed or len(listed) % size:
            raise InvalidArgumentError(
                f"expected {size} devices for each replica, and one replica at least, got "
                f"{len(listed)} devices"
            )
        rows = [listed[i : i + size] for i in range(0, len(listed), size)]
        self._begin(rows, input_mode, target)


__all__ = ["MultiDevice"]
