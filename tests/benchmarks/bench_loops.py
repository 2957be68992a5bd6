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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(__file__))

from sides import ROOT, Peer, last_line, make_peer, sources, time_text

ROUNDS = 9


@dataclass(frozen=True)
class Row:
    """One line of the table; values in seconds."""

    name: str
    what: str
    ours: float | None = None
    peer: float | None = None
    ratio: float | None = None
    bar: float = 1.0
    error: str | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is met; None where something is missing."""
        value = self.ratio if self.ratio is not None else self.ours
        if self.error or value is None:
            return None
        return value <= self.bar


@dataclass(frozen=True)
class Comparison:
    """A piece of work that both sides do, and the figures that it gives."""

    work: str
    args: dict[str, Any]
    figures: Sequence[Row]
    rounds: int = ROUNDS

    def run(self, ours: Peer, peer: Peer | None) -> list[Row]:
        """Lets the two take turns; returns the filled-in lines."""
        sides = [ours, *([peer] if peer else [])]
        seen: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
        try:
            for _ in range(self.rounds):
                for side in sides:
                    seen[side.name].append(side.measure(self.work, **self.args))
        except RuntimeError as error:
            return [Row(f.name, f.what, bar=f.bar, error=last_line(error)) for f in self.figures]
        return [
            self._row(figure, seen[ours.name], peer and seen[peer.name]) for figure in self.figures
        ]

    @staticmethod
    def _row(figure: Row, ours: list[Any], peer: list[Any] | None) -> Row:
        mine = [answer[figure.name.rpartition(".")[2]] for answer in ours]
        if peer is None:
            return Row(
                figure.name, figure.what, statistics.median(mine), bar=figure.bar, error="no peer"
            )
        other = [answer[figure.name.rpartition(".")[2]] for answer in peer]
        ratios = [a / b for a, b in zip(mine, other, strict=True)]
        middle = statistics.median
        return Row(
            figure.name, figure.what, middle(mine), middle(other), middle(ratios), figure.bar
        )


def small(kind: str, what: str, bar: float, count: int, per: int = 1) -> Comparison:
    """Returns the comparison of a small loop."""
    args = {"kind": kind, "count": count, "iterations": count * per}
    return Comparison("small_loop", args, [Row(f"{kind}.value", what, bar=bar)])


COMPARISONS = (
    small("trivial", "trivial iteration", 1 / 1000, 10_000),
    small("ten", "ten ops, float32", 1 / 300, 10_000),
    small("ten64", "ten ops, float64", 1 / 300, 10_000),
    small("nested", "iteration of a nested loop", 1 / 1000, 100, 100),
    small("branching", "10 inner, a branch in each", 1 / 1000, 1000),
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


def table(rows: Sequence[Row]) -> str:
    """Returns the lines as text."""
    lines = [f"{'':26}{'TensorFlow':>14}{'flowscope':>14}{'ratio':>9}{'bar':>8}"]
    for row in rows:
        peer, ours = time_text(row.peer), time_text(row.ours)
        ratio = "" if row.ratio is None else f"{row.ratio:.5f}"
        bar = f"{row.bar:.4f}"
        met = {True: "met", False: "MISSED", None: row.error or "?"}[row.is_met]
        lines.append(f"{row.what:26}{peer:>14}{ours:>14}{ratio:>9}{bar:>8}  {met}")
    return "\n".join(lines)


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-venv", type=Path, default=ROOT / ".venv-tf")
    parser.add_argument("--only", default="", help="comparisons whose line holds this text")
    options = parser.parse_args()
    ours = Peer("flowscope", sys.executable, sources(dict(os.environ)))
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
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
