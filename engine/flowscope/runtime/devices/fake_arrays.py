"""Arrays of a fake device: what CuPy's arrays can do, and nothing else.

An array is NumPy's, with a buffer of its device's memory: views share one. What it holds is
computed at once; on the device's clock it is there when the buffer is ready.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.runtime.devices import cupy_table

if TYPE_CHECKING:
    from flowscope.runtime.devices.fake import FakeDevice

#: Functions of NumPy that ask no values of an array, and work on CuPy's too.
_ABOUT = frozenset([np.shape, np.ndim, np.size])
#: Members that read values: the host would wait for the device.
_READS = frozenset(["item", "tolist", "tobytes", "tofile", "dump", "dumps", "flat", "data"])


class Buffer:
    """Memory of a device.

    Attributes:
        device: Whose.
        nbytes: How much.
        ready_s: When what it holds is there, on the device's clock.
    """

    __slots__ = ("device", "nbytes", "ready_s")

    def __init__(self, device: FakeDevice, nbytes: int) -> None:
        self.nbytes = 0
        self.device = device
        device.reserve(nbytes)
        self.nbytes = nbytes
        self.ready_s = 0.0

    def __del__(self) -> None:
        self.device.release(self.nbytes)


class FakeArray:
    """An array on a fake device: NumPy's attributes and methods, for arrays of one device only."""

    __slots__ = ("__weakref__", "_host", "base", "buffer", "device")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: Any, device: FakeDevice, base: FakeArray | None = None) -> None:
        if host.dtype.char not in cupy_table.DTYPES:
            raise TypeError(f"CuPy has no arrays of {host.dtype}")
        self._host = host
        self.device = device
        #: The array whose memory this one shows; None where it has its own.
        self.base: FakeArray | None = base if base is None or base.base is None else base.base
        self.buffer: Buffer = Buffer(device, host.nbytes) if self.base is None else self.base.buffer

    def get(self) -> Any:
        """Returns a copy as a NumPy array; the host waits until it is there."""
        self.device.bring_out(self.buffer, self._host.nbytes)
        return self._host.copy()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"an array on {self.device.name} is no NumPy array: use `get`")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _ABOUT:
            return function(args[0]._host, *args[1:], **kwargs)
        raise TypeError(f"numpy.{function.__name__} got an array on {self.device.name}: use xp")

    def __getattr__(self, name: str) -> Any:
        full = f"cupy.ndarray.{name}"
        if name.startswith("__") or not cupy_table.has(full):
            raise AttributeError(f"CuPy's arrays have no {name!r}")  # and no ways to their memory
        if name in _READS:
            self.device.read(self.buffer, name)
        found = getattr(self._host, name)
        if isinstance(found, types.BuiltinMethodType):
            return self.device.method(found, full, self)
        return self.device.outwards(found, (self,), name)

    def copy(self, order: str = "C") -> Any:
        """Returns a copy; on the device that is current, as CuPy's does."""
        clock = self.device.clock
        current = clock.devices.get(clock.current or "", self.device)
        if current is not self.device:
            return current.put(self)
        return self.device.method(self._host.copy, "cupy.ndarray.copy", self)(order)

    @property
    def real(self) -> Any:
        """The real part."""
        return self.device.outwards(self._host.real, (self,), "real")

    @real.setter
    def real(self, value: Any) -> None:
        self._host.real = self.device.inwards(value)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self.device.outwards(self._host.imag, (self,), "imag")

    @imag.setter
    def imag(self, value: Any) -> None:
        self._host.imag = self.device.inwards(value)

    def __getitem__(self, key: Any) -> Any:
        inner = self.device.inwards(key)
        found = self._host[inner]
        result = self.device.call("__getitem__", (self, key), lambda: found)
        if _has_mask(inner):
            self.device.clock.wait(result.buffer.ready_s)  # its shape follows from values
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        places, values = self.device.inwards(key), self.device.inwards(value)
        _check_repeated(self._host, places, values)
        self.device.call(
            "__setitem__",
            (self, key, value),
            lambda: self._host.__setitem__(places, values),
            self,
        )

    def _read(self, name: str) -> Any:
        self.device.read(self.buffer, name)
        return getattr(self._host, name)()

    def __bool__(self) -> bool:
        return bool(self._read("__bool__"))

    def __int__(self) -> int:
        return int(self._read("__int__"))

    def __float__(self) -> float:
        return float(self._read("__float__"))

    def __complex__(self) -> complex:
        return complex(self._read("__complex__"))

    def __index__(self) -> int:
        return int(self._read("__index__"))

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        self.device.read(self.buffer, "__iter__")
        return (self[i] for i in range(len(self._host)))

    def __str__(self) -> str:
        return str(self._host)

    def __repr__(self) -> str:
        return f"{self._host!r} on {self.device.name}"


def _has_mask(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(p, np.ndarray) and p.dtype == bool for p in parts)


def _check_repeated(host: Any, places: Any, values: Any) -> None:
    """Raises ValueError where an assignment gives one place several values: CuPy keeps any."""
    if np.size(values) < 2:
        return
    parts = places if isinstance(places, tuple) else (places,)
    if not any(isinstance(p, np.ndarray) and p.dtype.kind in "iu" for p in parts):
        return
    numbers = np.arange(host.size).reshape(host.shape)[places].reshape(-1)
    if len(np.unique(numbers)) == len(numbers):
        return
    given = np.broadcast_to(values, np.shape(host[places])).reshape(-1)
    last = dict(zip(numbers.tolist(), given.tolist(), strict=True))
    if any(last[n] != v and v == v for n, v in zip(numbers.tolist(), given.tolist(), strict=True)):
        raise ValueError("a place is assigned several values: CuPy keeps any of them")


def _operator(name: str) -> Callable[..., Any]:
    def operate(self: FakeArray, *others: Any) -> Any:
        inner = [self.device.inwards(v) for v in others]
        self.device.check_operator(name, (self._host, *inner))
        return self.device.call(name, (self, *others), lambda: getattr(self._host, name)(*inner))

    return operate


def _in_place(name: str) -> Callable[..., Any]:
    def operate(self: FakeArray, other: Any) -> FakeArray:
        inner = self.device.inwards(other)
        self.device.check_operator(name, (self._host, inner))
        self.device.call(name, (self, other), lambda: getattr(self._host, name)(inner), self)
        return self

    return operate


_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod"
_OTHERS = "neg pos abs invert eq ne lt le gt ge"
for _name in _BINARY.split():
    setattr(FakeArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(FakeArray, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(FakeArray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in _OTHERS.split():
    setattr(FakeArray, f"__{_name}__", _operator(f"__{_name}__"))

__all__ = ["Buffer", "FakeArray"]
