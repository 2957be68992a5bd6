"""The devices of this process that a session asks for."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.plan.analysis.device_profile import DeviceProfile
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.devices.device import Device, MakeTasks, ParallelFor
from flowscope.runtime.devices.device_registry import DeviceRequest, device_types, maker_of


def local_devices(
    config: ConfigProto,
    parallel_for: ParallelFor | None = None,
    make_tasks: MakeTasks | None = None,
) -> tuple[Device, ...]:
    """Returns this process's devices that `config` asks for, the CPUs first.

    As in TensorFlow `device_count` is a limit, and there is at least one CPU. GPUs are looked for
    only where they are asked for; a warning says why there are fewer.

    Args:
        config: What the session asks for.
        parallel_for: Has several threads take parts of a CPU's kernel; None where one does it all.
        make_tasks: Has other threads run parts of a CPU's code early; None where one does it all.

    Raises:
        InvalidArgumentError: if the counts are not understood.
    """
    _check(config)
    counts = {**config.device_count, "CPU": max(1, config.device_count.get("CPU", 1))}
    fakes = _fakes(config)
    found: list[Device] = []
    for device_type in sorted({*counts, *fakes}, key=lambda t: t != "CPU"):
        request = DeviceRequest(device_type, counts.get(device_type, 0), parallel_for, make_tasks)
        maker = maker_of(device_type)
        if device_type in fakes:
            found += fakes[device_type]
        elif request.count and maker is not None:
            found += list(maker(request))[: request.count]
    return tuple(found)


def _check(config: ConfigProto) -> None:
    known = device_types()
    for name, count in config.device_count.items():
        if name not in known or not _is_count(count):
            types = " and ".join(f'"{t}"' for t in known)
            raise InvalidArgumentError(
                f"expected counts of {types}, from 0, got {name!r}: {count!r}"
            )
    for name, given in config.fake_devices.items():
        if name not in known or name == "CPU" or not (_is_count(given) or _are_profiles(given)):
            raise InvalidArgumentError(
                "expected counts or profiles of fake accelerators by a type that is registered, "
                f"got {name!r}: {given!r}"
            )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _are_profiles(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(p, DeviceProfile) for p in value)


def _fakes(config: ConfigProto) -> dict[str, Any]:
    if not any(config.fake_devices.values()):
        return {}
    from flowscope.runtime.devices.fake import fake_devices

    return dict(fake_devices(config.fake_devices))
