"""The CPU as a device: NumPy arrays, in this process's memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.graph.current_step import background
from flowscope.graph.values.host_values import on_host
from flowscope.runtime.devices.device import Device, DeviceMemory, MakeTasks, ParallelFor

if TYPE_CHECKING:
    from flowscope.plan.codegen.native_hooks import LoopCompiler


class Cpu(Device):
    """A CPU device. Several of them share the processor and the memory.

    Args:
        index: Which one it is.
        parallel_for: Has several threads take parts of a kernel; None where one does it all.
        make_tasks: Has other threads run parts of code early; None where one does it all.
    """

    device_type = "CPU"
    xp = np

    def __init__(
        self,
        index: int,
        parallel_for: ParallelFor | None = None,
        make_tasks: MakeTasks | None = None,
    ) -> None:
        super().__init__(index)
        self.parallel_for = parallel_for
        self.make_tasks = make_tasks

    def native_compiler(self) -> LoopCompiler | None:
        from flowscope.runtime.threads.native_loops import (
            native_compiler,
        )  # most plans have no loop

        return native_compiler()

    def put(self, value: Any) -> Any:
        return on_host(value)

    def get(self, value: Any) -> Any:
        return value

    def holds(self, value: Any) -> bool:
        return isinstance(value, np.ndarray | np.generic)

    def synchronize(self) -> None:
        pass

    def memory(self) -> DeviceMemory | None:
        """Bytes that this process uses and that the machine has; None where unknown."""
        try:
            page, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[1]) * page
        except (OSError, ValueError, AttributeError):
            return None
        return DeviceMemory(used, page * pages)

    def active(self) -> AbstractContextManager[Any]:
        return nullcontext()


def _in_background(job: Callable[[], None]) -> Callable[[], None]:
    """Has the thread that compiles loops do a job; returns what waits for its end."""
    from flowscope.runtime.threads.native_loops import native_compiler  # most programs have none

    compiler = native_compiler()
    if compiler is not None:
        return compiler.run(job)
    job()  # there is nothing that could be compiled
    return lambda: None


background.append(_in_background)
