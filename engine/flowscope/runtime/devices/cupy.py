"""GPUs as devices, through CuPy: the only place that imports it, and only when asked for a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import numpy as np

from flowscope.errors import UnavailableError
from flowscope.graph.values.host_values import on_host
from flowscope.ops.kernels.scipy_modules import finders
from flowscope.runtime.devices.device import Device, DeviceMemory
from flowscope.runtime.devices.gpu_streams import streams_of

_INSTALL = '`pip install "flowscope[gpu]"` (for CUDA 13 "flowscope[gpu13]") installs it'


class CupyGpu(Device):
    """A GPU. Kernels run on its compute stream, behind each other; see `gpu_streams`."""

    device_type = "GPU"

    def __init__(self, index: int, cupy: Any) -> None:
        super().__init__(index)
        self.xp = cupy
        self._streams = streams_of(cupy, index)

    def put(self, value: Any) -> Any:
        if self.holds(value):
            return value
        if isinstance(value, self.xp.ndarray):
            return self._streams.bring_over(value)
        return self._streams.bring_in(np.asarray(on_host(value)))

    def get(self, value: Any) -> Any:
        return self.get_all([value])[0]

    def get_all(self, values: Sequence[Any]) -> list[Any]:
        found = list(values)
        places: dict[int, list[int]] = {}
        for i, value in enumerate(values):
            if isinstance(value, self.xp.ndarray):
                places.setdefault(value.device.id, []).append(i)
        coming = [
            (at, streams_of(self.xp, gpu).bring_out([values[i] for i in at]))
            for gpu, at in places.items()
        ]
        for at, arrival in coming:
            for i, value in zip(at, arrival(), strict=True):
                found[i] = value
        return [on_host(v) for v in found]

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.xp.ndarray) and value.device.id == self.index

    def synchronize(self) -> None:
        self._streams.device.synchronize()

    def memory(self) -> DeviceMemory | None:
        free, total = self._streams.device.mem_info
        return DeviceMemory(total - free, total)

    def active(self) -> AbstractContextManager[Any]:
        return self._streams.active()


def gpus() -> list[CupyGpu]:
    """Returns this machine's GPUs.

    Raises:
        UnavailableError: if CuPy is not installed, does not load or finds no GPU; it says which.
    """
    try:
        import cupy
    except ModuleNotFoundError:
        raise UnavailableError(f"GPUs need CuPy, which is not installed; {_INSTALL}") from None
    except ImportError as e:
        raise UnavailableError(f"CuPy is installed but does not load: {e}") from e
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as e:
        raise UnavailableError(f"CuPy finds no GPU: {e}") from e
    return [CupyGpu(i, cupy) for i in range(count)]


def _scipy(xp: Any, part: str) -> Any:
    """The module that replaces SciPy's on GPUs; see `flowscope.ops.kernels.scipy_modules`."""
    return import_module(f"cupyx.scipy.{part}") if xp.__name__ == "cupy" else None


finders.append(_scipy)

__all__ = ["CupyGpu", "gpus"]
