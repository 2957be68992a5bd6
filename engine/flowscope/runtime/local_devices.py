"""The devices of this process that a session asks for."""

from __future__ import annotations

import warnings

from flowscope.errors import DeviceWarning, InvalidArgumentError, UnavailableError
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.cpu import Cpu
from flowscope.runtime.devices import Device, MakeTasks, ParallelFor


def local_devices(
    config: ConfigProto,
    parallel_for: ParallelFor | None = None,
    make_tasks: MakeTasks | None = None,
) -> tuple[Device, ...]:
    """Returns this process's devices that `config` asks for, the CPU first.

    As in TensorFlow `device_count` is a limit, and there is at least one CPU. GPUs are looked for
    only where they are asked for; a warning says why there are fewer.

    Args:
        config: What the session asks for.
        parallel_for: Has several threads take parts of a CPU's kernel; None where one does it all.
        make_tasks: Has other threads run parts of a CPU's code early; None where one does it all.

    Raises:
        InvalidArgumentError: if the counts are not understood.
    """
    for name, count in {**config.device_count, **config.fake_devices}.items():
        if name not in ("CPU", "GPU") or not isinstance(count, int) or count < 0:
            raise InvalidArgumentError(
                f'expected counts of "CPU" and "GPU", from 0, got {name!r}: {count!r}'
            )
    count = max(1, config.device_count.get("CPU", 1))
    cpus = [Cpu(i, parallel_for, make_tasks) for i in range(count)]
    return (*cpus, *_gpus(config))


def _gpus(config: ConfigProto) -> list[Device]:
    fake = config.fake_devices.get("GPU", 0)
    if fake:
        from flowscope.runtime.fake import FakeGpu

        return [FakeGpu(i) for i in range(fake)]
    wanted = config.device_count.get("GPU", 0)
    if not wanted:
        return []
    try:
        from flowscope.runtime.cupy import gpus

        return list(gpus()[:wanted])
    except UnavailableError as e:
        warnings.warn(
            f"the session asked for {wanted} GPU and has none: {e.message}",
            DeviceWarning,
            stacklevel=2,
        )
        return []
