"""The streams of a GPU: kernels run on one, values come in on another and go out on a third.

Events order them, so that the host waits for nothing but what it reads:

- Kernels that are called after a value was put wait for it to arrive.
- What goes out waits for the kernels that were called before.
- A value that comes from another GPU waits for that one's kernels, its later ones for the copy.

All three order themselves with the null stream, as CUDA's blocking streams do: code that uses CuPy
beside a session needs no events. Where another stream is current the kernels of a step wait for it,
and it for them.

Memory is given back once its streams are done. What kernels allocate belongs to the compute stream.
A value that came in lies in a block of the copy stream, which is kept until the kernels that were
called before it was dropped have run. Copies go through pinned memory, kept until they are done.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowscope.runtime.devices.device import driver_failure

#: Returns arrays of the host once they have come.
Arrival = Callable[[], list[Any]]


class GpuStreams:
    """The streams of one GPU, which all sessions of the process share.

    Args:
        cupy: CuPy.
        index: Which GPU.

    Attributes:
        compute: Where kernels run.
        copy_in: Where values come in.
        copy_out: Where values go out.
    """

    def __init__(self, cupy: Any, index: int) -> None:
        self._cupy = cupy
        self._index = index
        self.device = cupy.cuda.Device(index)
        with self.device:
            self.compute, self.copy_in, self.copy_out = (cupy.cuda.Stream() for _ in range(3))
        self._lock = threading.Lock()
        #: Blocks whose arrays are gone; kernels that read them may still be waiting.
        self._dropped: deque[Any] = deque()
        #: What is in use until an event, in the order of the events: blocks, and pinned memory.
        self._read: deque[tuple[Any, Any]] = deque()
        self._sent: deque[tuple[Any, Any]] = deque()

    def active(self) -> ActiveGpu:
        """Returns a context in which kernels run on the compute stream."""
        return ActiveGpu(self)

    def bring_in(self, host: Any) -> Any:
        """Returns an array of the host on the GPU, once it has arrived there.

        The host may change its array at once.
        """
        with self.device:
            made = self._room(host.shape, host.dtype)
            if not host.nbytes:
                return made
            staging = self._cupy.cuda.alloc_pinned_memory(host.nbytes)
            np.frombuffer(staging, host.dtype, host.size).reshape(host.shape)[...] = host
            made.data.copy_from_host_async(staging.ptr, host.nbytes, self.copy_in)
            arrived = self.copy_in.record()
            self.compute.wait_event(arrived)
        with self._lock:
            self._sent.append((arrived, staging))
        return made

    def bring_over(self, value: Any) -> Any:
        """Returns an array of another GPU on this one, once it has arrived there."""
        source = streams_of(self._cupy, value.device.id)
        with source.active():
            dense = self._cupy.ascontiguousarray(value)
            computed = source.compute.record()
        with self.device:
            made = self._room(dense.shape, dense.dtype)
            self.copy_in.wait_event(computed)
            made.data.copy_from_device_async(dense.data, dense.nbytes, self.copy_in)
            arrived = self.copy_in.record()
            self.compute.wait_event(arrived)
        source.compute.wait_event(arrived)  # before it changes `value`, or gives it back
        return made

    def bring_out(self, values: Sequence[Any]) -> Arrival:
        """Has arrays of the GPU come to the host; what is returned waits for them."""
        with self.active():
            dense = [self._cupy.ascontiguousarray(v) for v in values]
            self.copy_out.wait_event(self.compute.record())
            staged = [self._send_out(v) for v in dense]
            arrived = self.copy_out.record()

        def arrival() -> list[Any]:
            arrived.synchronize()
            self._give_back()
            return [
                np.frombuffer(s, v.dtype, v.size).reshape(v.shape).copy() if v.nbytes
                else np.empty(v.shape, v.dtype)
                for s, v in zip(staged, dense, strict=True)
            ]  # fmt: skip

        return arrival

    def _send_out(self, value: Any) -> Any:
        if not value.nbytes:
            return None
        staging = self._cupy.cuda.alloc_pinned_memory(value.nbytes)
        value.data.copy_to_host_async(staging.ptr, value.nbytes, self.copy_out)
        return staging

    def _room(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Returns an array whose block goes back when the kernels that use it are done."""
        self._give_back()
        cuda = self._cupy.cuda
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        with self.copy_in:
            block = cuda.alloc(nbytes)
        owner = _Owner(block, self._dropped)
        memory = cuda.UnownedMemory(block.ptr, nbytes, owner, self._index)
        return self._cupy.ndarray(shape, dtype, cuda.MemoryPointer(memory, 0))

    def _give_back(self) -> None:
        """Gives memory back that the streams are done with."""
        with self._lock, self.device:
            if self._dropped:
                blocks = [self._dropped.popleft() for _ in range(len(self._dropped))]
                self._read.append((self.compute.record(), blocks))
            for kept in (self._read, self._sent):
                while kept and kept[0][0].done:
                    kept.popleft()


class _Owner:
    """Holds the block of an array that came in, and tells when the array is gone."""

    __slots__ = ("_block", "_dropped")

    def __init__(self, block: Any, dropped: deque[Any]) -> None:
        self._block = block
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self._block)


class ActiveGpu:
    """A context: a GPU is current, and its compute stream."""

    __slots__ = ("_caller", "_streams")

    def __init__(self, streams: GpuStreams) -> None:
        self._streams = streams
        self._caller: Any = None

    def __enter__(self) -> None:
        streams = self._streams
        try:
            streams.device.__enter__()
        except RuntimeError as e:
            if (failure := driver_failure(e)) is None:
                raise
            raise failure from e
        caller = streams._cupy.cuda.get_current_stream()
        if caller.ptr and caller != streams.compute:
            self._caller = caller
            streams.compute.wait_event(caller.record())
        streams.compute.__enter__()

    def __exit__(self, *error: Any) -> None:
        streams = self._streams
        streams.compute.__exit__(*error)
        if self._caller is not None:
            self._caller.wait_event(streams.compute.record())
        streams.device.__exit__(*error)


@functools.lru_cache(64)
def streams_of(cupy: Any, index: int) -> GpuStreams:
    """Returns the streams of a GPU: the same for all that use it."""
    return GpuStreams(cupy, index)


__all__ = ["ActiveGpu", "GpuStreams", "streams_of"]
