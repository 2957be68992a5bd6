"""Several CPU devices in one process: small steps, loops, chains of products; beside TensorFlow.

Run: python tests/benchmarks/bench_devices.py [--peer PYTHON]
With a Python that has TensorFlow, the same loops run there in the same go. Medians of single steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

TRIPS = 20_000


def load(is_peer: bool) -> Any:
    """Returns flowscope, or TensorFlow's module of the same names."""
    if not is_peer:
        import flowscope

        return flowscope
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf


def config(fs: Any, count: int, **more: Any) -> Any:
    return fs.ConfigProto(device_count={"CPU": count}, **more)


def loop(fs: Any, n: Any, count: int, window: int, has_barrier: bool) -> list[Any]:
    """One scalar addition per device and iteration; all follow the first one's condition."""

    def body(i: Any, *values: Any) -> list[Any]:
        found = []
        for k, v in enumerate(values):
            with fs.device(f"/cpu:{k}"):
                found.append(v + 1.0)
        with fs.device("/cpu:0"), fs.control_dependencies(found if has_barrier else []):
            return [i + 1, *found]

    def cond(i: Any, *_: Any) -> Any:
        with fs.device("/cpu:0"):
            return i < n

    starts: list[Any] = []
    for k in range(count):
        with fs.device(f"/cpu:{k}"):
            starts.append(fs.constant(0.0))
    start = [fs.constant(0), *starts]
    return list(fs.while_loop(cond, body, start, parallel_iterations=window))


def loops(fs: Any, **more: Any) -> dict[str, float]:
    """Returns iterations per second."""
    found = {}
    for count in (2, 4):
        for has_barrier in (False, True):
            for window in (1, 32):
                with fs.Graph().as_default(), fs.Session(config=config(fs, count, **more)) as sess:
                    n = fs.placeholder(fs.int32, [])
                    fetched = loop(fs, n, count, window, has_barrier)
                    trips = TRIPS if fs.__name__ == "flowscope" else TRIPS // 20
                    s = median(lambda: sess.run(fetched, {n: trips}))  # noqa: B023
                    kind = "barrier" if has_barrier else "free"
                    found[f"{count} devices, {kind}, window {window}"] = trips / s
    return found


def median(run: Callable[[], Any], count: int = 7) -> float:
    """Returns the seconds of one call."""
    run()
    run()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def small_step(fs: Any, devices: str, **more: Any) -> float:
    """Returns the seconds of a step of six small operations in a row, on devices by numbers."""
    count = len(set(devices))
    with fs.Graph().as_default(), fs.Session(config=config(fs, count, **more)) as sess:
        x = y = fs.placeholder(fs.float32, [4])
        for number in devices:
            with fs.device(f"/cpu:{number}"):
                y = fs.tanh(y)
        run, value = sess.make_callable(y, [x]), np.ones(4, "f")

        def thousand() -> None:
            for _ in range(1000):
                run(value)

        return median(thousand) / 1000


def chains(fs: Any, count: int, size: int = 768, **more: Any) -> float:
    """Returns the seconds of two chains of six products; BLAS has one thread."""
    more = {"intra_op_parallelism_threads": 1, **more}
    with fs.Graph().as_default(), fs.Session(config=config(fs, count, **more)) as sess:
        xs = [fs.placeholder(fs.float32, [size, size]) for _ in range(2)]
        ys = []
        for k, y in enumerate(xs):
            with fs.device(f"/cpu:{k % count}"):
                w = fs.constant((np.eye(size) * 0.5).astype("f"))
                for _ in range(6):
                    y = fs.tanh(fs.matmul(y, w))
                ys.append(fs.reduce_sum(y))
        fed = dict.fromkeys(xs, np.random.default_rng(1).random((size, size)).astype("f"))
        return median(lambda: sess.run(ys, fed))


def main() -> None:
    """Prints one line per figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="a Python that has TensorFlow")
    parser.add_argument("--as-peer", action="store_true")
    options = parser.parse_args()
    fs = load(options.as_peer)
    if options.as_peer:
        print(json.dumps(loops(fs)))
        return
    one = small_step(fs, "000000")
    for name, split in (("one function", "never"), ("on two threads", "always")):
        for devices in ("000111", "010101"):
            two = small_step(fs, devices, split_partitions=split)
            print(f"a small step on devices {devices}, {name}: {(two - one) * 1e6:+.1f} us")
    alone = chains(fs, 1, inter_op_parallelism_threads=1)
    for name, split in (("one function", "never"), ("on two threads", "always")):
        two = chains(fs, 2, split_partitions=split)
        print(f"two chains of products on 2 devices, {name}: {alone / two:.2f} x one thread")
    theirs = {}
    if options.peer:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [options.peer, __file__, "--as-peer"]
        output = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        theirs = json.loads(output.stdout.splitlines()[-1])
    for split in ("never", "always"):
        print(f"loops, iterations a second, split_partitions={split!r}:")
        for name, rate in loops(fs, split_partitions=split).items():
            ratio = f"   {rate / theirs[name]:6.1f} x TensorFlow" if name in theirs else ""
            print(f"  {name:30} {rate:12,.0f}{ratio}")


if __name__ == "__main__":
    sys.exit(main())
