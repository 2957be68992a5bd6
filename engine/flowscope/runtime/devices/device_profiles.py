"""The machine that placement by cost reckons with, made of a session's devices.

A device whose memory is not the host's and that does not say how quick it is, is measured: its
link by small and large copies, its calls by many small additions, its speed by a product.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.plan.analysis.costs import PRODUCT_FLOPS_PER_S
from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.plan.placement.machine import PlacementMachine, at_once
from flowscope.runtime.devices.device import Device

_SMALL, _LARGE, _SIDE = 64, 1 << 20, 512


def machine_of(
    devices: Sequence[Device], cores: int = 1, link_of: Callable[[str, str], Link] = at_once
) -> PlacementMachine:
    """Returns the machine of some devices.

    Args:
        devices: The devices, best first.
        cores: How many threads a step may use.
        link_of: Returns the link between the hosts of two devices, by the devices' names.
    """
    profiles = [profile_of(d) for d in devices]
    return PlacementMachine([d.name for d in devices], profiles, cores, link_of)


def profile_of(device: Device) -> DeviceProfile:
    """Returns how quick a device is; it is measured where it does not say so."""
    profile = device.profile
    if device.device_type != "CPU" and profile.link is None:
        profile = measured(device)
    limit = profile.memory_bytes or device.memory_limit_bytes
    return dataclasses.replace(profile, memory_bytes=limit)


def measured(device: Device) -> DeviceProfile:
    """Returns the profile of a device as measured now, in some milliseconds."""
    small, large = np.ones(_SMALL, np.float32), np.ones(_LARGE, np.float32)
    with device.active():
        latency = _seconds(device, lambda: device.put(small.copy()))
        whole = _seconds(device, lambda: device.put(large.copy()))
        x, square = device.put(small), device.put(np.ones((_SIDE, _SIDE), np.float32))
        call = _seconds(device, lambda: [x + x for _ in range(20)]) / 20
        product = _seconds(device, lambda: square @ square)
    link = Link(large.nbytes / max(whole - latency, 1e-9), latency)
    work = 2 * _SIDE**3 / PRODUCT_FLOPS_PER_S
    return DeviceProfile(work / max(product - call, 1e-9), call, link)


def _seconds(device: Device, work: Callable[[], Any]) -> float:
    """Returns the seconds of the quickest of some runs."""
    found = []
    for _ in range(4):
        device.synchronize()
        start = time.perf_counter()
        work()
        device.synchronize()
        found.append(time.perf_counter() - start)
    return min(found)


__all__ = ["machine_of", "measured", "profile_of"]
