"""Convolutions by oneDNN, where that library is installed: the extra `flowscope[onednn]`.

oneDNN makes machine code for each shape, which keeps the windows in registers: there is no matrix
of windows to copy. On the CPU, large convolutions of float32 go there; everything else, and every
machine without the library, uses `flowscope.ops.kernels.convolution`. Values differ in the last
bits between the two. FLOWSCOPE_ONEDNN=0 in the environment leaves the library alone.

What this file holds is the part of the C interface (version 3) that convolutions need. A `Recipe`
is what was made for shapes: a primitive, the layout it wants for filters, and the moves into that
layout. Recipes are kept and may be used by several threads at once: all memory belongs to the
call.

Source: the interface: oneDNN's developer guide, "Basic concepts", "Convolution".
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import site
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flowscope.ops.kernels.sharing import shared_calls
from flowscope.ops.kernels.windows import Axis

#: Below so many flops the calls cost more than they gain.
WORTH_FLOPS = 2e6

_VERSION = 3
_CPU, _FLOAT32, _ANY, _IN_ORDER, _USER = 1, 3, 1, 1, 1
TRAINING, _DIRECT = 64, 1
SRC, DST, _WEIGHTS, SCRATCHPAD = 1, 17, 33, 80
DIFF_SRC, DIFF_DST, _DIFF_WEIGHTS = 129, 145, 161
_WEIGHTS_MD, _DIFF_WEIGHTS_MD, SCRATCHPAD_MD = 131, 132, 136

_Pointer = ctypes.c_void_p


class _Argument(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("memory", _Pointer))


class RefusedByOneDnn(Exception):
    """The library cannot do what it was asked for."""


class _Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int))


class Library:
    """The loaded library, with one engine."""

    def __init__(self, path: str) -> None:
        """Loads it; raises OSError if it is no oneDNN of the right version."""
        self.c = ctypes.CDLL(path)
        self.c.dnnl_version.restype = ctypes.POINTER(_Version)
        found = self.c.dnnl_version().contents
        self.version = f"{found.major}.{found.minor}.{found.patch}"
        if found.major != _VERSION:
            raise OSError(f"expected oneDNN {_VERSION}, got another version in {path}")
        self.c.dnnl_primitive_desc_query_md.restype = _Pointer
        self.c.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        #: Where functions lie.
        self.set_threads = _address(self.c.omp_set_num_threads)
        self.execute = _address(self.c.dnnl_primitive_execute)
        self.engine = self.made("engine_create", _CPU, ctypes.c_size_t(0))
        self.attributes = self.made("primitive_attr_create")
        self.call("primitive_attr_set_scratchpad_mode", self.attributes, _USER)

    def call(self, name: str, *args: Any) -> None:
        """Calls a function of the library; raises Refused unless it says that all is well."""
        status = getattr(self.c, f"dnnl_{name}")(*args)
        if status:
            raise RefusedByOneDnn(f"{name}: {status}")

    def made(self, name: str, *args: Any) -> Any:
        """Calls a function that returns a new object in its first argument."""
        out = _Pointer()
        self.call(name, ctypes.byref(out), *args)
        return out

    def described(self, dims: Sequence[int], strides: Sequence[int] | None = None) -> Any:
        """Returns a description of float32 memory; without strides the library may choose."""
        n = len(dims)
        if strides is None:
            return self.made("memory_desc_create_with_tag", n, longs_of(dims), _FLOAT32, _ANY)
        longs = longs_of(dims), _FLOAT32, longs_of(strides)
        return self.made("memory_desc_create_with_strides", n, *longs)

    def asked(self, made: Any, what: int) -> Any:
        """Returns the description of memory that a primitive wants."""
        return _Pointer(self.c.dnnl_primitive_desc_query_md(made, what, 0))

    def size(self, description: Any) -> int:
        """Returns how many bytes memory of this description has."""
        return int(self.c.dnnl_memory_desc_get_size(description))

    @contextlib.contextmanager
    def one_thread(self) -> Iterator[None]:
        """Lets OpenMP have one thread for what this thread calls in the block.

        Its threads wait for each other by spinning, and sums would depend on their number. What is
        made for two threads asks for two when it is executed.
        """
        count = self.c.omp_get_max_threads()
        self.c.omp_set_num_threads(1)
        try:
            yield
        finally:
            self.c.omp_set_num_threads(count)

    def reorder(self, source: Any, target: Any) -> Any:
        """Returns a primitive that moves memory to another layout; None where it is the same."""
        if self.c.dnnl_memory_desc_equal(source, target):
            return None
        ends = source, self.engine, target, self.engine, self.attributes
        return self.made("primitive_create", self.made("reorder_primitive_desc_create", *ends))


class Recipe:
    """What was made for one convolution's shapes.

    Args:
        library: The library.
        kind: "forward", "backward_data" or "backward_weights".
        x: Shape of the images, channels last. k: Of the filters, outputs last.
        axes: The images' spatial axes.
        groups: Into how many equal groups the channels fall.
    """

    def __init__(
        self,
        library: Library,
        kind: str,
        x: tuple[int, ...],
        k: tuple[int, ...],
        axes: tuple[Axis, ...],
        groups: int,
    ) -> None:
        self.library, self.kind = library, kind
        self.free: list[Calls] = []
        y = (x[0], *[a.out for a in axes], k[-1])
        self.x, self.y = (library.described(*images_layout(dims)) for dims in (x, y))
        dims, strides = _filters(k, groups)
        self.k = library.described(dims, strides)
        chosen = library.described(dims)
        margins = [max(0, a.span - a.low - a.size) for a in axes]
        steps = [
            longs_of(values)
            for values in (
                [a.stride for a in axes],
                [a.dilation - 1 for a in axes],
                [a.low for a in axes],
                margins,
            )
        ]
        attributes = library.attributes
        forward = made = library.made(
            "convolution_forward_primitive_desc_create", library.engine, TRAINING, _DIRECT,
            self.x, chosen, None, self.y, *steps, attributes,
        )  # fmt: skip
        if kind == "backward_data":
            made = library.made(
                "convolution_backward_data_primitive_desc_create", library.engine, _DIRECT,
                self.x, chosen, self.y, *steps, forward, attributes,
            )  # fmt: skip
        elif kind == "backward_weights":
            made = library.made(
                "convolution_backward_weights_primitive_desc_create", library.engine, _DIRECT,
                self.x, chosen, None, self.y, *steps, forward, attributes,
            )  # fmt: skip
        self.primitive = library.made("primitive_create", made)
        self.own = library.asked(
            made, _DIFF_WEIGHTS_MD if kind == "backward_weights" else _WEIGHTS_MD
        )
        self.scratchpad = library.asked(made, SCRATCHPAD_MD)
        ends = (self.own, self.k) if kind == "backward_weights" else (self.k, self.own)
        self.move = library.reorder(*ends)

    def calls(self, x: Any, k: Any, y: Any) -> Calls:
        """A call that computes one of three arrays from the others; all in C order."""
        return taken(self.free, self._made).bind(x, k, y)

    def _made(self) -> Calls:
        call = Calls(self.library, self.free)
        images, given = call.outside(self.x), call.outside(self.k)
        outputs = call.outside(self.y)
        filters = given if self.move is None else call.inside(self.own)
        if self.kind == "forward":
            kinds = SRC, _WEIGHTS, DST
        elif self.kind == "backward_data":
            kinds = DIFF_SRC, _WEIGHTS, DIFF_DST
        else:
            kinds = SRC, _DIFF_WEIGHTS, DIFF_DST
        if self.move is not None and self.kind != "backward_weights":
            call.add(self.move, {SRC: given, DST: filters})
        parts = dict(zip(kinds, (images, filters, outputs), strict=True))
        call.add(self.primitive, {**parts, SCRATCHPAD: call.inside(self.scratchpad)})
        if self.move is not None and self.kind == "backward_weights":
            call.add(self.move, {SRC: filters, DST: given})
        return call


class Calls:
    """Primitives to be executed in a row, a stream, and objects that stand for memory.

    It is used by one block at a time, and then again.

    Args:
        library: The library.
        free: Where it is put after use.

    Attributes:
        library: As above.
        words: Per call the function and its arguments, for `flowscope.ops.kernels.sharing`.
    """

    def __init__(self, library: Library, free: list[Calls]) -> None:
        self.library = library
        self._free = free
        self._stream = library.made("stream_create", library.engine, _IN_ORDER)
        self.words: list[tuple[int, int, int, int, int]] = [(library.set_threads, 1, 0, 0, 0)]
        self._memories: list[Any] = []
        self._outside: list[Any] = []
        self._kept: list[Any] = []
        self._arrays: tuple[Any, ...] = ()

    def inside(self, description: Any) -> Any:
        """A memory object with memory of its own."""
        raw = np.empty(max(self.library.size(description), 1) + 64, np.uint8)
        self._kept.append(raw)
        return self._memory(description, raw.ctypes.data + -raw.ctypes.data % 64)

    def outside(self, description: Any) -> Any:
        """A memory object for the next array that `bind` is given."""
        self._outside.append(self._memory(description, None))
        return self._outside[-1]

    def _memory(self, description: Any, address: int | None) -> Any:
        found = self.library.made(
            "memory_create", description, self.library.engine, _Pointer(address)
        )
        self._memories.append(found)
        return found

    def add(self, primitive: Any, memories: dict[int, Any]) -> None:
        """Adds a primitive."""
        n = len(memories)
        arguments = (_Argument * n)(*[_Argument(k, m) for k, m in memories.items()])
        self._kept.append(arguments)
        at = ctypes.addressof(arguments)
        self.words.append((self.library.execute, primitive.value, self._stream.value, n, at))

    def bind(self, *arrays: Any) -> Calls:
        """Lets it use these arrays, one for each memory outside; returns itself."""
        self._arrays = arrays
        for memory, array in zip(self._outside, arrays, strict=True):
            self.library.c.dnnl_memory_set_data_handle(memory, _Pointer(array.ctypes.data))
        return self

    def release(self) -> None:
        """Puts it back, once nobody executes it any more."""
        self._arrays = ()
        self._free.append(self)

    def __del__(self) -> None:
        for memory in self._memories:
            self.library.c.dnnl_memory_destroy(memory)
        self.library.c.dnnl_stream_destroy(self._stream)


def taken(free: list[Calls], made: Callable[[], Calls]) -> Calls:
    """Returns one of those that are free, or a new one."""
    try:
        return free.pop()
    except IndexError:  # several threads take them
        return made()


def run(calls: Calls) -> None:
    """Executes primitives on this thread."""
    run_blocks(calls.library, 1, lambda i: calls)


def run_blocks(library: Library, count: int, made: Callable[[int], Calls]) -> list[int]:
    """Executes the primitives of blocks, on several threads where the step has some.

    Args:
        library: The library.
        count: How many blocks there are.
        made: Returns the primitives of a block.

    Returns:
        The blocks that are late: a thread may still write to their memory, and to the arrays that
        they are parts of.

    Raises:
        Refused: if the library has failed.
    """
    with library.one_thread():
        blocks = [made(i) for i in range(count)]
        late, statuses = shared_calls([block.words for block in blocks], blocks)
    if any(statuses):
        raise RefusedByOneDnn(f"primitive_execute: {statuses}")
    for i, block in enumerate(blocks):
        if i not in late:
            block.release()
    return late


def _address(function: Any) -> int:
    return ctypes.cast(function, _Pointer).value or 0


def longs_of(values: Sequence[int]) -> Any:
    """Returns an array of 64-bit integers of C."""
    return (ctypes.c_int64 * len(values))(*values)


def _c_strides(dims: Sequence[int]) -> list[int]:
    strides = [1]
    for d in reversed(dims[1:]):
        strides.append(strides[-1] * d)
    return strides[::-1]


def images_layout(dims: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Returns sizes and strides of images in the library's order, in which channels come second."""
    order = [0, len(dims) - 1, *range(1, len(dims) - 1)]
    strides = _c_strides(dims)
    return [dims[i] for i in order], [strides[i] for i in order]


