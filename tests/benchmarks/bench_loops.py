"""Loops beside TensorFlow's, as ratios: `python tests/benchmarks/bench_loops.py`.

The two run in processes of their own and take turns. A figure is the quickest run of a round, a
ratio the median of the rounds' ratios. The last line is a loop of ours beside the same steps
unrolled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))

from bench import ROOT, Comparison, Peer, Row, make_peer, table


def small(kind: str, what: str, bar: float, count: int, per: int = 1) -> Comparison:
    """Returns the comparison of a small loop."""
    args = {"kind": kind, "count": count, "iterations": count * per}
    return Comparison("small_loop", args, [Row(f"{kind}.value", what, bar=bar)])


COMPARISONS = (
    small("trivial", "trivial iteration", 1 / 25, 10_000),
    small("ten", "iteration of ten ops", 1 / 8, 10_000),
    small("nested", "iteration of a nested loop", 1 / 15, 100, 100),
    small("gradient", "gradient, per iteration", 0.4, 1000),
    Comparison("lstm", {"form": "loop"}, [Row("loop.value", "LSTM step, loop", bar=1.0)]),
    Comparison("lstm", {"form": "unrolled"}, [Row("unrolled.value", "LSTM unrolled", bar=1.0)], 5),
)


def dynamic(ours: Peer, rounds: int) -> Row:
    """A loop over time beside the same steps unrolled; both are flowscope's."""
    pairs = [
        [ours.measure("lstm", form=form)["value"] for form in ("unrolled", "loop")]
        for _ in range(rounds)
    ]
    ratio = statistics.median(b / a for a, b in pairs)
    flat, loop = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Row("dynamic", "loop / unrolled (ours)", loop, flat, ratio, 1.08)


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-venv", type=Path, default=ROOT / ".venv-tf")
    parser.add_argument("--only", default="", help="comparisons whose line holds this text")
    options = parser.parse_args()
    sources = [str(ROOT / name) for name in ("engine", "kernel_ext", "widgets")]
    ours = Peer("flowscope", sys.executable, {**os.environ, "PYTHONPATH": os.pathsep.join(sources)})
    peer = make_peer(options.peer_venv, dict(os.environ))
    rows = []
    for comparison in COMPARISONS:
        if options.only in comparison.figures[0].what:
            rows += comparison.run(ours, peer)
    if options.only in "loop / unrolled (ours)":
        rows.append(dynamic(ours, 5))
    for side in (ours, peer):
        if side:
            side.stop()
    print(table(rows[:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
