"""A module that stands for `cupy`: NumPy's functions, run late and in any order by a `Schedule`.

    with simulated_gpus(seed) as schedule:
        fs.Session(config=fs.ConfigProto(device_count={"GPU": 2}))

There is what `cupy_table.txt` says that CuPy has, and what `simulated_cuda` has of `cupy.cuda`.
An array has two contents. One is computed at once, as if each call had been waited for: it tells
shapes and what is right. The other is what the device's memory holds, by the schedule. Where they
differ when a value comes to the host, the schedule counts it as wrong.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from simulated_cuda import Cuda, CUDARuntimeError, Schedule

from flowscope.runtime.devices import cupy_table
from flowscope.runtime.devices.fake_module import (
    _CHANGING,
    _STEERING,
    _STEERING_OF,
    _WAITING,
)

#: Functions of NumPy that ask no values of an array, and work on CuPy's too.
_ABOUT = frozenset([np.shape, np.ndim, np.size])
#: Attributes that an array answers without its device.
_FACTS = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags")


class NdArray:
    """`cupy.ndarray`.

    Attributes:
        ideal: What it holds if work is done in the order of the calls.
        held: What its memory holds by now.
        data: The `cupy.cuda.MemoryPointer` of its memory, which views share.
    """

    cupy: SimulatedCupy
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, want: Any = None
    ) -> None:
        if np.dtype(dtype).char not in cupy_table.DTYPES:
            raise TypeError(f"CuPy has no arrays of {np.dtype(dtype)}")
        model = np.empty(shape, dtype) if want is None else want
        self.data = self.cupy.cuda.alloc(model.nbytes) if memptr is None else memptr
        self.base: NdArray | None = None
        self.ideal, self.held = (_laid(b, model) for b in (self.data.ideal, self.data.held))
        if want is not None:
            self.ideal[...] = want

    @classmethod
    def view_of(cls, other: NdArray, want: Any, real: Any) -> NdArray:
        """Returns an array that shows another one's memory."""
        made: NdArray = cls.__new__(cls)
        made.ideal, made.held = want, real
        memory = other.data.mem
        offset = _address(real) - _address(memory.held) if real.size else 0
        made.data = cls.cupy.cuda.MemoryPointer(memory, offset)
        made.base = other if other.base is None else other.base
        return made

    @property
    def device(self) -> Any:
        return self.cupy.cuda.Device(self.data.device_id)

    def get(self, stream: Any = None, order: str = "C", out: Any = None) -> Any:
        """Returns a copy in pageable memory of the host, which waits for it."""
        cuda, schedule = self.cupy.cuda, self.cupy.cuda.schedule
        want, found = self.ideal.copy(), np.empty(self.shape, self.dtype)
        with cuda.Device(self.data.device_id):
            queue = (stream or cuda.get_current_stream()).queue()
            real = self.held

            def copy() -> None:
                found[...] = real

            schedule.wait(schedule.put(queue, copy))
        self.cupy.compare(found, want)
        return found

    def copy(self, order: str = "C") -> Any:
        """Returns a copy on the current device, made by its current stream."""
        made = self.cupy.ndarray(self.shape, self.dtype, want=self.ideal.copy(order))
        self.cupy.move(made.held, self.held)
        return made

    def set(self, arr: Any, stream: Any = None) -> None:
        """Takes over what is in pageable memory of the host by now."""
        if not isinstance(arr, np.ndarray) or (arr.dtype, arr.shape) != (self.dtype, self.shape):
            raise TypeError("expected a NumPy array of this dtype and shape")
        cuda = self.cupy.cuda
        self.ideal[...], given, real = arr, arr.copy(), self.held
        with cuda.Device(self.data.device_id):
            queue = (stream or cuda.get_current_stream()).queue()

            def copy() -> None:
                real[...] = given

            cuda.schedule.put(queue, copy)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _ABOUT:
            return function(args[0].ideal, *args[1:], **kwargs)
        raise TypeError(f"numpy.{function.__name__} got an array of CuPy")

    def __getattr__(self, name: str) -> Any:
        if name in _FACTS:
            return getattr(self.ideal, name)
        full = f"cupy.ndarray.{name}"
        if name.startswith("__") or not cupy_table.has(full):
            raise AttributeError(f"CuPy's arrays have no {name!r}")
        found = getattr(type(self.ideal), name)
        if isinstance(found, types.MethodDescriptorType):
            return Function(self.cupy, found, full, (self,))
        return self.cupy.launch(lambda a: getattr(a, name), (self,))

    @property
    def real(self) -> Any:
        """The real parts, or the array itself."""
        return self.cupy.launch(lambda a: a.real, (self,))

    @real.setter
    def real(self, value: Any) -> None:
        self.cupy.launch(lambda a, v: setattr(a, "real", v), (self, value), target=self)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self.cupy.launch(lambda a: a.imag, (self,))

    @imag.setter
    def imag(self, value: Any) -> None:
        self.cupy.launch(lambda a, v: setattr(a, "imag", v), (self, value), target=self)

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        is_plain = not any(isinstance(p, NdArray | np.ndarray | list | bool) for p in parts)
        if is_plain and not any(p is Ellipsis for p in parts):
            key = (*parts, ...)  # a number of an array is a view, too
        has_mask = any(isinstance(p, NdArray) and p.dtype == bool for p in parts)
        return self.cupy.launch(lambda a, k: a[k], (self, key), waits=has_mask)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.cupy.launch(lambda a, k, v: a.__setitem__(k, v), (self, key, value), target=self)

    def __len__(self) -> int:
        return len(self.ideal)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def _read(self) -> Any:
        raise TypeError("a kernel reads an array on a device without asking: only `get` may")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = item = tolist = _read

    def __repr__(self) -> str:
        return f"<array {self.ideal!r} on GPU {self.data.device_id}>"


