"""Random traffic on GPUs: values come, are computed with, go to other GPUs, are dropped and go out.

Each value is known from NumPy. The traffic follows from a seed, and so does the order in which a
`simulated_cuda.Schedule` does the work. `MUTANTS` are faults of `gpu_streams` that it has to find.

`python tests/helpers/gpu_traffic.py 10000` runs so many seeds.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from simulated_cupy import simulated_gpus

import flowscope.runtime.devices.cupy as back_end
from flowscope.runtime.devices import gpu_streams

#: A line of the sources, and what a fault makes of it.
MUTANTS: dict[str, tuple[str, str]] = {
    "kernels do not wait for what came in": (
        "arrived = self.copy_in.record()\n"
        "            self.compute.wait_event(arrived)\n        with",
        "arrived = self.copy_in.record()\n        with",
    ),
    "the event of what comes in is recorded too early": (
        "made.data.copy_from_host_async(staging.ptr, host.nbytes, self.copy_in)\n"
        "            arrived = self.copy_in.record()",
        "arrived = self.copy_in.record()\n"
        "            made.data.copy_from_host_async(staging.ptr, host.nbytes, self.copy_in)",
    ),
    "pinned memory goes back before the copy": (
        "self._sent.append((arrived, staging))",
        "pass",
    ),
    "what comes in is copied on the compute stream": (
        "staging.ptr, host.nbytes, self.copy_in)",
        "staging.ptr, host.nbytes, self.compute)",
    ),
    "a copy to another GPU does not wait for the value": (
        "self.copy_in.wait_event(computed)",
        "pass",
    ),
    "kernels do not wait for what came over": (
        "arrived = self.copy_in.record()\n"
        "            self.compute.wait_event(arrived)\n        source",
        "arrived = self.copy_in.record()\n        source",
    ),
    "the source does not wait for the copy": (
        "source.compute.wait_event(arrived)",
        "pass",
    ),
    "the event of the value is recorded too early": (
        "dense = self._cupy.ascontiguousarray(value)\n"
        "            computed = source.compute.record()",
        "computed = source.compute.record()\n"
        "            dense = self._cupy.ascontiguousarray(value)",
    ),
    "what comes over is copied on the compute stream": (
        "dense.data, dense.nbytes, self.copy_in)",
        "dense.data, dense.nbytes, self.compute)",
    ),
    "a copy out does not wait for the value": (
        "self.copy_out.wait_event(self.compute.record())",
        "pass",
    ),
    "a copy out waits for too little": (
        "dense = [self._cupy.ascontiguousarray(v) for v in values]\n"
        "            self.copy_out.wait_event(self.compute.record())",
        "self.copy_out.wait_event(self.compute.record())\n"
        "            dense = [self._cupy.ascontiguousarray(v) for v in values]",
    ),
    "the host does not wait for what it reads": ("arrived.synchronize()", "pass"),
    "the host waits for the wrong stream": (
        "arrived = self.copy_out.record()",
        "arrived = self.compute.record()",
    ),
    "the host waits before the copy": (
        "staged = [self._send_out(v) for v in dense]\n            arrived = self.copy_out.record()",
        "arrived = self.copy_out.record()\n            staged = [self._send_out(v) for v in dense]",
    ),
    "strides are not heeded": (
        "dense = [self._cupy.ascontiguousarray(v) for v in values]",
        "dense = list(values)",
    ),
    "blocks go back before kernels are done": (
        "while kept and kept[0][0].done:",
        "while kept:",
    ),
    "blocks wait for the wrong stream": (
        "self._read.append((self.compute.record(), blocks))",
        "self._read.append((self.copy_in.record(), blocks))",
    ),
    "blocks go back when their arrays do": ("self._dropped.append(self._block)", "pass"),
    "blocks are made on another stream": ("with self.copy_in:", "with self.compute:"),
    "the streams do not heed the null stream": ("cuda.Stream()", "cuda.Stream(non_blocking=True)"),
    "kernels do not wait for the caller's stream": (
        "streams.compute.wait_event(caller.record())",
        "pass",
    ),
    "the caller's stream does not wait for kernels": (
        "self._caller.wait_event(streams.compute.record())",
        "pass",
    ),
    "each session has its own streams": ("@functools.lru_cache(64)", ""),
}


def mutated(name: str) -> Any:
    """Returns `gpu_streams` with a fault."""
    source = Path(gpu_streams.__file__).read_text(encoding="utf-8")
    old, new = MUTANTS[name]
    assert source.count(old) >= 1, f"{name}: there is no {old!r}"
    module = types.ModuleType("mutated_streams")
    exec(source.replace(old, new), module.__dict__)
    return module


class Traffic:
    """Traffic of a seed, over two GPUs, each of which two sessions use."""

    def __init__(self, seed: int, cupy: Any) -> None:
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._cupy = cupy
        self._gpus = [back_end.CupyGpu(i % 2, cupy) for i in range(4)]
        #: Arrays on GPUs, with what they have to hold.
        self._values: list[tuple[Any, Any]] = []
        with cupy.cuda.Device(0):
            self._own_stream = cupy.cuda.Stream(non_blocking=True)

    def run(self, steps: int) -> None:
        """Does so many things.

        Raises:
            AssertionError: if a value came out other than NumPy has it.
        """
        for _ in range(steps):
            self._random.choice(
                [self._put, self._put, self._compute, self._compute, self._change, self._move,
                 self._drop, self._drop, self._fetch, self._beside, self._on_own_stream]
            )()  # fmt: skip
        self._check(self._values)

    def _gpu(self, value: Any) -> Any:
        return self._random.choice([g for g in self._gpus if g.holds(value)])

    def _pick(self) -> tuple[Any, Any]:
        if not self._values:
            self._put()
        return self._random.choice(self._values)

    def _put(self) -> None:
        host = self._numbers.uniform(-1, 1, self._random.choice([(3, 4), (5,), ()])).astype("f")
        given = np.array(host)
        self._values.append((self._random.choice(self._gpus).put(given), host))
        given[...] = np.nan  # the user's own array is the user's

    def _compute(self) -> None:
        value, known = self._pick()
        with self._gpu(value).active():
            for _ in range(self._random.randint(1, 3)):
                value, known = value * 0.5 + 1, known * np.float32(0.5) + 1
            if self._random.random() < 0.4:
                value, known = value.T, known.T
        self._values.append((value, known))

    def _change(self) -> None:
        at = self._random.randrange(len(self._values)) if self._values else None
        if at is None:
            return
        value, known = self._values[at]
        with self._gpu(value).active():
            fresh = value.copy()
            fresh *= np.float32(2)
            value *= np.float32(-1)
        for i, (other, was) in enumerate(self._values):
            if other is value or other.base is value or (value.base is not None and (
                other is value.base or other.base is value.base
            )):  # fmt: skip
                self._values[i] = other, -was
        self._values.append((fresh, known * 2))

    def _move(self) -> None:
        value, known = self._pick()
        self._values.append((self._random.choice(self._gpus).put(value), known))

    def _drop(self) -> None:
        if self._values:
            self._values.pop(self._random.randrange(len(self._values)))

    def _fetch(self) -> None:
        count = self._random.randint(0, min(3, len(self._values)))
        self._check(self._random.sample(self._values, count))

    def _check(self, chosen: list[tuple[Any, Any]]) -> None:
        gpu = self._random.choice(self._gpus)
        found = gpu.get_all([v for v, _ in chosen])
        for value, (_, known) in zip(found, chosen, strict=True):
            np.testing.assert_allclose(value, known, rtol=1e-5, atol=1e-6)

    def _beside(self) -> None:
        """Code beside a session, which knows of no streams."""
        value, known = self._pick()
        with value.device:
            made = value + 3
            if self._random.random() < 0.5:
                np.testing.assert_allclose(made.get(), known + 3, rtol=1e-5, atol=1e-6)
        self._values.append((made, known + 3))

    def _on_own_stream(self) -> None:
        """Code with a stream of its own that feeds values to kernels, and reads what they give."""
        given = self._numbers.uniform(-1, 1, 4).astype("f")
        with self._cupy.cuda.Device(0), self._own_stream:
            value = self._cupy.asarray(given) + 1
            with self._gpus[0].active():
                made = value * 3
            del value
            after = made - 1
            found = after.get()
        np.testing.assert_allclose(found, given * 3 + 2, rtol=1e-5, atol=1e-6)


def check(seed: int, steps: int = 40, streams: Any = gpu_streams) -> None:
    """Asserts that traffic gives what NumPy does, and no value came out that was not there yet.

    Args:
        seed: Of the traffic and of the order.
        steps: How much there is of it.
        streams: The module `gpu_streams`, or one with a fault.
    """
    before = back_end.streams_of
    back_end.streams_of = streams.streams_of
    try:
        with simulated_gpus(seed) as schedule:
            import cupy

            Traffic(seed, cupy).run(steps)
            assert not schedule.wrong, f"seed {seed}: {schedule.wrong} values came out too early"
    finally:
        back_end.streams_of = before


def is_found(name: str, orders: int) -> bool:
    """Whether traffic in some of so many orders shows a fault."""
    streams = mutated(name)
    return any(_fails(lambda seed=seed: check(seed, streams=streams)) for seed in range(orders))


def _fails(run: Callable[[], None]) -> bool:
    try:
        run()
    except AssertionError:
        return True
    return False


__all__ = ["MUTANTS", "Traffic", "check", "is_found"]

if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        check(number)
    print(f"simulated: {sys.argv[1]} random orders give what NumPy gives")
