"""Devices of this process: names, kinds and array modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flowscope.graph.devices import DeviceSpec


@dataclass(frozen=True)
class Device:
    """A device of a session.

    Attributes:
        name: Full name, e.g. "/job:localhost/replica:0/task:0/device:CPU:0".
        device_type: "CPU" or "GPU".
    """

    name: str
    device_type: str
    #: The array module that its kernels use.
    xp: Any

    @property
    def spec(self) -> DeviceSpec:
        """The parsed name."""
        return DeviceSpec.from_string(self.name)


def local_devices(device_count: dict[str, int]) -> tuple[Device, ...]:
    """Returns this process's devices: as many CPU devices as asked for, one at least."""
    count = max(1, device_count.get("CPU", 1))
    prefix = "/job:localhost/replica:0/task:0/device:CPU:"
    return tuple(Device(f"{prefix}{i}", "CPU", np) for i in range(count))
