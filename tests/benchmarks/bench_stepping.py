"""What watching, pausing and stepping cost: `python tests/benchmarks/bench_stepping.py`.

The loop is the tightest there is: one addition per iteration. "Watched" has a feed that looks at it
eight times a second. A latency is from the request until the step stands still.
"""

from __future__ import annotations

import statistics
import threading
import time

import flowscope as fs
from flowscope.live.watchers import bus

ROUNDS = 15
ITERATIONS = 3_000_000


def loop() -> tuple[fs.Tensor, fs.Tensor]:
    """Returns (number of iterations, the loop's result)."""
    n = fs.placeholder(fs.int64, [])
    return n, fs.while_loop(lambda i: i < n, lambda i: i + 1, [fs.constant(0, fs.int64)])


def iteration_ns(sess: fs.Session, n: fs.Tensor, i: fs.Tensor) -> float:
    """Returns the time of an iteration."""
    start = time.perf_counter_ns()
    sess.run(i, {n: ITERATIONS})
    return (time.perf_counter_ns() - start) / ITERATIONS


def watched(sess: fs.Session, n: fs.Tensor, i: fs.Tensor) -> float:
    """Returns the time of an iteration while a view looks."""
    end = bus.LiveChannel(sess.graph).subscribe(lambda message: None)
    try:
        return iteration_ns(sess, n, i)
    finally:
        end()


def latencies_ms(sess: fs.Session, n: fs.Tensor, i: fs.Tensor) -> tuple[list[float], list[float]]:
    """Returns the times until a busy loop is paused, and of single steps by operation."""
    thread = threading.Thread(target=_run_until_stopped, args=(sess, n, i))
    thread.start()
    while not sess.running:
        pass
    pauses, steps = [], []
    for _ in range(ROUNDS):
        _until_busy(sess)
        pauses.append(_until_held(sess, sess.pause))
        steps.append(_until_held(sess, sess.step_op))
        sess.resume()
    sess.stop()
    thread.join()
    return pauses, steps


def _run_until_stopped(sess: fs.Session, n: fs.Tensor, i: fs.Tensor) -> None:
    try:
        sess.run(i, {n: 10**15})
    except fs.errors.CancelledError:
        return


def _until_busy(sess: fs.Session) -> None:
    """Waits until the loop has done some iterations: it runs freely again."""
    start = None
    while True:
        for frame in sess.frames():
            start = frame.iteration if start is None else start
            if frame.iteration > start + 1000:
                return


def _until_held(sess: fs.Session, request: object) -> float:
    start = time.perf_counter_ns()
    request()  # type: ignore[operator]
    while sess.gate.state != "paused":
        time.sleep(0)  # lets the loop's thread have the interpreter
    return (time.perf_counter_ns() - start) * 1e-6


def main() -> None:
    """Measures and prints."""
    n, i = loop()
    with fs.Session() as sess:
        sess.run(i, {n: 1})
        pairs = [(iteration_ns(sess, n, i), watched(sess, n, i)) for _ in range(ROUNDS)]
        free, seen = (min(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"iteration: {free:.1f} ns; watched {seen:.1f} ns, ratio {ratio:.3f}")
        pauses, steps = latencies_ms(sess, n, i)
        for what, times in (("pause", pauses), ("step by operation", steps)):
            print(f"{what}: median {statistics.median(times):.2f} ms, at most {max(times):.2f} ms")


if __name__ == "__main__":
    main()
