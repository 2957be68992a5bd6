"""Steps over several processes on one machine, beside TensorFlow's distributed runtime.

Run: python tests/benchmarks/bench_cluster.py [--peer PYTHON] [--curve | --fan-out]
The first task is the client's own process, as in TensorFlow's the master's. With a Python that has
TensorFlow, the same programs run there in the same go. Medians of single steps.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

#: Bytes of the large array.
LARGE = 100_000_000
OPS = 10_000


def load(is_peer: bool) -> Any:
    """Returns flowscope, or TensorFlow's module of the same names."""
    if not is_peer:
        import flowscope

        return flowscope
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


@contextmanager
def flowscope_tasks(count: int) -> Iterator[tuple[Any, list[str]]]:
    """The client and further workers: what a session runs on, and their devices."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "helpers"))
    from cluster_hosts import hosts_apart

    with hosts_apart(count - 1) as (cluster, _):
        yield cluster, ["/job:client/task:0", *[f"/job:worker/task:{i}" for i in range(count - 1)]]


@contextmanager
def tensorflow_tasks(count: int) -> Iterator[tuple[Any, list[str]]]:
    """The same in TensorFlow: its first worker is this process."""
    tf = load(True)
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    spec = {"worker": [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]}
    for one in sockets:
        one.close()
    others = [
        subprocess.Popen(
            [sys.executable, __file__, "--serve", json.dumps(spec), str(i)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for i in range(1, count)
    ]
    server = tf.train.Server(tf.train.ClusterSpec(spec), job_name="worker", task_index=0)
    for one in others:
        one.stdout.readline()
    try:
        yield server.target, [f"/job:worker/task:{i}" for i in range(count)]
    finally:
        for one in others:
            one.kill()
            one.wait()


def serve(spec: str, task: int) -> None:
    """One task of TensorFlow's, until its client is gone."""
    tf = load(True)
    server = tf.train.Server(
        tf.train.ClusterSpec(json.loads(spec)), job_name="worker", task_index=task
    )
    print("ready", flush=True)
    sys.stdin.read()
    del server


#: What the counter and the condition of a loop are; see `loop`.
KINDS = ("told", "streamed", "barrier", "value")


def loop(fs: Any, n: Any, devices: list[str], window: int, kind: str) -> list[Any]:
    """One scalar addition per task and iteration; all follow the first one's condition.

    Args:
        fs: The module.
        n: How many iterations.
        devices: The tasks' devices.
        window: The loop's parallel_iterations.
        kind: "told": it can be told before the loop how often it runs. "streamed": the first task
            computes that as it goes. "barrier": the counter waits in each iteration for all tasks.
            "value": the condition needs the values of all tasks in each iteration.
    """

    def body(i: Any, *values: Any) -> list[Any]:
        found = []
        for device, v in zip(devices, values):
            with fs.device(device):
                found.append(v + 1.0)
        waited = found if kind == "barrier" else []
        with fs.device(devices[0]), fs.control_dependencies(waited):
            return [fs.abs(i) + 1 if kind in ("streamed", "value") else i + 1, *found]

    def cond(i: Any, *values: Any) -> Any:
        with fs.device(devices[0]):
            goes_on = i < n
            for v in values[1:] if kind == "value" else ():
                goes_on = fs.logical_and(goes_on, v >= 0.0)
            return goes_on

    starts: list[Any] = []
    for device in devices:
        with fs.device(device):
            starts.append(fs.constant(0.0))
    with fs.device(devices[0]):
        first = fs.constant(0)
    return list(
        fs.while_loop(cond, body, [first, *starts], parallel_iterations=window, back_prop=False)
    )


def median_s(run: Callable[[], Any], seconds: float = 0.5, most: int = 3000) -> float:
    """Returns the median of single runs; a few go before."""
    for _ in range(3):
        run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < most):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def loops(fs: Any, target: Any, devices: list[str]) -> dict[str, float]:
    """Returns iterations a second, by what the loop is."""
    found = {}
    for kind in KINDS:
        for window in (32, 1):
            rate = loop_rate(fs, target, devices, window, kind)
            found[f"loop {kind} window {window} it/s"] = rate
    return found


def loop_rate(fs: Any, target: Any, devices: list[str], window: int, kind: str) -> float:
    """Returns iterations a second; see `loop`."""
    with loop_of(fs, target, devices, window, kind) as (run, trips):
        return trips / median_s(lambda: run(trips), 0.8)


