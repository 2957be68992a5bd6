"""The device contract: what a session asks of a device, whatever it is made of.

A back end is a file beside this one with a subclass of `Device`. Values on a device are arrays of
its array module `xp`; only `put` and `get` lead from NumPy arrays to them and back. On the CPU, a
value of rank 0 is a NumPy scalar.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from flowscope.errors import UnavailableError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.lazy import frozen
from flowscope.graph.values.host_values import on_host
from flowscope.plan.analysis.device_profile import CPU_PROFILE, DeviceProfile

if TYPE_CHECKING:
    from flowscope.plan.codegen.native_hooks import LoopCompiler

#: Has several threads take parts of a kernel: (how many, what takes one).
ParallelFor = Callable[[int, Callable[[int], None]], None]
#: Makes what hands out parts of code; see `flowscope.plan.codegen.sections`.
MakeTasks = Callable[[], Any]

#: The task that a process is by itself.
LOCAL_TASK = "/job:localhost/replica:0/task:0"


@frozen
class DeviceMemory:
    """How full a device's memory is, in bytes.

    Attributes:
        used_bytes: Bytes in use.
        total_bytes: Bytes that there are.
        peak_bytes: The most that were ever in use; 0 where that is not known.
    """

    used_bytes: int
    total_bytes: int
    peak_bytes: int = 0


def driver_failure(error: BaseException) -> UnavailableError | None:
    """Returns the error for one that a GPU's driver has raised; None for another one.

    The driver tells of a failed kernel at some later call, so the operation that meets the error
    need not have caused it. After most of its errors a process cannot use the GPU any more.
    """
    if type(error).__name__ != "CUDARuntimeError":  # only the back end imports CuPy
        return None
    return UnavailableError(
        f"the driver of the GPU has failed: {error}. Maybe an earlier kernel has caused it. If "
        "the next step fails too, the GPU is lost to this process: restart the process, or give "
        "the operations a CPU"
    )


class Device(ABC):
    """A device of a session.

    Attributes:
        name: Full name, e.g. "/job:localhost/replica:0/task:0/device:CPU:0".
        device_type: "CPU" or "GPU".
        index: Which one of its type.
        xp: The array module that its kernels use.
        parallel_for: Has several threads take parts of a kernel; None where one does it all.
        make_tasks: Has other threads run parts of code early; None where one does it all.
        memory_limit_bytes: Bytes of memory that it has; 0 where that is not known.
        incarnation: Tells it from other devices that had the same name.
    """

    device_type = "CPU"
    xp: Any
    parallel_for: ParallelFor | None = None
    make_tasks: MakeTasks | None = None

    def __init__(self, index: int) -> None:
        self.index = index
        self.name = f"{LOCAL_TASK}/device:{self.device_type}:{index}"
        self.incarnation = int.from_bytes(os.urandom(8))

    def native_compiler(self) -> LoopCompiler | None:
        """What compiles loops of single numbers while they run; None where all stays Python."""
        return None

    def belong_to(self, task: str) -> None:
        """Makes it a device of a task of a cluster, before anybody uses it."""
        self.name = f"{task}/device:{self.device_type}:{self.index}"

    @property
    def spec(self) -> DeviceSpec:
        """The parsed name."""
        return DeviceSpec.from_string(self.name)

    @property
    def memory_limit_bytes(self) -> int:
        """Bytes of memory that it has; 0 where that is not known."""
        memory = self.memory()
        return memory.total_bytes if memory else 0

    @property
    def profile(self) -> DeviceProfile:
        """How quick it is, for placement by cost and for simulations: that of a CPU by default."""
        return CPU_PROFILE

    @abstractmethod
    def put(self, value: Any) -> Any:
        """Returns `value`, an array or scalar of NumPy or of another device, on this device.

        What lies on it already is returned as it is.
        """

    @abstractmethod
    def get(self, value: Any) -> Any:
        """Returns a value of this device as a NumPy array (a scalar for rank 0) of its own.

        On the CPU, the value itself.
        """

    def get_all(self, values: Sequence[Any]) -> list[Any]:
        """Returns values of any devices as NumPy arrays and scalars, in one go where that can be.

        Of its own ones `get` says what they are; the host waits for them together.
        """
        return [on_host(v) for v in values]

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether `value` is an array on this device."""

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until all work that was given to the device is done."""

    @abstractmethod
    def memory(self) -> DeviceMemory | None:
        """Returns how full its memory is, None where that is not known."""

    @abstractmethod
    def active(self) -> AbstractContextManager[Any]:
        """Returns a context in which new arrays of `xp` lie on this device."""

    def __repr__(self) -> str:
        return f"<fs device {self.name}>"
