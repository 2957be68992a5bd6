"""flowscope beside TensorFlow, on an idle and on a busy machine: `make bench`.

The two run in processes of their own and take turns, a slice of steps each, while 0, 1 and 2 busy
processes run beside them (`--neighbours`). Each side runs 2 000 steps at least; a case of long
steps ends when its time is over (`--seconds`), and the table says how many steps that were. A
figure is the mean, or the 99th percentile, of the times of all steps; a ratio is flowscope's figure
over TensorFlow's. A bar is what flowscope promises; one that is missed is marked, and is no error
here.

    make bench BENCH_ARGS="--cases mlp-sgd,cnn --neighbours 0,1"
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from neighbours import busy
from sides import ROOT, Peer, last_line, make_peer, sources, time_text

STEPS = 2000
SLICE_S = 0.25
IMPORTS = 7
#: Bars beside busy processes: of the means' ratio, and of the 99th percentiles'.
BUSY_BAR, P99_BAR = 1.5, 3.0


@dataclass(frozen=True)
class Case:
    """A piece of work that both sides do.

    Attributes:
        name: How `--cases` and the table call it.
        what: What it is.
        work, args: As peer.py knows it.
        bar: Of the ratio on an idle machine.
        figure: What to take of the answers of a work that measures itself; "" for one whose step
            is timed here.
        per: How many pieces one step stands for.
    """

    name: str
    what: str
    work: str
    args: dict[str, Any]
    bar: float
    figure: str = ""
    per: int = 1

    def times(self, side: Peer) -> list[float]:
        """Returns the seconds of a slice of steps."""
        if self.figure:
            return [side.measure(self.work, **self.args)[self.figure]]
        return [t / self.per for t in side.steps(self.work, self.args, SLICE_S)]


def mlp(name: str, optimizer: str, batch: int, *sizes: int) -> Case:
    """Returns the case of a perceptron."""
    what = f"MLP {batch}x{'-'.join(map(str, sizes))}, {optimizer.removesuffix('Optimizer')}"
    args = {"batch": batch, "sizes": sizes, "optimizer": optimizer}
    return Case(name, what, "mlp", args, 1.0)


def lstm(name: str, what: str, form: str, bar: float) -> Case:
    """Returns the case of a recurrent network."""
    return Case(name, what, "lstm", {"form": form, "steps": 50, "batch": 32, "units": 64}, bar)


def branches(name: str, what: str, kind: str, size: int, bar: float) -> Case:
    """Returns the case of two pieces of work that do not depend on each other."""
    return Case(name, what, "branches", {"kind": kind, "size": size}, bar)


CASES = (
    Case("step1", "step of 1 op", "step", {"length": 1}, 1 / 12),
    Case("step1000", "step of 1000 ops", "step", {"length": 1000}, 0.3),
    Case("loop", "iteration of a loop", "loop", {"iterations": 10_000}, 1 / 25, per=10_000),
    mlp("mlp-sgd", "GradientDescentOptimizer", 96, 512, 384, 128, 20),
    mlp("mlp-adam", "AdamOptimizer", 96, 512, 384, 128, 20),
    mlp("mlp784-sgd", "GradientDescentOptimizer", 128, 784, 256, 256, 10),
    mlp("mlp784-adam", "AdamOptimizer", 128, 784, 256, 256, 10),
    lstm("lstm-loop", "LSTM 50x32x64 in a loop", "loop", 1.0),
    lstm("lstm-unrolled", "LSTM 50x32x64, unrolled", "unrolled", 1.05),
    Case(
        "cnn", "CNN 32x28x28-16-32", "cnn", {"batch": 32, "side": 28, "channels": (1, 16, 32)}, 1.2
    ),
    Case(
        "elementwise",
        "20 ops on 200 000 floats",
        "elementwise",
        {"length": 20, "size": 200_000},
        0.45,
    ),
    branches("two-products", "two products of 768x768", "matmul", 768, 1.0),
    branches("two-svd", "two svd of 384x384", "svd", 384, 1.0),
    Case("build", "build 10 000 ops", "build", {"length": 10_000}, 1 / 3, "build"),
    Case("first-run", "first run of 10 000 ops", "build", {"length": 10_000}, 1 / 2, "first_run"),
    Case("gradients", "gradients of 1000 products", "gradients", {"length": 1000}, 1 / 3, "value"),
)
ALONE = {"import": "import flowscope", "watched": "watched / unwatched loop"}


@dataclass(frozen=True)
class Figures:
    """What the times of one side's steps come to; seconds."""

    steps: int
    mean: float
    p99: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Figures:
        """Returns the figures of some times."""
        rank = max(0, -(-99 * len(times) // 100) - 1)
        return cls(len(times), sum(times) / len(times), sorted(times)[rank])


@dataclass(frozen=True)
class Result:
    """A case beside so many busy processes; `peer` is None where there is nothing to compare."""

    name: str
    what: str
    neighbours: int
    bar: float
    ours: Figures | None = None
    peer: Figures | None = None
    error: str | None = None
    is_ratio_of_ours: bool = field(default=False)

    @property
    def ratio(self) -> float | None:
        """The ratio of the means; flowscope's own mean in seconds where there is no peer."""
        if self.ours is None:
            return None
        return self.ours.mean / self.peer.mean if self.peer else self.ours.mean

    @property
    def p99_ratio(self) -> float | None:
        """The ratio of the 99th percentiles."""
        return self.ours.p99 / self.peer.p99 if self.ours and self.peer else None

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is met; None where something is missing."""
        if self.ratio is None:
            return None
        if not self.neighbours:
            return self.ratio <= self.bar
        if self.p99_ratio is None:
            return None
        return self.ratio <= max(self.bar, BUSY_BAR) and self.p99_ratio <= P99_BAR


def measure(case: Case, count: int, ours: Peer, peer: Peer | None, seconds: float) -> Result:
    """Lets the two take turns beside so many busy processes."""
    found = Result(case.name, case.what, count, case.bar)
    sides = [ours, *([peer] if peer else [])]
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    try:
        for side in sides:
            case.times(side)  # warm
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and min(map(len, times.values())) < STEPS:
            for side in sides:
                times[side.name] += case.times(side)
    except RuntimeError as error:
        return replace(found, error=last_line(error))
    mine, *others = (Figures.of(t) for t in times.values())
    return replace(found, ours=mine, peer=others[0] if others else None)


def watched(count: int, ours: Peer, seconds: float) -> Result:
    """A loop that is watched beside one that is not; both are flowscope's."""
    found = Result("watched", ALONE["watched"], count, 1.05, is_ratio_of_ours=True)
    pairs = []
    end = time.perf_counter() + seconds
    try:
        while time.perf_counter() < end or not pairs:
            pairs.append(ours.measure("watched", length=10, seconds=0.6))
    except RuntimeError as error:
        return replace(found, error=last_line(error))
    seen, alone = (Figures.of([p[k] for p in pairs]) for k in ("watched", "unwatched"))
    return replace(found, ours=seen, peer=alone)


def import_time(count: int, env: dict[str, str]) -> Result:
    """Seconds of `import flowscope` in fresh interpreters, after one that compiles."""
    code = "import time; t = time.perf_counter(); import flowscope; print(time.perf_counter() - t)"
    found = Result("import", ALONE["import"], count, 0.3)
    env = {k: v for k, v in env.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(IMPORTS + 1):
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        if run.returncode:
            return replace(found, error=run.stderr.strip().splitlines()[-1])
        times.append(float(run.stdout))
    return replace(found, ours=Figures.of(times[1:]))


def results(options: argparse.Namespace) -> Iterator[Result]:
    """Measures case after case, each beside all numbers of busy processes."""
    env = sources(dict(os.environ))
    ours = Peer("flowscope", sys.executable, env)
    peer = make_peer(options.peer_venv, dict(os.environ))
    try:
        for name in options.cases:
            for count in options.neighbours:
                with busy(count):
                    if name == "import":
                        yield import_time(count, env)
                    elif name == "watched":
                        yield watched(count, ours, options.seconds)
                    else:
                        case = next(c for c in CASES if c.name == name)
                        yield measure(case, count, ours, peer, options.seconds)
    finally:
        for side in (ours, peer):
            if side:
                side.stop()


def line(result: Result) -> str:
    """Returns a result as one line, for the one who waits."""
    head = f"{result.name} beside {result.neighbours}: "
    if result.ours is None:
        return head + (result.error or "?")
    parts = [_figures("flowscope", result.ours)]
    if result.peer:
        parts.append(
            _figures("unwatched" if result.is_ratio_of_ours else "TensorFlow", result.peer)
        )
        parts.append(f"ratios {result.ratio:.2f}, {result.p99_ratio:.2f}")
    verdict = {True: "met", False: "MISSED", None: "no peer"}[result.is_met]
    return f"{head}{'; '.join(parts)}; {verdict}"


def _figures(name: str, one: Figures) -> str:
    return f"{name} {time_text(one.mean)}, 99 % {time_text(one.p99)} ({one.steps} steps)"


def table(found: Sequence[Result]) -> str:
    """Returns the results as a table in Markdown: a line per case, columns by neighbours."""
    counts = sorted({r.neighbours for r in found})
    beside = " / ".join(map(str, counts))
    lines = [
        f"| mean time of a step beside {beside} busy processes | TensorFlow | flowscope | ratio "
        "| ratio of the 99th percentiles |",
        "|---|---|---|---|---|",
    ]
    names = dict.fromkeys(r.name for r in found)
    return "\n".join([*lines, *(_row([r for r in found if r.name == n]) for n in names)])


def _row(of_case: Sequence[Result]) -> str:
    peers = [r.peer and time_text(r.peer.mean) for r in of_case]
    mine = [r.ours and time_text(r.ours.mean) for r in of_case]
    ratios = [_ratio(r.ratio if r.peer else None, r) for r in of_case]
    tails = [_ratio(r.p99_ratio, None) for r in of_case]
    cells = (" / ".join(c or "-" for c in column) for column in (peers, mine, ratios, tails))
    return f"| {of_case[0].what} | {' | '.join(cells)} |"


def _ratio(value: float | None, judged: Result | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" + (" !" if judged is not None and judged.is_met is False else "")


def arguments() -> argparse.Namespace:
    """Returns the options of the command line."""
    known = [*ALONE, *(c.name for c in CASES)]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peer-venv", type=Path, default=ROOT / ".venv-tf")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("--cases", default=",".join(known), help=f"of {', '.join(known)}")
    parser.add_argument("--neighbours", default="0,1,2", help="numbers of busy processes")
    parser.add_argument("--seconds", type=float, default=20.0, help="the most for one case")
    options = parser.parse_args()
    options.cases = options.cases.split(",")
    if unknown := set(options.cases) - set(known):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    options.neighbours = [int(n) for n in options.neighbours.split(",")]
    return options


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    options = arguments()
    found = []
    try:
        for result in results(options):
            print(line(result), file=sys.stderr, flush=True)
            found.append(result)
    except RuntimeError as error:
        print(f"flowscope does not start: {error}", file=sys.stderr)
    print(table(found))
    few = [r.name for r in found if r.ours and r.ours.steps < STEPS and r.name not in ALONE]
    if few:
        cut = ", ".join(dict.fromkeys(few))
        print(f"\nFewer than {STEPS} steps in {options.seconds:g} s, see the lines above: {cut}.")
    print('\nA ratio with "!" misses its bar.')
    if options.json:
        figures = [{**asdict(r), "ratio": r.ratio, "is_met": r.is_met} for r in found]
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
