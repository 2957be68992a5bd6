"""Modules: what the kernels of a program compute with, by the device of each node.

The kernel of a node is given the array module of the node's device. A transfer is given the device
that the value comes to. Where several accelerators take part, one is current while the step runs;
the kernels of the others make theirs current while they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.kernels import kernel_function, node_kernel
from flowscope.plan.ir.program import Node


class DeviceLike(Protocol):
    """What planning needs to know of a device here."""

    @property
    def xp(self) -> Any:
        """The array module that its kernels use."""

    @property
    def device_type(self) -> str:
        """ "CPU", or the type of an accelerator."""

    def active(self) -> AbstractContextManager[Any]:
        """Returns a context in which new arrays of `xp` lie on the device."""


class Modules:
    """The array modules of the devices that a program runs on.

    Args:
        xp: The array module of nodes without a device.
        devices: The devices by their full names; "" for the host's.
        nodes: The nodes of the program, in blocks too; the first accelerator among their devices
            is current while it runs.
    """

    def __init__(
        self,
        xp: Any,
        devices: Mapping[str, DeviceLike] | None = None,
        nodes: Iterable[Node] = (),
    ) -> None:
        self._xp = xp
        self._devices = devices or {}
        names = dict.fromkeys(n.device for n in nodes)
        found = [d for n in names if (d := self._devices.get(n)) and d.device_type != "CPU"]
        #: The device that is current while the program runs; None where all are CPUs.
        self.current: DeviceLike | None = found[0] if found else None

    def of(self, node: Node) -> Any:
        """Returns the array module of a node's device; of a transfer, the device it leads to."""
        if isinstance(node.op, Transfer):
            return self._devices.get("" if node.op.to_host else node.op.recv_device)
        device = self._devices.get(node.device)
        return self._xp if device is None else device.xp

    def must_switch(self, node: Node) -> bool:
        """Whether a node's device is an accelerator that is not current, and the kernel heeds it.

        Devices make themselves current where values come and go.
        """
        if self.current is None or isinstance(node.op, Transfer):
            return False
        device = self._devices.get(node.device)
        return device is not None and device.device_type != "CPU" and device is not self.current

    def function(self, node: Node) -> Callable[..., Any]:
        """Returns the function (xp, *inputs) of a node: see `kernel_function`."""
        return self._switching(node, kernel_function(node))

    def kernel(self, node: Node) -> Callable[..., Any]:
        """Returns the kernel (xp, *inputs) of a node: see `node_kernel`."""
        return self._switching(node, node_kernel(node))

    def _switching(self, node: Node, kernel: Callable[..., Any]) -> Callable[..., Any]:
        if not self.must_switch(node):
            return kernel
        device = self._devices[node.device]

        def switching(*arguments: Any) -> Any:
            with device.active():
                return kernel(*arguments)

        return switching


__all__ = ["DeviceLike", "Modules"]
