"""What the debugger costs: `python tests/benchmarks/bench_debugging.py`.

Watching everything for what is not finite: steps take turns, plain and watched, and ratios are
those of `bench_tracing.py`. Then nanoseconds of a breakpoint that does not hold, where it stands:
what its code asks, and an iteration of a loop with and without it.
"""

from __future__ import annotations

import argparse
import time
import timeit

import peer
from bench import CASES
from bench_tracing import ratio, turns

import flowscope as fs

NAMES = ("mlp784-sgd", "cnn", "lstm-loop")


def watched(name: str, rounds: int) -> str:
    """Returns the ratio of watched steps to plain ones, of so many seconds."""
    case = next(c for c in CASES if c.name == name)
    made = peer.prepare(fs, case.work, case.args)
    point = made.session.debug.watch()
    made.run()

    def choose(is_watched: bool) -> None:
        point.is_enabled = is_watched

    return f"{name}: watched {ratio(*turns(made.run, choose, rounds))}"


def breakpoint_ns() -> str:
    """The cost of a breakpoint that does not hold."""
    with fs.Graph().as_default(), fs.Session() as sess:
        n = fs.placeholder(fs.int64, [])
        start = [fs.constant(0, fs.int64), fs.constant([1.0])]
        loop = fs.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, fs.sin(t, name="s")), start)
        point = sess.debug.break_before(op_type="Sin", iteration=1 << 40)
        sess.run(loop, {n: 1})
        (made,) = [c.tests for c in sess.planner.calls.all()]
        tests = [*made.before.values()]
        asks, only, i = [True], [point.conditions.iteration], 7
        text = "asks[0] and (only[0] is None or only[0] == i) and tests[0](None, (i,), (1.0,))"
        asked = min(timeit.repeat(text, "", time.process_time, 9, 100_000, locals())) * 1e4

        def iteration_ns() -> float:
            begin = time.process_time_ns()
            sess.run(loop, {n: 20_000})
            return (time.process_time_ns() - begin) / 20_000

        found = []
        for point.is_enabled in (True, False) * 9:
            sess.run(loop, {n: 1})
            found.append(min(iteration_ns() for _ in range(2)))
        more = min(found[0::2]) - min(found[1::2])
    return f"a breakpoint that does not hold: {asked:.0f} ns to ask, {more:.0f} ns an iteration"


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    print(breakpoint_ns(), flush=True)
    for name in NAMES:
        print(watched(name, rounds), flush=True)


if __name__ == "__main__":
    main()