def _filters(dims: tuple[int, ...], groups: int) -> tuple[list[int], list[int]]:
    """Returns sizes and strides of filters in the library's order: outputs, channels, windows."""
    *windows, channels, outputs = dims
    *steps, by_channel, by_output = _c_strides(dims)
    if groups == 1:
        return [outputs, channels, *windows], [by_output, by_channel, *steps]
    each = outputs // groups
    return [groups, each, channels, *windows], [each * by_output, by_output, by_channel, *steps]


@functools.cache
def library() -> Library | None:
    """Returns oneDNN, loaded at the first call; None where it is not installed or not wanted."""
    if os.environ.get("FLOWSCOPE_ONEDNN") == "0":
        return None
    # pip puts it beside Python, or, without the right to do so, where the user's packages are.
    tops = [sys.prefix, *([site.getuserbase()] if site.ENABLE_USER_SITE else [])]
    names = "lib/libdnnl.so.3", "lib/libdnnl.3.dylib", "Library/bin/dnnl.dll"
    for path in (os.path.join(top, name) for top in tops for name in names):
        if os.path.exists(path):
            with _without_spinning():
                return _loaded(path)
    return None


def _loaded(path: str) -> Library | None:
    try:
        return Library(path)
    except (OSError, AttributeError, RefusedByOneDnn):
        return None