@contextmanager
def loop_of(
    fs: Any, target: Any, devices: list[str], window: int, kind: str
) -> Iterator[tuple[Callable[[int], Any], int]]:
    """What runs so many iterations of a loop, and how many take about 0.2 s."""
    with fs.Graph().as_default(), fs.Session(target) as sess:
        n = fs.placeholder(fs.int32, [])
        fetch = loop(fs, n, devices, window, kind)

        def run(trips: int) -> Any:
            return sess.run(fetch, {n: trips})

        probe_s = median_s(lambda: run(300), 0.05)
        yield run, int(max(300, min(50_000, 300 * 0.2 / probe_s)))


def costs(fs: Any, target: Any, devices: list[str], is_peer: bool) -> dict[str, float]:
    """The CPU time of an iteration of two kinds of loops, on all processes."""
    found = {}
    for kind in ("streamed", "value"):
        with loop_of(fs, target, devices, 32, kind) as (run, trips):
            sent, cpu_s, start = frames(target, is_peer), cpu_seconds(), time.perf_counter()
            for _ in range(3):
                run(trips)
            trips *= 3
            wall_s = time.perf_counter() - start
            found[f"{kind} it/s"] = trips / wall_s
            found[f"{kind} CPU us/it"] = (cpu_seconds() - cpu_s) / trips * 1e6
            found[f"{kind} messages/it"] = (frames(target, is_peer) - sent) / trips
    return found


def cpu_seconds() -> float:
    """The CPU time of this process and its children; TensorFlow's side has no psutil."""
    ticks = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(folder.name) == os.getpid() or int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def frames(target: Any, is_peer: bool) -> float:
    """Returns how many values have gone from and to this process; TensorFlow does not tell."""
    if is_peer:
        return float("nan")
    counters = target.endpoint.counters().values()
    return float(sum(c.sent + c.received for c in counters))


