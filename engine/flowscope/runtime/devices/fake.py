"""Fake accelerators: they compute with NumPy, and are as strict and as asynchronous as a GPU.

Values enter by `put` (or `xp.asarray`) and leave by `get` alone; nothing of NumPy takes them, and
`xp` has no function, keyword or dtype that CuPy has not. A kernel on arrays of a device that is not
current raises, as does a read that nobody asked for.

Each device has a virtual time line: `runtime.devices.virtual_clock`. A kernel starts when the
device is free and its inputs are there, and takes what its work takes at the speed of the device's
profile; a value crosses its link in latency and bytes by bandwidth; who reads a value waits for it.
So the time of a step can be told for machines that are not there, without measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from flowscope.errors import ResourceExhaustedError
from flowscope.graph.lazy import frozen
from flowscope.graph.values.host_values import on_host
from flowscope.plan.analysis.device_profile import DeviceProfile, Link, transfer_s
from flowscope.runtime.devices import cupy_table
from flowscope.runtime.devices.device import Device, DeviceMemory
from flowscope.runtime.devices.fake_arrays import Buffer, FakeArray
from flowscope.runtime.devices.fake_module import FakeFunction, FakeModule, dtypes_of
from flowscope.runtime.devices.fake_work import work_s
from flowscope.runtime.devices.virtual_clock import Stream, VirtualClock

#: Of a fake device for which nothing else is said: roughly a GPU of 10 TFLOPS on PCI Express.
FAKE_PROFILE = DeviceProfile(speed=100.0, call_s=5e-6, link=Link(12e9, 10e-6))

#: The universal functions of the operators.
_UFUNC_OF = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    "divmod": "divmod", "neg": "negative", "abs": "absolute", "invert": "invert", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip


@frozen
class Usage:
    """What a fake device has done since it was made.

    Attributes:
        kernels: How many array functions it has run.
        busy_s: Seconds that it has computed.
        copied_in_s, copied_out_s: Seconds that values came in, and went out.
        used_bytes, peak_bytes: Bytes of its memory that are in use, and that ever were.
        reads: How many values were read that nobody asked for: a GPU would have been waited for.
    """

    kernels: int
    busy_s: float
    copied_in_s: float
    copied_out_s: float
    used_bytes: int
    peak_bytes: int
    reads: int


class FakeDevice(Device):
    """A device that computes with NumPy, on a virtual clock.

    Args:
        index: Which one of its type.
        profile: How quick it and its link are, and how much memory it has.
        clock: The clock of all devices of a session; one of its own by default.
        is_strict: Whether a value that is read without being asked for is an error.
        device_type: What it calls itself.
    """

    def __init__(
        self,
        index: int,
        profile: DeviceProfile = FAKE_PROFILE,
        clock: VirtualClock | None = None,
        is_strict: bool = True,
        device_type: str = "GPU",
    ) -> None:
        self.device_type = device_type
        super().__init__(index)
        self.clock = clock or VirtualClock()
        self.is_strict = is_strict
        self.xp = FakeModule(np, "cupy", self)
        self.clock.devices[self.name] = self
        self._profile = profile
        label = f"{self.device_type}:{index}"
        self._compute, self._in, self._out = (
            Stream(f"{label} {what}", self.clock) for what in ("compute", "in", "out")
        )
        self._kernels = self._reads = self._used = self._peak = 0

    @property
    def profile(self) -> DeviceProfile:
        return self._profile

    # -- the contract of devices ------------------------------------------------------------------

    def put(self, value: Any) -> Any:
        if self.holds(value):
            return value
        if isinstance(value, FakeArray):
            return self._from_device(value)
        found = FakeArray(np.array(on_host(value)), self)
        link = self._profile.link
        seconds = 0.0 if link is None else link.seconds(found._host.nbytes)
        found.buffer.ready_s = self._in.run("put", seconds, 0.0, found._host.nbytes)
        return found

    def _from_device(self, value: FakeArray) -> FakeArray:
        host, source = value._host, value.device
        found = FakeArray(np.array(host), self)
        seconds = transfer_s(host.nbytes, source.profile, self._profile)
        out = source._out.run("send", seconds, value.buffer.ready_s, host.nbytes)
        found.buffer.ready_s = self._in.run("receive", seconds, out - seconds, host.nbytes)
        return found

    def get(self, value: Any) -> Any:
        return on_host(value)

    def holds(self, value: Any) -> bool:
        return isinstance(value, FakeArray) and value.device is self

    def synchronize(self) -> None:
        self.clock.wait(max(self._compute.ready_s, self._in.ready_s, self._out.ready_s))

    def memory(self) -> DeviceMemory | None:
        total = self._profile.memory_bytes
        return DeviceMemory(self._used, total, self._peak) if total else None

    def active(self) -> AbstractContextManager[Any]:
        return self.clock.making_current(self.name)

    def usage(self) -> Usage:
        """The device's work since it was made."""
        return Usage(
            self._kernels,
            self._compute.busy_s,
            self._in.busy_s,
            self._out.busy_s,
            self._used,
            self._peak,
            self._reads,
        )

    # -- for its arrays and functions -------------------------------------------------------------

    def reserve(self, nbytes: int) -> None:
        """Takes memory; raises ResourceExhaustedError if there is not so much left."""
        limit = self._profile.memory_bytes
        if limit and self._used + nbytes > limit:
            raise ResourceExhaustedError(
                f"{self.name} is out of memory: {nbytes} bytes wanted, {self._used} of {limit} used"
            )
        self._used += nbytes
        self._peak = max(self._peak, self._used)

    def release(self, nbytes: int) -> None:
        """Gives memory back."""
        self._used -= nbytes

    def bring_out(self, buffer: Buffer, nbytes: int) -> None:
        """Has the host wait until a value has come to it."""
        link = self._profile.link
        seconds = 0.0 if link is None else link.seconds(nbytes)
        self.clock.wait(self._out.run("get", seconds, buffer.ready_s, nbytes))

    def read(self, buffer: Buffer, what: str) -> None:
        """Has the host wait for a value that it reads by an operator of Python's.

        Raises:
            TypeError: if the device is strict.
        """
        if self.is_strict:
            raise TypeError(f"{what} reads an array on {self.name}: only `get` may")
        self._reads += 1
        self.bring_out(buffer, 8)

    def call(
        self, name: str, given: Any, function: Callable[[], Any], target: FakeArray | None = None
    ) -> Any:
        """Runs a function on the device's time line; gives arrays of this device.

        Args:
            name: Its name.
            given: Its arguments, among which this device's arrays are.
            function: Computes it with NumPy.
            target: The array that it changes.
        """
        current = self.clock.current
        if current != self.name and (current is not None or self.index):
            raise ValueError(
                f"{name} was called on {self.name} while {current or 'another one'} is current"
            )
        arrays = _arrays_in(given)
        return self.outwards(function(), arrays, name, target)

    def method(self, function: Callable[..., Any], full: str, owner: FakeArray) -> FakeFunction:
        """Returns a method of an array."""
        return FakeFunction(function, full, self, owner)

    def check_operator(self, name: str, values: Any) -> None:
        """Raises TypeError if CuPy has no such operator for values of these dtypes."""
        bare = name.strip("_")
        short = _UFUNC_OF.get(bare) or _UFUNC_OF.get(bare[1:])
        found = None if short is None else cupy_table.ufunc(f"cupy.{short}")
        if found is not None:
            is_swapped = bare not in _UFUNC_OF and bare[0] == "r"
            found.check(dtypes_of(values[::-1] if is_swapped else values))

    def inwards(self, value: Any, takes_host: bool = False) -> Any:
        """Returns arguments with NumPy arrays in place of this device's.

        Raises:
            TypeError: if there is an array of NumPy or of another device among them.
        """
        if isinstance(value, FakeArray):
            if value.device is not self:
                raise TypeError(f"an array on {value.device.name} was used on {self.name}")
            return value._host
        if isinstance(value, np.ndarray) and not takes_host:
            raise TypeError(f"a NumPy array was used on {self.name}")
        if isinstance(value, list | tuple):
            return type(value)([self.inwards(v, takes_host) for v in value])
        if isinstance(value, dict):
            return {k: self.inwards(v, takes_host) for k, v in value.items()}
        if isinstance(value, slice):
            for part in (value.start, value.stop, value.step):
                if isinstance(part, FakeArray):
                    raise TypeError("a slice from or to an array on a device")
        return value

    def outwards(self, value: Any, inputs: Any, name: str, target: FakeArray | None = None) -> Any:
        """Returns results with arrays of this device in place of NumPy's, scalars included.

        Args:
            value: What NumPy gave.
            inputs: The arrays from which it came.
            name: What gave it.
            target: The array that was changed; None where nothing was.
        """
        known = {id(_root(a._host)): a for a in inputs}
        made: list[FakeArray] = []
        result = self._wrapped(value, known, made)
        new = [a for a in made if a.base is None] if target is None else [target]
        if new:
            self._run(name, inputs, new)
        return result

    def _wrapped(self, value: Any, known: dict[int, FakeArray], made: list[FakeArray]) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            host = np.asarray(value)
            made.append(FakeArray(host, self, known.get(id(_root(host)))))
            return made[-1]
        if isinstance(value, list | tuple):
            parts = [self._wrapped(v, known, made) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def _run(self, name: str, inputs: Any, outputs: list[FakeArray]) -> None:
        self._kernels += 1
        work = work_s(name, [a._host for a in inputs], [a._host for a in outputs])
        self.clock.work(self._profile.call_s)
        after = max([a.buffer.ready_s for a in inputs], default=0.0)
        end = self._compute.run(name, work / self._profile.speed, after)
        for array in outputs:
            array.buffer.ready_s = end


def _root(host: Any) -> Any:
    while isinstance(host.base, np.ndarray):
        host = host.base
    return host


def _arrays_in(value: Any) -> list[FakeArray]:
    if isinstance(value, FakeArray):
        return [value]
    if isinstance(value, list | tuple):
        return [a for v in value for a in _arrays_in(v)]
    return []


def fake_devices(
    wanted: Mapping[str, int | Sequence[DeviceProfile]],
) -> dict[str, list[FakeDevice]]:
    """Returns the fake devices of a session, by type; they share a clock.

    Args:
        wanted: By type how many, or the profile of each.
    """
    clock, found = VirtualClock(), {}
    for device_type, given in wanted.items():
        profiles = [FAKE_PROFILE] * given if isinstance(given, int) else given
        found[device_type] = [
            FakeDevice(i, profile, clock, device_type=device_type)
            for i, profile in enumerate(profiles)
        ]
    return found


__all__ = ["FAKE_PROFILE", "FakeDevice", "Usage", "fake_devices"]
