"""A fake GPU: NumPy arrays that say on which device they lie, and refuse to meet any others.

It lets placement, transfers and kernels be tested on a laptop. It is as strict as CuPy, or
stricter: values enter by `put` (or `xp.asarray`) and leave by `get` alone, nothing of NumPy takes
them, and `xp` has no function that CuPy has not.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from flowscope.graph.host_values import on_host
from flowscope.ops.kernels.scipy_modules import finders
from flowscope.runtime.devices import Device, Memory

#: NumPy's functions that CuPy 14 has not, as far as a kernel might use them.
_NOT_IN_CUPY = frozenset(
    """
    block einsum_path frompyfunc geomspace insert isnat matvec nanpercentile nanquantile spacing
    unstack vecdot vecmat matrix_norm multi_dot svdvals vector_norm
    """.split()  # noqa: SIM905
)
#: Ufuncs with an `at` in CuPy.
_WITH_AT = frozenset(
    ["add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"]
)
#: Functions of NumPy that ask no values of an array, and work on CuPy's too.
_ABOUT = frozenset([np.shape, np.ndim, np.size])
#: Functions of `xp` that take NumPy arrays: they bring them to the device.
_ENTRANCES = frozenset(["array", "asarray"])


class FakeArray:
    """An array on a fake device: NumPy's attributes and methods, for arrays of one device only."""

    __slots__ = ("__weakref__", "_host", "device")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: Any, device: FakeGpu) -> None:
        self._host = host
        self.device = device

    def get(self) -> Any:
        """Returns a copy as a NumPy array."""
        return self._host.copy()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"an array on {self.device.name} is no NumPy array: use `get`")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _ABOUT:
            return function(args[0]._host, *args[1:], **kwargs)
        raise TypeError(f"numpy.{function.__name__} got an array on {self.device.name}: use xp")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # NumPy's own ways to an array's memory
        return self.device.outwards(getattr(self._host, name))

    @property
    def real(self) -> Any:
        """The real part."""
        return self.device.outwards(self._host.real)

    @real.setter
    def real(self, value: Any) -> None:
        self._host.real = self.device.inwards(value)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self.device.outwards(self._host.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._host.imag = self.device.inwards(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._host[self.device.inwards(key)] = self.device.inwards(value)

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __index__(self) -> int:
        return self._host.__index__()  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (self.device.outwards(v) for v in self._host)

    def __str__(self) -> str:
        return str(self._host)

    def __repr__(self) -> str:
        return f"{self._host!r} on {self.device.name}"


def _operator(name: str) -> Callable[..., Any]:
    def operate(self: FakeArray, *others: Any) -> Any:
        inner = [self.device.inwards(v) for v in others]
        return self.device.outwards(getattr(self._host, name)(*inner))

    return operate


def _in_place(name: str) -> Callable[..., Any]:
    def operate(self: FakeArray, other: Any) -> FakeArray:
        getattr(self._host, name)(self.device.inwards(other))
        return self

    return operate


_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod"
_OTHERS = "neg pos abs invert eq ne lt le gt ge getitem"
for _name in _BINARY.split():
    setattr(FakeArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(FakeArray, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(FakeArray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in _OTHERS.split():
    setattr(FakeArray, f"__{_name}__", _operator(f"__{_name}__"))


class FakeModule:
    """What stands for CuPy: NumPy's functions for arrays of one fake device."""

    def __init__(self, module: types.ModuleType, device: FakeGpu) -> None:
        self._module = module
        self._device = device

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_IN_CUPY:
            raise AttributeError(f"CuPy has no {self._module.__name__}.{name}")
        found: Any = FakeArray if name == "ndarray" else getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            found = FakeModule(found, self._device)
        elif (not isinstance(found, type) and callable(found)) or found is np.broadcast:
            found = _Function(found, self._device)
        setattr(self, name, found)
        return found


class _Function:
    """A function of NumPy for arrays of one fake device; of a ufunc, its methods too."""

    def __init__(self, function: Callable[..., Any], device: FakeGpu) -> None:
        self._function = function
        self._device = device
        self._takes_host = getattr(function, "__name__", "") in _ENTRANCES

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inner = self._device.inwards((args, kwargs), self._takes_host)
        return self._device.outwards(self._function(*inner[0], **inner[1]))

    def __getattr__(self, name: str) -> Any:
        if name == "at" and self._function.__name__ not in _WITH_AT:
            return _no_at
        return _Function(getattr(self._function, name), self._device)


def _no_at(*_: Any) -> None:
    raise NotImplementedError("CuPy's `at` is not there yet for this function")


class FakeGpu(Device):
    """A device that calls itself a GPU and computes with NumPy."""

    device_type = "GPU"

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.xp = FakeModule(np, self)

    def put(self, value: Any) -> Any:
        return value if self.holds(value) else FakeArray(np.array(on_host(value)), self)

    def get(self, value: Any) -> Any:
        return on_host(value)

    def holds(self, value: Any) -> bool:
        return isinstance(value, FakeArray) and value.device is self

    def synchronize(self) -> None:
        pass

    def memory(self) -> Memory | None:
        return None

    def active(self) -> AbstractContextManager[Any]:
        return nullcontext()

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
            return slice(*self.inwards((value.start, value.stop, value.step)))
        return value

    def outwards(self, value: Any) -> Any:
        """Returns results with arrays of this device in place of NumPy's, scalars included."""
        if isinstance(value, np.ndarray | np.generic):
            return FakeArray(np.asarray(value), self)
        if isinstance(value, list | tuple):
            parts = [self.outwards(v) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, types.BuiltinMethodType):
            return _Function(value, self)
        return value


def _scipy(xp: Any, part: str) -> Any:
    """Returns SciPy's module for arrays of a fake device: see `scipy_modules`."""
    if not isinstance(xp, FakeModule):
        return None
    return FakeModule(import_module(f"scipy.{part}"), xp._device)


finders.append(_scipy)
