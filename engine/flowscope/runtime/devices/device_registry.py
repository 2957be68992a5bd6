"""Device classes by their types: who makes the devices that a session asks for.

    @fs.register_device("NPU")
    def npus(request):
        return [Npu(i) for i in range(request.count)]

    fs.Session(config=fs.ConfigProto(device_count={"NPU": 2}))

CPUs, GPUs through CuPy and fake devices are made in this way, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from flowscope.errors import (
    AlreadyExistsError,
    DeviceWarning,
    InvalidArgumentError,
    UnavailableError,
)
from flowscope.graph.op import share_kernels
from flowscope.runtime.devices.cpu import Cpu
from flowscope.runtime.devices.device import Device, MakeTasks, ParallelFor


class DeviceRequest:
    """What a session asks of the maker of its devices of one type.

    Attributes:
        device_type: The type, such as "GPU".
        count: At most so many; there may be fewer, of which a `fs.DeviceWarning` tells.
        parallel_for: Has several threads take parts of a CPU's kernel; None where one does it all.
        make_tasks: Has other threads run parts of a CPU's code early; None where one does it all.
    """

    def __init__(
        self,
        device_type: str,
        count: int,
        parallel_for: ParallelFor | None = None,
        make_tasks: MakeTasks | None = None,
    ) -> None:
        self.device_type = device_type
        self.count = count
        self.parallel_for = parallel_for
        self.make_tasks = make_tasks


#: Returns the devices of one type that a session gets.
Maker = Callable[[DeviceRequest], Sequence[Device]]

_makers: dict[str, Maker] = {}


def register_device(device_type: str, kernels: str = "GPU") -> Callable[[Maker], Maker]:
    """Decorator: the function makes the devices of a type, which sessions then can ask for.

    Args:
        device_type: The type, such as "NPU": what `ConfigProto.device_count` and `fs.device` name.
        kernels: The type whose kernels its devices run, beside those that are registered for
            `device_type` itself (`fs.register_kernel`): "GPU" for kernels that compute with the
            array module that they are given, as CuPy would.

    Raises:
        AlreadyExistsError: if another function makes devices of that type.
        InvalidArgumentError: if the type is no name.
    """
    if not device_type.isidentifier() or device_type != device_type.upper():
        raise InvalidArgumentError(
            f"expected a device type in capital letters, such as NPU, got {device_type!r}"
        )

    def register(maker: Maker) -> Maker:
        known = _makers.get(device_type)
        if known is not None and known.__qualname__ != maker.__qualname__:
            raise AlreadyExistsError(f"there are devices of the type {device_type} already")
        _makers[device_type] = maker
        if kernels != device_type:
            share_kernels(device_type, kernels)
        return maker

    return register


def maker_of(device_type: str) -> Maker | None:
    """The factory of a device type; None if the type is not registered."""
    return _makers.get(device_type)


def device_types() -> list[str]:
    """Returns the types of which there may be devices."""
    return list(_makers)


@register_device("CPU", kernels="CPU")
def _cpus(request: DeviceRequest) -> Sequence[Device]:
    return [Cpu(i, request.parallel_for, request.make_tasks) for i in range(request.count)]


@register_device("GPU")
def _gpus(request: DeviceRequest) -> Sequence[Device]:
    try:
        from flowscope.runtime.devices.cupy import gpus

        return gpus()
    except UnavailableError as e:
        warnings.warn(
            f"the session asked for {request.count} GPU and has none: {e.message}",
            DeviceWarning,
            stacklevel=3,
        )
        return []


__all__ = ["DeviceRequest", "device_types", "maker_of", "register_device"]
