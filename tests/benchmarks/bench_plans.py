"""Planning and compiling large programs: `python tests/benchmarks/bench_plans.py`.

An unrolled LSTM with its gradients, in a process of its own for each size. A time is the quickest
of some processes; it holds all from the fetches to the function: passes, source, bytecode.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3
#: Steps of the LSTM, and the bars: seconds, megabytes of source, megabytes of memory.
SIZES = {103: (0.25, 0.3, 50.0), 1090: (4.0, 3.0, 500.0)}


def measure(steps: int) -> dict[str, float]:
    """Returns the figures of one plan, made in this process."""
    import resource

    import flowscope as fs

    units, batch = 16, 4
    xs = [fs.placeholder(fs.float32, [batch, units]) for _ in range(steps)]
    cell = fs.nn.rnn_cell.BasicLSTMCell(units)
    outputs, _ = fs.nn.static_rnn(cell, xs, dtype=fs.float32)
    loss = fs.add_n([fs.reduce_sum(y * y) for y in outputs])
    fetches = [loss, *fs.gradients(loss, fs.trainable_variables())]
    with fs.Session() as session:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        plan = session.plan(fetches, xs)
        seconds = time.process_time() - start
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    nodes = sum(1 for _ in plan.program.walk())
    source = len(plan.text("code")) / 1e6
    return {"nodes": nodes, "s": seconds, "source": source, "memory": (after - before) / 1e3}


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return 0
    env = {**os.environ, "PYTHONPATH": str(ROOT / "engine")}
    for steps, (s, source, memory) in SIZES.items():
        command = [sys.executable, __file__, str(steps)]
        runs = [json.loads(subprocess.check_output(command, env=env)) for _ in range(ROUNDS)]
        best = min(runs, key=lambda run: run["s"])
        print(
            f"{best['nodes']:6d} nodes: {best['s']:.2f} s (bar {s}), "
            f"{best['source']:.2f} MB of source (bar {source}), "
            f"{best['memory']:.0f} MB of memory (bar {memory:.0f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
