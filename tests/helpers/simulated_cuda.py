"""CUDA's streams, events and memory as `cupy.cuda` has them, with work done late and in any order.

What is put on a stream waits in its queue. It runs when a `Schedule` likes: in the stream's order,
after the events that the stream was told to wait for, and when the host waits for it. The schedule
follows from a seed; nothing but streams and events orders work, so what was left out shows:

- A block of memory is full of NaN and of -1 until something is written.
- A block given back is so again, as the next one who gets it would write there: in the order of
  the stream on which it was made, as with CuPy's pool. Who had a new one before may still write
  there, in that order, too. Pinned memory of the host is so at once.
- What the host reads without waiting is what is there by then.

As with CUDA the null stream waits for all streams of its device but the non-blocking ones, and
they wait for it.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

#: What every byte of memory is that nobody has written: NaN, or -1.
POISON = 0xFF


class CUDARuntimeError(RuntimeError):
    """An error of the driver."""


class Work:
    """Something on a stream: what runs, after what, and whether it has run."""

    __slots__ = ("after", "is_done", "run")

    def __init__(self, run: Callable[[], None] | None, after: Iterable[Work]) -> None:
        self.run = run
        self.after = [w for w in after if not w.is_done]
        self.is_done = False

    def is_ready(self) -> bool:
        self.after = [w for w in self.after if not w.is_done]
        return not self.after


class Queue:
    """The work of one stream on one device."""

    def __init__(self, device: int, is_blocking: bool, is_null: bool = False) -> None:
        self.device = device
        self.is_blocking = is_blocking
        self.is_null = is_null
        self.waiting: deque[Work] = deque()
        self.last: Work | None = None
        self.weight = 1.0


class Schedule:
    """When work runs: random, but legal.

    Args:
        seed: From which the order follows.
        devices: How many there are.

    Attributes:
        waits: How often the host has waited for a device.
        launches: How many kernels were put on streams.
        wrong: How many values came to the host other than the order of the calls makes them.
        failure: What the driver answers from now on; None where all is well.
    """

    def __init__(self, seed: int, devices: int = 2) -> None:
        self.devices = devices
        self.lock = threading.RLock()
        self.follow(seed)
        self.queues: list[Queue] = []
        self.nulls = [self.queue(i, True, True) for i in range(devices)]
        self.waits = self.launches = self.wrong = 0
        self.failure: Exception | None = None
        self._is_running = False

    def follow(self, seed: int) -> None:
        """Takes another order from now on."""
        self.random = random.Random(seed)
        #: How likely work runs as soon as more is put on a stream.
        self.eagerness = self.random.choice([0.0, 0.0, 0.3, 0.6, 1.0])

    def queue(self, device: int, is_blocking: bool, is_null: bool = False) -> Queue:
        made = Queue(device, is_blocking, is_null)
        self.queues.append(made)
        return made

    def check(self) -> None:
        """Raises what the driver answers, if it is an error."""
        if self.failure is not None:
            raise self.failure

    def put(self, queue: Queue, run: Callable[[], None] | None, after: Iterable[Work] = ()) -> Work:
        """Puts work on a stream."""
        with self.lock:
            work = Work(run, [*after, *self._barriers(queue)])
            queue.waiting.append(work)
            queue.last = work
            if not self._is_running:
                self._go_on(self.eagerness)
            return work

    def _go_on(self, how_likely: float) -> None:
        while self.random.random() < how_likely and self._advance():
            pass

    def _barriers(self, queue: Queue) -> list[Work]:
        """What blocking streams and the null stream wait for, of each other."""
        if queue.is_null:
            others = [q for q in self.queues if q.is_blocking and q.device == queue.device]
        else:
            others = [self.nulls[queue.device]] if queue.is_blocking else []
        return [q.last for q in others if q.last is not None]

    def wait(self, work: Work | None) -> None:
        """Has the host wait for some work, while any other may run."""
        self.check()
        with self.lock:
            self.waits += 1
            while work is not None and not work.is_done:
                assert self._advance(), "streams wait for each other"
            self._go_on(self.eagerness / 2)

    def _advance(self) -> bool:
        """Runs the next work of a stream that can go on; False if there is none."""
        if self.random.random() < 0.1:
            for queue in self.queues:
                queue.weight = self.random.choice([0.001, 1.0, 1000.0])
        ready = [q for q in self.queues if q.waiting and q.waiting[0].is_ready()]
        if not ready:
            return False
        (queue,) = self.random.choices(ready, [q.weight for q in ready])
        work = queue.waiting.popleft()
        if work.run is not None:
            self._is_running = True
            try:
                work.run()
            finally:
                self._is_running = False
        work.run, work.is_done = None, True
        return True


class _Current(threading.local):
    """What is current in a thread: a device, and a stream for each."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, list[Any]] = {}