def crossings(fs: Any, target: Any, devices: list[str]) -> dict[str, float]:
    """Returns microseconds, and milliseconds of large arrays, by what crosses."""
    with fs.Graph().as_default(), fs.Session(target) as sess:
        x = fs.placeholder(fs.float32, [])
        with fs.device(devices[1]):
            there = x + 1.0
            big = fs.get_variable(
                "big", [LARGE // 4], use_resource=True, initializer=fs.zeros_initializer()
            )
            touch, whole = there.op, big.read_value()
            first = fs.strided_slice(whole, [0], [1])
        with fs.device(devices[0]):
            back = there + 1.0
            brought = fs.strided_slice(fs.identity(whole) + 0.0, [0], [1])
        sess.run(fs.global_variables_initializer())
        feed = {x: 1.0}
        small = {
            "op on other task us": lambda: sess.run(touch, feed),
            "scalar fetched us": lambda: sess.run(there, feed),
            "scalar received us": lambda: sess.run(back, feed),
        }
        found = {name: median_s(run) * 1e6 for name, run in small.items()}
        large = {
            "100 MB stays ms": lambda: sess.run(first),
            "100 MB received ms": lambda: sess.run(brought),
            "100 MB fetched ms": lambda: sess.run(whole),
        }
        return found | {name: median_s(run, 1.0, 9) * 1e3 for name, run in large.items()}


def busy(fs: Any, target: Any, devices: list[str]) -> dict[str, float]:
    """Returns microseconds of a fetched scalar beside a busy thread of the user's."""
    with fs.Graph().as_default(), fs.Session(target) as sess:
        x = fs.placeholder(fs.float32, [])
        with fs.device(devices[1]):
            there = x + 1.0
        is_over = threading.Event()

        def spin() -> None:
            while not is_over.is_set():
                sum(range(100))

        thread = threading.Thread(target=spin)
        thread.start()
        try:
            return {"scalar fetched, busy us": median_s(lambda: sess.run(there, {x: 1.0})) * 1e6}
        finally:
            is_over.set()
            thread.join()


def beside_steps(fs: Any, target: Any, devices: list[str]) -> dict[str, float]:
    """Returns microseconds of a fetched scalar while other steps compute on both tasks."""
    with fs.Graph().as_default(), fs.Session(target) as sess, fs.Session(target) as other:
        x = fs.placeholder(fs.float32, [])
        with fs.device(devices[1]):
            there = x + 1.0
        products = []
        for device in devices:
            with fs.device(device):
                y = fs.random_uniform([400, 400])
                for _ in range(20):
                    y = fs.matmul(y, y) * 1e-3
                products.append(fs.reduce_sum(y))
        other.run(products)
        is_over = threading.Event()

        def compute() -> None:
            while not is_over.is_set():
                other.run(products)

        thread = threading.Thread(target=compute)
        thread.start()
        try:
            took = median_s(lambda: sess.run(there, {x: 1.0}), 2.0)
        finally:
            is_over.set()
            thread.join()
    return {"scalar fetched, steps beside us": took * 1e6}


def many_ops(fs: Any, target: Any, devices: list[str]) -> dict[str, float]:
    """Returns seconds of the first step of many operations on all tasks, and of the second."""
    with fs.Graph().as_default(), fs.Session(target) as sess:
        x = fs.placeholder(fs.float32, [])
        ends = []
        for device in devices[1:]:
            with fs.device(device):
                y = x
                for i in range(OPS // (len(devices) - 1)):
                    y = (fs.add, fs.maximum, fs.subtract, fs.minimum)[i % 4](y, x)
                ends.append(y)
        start = time.perf_counter()
        sess.run(ends, {x: 1.0})
        first = time.perf_counter() - start
        second = median_s(lambda: sess.run(ends, {x: 1.0}))
    return {f"{OPS} ops first step s": first, f"{OPS} ops second step s": second}


def fan_out(fs: Any, target: Any, devices: list[str]) -> dict[str, float]:
    """Returns milliseconds of a step that has one operation on each of many tasks."""
    with fs.Graph().as_default(), fs.Session(target) as sess:
        x = fs.placeholder(fs.float32, [])
        ends = []
        for device in devices:
            with fs.device(device):
                ends.append(x + 1.0)
        start = time.perf_counter()
        sess.run(ends, {x: 1.0})
        first = time.perf_counter() - start
        before, count = cpu_seconds(), 0

        def run() -> None:
            nonlocal count
            count += 1
            sess.run(ends, {x: 1.0})

        found = median_s(run, 1.0)
        cpu = (cpu_seconds() - before) / count
    what = f"op on each of {len(devices)} tasks"
    return {
        f"{what}, first step ms": first * 1e3,
        f"{what} ms": found * 1e3,
        f"{what}, CPU ms": cpu * 1e3,
    }


def fan_out_here(count: int) -> dict[str, float]:
    """Returns the same of so many tasks in this process."""
    from cluster_hosts import hosts_here

    import flowscope

    with hosts_here(count) as (cluster, _):
        devices = [f"/job:worker/task:{i}" for i in range(count)]
        found = fan_out(flowscope, cluster, devices)
    return {f"{what}, in this process": value for what, value in found.items()}


def measured(is_peer: bool, does_curve: bool, does_fan_out: bool) -> dict[str, float]:
    """Returns all figures of one side."""
    fs, tasks = load(is_peer), tensorflow_tasks if is_peer else flowscope_tasks
    found: dict[str, float] = {}
    for count in (2, 4, 8, 16) if does_fan_out else ():
        with tasks(count + 1) as (target, devices):
            found |= fan_out(fs, target, devices[1:])
    if does_fan_out:
        return found if is_peer else found | fan_out_here(64)
    with tasks(2) as (target, devices):
        for part in (loops, crossings, busy, beside_steps):
            found |= part(fs, target, devices)
    with tasks(5) as (target, devices):
        found |= many_ops(fs, target, devices)
    for count in (1, 2, 4, 8, 16) if does_curve else ():
        with tasks(count + 1) as (target, devices):
            told = costs(fs, target, devices, is_peer)
        found |= {f"{count} workers, {k}": v for k, v in told.items()}
    return found


def main() -> None:
    """Prints a table: a line per figure, this side and TensorFlow's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer")
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--fan-out", action="store_true")
    parser.add_argument("--side", choices=["flowscope", "tensorflow"])
    parser.add_argument("--serve", nargs=2)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve[0], int(args.serve[1]))
        return
    if args.side:
        print(json.dumps(measured(args.side == "tensorflow", args.curve, args.fan_out)), flush=True)
        os._exit(0)  # TensorFlow's server does not end
    sides = [("flowscope", sys.executable)] + ([("tensorflow", args.peer)] if args.peer else [])
    figures = []
    for side, python in sides:
        command = [python, __file__, "--side", side]
        command += [f"--{w}" for w in ("curve", "fan-out") if getattr(args, w.replace("-", "_"))]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        figures.append(json.loads(done.stdout.splitlines()[-1]))
    for name in figures[0]:
        row = [f[name] for f in figures if name in f]
        ratio = f"{row[0] / row[1]:10.3g}x" if len(row) > 1 else ""
        print(f"{name:42}" + "".join(f"{v:14,.6g}" for v in row) + ratio)


if __name__ == "__main__":
    main()
