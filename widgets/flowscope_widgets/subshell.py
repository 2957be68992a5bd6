"""Hearing the browser while a cell is busy.

ipykernel 7 runs comm handlers in a subshell thread, but it hands a comm's incoming messages to the
(sub)shell that last *sent* on the comm, and the running cell's own messages make that the busy main
shell. A comm that answers each message where it came in hears the browser at any time.
"""

from __future__ import annotations

import sys
from typing import Any

from flowscope.live.watchers.bus import notebook


def listen_while_busy(comm: Any) -> None:
    """Makes `comm` take incoming messages in the subshell that they were addressed to.

    Where the kernel has no subshells, the bus is told that commands wait for the end of the cell.
    """
    if _can_listen(comm):
        comm._reply_subshell_for = lambda data, default: default
        notebook.control = "live"
    else:
        notebook.control = "between cells"


def running_kernel() -> Any:
    """Returns the ipykernel of this process; None where there is none."""
    module = sys.modules.get("ipykernel.kernelbase")  # a kernel that runs was imported
    is_there = module is not None and module.Kernel.initialized()
    return module.Kernel.instance() if module is not None and is_there else None


def _can_listen(comm: Any) -> bool:
    if not hasattr(comm, "_reply_subshell_for"):
        return False
    kernel = getattr(comm, "kernel", None) or running_kernel()
    return bool(getattr(kernel, "_supports_kernel_subshells", False))