class Block:
    """Memory of a device, homed on the stream that was current.

    Attributes:
        held: What it holds by now.
        ideal: What it would hold if each call had been waited for.
    """

    def __init__(self, cuda: Cuda, nbytes: int) -> None:
        self.cuda = cuda
        self.device_id = cuda.current.device
        self.size = nbytes
        self.held, self.ideal = (np.full(nbytes, POISON, np.uint8) for _ in range(2))
        self.ptr = next(cuda.addresses)
        self._home = cuda.current_queue()
        cuda.blocks[self.ptr] = self.held, self.ideal
        cuda.used[self.device_id] += nbytes
        self._write_over()

    def _write_over(self) -> None:
        """Has whoever had the block before, or gets it next, write to it in its stream's order."""
        held = self.held
        self.cuda.schedule.put(self._home, lambda: held.fill(POISON))

    def __del__(self) -> None:
        self.cuda.blocks.pop(self.ptr, None)
        self.cuda.used[self.device_id] -= self.size
        self._write_over()


class Cuda:
    """`cupy.cuda`, of a schedule."""

    CUDARuntimeError = CUDARuntimeError

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.current = _Current()
        self.addresses = itertools.count(1 << 12, 1 << 12)
        #: Memory of devices and of the host, by address.
        self.blocks: dict[int, Any] = {}
        self.pinned: dict[int, Any] = {}
        self.used = [0] * schedule.devices
        cuda = self

        class OfThis:
            """What belongs to this module."""

            cuda: Cuda

        OfThis.cuda = self
        self.Device = type("Device", (Device, OfThis), {})
        self.Event = type("Event", (Event, OfThis), {})
        self.Stream = type("Stream", (Stream, OfThis), {})
        self.Stream.null = self.Stream(null=True)
        self.MemoryPointer = type("MemoryPointer", (MemoryPointer, OfThis), {})
        self.UnownedMemory = type("UnownedMemory", (UnownedMemory, OfThis), {})

        class runtime:
            """`cupy.cuda.runtime`."""

            CUDARuntimeError = CUDARuntimeError

            @staticmethod
            def getDeviceCount() -> int:
                cuda.schedule.check()
                return cuda.schedule.devices

            @staticmethod
            def driverGetVersion() -> int:
                return 12040

            @staticmethod
            def runtimeGetVersion() -> int:
                return 12040

        self.runtime = runtime

    def get_current_stream(self, device_id: int = -1) -> Any:
        """Returns the stream that is current in this thread, on a device."""
        device = self.current.device if device_id < 0 else device_id
        stack = self.current.streams.get(device)
        return stack[-1] if stack else self.Stream.null

    def current_queue(self) -> Queue:
        """Returns the queue of the stream that is current."""
        return self.get_current_stream().queue()  # type: ignore[no-any-return]

    def alloc(self, size: int) -> Any:
        """Returns memory of the current device."""
        self.schedule.check()
        return self.MemoryPointer(Block(self, size), 0)

    def alloc_pinned_memory(self, size: int) -> PinnedMemory:
        """Returns memory of the host that copies can use while the host goes on."""
        self.schedule.check()
        return PinnedMemory(self, size)


class Device:
    """`cupy.cuda.Device`."""

    cuda: Cuda

    def __init__(self, device: int | None = None) -> None:
        self.id = self.cuda.current.device if device is None else int(device)

    def __enter__(self) -> Any:
        self.cuda.schedule.check()
        current = self.cuda.current
        self._stack.append(current.device)
        current.device = self.id
        return self

    @property
    def _stack(self) -> list[int]:
        return self.cuda.current.__dict__.setdefault("devices", [])  # type: ignore[no-any-return]

    def __exit__(self, *_: Any) -> None:
        self.cuda.current.device = self._stack.pop()

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def synchronize(self) -> None:
        for queue in [q for q in self.cuda.schedule.queues if q.device == self.id]:
            self.cuda.schedule.wait(queue.last)

    @property
    def mem_info(self) -> tuple[int, int]:
        total = 1 << 34
        return total - self.cuda.used[self.id], total