@contextlib.contextmanager
def _without_spinning() -> Iterator[None]:
    """Has OpenMP's threads sleep while they wait, unless the user chose otherwise.

    OpenMP reads the environment when it is loaded. Threads that spin keep a core from NumPy, and
    where others use the machine they turn a step of 46 ms into one of 115 (measured).
    """
    names = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"
    if any(name in os.environ for name in names):
        yield
        return
    os.environ[names[0]] = "0"
    try:
        yield
    finally:
        del os.environ[names[0]]


@functools.lru_cache(512)
def _recipe(
    kind: str, x: tuple[int, ...], k: tuple[int, ...], axes: tuple[Axis, ...], groups: int
) -> Recipe | None:
    loaded = library()
    if loaded is None or any(0 in dims for dims in (x, k)) or any(a.out < 1 for a in axes):
        return None
    try:
        with loaded.one_thread():
            return Recipe(loaded, kind, x, k, axes, groups)
    except RefusedByOneDnn:
        return None


def recipe(
    kind: str,
    dtype: Any,
    x: tuple[int, ...],
    k: tuple[int, ...],
    axes: Sequence[Axis],
    groups: int = 1,
    images: int | None = None,
) -> Recipe | None:
    """The primitive of a convolution or of a gradient of one; None where NumPy is used.

    Args:
        kind: "forward", "backward_data" or "backward_weights".
        dtype: The arrays' dtype.
        x: Shape of the images, channels last. k: Of the filters, outputs last.
        axes: The images' spatial axes.
        groups: Into how many equal groups the channels fall.
        images: Of how many of the images at a time; None for all.
    """
    # NumPy works on single channels with a pass per element of the window.
    is_worth = flops_of(x[0], k, axes) >= WORTH_FLOPS / (20 if groups > 1 else 1)
    if dtype != np.float32 or not is_worth:
        return None
    return _recipe(kind, (x[0] if images is None else images, *x[1:]), k, tuple(axes), groups)


def flops_of(images: int, k: tuple[int, ...], axes: Sequence[Axis]) -> float:
    """Returns how much a convolution computes, or one of its gradients."""
    outs = np.prod([a.out for a in axes], dtype=float)
    return float(2.0 * images * outs * np.prod(k, dtype=float))
