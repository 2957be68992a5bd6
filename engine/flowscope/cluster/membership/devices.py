"""The devices of other tasks, as a session plans with them: their values are not here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flowscope.errors import InternalError
from flowscope.graph.devices import DeviceSpec
from flowscope.plan.analysis.device_profile import CPU_PROFILE, DeviceProfile, Link
from flowscope.runtime.devices.device import Device, DeviceMemory

#: Of a device that is no CPU, before its process has told.
_UNMEASURED = DeviceProfile(link=Link())


class RemoteDevice(Device):
    """A device of another task.

    Args:
        name: Its full name.
        incarnation: Which life of it this is.
        memory_limit_bytes: Bytes of memory that it has; 0 where that is not known.
    """

    xp: Any = np

    def __init__(self, name: str, incarnation: int = 0, memory_limit_bytes: int = 0) -> None:
        spec = DeviceSpec.from_string(name)
        self.device_type = spec.device_type or "CPU"
        super().__init__(spec.device_index or 0)
        self.name = name
        self.incarnation = incarnation
        self._memory_limit_bytes = memory_limit_bytes
        self._profile = CPU_PROFILE if self.device_type == "CPU" else _UNMEASURED

    @property
    def memory_limit_bytes(self) -> int:
        """Bytes of memory that it has; 0 where that is not known."""
        return self._memory_limit_bytes

    @property
    def profile(self) -> DeviceProfile:
        """How quick it is, as its process has told."""
        return self._profile

    def is_like(self, profile: DeviceProfile) -> None:
        """Takes over how quick it is."""
        self._profile = profile

    def put(self, value: Any) -> Any:
        """Raises: values reach another task in steps only."""
        raise InternalError(f"{self.name} belongs to another process: nothing is put there")

    def get(self, value: Any) -> Any:
        """Raises, as `put` does."""
        raise InternalError(f"{self.name} belongs to another process: nothing is taken there")

    def holds(self, value: Any) -> bool:
        """Nothing that is here lies there."""
        return False

    def synchronize(self) -> None:
        """Does nothing: steps end when all their tasks are done."""

    def memory(self) -> DeviceMemory | None:
        """How full it is, only its own process knows."""
        return None

    @contextmanager
    def active(self) -> Iterator[None]:
        """Returns a context in which nothing is different."""
        yield


def task_of(device: str) -> str:
    """Returns the task that a device belongs to, such as "/job:worker/replica:0/task:3"."""
    return device.rpartition("/device:")[0]


__all__ = ["RemoteDevice", "task_of"]