_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod"
_OTHERS = "neg pos abs invert eq ne lt le gt ge"


def _operator(name: str, changes: bool = False) -> Callable[..., Any]:
    def operate(self: NdArray, *others: Any) -> Any:
        made = self.cupy.launch(
            lambda a, *b: getattr(a, name)(*b), (self, *others), target=self if changes else None
        )
        return self if changes else made

    return operate


for _name in _BINARY.split():
    setattr(NdArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(NdArray, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(NdArray, f"__i{_name}__", _operator(f"__i{_name}__", changes=True))
for _name in _OTHERS.split():
    setattr(NdArray, f"__{_name}__", _operator(f"__{_name}__"))


class Function:
    """A function of CuPy's; of a universal one, its methods too."""

    def __init__(
        self, cupy: SimulatedCupy, function: Callable[..., Any], full: str, owner: Any = ()
    ) -> None:
        self._cupy = cupy
        self._function = function
        self._name = full.rpartition(".")[2]
        self._owner = owner
        self._bind = cupy_table.binder(full)
        self._ufunc = cupy_table.ufunc(full)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._bind is not None:
            self._check_steering(self._bind(*args, **kwargs))
        elif self._ufunc is not None:
            self._ufunc.check(_dtypes_of(args), kwargs)
        out = kwargs.get("out")
        if out is None and self._ufunc is not None and len(args) > self._ufunc.inputs:
            out = args[self._ufunc.inputs]
        if out is None and self._name in _CHANGING:
            out = (*self._owner, *args)[0]
        return self._cupy.launch(
            self._function,
            (*self._owner, *args),
            kwargs,
            target=out[0] if isinstance(out, tuple) else out,
            waits=self._name in _WAITING,
        )

    def _check_steering(self, given: dict[str, Any]) -> None:
        for parameter in (*_STEERING.intersection(given), *_STEERING_OF.get(self._name, ())):
            value = given.get(parameter)
            parts = value if isinstance(value, list | tuple) else (value,)
            if any(isinstance(v, NdArray) for v in parts):
                raise TypeError(f"{self._name}: {parameter} lies on a device")

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._function, name)
        if not callable(method):
            return method

        def call(array: Any, *args: Any, **kwargs: Any) -> Any:
            if self._ufunc is None:
                raise AttributeError(f"CuPy's {self._name} has no {name}")
            self._ufunc.check_method(name, array.dtype)
            out = array if name == "at" else kwargs.get("out")
            return self._cupy.launch(method, (array, *args), kwargs, target=out)

        return call


def _dtypes_of(values: Any) -> tuple[Any, ...]:
    numbers = (bool, int, float, complex)
    return tuple(
        [type(v) if isinstance(v, numbers) and not isinstance(v, np.generic) else v.dtype
         for v in values if hasattr(v, "dtype") or isinstance(v, numbers)]
    )  # fmt: skip


class SimulatedCupy(types.ModuleType):
    """`cupy`, or a module of it.

    Args:
        schedule: When work runs.
        name: Its name.
        numpy: Whose functions it computes with.
        root: `cupy` itself, for a module of it.
    """

    def __init__(
        self, schedule: Schedule, name: str = "cupy", numpy: Any = np, root: Any = None
    ) -> None:
        super().__init__(name)
        self._numpy = numpy
        self._root = root or self
        self.cuda = root.cuda if root else Cuda(schedule)
        self.ndarray: Any = root.ndarray if root else type("ndarray", (NdArray,), {"cupy": self})

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._numpy, name)
        full = f"{self.__name__}.{name}"
        if isinstance(found, types.ModuleType):
            found = SimulatedCupy(self.cuda.schedule, full, found, self._root)
        elif found is np.broadcast:
            found = self._broadcast
        elif callable(found) and not isinstance(found, type):
            if not cupy_table.has(full):
                raise AttributeError(f"CuPy has no {full.partition('.')[2]}")
            found = Function(self._root, found, full)
        setattr(self, name, found)
        return found

    def _broadcast(self, *arrays: Any) -> Any:
        return np.broadcast(*[a.ideal if isinstance(a, NdArray) else a for a in arrays])

    def empty(self, shape: Any, dtype: Any = float, order: str = "C") -> Any:
        """Returns memory as it comes."""
        return self.ndarray(shape, dtype)

    def asarray(self, a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Any:
        """Returns an array on the current device: itself, a copy from another or from the host."""
        if isinstance(a, NdArray) and a.data.device_id == self.cuda.current.device:
            return a if dtype in (None, a.dtype) else a.astype(dtype)
        return self.array(a, dtype)

    def array(self, obj: Any, dtype: Any = None, copy: Any = True, ndmin: int = 0) -> Any:
        """Returns a copy on the current device."""
        if isinstance(obj, NdArray):
            made = obj.copy()
            return made if dtype is None else made.astype(dtype)
        if isinstance(obj, list | tuple) and any(isinstance(v, NdArray) for v in obj):
            return self.stack([self.asarray(v, dtype) for v in obj])
        host = np.array(obj, dtype, ndmin=ndmin)
        made = self.ndarray(host.shape, host.dtype)
        made.set(host)
        return made

    def move(self, to: Any, source: Any) -> None:
        """Puts a copy on the current stream."""
        self.cuda.schedule.check()

        def copy() -> None:
            to[...] = source

        self.cuda.schedule.put(self.cuda.current_queue(), copy)

    def launch(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Any = None,
        target: Any = None,
        waits: bool = False,
    ) -> Any:
        """Puts a function of NumPy's on the current stream; returns arrays for its results.

        Args:
            function: The function.
            args, kwargs: What it is given.
            target: The array that it changes.
            waits: Whether the host has to wait for the shape of the result.
        """
        kwargs = kwargs or {}
        self.cuda.schedule.check()
        arrays: list[NdArray] = []
        self._find((args, kwargs), arrays)
        want = function(*_inner(args, "ideal"), **_inner(kwargs, "ideal"))
        real_args, real_kwargs = _inner(args, "held"), _inner(kwargs, "held")
        queue, schedule = self.cuda.current_queue(), self.cuda.schedule
        if target is not None:
            schedule.launches += 1
            schedule.put(queue, lambda: _ignoring(function, real_args, real_kwargs))
            return target
        if waits:
            schedule.wait(queue.last)
        made: list[NdArray] = []
        roots = {id(_root(a.ideal)): a for a in arrays}
        if any(id(_root(v)) in roots for v in _leaves(want)):
            real = function(*real_args, **real_kwargs)
            return self._views(want, real, roots)
        result = self._wrapped(want, made)
        if made:
            schedule.launches += 1
            schedule.put(
                queue, lambda: _compute(function, real_args, real_kwargs, [a.held for a in made])
            )
        return result

    def _find(self, value: Any, found: list[NdArray]) -> None:
        """Collects arrays; raises where one is the host's or another device's."""
        if isinstance(value, NdArray):
            if value.data.device_id != self.cuda.current.device:
                raise ValueError(
                    f"an array of GPU {value.data.device_id} was used while GPU "
                    f"{self.cuda.current.device} is current"
                )
            found.append(value)
        elif isinstance(value, np.ndarray):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        elif isinstance(value, dict):
            self._find(list(value.values()), found)
        elif isinstance(value, list | tuple):
            for v in value:
                self._find(v, found)
        elif isinstance(value, slice):
            if any(isinstance(p, NdArray) for p in (value.start, value.stop, value.step)):
                raise TypeError("a slice from or to an array on a device")

    def _wrapped(self, value: Any, made: list[NdArray]) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            made.append(self._root.ndarray(value.shape, value.dtype, want=np.asarray(value)))
            return made[-1]
        if isinstance(value, list | tuple):
            parts = [self._wrapped(v, made) for v in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def _views(self, want: Any, real: Any, roots: dict[int, NdArray]) -> Any:
        if isinstance(want, np.ndarray | np.generic):
            owner = roots.get(id(_root(want)))
            if owner is None:
                raise TypeError("a function gives views and copies at once")
            return self._root.ndarray.view_of(owner, want, real)
        if isinstance(want, list | tuple):
            return type(want)([self._views(w, r, roots) for w, r in zip(want, real, strict=True)])
        return want

    def compare(self, found: Any, want: Any) -> None:
        """Counts a value that came to the host, if it is wrong."""
        exact = found.dtype.kind not in "fc"
        same = (
            np.array_equal(found, want)
            if exact
            else np.allclose(found, want, rtol=1e-3, atol=1e-5, equal_nan=True)
        )
        self.cuda.schedule.wrong += not same


def _laid(data: Any, model: Any) -> Any:
    """Returns an array in some memory, its axes in the order in which those of another one lie."""
    flat = data[: model.nbytes].view(model.dtype)
    axes = sorted(range(model.ndim), key=lambda i: -abs(model.strides[i]))
    return flat.reshape([model.shape[i] for i in axes]).transpose(np.argsort(axes))


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _root(value: Any) -> Any:
    while isinstance(getattr(value, "base", None), np.ndarray):
        value = value.base
    return value


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    return [a for v in value for a in _leaves(v)] if isinstance(value, list | tuple) else []


def _inner(value: Any, which: str) -> Any:
    """Returns arguments with NumPy's arrays in place of the device's."""
    if isinstance(value, NdArray):
        return getattr(value, which)
    if isinstance(value, list | tuple):
        return type(value)([_inner(v, which) for v in value])
    if isinstance(value, dict):
        return {k: _inner(v, which) for k, v in value.items()}
    return value


def _ignoring(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Computes; what kernels refuse or stumble over gives no error on a GPU."""
    with np.errstate(all="ignore"), contextlib.suppress(Exception):
        return function(*args, **kwargs)
    return None


def _compute(function: Callable[..., Any], args: Any, kwargs: Any, to: list[Any]) -> None:
    found = _ignoring(function, args, kwargs)
    parts = _all_leaves(found)
    for i, array in enumerate(to):
        if i < len(parts) and np.shape(parts[i]) == array.shape:
            array[...] = parts[i]


def _all_leaves(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray | np.generic):
        return [value]
    return [a for v in value for a in _all_leaves(v)] if isinstance(value, list | tuple) else []


@contextlib.contextmanager
def simulated_gpus(seed: int, devices: int = 2) -> Iterator[Schedule]:
    """Has `import cupy` find GPUs that work by a schedule, which it gives."""
    schedule = Schedule(seed, devices)
    cupy = SimulatedCupy(schedule)
    found: dict[str, Any] = {"cupy": cupy}
    for part in ("special", "fft", "linalg"):
        name = f"cupyx.scipy.{part}"
        found[name] = SimulatedCupy(schedule, name, import_module(f"scipy.{part}"), cupy)
    before = {name: sys.modules.get(name) for name in found}
    sys.modules.update(found)
    try:
        yield schedule
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


__all__ = ["CUDARuntimeError", "NdArray", "SimulatedCupy", "simulated_gpus"]
