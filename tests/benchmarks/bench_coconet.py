"""Schedules of one update side by side: `python tests/benchmarks/bench_coconet.py [--size N]`.

Ranks are devices of one process. The schedules of a program take turns, a step each, so that a
neighbour on the machine meets all of them; a figure is the median of the steps' times, and a ratio
is that of two medians. Told beside them is the memory of the state that a rank keeps, and what
NumPy takes that does by hand what AR-C does.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import numpy as np

import flowscope as fs

#: Bars: RS-C-AG beside AR-C, and fused beside RS-C-AG: how many times as fast.
SLICED_BAR, FUSED_BAR = 1.2, 1.1


def built(schedule: Any, size: int, ranks: int) -> tuple[Any, Any, int]:
    """A session, the update, and the bytes of state that a rank keeps beside its parameters."""
    graph = fs.Graph()
    with graph.as_default():
        values: dict[str, Any] = {}
        state = 0
        for a in schedule.graph.arguments:
            if a.type.group is None:
                values[a.name] = fs.constant(1e-3)
                continue
            values[a.name] = []
            for r in range(ranks):
                length = size
                if a.type.layout.is_sliced:
                    length = size * (r + 1) // ranks - size * r // ranks
                shape = [length] if a.type.rank else []
                start = fs.random_normal(shape) if a.name in "gp" else fs.zeros(shape)
                with fs.device(f"/cpu:{r}"):
                    values[a.name].append(fs.Variable(start, name=f"{a.name}_{r}"))
                state += 4 * length * (r == 0 and a.name in "mv")
        update = schedule.build(values, [f"/cpu:{r}" for r in range(ranks)]).update
        session = fs.Session(config=fs.ConfigProto(device_count={"CPU": ranks}))
        session.run(fs.global_variables_initializer())
    return session, update, state


def by_hand(size: int, ranks: int) -> Any:
    """A step of Adam in NumPy, on whole arrays, for each rank."""
    draw = np.random.default_rng(0)
    gs = [draw.normal(size=size).astype("f4") for _ in range(ranks)]
    states = [[np.zeros(size, "f4") for _ in range(3)] for _ in range(ranks)]

    def step() -> None:
        total = gs[0].copy()
        for g in gs[1:]:
            total += g
        total /= ranks
        for p, m, v in states:
            m *= 0.9
            m += 0.1 * total
            v *= 0.999
            v += 0.001 * total * total
            p -= 1e-3 * m / (np.sqrt(v) + 1e-8)

    return step


def seconds(step: Any) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=8 << 20)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=15)
    given = parser.parse_args()
    library = fs.coconet.library
    for name in ("sgd", "adam", "lamb"):
        known = library.known_schedules(getattr(library, name)())
        sides = {key: built(one, given.size, given.ranks) for key, one in known.items()}
        steps: dict[str, Any] = {
            key: lambda s=session, u=update: s.run(u) for key, (session, update, _) in sides.items()
        }
        if name == "adam":
            steps["NumPy by hand"] = by_hand(given.size, given.ranks)
        times: dict[str, list[float]] = {key: [] for key in steps}
        for turn in range(given.steps + 2):
            for key, step in steps.items():
                took = seconds(step)
                if turn >= 2:
                    times[key].append(took)
        medians = {key: statistics.median(t) for key, t in times.items()}
        for key, median in medians.items():
            state = f", state {sides[key][2] / 2**20:.1f} MiB a rank" if key in sides else ""
            print(f"{name} {key:14} {median * 1e3:7.1f} ms{state}")
        whole, parts, fused = [medians[key] for key in known]
        print(
            f"{name} RS-C-AG {whole / parts:.2f} times as fast as AR-C (bar {SLICED_BAR}), fused "
            f"{parts / fused:.2f} times as fast as RS-C-AG (bar {FUSED_BAR})"
        )
        if name == "adam":
            hand = medians["NumPy by hand"]
            print(f"adam fused {hand / fused:.2f} times as fast as NumPy by hand (bar 1.3)")
        for session, _, _ in sides.values():
            session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
