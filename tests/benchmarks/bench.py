"""flowscope beside TensorFlow, as ratios: `make bench`.

The two run in processes of their own and take turns, A B A B, on a machine that is shared and
noisy; a figure is the median over the rounds, a ratio the median of the rounds' ratios. A bar is
what flowscope promises; missing one is reported, and is no error here.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TENSORFLOW = "tensorflow-cpu==2.21.0"
ROUNDS = 9
IMPORTS = 7


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


class Peer:
    """A process of peer.py."""

    def __init__(self, name: str, python: str, env: dict[str, str]) -> None:
        """Starts it and waits until its library is imported.

        Raises:
            RuntimeError: It did not start.
        """
        self.name = name
        script = Path(__file__).with_name("peer.py")
        # Libraries chat; what they say matters when they fail.
        self.stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [python, str(script), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            text=True,
            env=env,
        )
        self.answer()

    def answer(self) -> dict[str, Any]:
        """Returns the next answer.

        Raises:
            RuntimeError: The work failed, or the process has ended.
        """
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.stderr.seek(0)
            raise RuntimeError(f"{self.name} has ended: {self.stderr.read()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def measure(self, work: str, **args: Any) -> dict[str, float]:
        """Has the work done once; returns its figures by name."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"work": work, "args": args}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.stderr.close()


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
            return [Row(f.name, f.what, bar=f.bar, error=_last_line(error)) for f in self.figures]
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


COMPARISONS = (
    Comparison("step", {"length": 1}, [Row("step1.value", "step of 1 op", bar=1 / 12)]),
    Comparison("step", {"length": 1000}, [Row("step1000.value", "step of 1000 ops", bar=0.3)]),
    Comparison(
        "build",
        {"length": 10_000},
        [
            Row("chain.build", "build 10 000 ops", bar=1 / 3),
            Row("chain.first_run", "first run of 10 000 ops", bar=1 / 2),
        ],
        rounds=5,
    ),
    Comparison(
        "gradients",
        {"length": 1000},
        [Row("gradients.value", "gradients of 1000 products", bar=1 / 3)],
        rounds=5,
    ),
    Comparison(
        "loop",
        {"iterations": 200_000},
        [Row("loop.value", "iteration of a loop", bar=1 / 25)],
        rounds=5,
    ),
    Comparison(
        "train",
        {"optimizer": "GradientDescentOptimizer"},
        [Row("sgd.value", "MLP step, SGD", bar=1.0)],
    ),
    Comparison(
        "train",
        {"optimizer": "AdamOptimizer"},
        [Row("adam.value", "MLP step, Adam", bar=1.0)],
    ),
)


def watched(ours: Peer) -> Row:
    """A loop that is watched beside one that is not; both are flowscope's."""
    row = Row("watched", "watched / unwatched loop", bar=1.05)
    try:
        pairs = [ours.measure("watched", length=10, seconds=0.6) for _ in range(2 * ROUNDS)]
    except RuntimeError as error:
        return Row(row.name, row.what, bar=row.bar, error=_last_line(error))
    ratio = statistics.median(p["watched"] / p["unwatched"] for p in pairs)
    alone, seen = (statistics.median(p[k] for p in pairs) for k in ("unwatched", "watched"))
    return Row(row.name, row.what, seen, alone, ratio, row.bar)


def import_time(env: dict[str, str]) -> Row:
    """Seconds of `import flowscope` in fresh interpreters, after one that compiles."""
    code = "import time; t = time.perf_counter(); import flowscope; print(time.perf_counter() - t)"
    row = Row("import", "import flowscope", bar=0.3)
    env = {k: v for k, v in env.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(IMPORTS + 1):
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, env=env, capture_output=True, text=True)
        if run.returncode:
            return Row(row.name, row.what, bar=row.bar, error=run.stderr.strip().splitlines()[-1])
        times.append(float(run.stdout))
    return Row(row.name, row.what, statistics.median(times[1:]), bar=row.bar)


def make_peer(folder: Path, env: dict[str, str]) -> Peer | None:
    """Starts TensorFlow out of its own environment, which is made where it is missing."""
    python = folder / "bin" / "python"
    name, _, version = TENSORFLOW.partition("==")
    check = f"import importlib.metadata as m; raise SystemExit(m.version({name!r}) != {version!r})"
    try:
        if (
            not python.exists()
            or subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL).returncode
        ):
            print(f"Setting up {folder} with {TENSORFLOW} ...", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, TENSORFLOW], check=True)
        return Peer("tensorflow", str(python), env)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"No TensorFlow to compare with: {error}", file=sys.stderr)
        return None


def table(rows: Sequence[Row]) -> str:
    """Returns the lines as text."""
    lines = [f"{'':26}{'TensorFlow':>14}{'flowscope':>14}{'ratio':>9}{'bar':>8}"]
    for row in rows:
        peer, ours = _time(row.peer), _time(row.ours)
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        bar = f"{row.bar:.2f}" if row.name != "import" else f"{row.bar:.1f} s"
        met = {True: "met", False: "MISSED", None: row.error or "?"}[row.is_met]
        lines.append(f"{row.what:26}{peer:>14}{ours:>14}{ratio:>9}{bar:>8}  {met}")
    lines.append(
        "(In the line of the watched loop, both columns are flowscope: unwatched, watched.)"
    )
    return "\n".join(lines)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-venv", type=Path, default=ROOT / ".venv-tf")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    sources = [str(ROOT / name) for name in ("engine", "kernel_ext", "widgets")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}
    rows = [import_time(env)]
    try:
        ours = Peer("flowscope", sys.executable, env)
    except RuntimeError as error:
        print(f"flowscope does not start: {error}", file=sys.stderr)
        return 0
    peer = make_peer(options.peer_venv, dict(os.environ))
    for comparison in COMPARISONS:
        rows += comparison.run(ours, peer)
    rows.append(watched(ours))
    ours.stop()
    if peer:
        peer.stop()
    print(table(rows))
    if options.json:
        figures = [{**asdict(row), "is_met": row.is_met} for row in rows]
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
