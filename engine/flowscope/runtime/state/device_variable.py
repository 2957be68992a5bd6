"""Variables as seen from one device, in sessions that have devices of several kinds.

A value lies on the device that the plan of the last step gave its variable: who reads or writes it
elsewhere takes it over first. So it crosses once where a variable was moved, or initialised
elsewhere, and not in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.runtime.devices.device import Device
from flowscope.runtime.state.resources import VariableState


class PlacedVariable:
    """A variable for kernels of one device; everything else is the state's own."""

    __slots__ = ("device", "state")

    def __init__(self, state: VariableState, device: Device) -> None:
        self.state = state
        self.device = device

    def read(self) -> Any:
        """Returns the value on the device, on lease; see `VariableState.read`."""
        value = self.state.read()
        if self.device.holds(value):
            return value
        self.state.relocate(self.device.put)
        return self.device.put(self.state.read())  # another step may have it elsewhere by now

    def assign(self, value: Any) -> Any:
        """Sets the value, copying it; returns the new one."""
        return self.state.assign(value)

    def adopt(self, value: Any) -> Any:
        """Sets the value without a copy, where that can be; returns the new one."""
        return self.state.adopt(value)

    def update(self, fresh: Callable[[Any], Any], in_place: Callable[[Any], None]) -> Any:
        """Changes the value atomically, on the device; returns the new one."""
        return self.state.update(fresh, in_place, self.device.put)

    def change(self, others: Sequence[PlacedVariable], in_place: Callable[..., None]) -> Any:
        """Changes it and others in one go, on the device; returns the new value of this one."""
        return self.state.change([v.state for v in others], in_place, self.device.put)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)


#: Runs a plan: (gate, run, feeds, resources) -> its results.
Function = Callable[..., tuple[Any, ...]]


def handing_out(device: Device, function: Function) -> Function:
    """Returns a plan's function with an accelerator current, whose results come to the host."""
    inside = on_device(device, function)

    def run(gate: Any, run: Any, feeds: tuple[Any, ...], resources: Any) -> tuple[Any, ...]:
        return tuple(device.get_all(inside(gate, run, feeds, resources)))

    return run


def on_device(device: Device, function: Function) -> Function:
    """Returns a plan's function with an accelerator current, whose results stay where they are."""

    def run(gate: Any, run: Any, feeds: tuple[Any, ...], resources: Any) -> tuple[Any, ...]:
        with device.active():
            return function(gate, run, feeds, resources)

    return run