class Event:
    """`cupy.cuda.Event`."""

    cuda: Cuda

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.work: Work | None = None
        self._device = self.cuda.current.device

    def record(self, stream: Any = None) -> None:
        """Stands for what is on the stream by now."""
        self.cuda.schedule.check()
        stream = stream or self.cuda.get_current_stream()
        if stream.queue().device != self._device:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: an event of another device")
        self.work = self.cuda.schedule.put(stream.queue(), None)

    def synchronize(self) -> None:
        self.cuda.schedule.wait(self.work)

    @property
    def done(self) -> bool:
        self.cuda.schedule.check()
        return self.work is None or self.work.is_done


class Stream:
    """`cupy.cuda.Stream`."""

    cuda: Cuda
    null: Any

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.device_id = -1 if null else self.cuda.current.device
        self.ptr = 0 if null else next(self.cuda.addresses)
        self._queue = None if null else self.cuda.schedule.queue(self.device_id, not non_blocking)

    def queue(self) -> Queue:
        """Returns its queue; of the null stream, that of the current device."""
        return self._queue or self.cuda.schedule.nulls[self.cuda.current.device]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    def __enter__(self) -> Any:
        current = self.cuda.current
        device = current.device if self.device_id < 0 else self.device_id
        if device != current.device:
            raise RuntimeError("the stream is another device's than the current one")
        current.streams.setdefault(device, []).append(self)
        current.__dict__.setdefault("pushed", []).append(device)
        return self

    def __exit__(self, *_: Any) -> None:
        current = self.cuda.current
        current.streams[current.__dict__["pushed"].pop()].pop()

    def record(self, event: Any = None) -> Any:
        event = event or self.cuda.Event()
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        self.cuda.schedule.check()
        if event.work is not None:
            self.cuda.schedule.put(self.queue(), None, [event.work])

    def synchronize(self) -> None:
        self.cuda.schedule.wait(self.queue().last)

    @property
    def done(self) -> bool:
        last = self.queue().last
        return last is None or last.is_done


class UnownedMemory:
    """`cupy.cuda.UnownedMemory`: memory that something else gives back."""

    cuda: Cuda

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner = ptr, size, owner
        self.device_id = self.cuda.current.device if device_id < 0 else device_id
        self.held, self.ideal = self.cuda.blocks[ptr]


class MemoryPointer:
    """`cupy.cuda.MemoryPointer`."""

    cuda: Cuda

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem = mem
        self.ptr = mem.ptr + offset
        self.device_id = mem.device_id
        self.held, self.ideal = mem.held[offset:], mem.ideal[offset:]

    def _copy(self, to: Any, source: Any, stream: Any) -> None:
        queue = stream.queue() if stream else self.cuda.current_queue()

        def copy() -> None:
            to[...] = source

        self.cuda.schedule.check()
        self.cuda.schedule.put(queue, copy)

    def copy_from_host_async(self, mem: int, size: int, stream: Any = None) -> None:
        pinned = self.cuda.pinned[mem][:size]
        self.ideal[:size] = pinned
        self._copy(self.held[:size], pinned, stream)

    def copy_to_host_async(self, mem: int, size: int, stream: Any = None) -> None:
        self._copy(self.cuda.pinned[mem][:size], self.held[:size], stream)

    def copy_from_device_async(self, src: Any, size: int, stream: Any = None) -> None:
        self.ideal[:size] = src.ideal[:size]
        self._copy(self.held[:size], src.held[:size], stream)


class PinnedMemory(np.ndarray):
    """What `cupy.cuda.alloc_pinned_memory` returns; its pool hands it out again at once."""

    def __new__(cls, cuda: Cuda, size: int) -> Any:
        data = np.full(size, POISON, np.uint8)
        made = data.view(cls)
        made.ptr, made._cuda = next(cuda.addresses), cuda
        cuda.pinned[made.ptr] = data
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.ptr = 0

    def __del__(self) -> None:
        if self.ptr:
            self._cuda.pinned.pop(self.ptr).fill(POISON)


__all__ = ["POISON", "CUDARuntimeError", "Cuda", "Schedule"]
