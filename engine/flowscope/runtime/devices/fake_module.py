"""What stands for CuPy on a fake device: NumPy's functions, refused where CuPy has none such.

`cupy_table` says which functions there are, what they are called with and which dtypes they take.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.ops.kernels.scipy_modules import finders
from flowscope.runtime.devices import cupy_table
from flowscope.runtime.devices.fake_arrays import FakeArray

if TYPE_CHECKING:
    from flowscope.runtime.devices.fake import FakeDevice

#: Functions of `xp` that take NumPy arrays: they bring them to the device.
_ENTRANCES = frozenset(["array", "asarray", "ascontiguousarray"])
#: Parameters that CuPy wants to be Python's numbers, whatever the function.
_STEERING = frozenset(
    """
    shape reps pad_width sections indices_or_sections num minlength axis axes axis1 axis2 n s k ndim
    newshape repeats ddof bins source destination
    """.split()  # noqa: SIM905
)
#: The same, of one function.
_STEERING_OF = {"arange": ("start", "stop", "step"), "roll": ("shift",), "eye": ("N", "M")}
#: Functions whose result's shape follows from values: the host waits for them.
_WAITING = frozenset(["nonzero", "flatnonzero", "argwhere", "unique", "extract", "compress"])
#: Functions and methods that change their first array.
_CHANGING = frozenset(
    ["copyto", "put_along_axis", "put", "fill", "fill_diagonal", "place", "putmask"]
)
_TYPES_OF_PYTHON = (bool, int, float, complex)


class FakeModule:
    """What stands for CuPy, or for a module of it, with arrays of one fake device."""

    def __init__(self, module: types.ModuleType, name: str, device: FakeDevice) -> None:
        self._module = module
        self._name = name
        self._device = device

    def __getattr__(self, name: str) -> Any:
        found: Any = FakeArray if name == "ndarray" else getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            found = FakeModule(found, f"{self._name}.{name}", self._device)
        elif found is np.broadcast or (callable(found) and not isinstance(found, type)):
            found = self._function(found, f"{self._name}.{name}")
        setattr(self, name, found)
        return found

    def _function(self, found: Any, full: str) -> Any:
        if found is not np.broadcast and not cupy_table.has(full):
            raise AttributeError(f"CuPy has no {full.partition('.')[2]}")
        return FakeFunction(found, full, self._device)


class FakeFunction:
    """A function of NumPy's for arrays of one fake device; of a ufunc, its methods too.

    Args:
        function: NumPy's.
        full: Its name in CuPy, such as "cupy.linalg.svd".
        device: Whose arrays it takes.
        owner: The array of which it is a method.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        full: str,
        device: FakeDevice,
        owner: FakeArray | None = None,
    ) -> None:
        self._function = function
        self._device = device
        self._owner = () if owner is None else (owner,)
        self._name = full.rpartition(".")[2]
        self._bind = cupy_table.binder(full)
        self._ufunc = cupy_table.ufunc(full)
        self._is_entrance = self._name in _ENTRANCES

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Computes NumPy's function, on the device."""
        inner_args, inner = self._device.inwards((args, kwargs), self._is_entrance)
        if self._bind is not None:
            _check_steering(self._name, self._bind(*args, **kwargs))
        elif self._ufunc is not None:
            self._ufunc.check(dtypes_of(inner_args), inner)
        result = self._device.call(
            self._name,
            (*self._owner, *args, *kwargs.values()),
            lambda: self._function(*inner_args, **inner),
            self._target(args, kwargs),
        )
        if self._name in _WAITING:
            self._device.synchronize()
        return result

    def _target(self, args: Any, kwargs: Any) -> Any:
        """Returns the array that a call changes; None where it makes a new one."""
        out = kwargs.get("out")
        if out is None and self._ufunc is not None and len(args) > self._ufunc.inputs:
            out = args[self._ufunc.inputs]
        if out is None and self._name in _CHANGING:
            out = (*self._owner, *args)[0]
        return out[0] if isinstance(out, tuple) else out

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._function, name)
        if not callable(method):
            return method

        def call(array: Any, *args: Any, **kwargs: Any) -> Any:
            inner = self._device.inwards((array, args, kwargs))
            if self._ufunc is None:
                raise AttributeError(f"CuPy's {self._name} has no {name}")
            self._ufunc.check_method(name, inner[0].dtype)
            if name != "at" and not {"axis", "dtype", "out", "keepdims"}.issuperset(kwargs):
                raise TypeError(f"CuPy's {self._name}.{name} takes no {sorted(kwargs)}")
            return self._device.call(
                f"{self._name}.{name}",
                (array, *args),
                lambda: method(inner[0], *inner[1], **inner[2]),
                array if name == "at" else kwargs.get("out"),
            )

        return call


def dtypes_of(values: Any) -> tuple[Any, ...]:
    """Returns the dtypes of arrays and of NumPy's scalars, the types of Python's numbers."""
    return tuple(
        [type(v) if isinstance(v, _TYPES_OF_PYTHON) and not isinstance(v, np.generic) else v.dtype
         for v in values if hasattr(v, "dtype") or isinstance(v, _TYPES_OF_PYTHON)]
    )  # fmt: skip


def _check_steering(name: str, given: dict[str, Any]) -> None:
    """Raises TypeError if an array stands where CuPy wants Python's numbers."""
    for parameter in (*_STEERING.intersection(given), *_STEERING_OF.get(name, ())):
        value = given.get(parameter)
        parts = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(v, FakeArray) for v in parts):
            raise TypeError(f"{name}: {parameter} lies on a device, and CuPy wants numbers there")


def _scipy(xp: Any, part: str) -> Any:
    """Returns SciPy's module for arrays of a fake device: see `scipy_modules`."""
    if not isinstance(xp, FakeModule):
        return None
    return FakeModule(import_module(f"scipy.{part}"), f"cupyx.scipy.{part}", xp._device)


finders.append(_scipy)

__all__ = ["FakeFunction", "FakeModule", "dtypes_of"]
