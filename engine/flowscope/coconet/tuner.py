"""The tuner: derives schedules, predicts their cost, measures the best, and says why one wins.

The search is breadth-first over schedules that transformations lead to, each as far as it goes:
all computations that hang together are fused, all that can be moved before a gather is moved. So
there are tens of schedules, not thousands. Those that are predicted to be quick are measured, in
turns: a step of each, then again, so that whatever else the machine does meets all of them; the
median of a schedule's times counts. What was found is kept by program, sizes, ranks and machine.

Source: the idea of a search over schedules: Jangda et al. 2022, section 3.6. The search is ours.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.coconet.cost import PredictedCost, RankMachine, predicted
from flowscope.coconet.pipeline import StagePipeline
from flowscope.coconet.schedule import (
    AppliedTransformation,
    Schedule,
    rank_counts,
    schedule as schedule_of,
)
from flowscope.coconet.sizes import BoundSizes
from flowscope.graph.lazy import frozen

#: Schedules that a search makes, at most.
MOST = 120


@frozen
class TunedSchedule:
    """One schedule that a tuner has looked at.

    Attributes:
        schedule: The schedule.
        predicted: What it was predicted to cost.
        seconds: The median of its measured times; None if it was not measured.
    """

    schedule: Schedule
    predicted: PredictedCost
    seconds: float | None = None


class TuningResult:
    """What a tuner has found.

    Attributes:
        best: The schedule to use.
        table: All schedules that were looked at: the measured ones first, the quickest of them at
            the top.
        is_kept: Whether it was found before, and not measured again.
    """

    def __init__(self, best: Schedule, table: list[TunedSchedule], is_kept: bool) -> None:
        self.best = best
        self.table = table
        self.is_kept = is_kept

    def text(self, rows: int = 10) -> str:
        """A table of the first rows: measured, predicted, how it is derived."""
        lines = ["  measured   predicted        sent     memory  schedule"]
        for row in self.table[:rows]:
            took = "         -" if row.seconds is None else f"{row.seconds * 1e3:7.2f} ms"
            cost = row.predicted
            lines.append(
                f"{took}  {cost.seconds * 1e3:7.2f} ms  {cost.sent_bytes / 1e6:7.2f} MB "
                f"{cost.memory_bytes / 1e6:7.2f} MB  {_steps_text(row.schedule)}"
            )
        return "\n".join(lines)

    def why(self) -> str:
        """In sentences why the best schedule wins over the program as it is written."""
        first = next((r for r in self.table if not r.schedule.steps), None)
        best = next((r for r in self.table if r.schedule is self.best), None)
        if best is None or first is None:
            return "It was found before for the same sizes, ranks and machine."
        if best is first:
            return "No schedule that was derived is quicker than the program as it is written."
        said = []
        if best.seconds is not None and first.seconds is not None:
            said.append(f"It is {first.seconds / best.seconds:.2f} times as fast as the program.")
        for what, unit in (("sent_bytes", "sends"), ("memory_bytes", "reads and writes")):
            now, before = getattr(best.predicted, what), getattr(first.predicted, what)
            if now != before:
                said.append(f"A rank {unit} {now / 1e6:.2f} MB instead of {before / 1e6:.2f}.")
        now, before = best.predicted.operations, first.predicted.operations
        if now != before:
            said.append(f"It runs {now} operations instead of {before}.")
        said.append(f"Derived by {_steps_text(self.best)}.")
        return " ".join(said)

    def __repr__(self) -> str:
        return f"<TuningResult: {_steps_text(self.best)}>"


def _steps_text(found: Schedule) -> str:
    return ", ".join([s.name for s in found.steps]) or "as it is"


class Tuner:
    """Finds quick schedules, and keeps what it has found.

    Args:
        path: A JSON file in which results are kept; None to keep them in this object alone.
    """

    def __init__(self, path: Any = None) -> None:
        self._path = None if path is None else Path(path)
        self._kept: dict[str, Any] = {}
        if self._path is not None and self._path.exists():
            self._kept = json.loads(self._path.read_text("utf-8"))

    def tune(
        self,
        pipeline: StagePipeline,
        lengths: Mapping[Any, int],
        ranks: int,
        devices: Any = None,
        target: Any = None,
        config: Any = None,
        machine: RankMachine | None = None,
        measured: int = 4,
        rounds: int = 5,
        budget_s: float = 60.0,
        progress: Callable[[str], None] | None = None,
    ) -> TuningResult:
        """Returns the quickest schedule of a program for sizes, ranks and machine.

        Args:
            pipeline: The program.
            lengths: Per symbolic size, by itself or its name, its length.
            ranks: The number of ranks of each group.
            devices: The device of each rank, or a dict with a list per group; see `Schedule.build`.
            target: What the sessions run on, see `fs.Session`.
            config: Of the sessions.
            machine: How quick machines and links are, for predictions.
            measured: How many schedules are measured, beside the program as it is.
            rounds: How often each is measured.
            budget_s: After so many seconds nothing is measured any more.
            progress: Is told in a line what is done.

        Raises:
            InvalidArgumentError: if a length is missing.
        """
        machine = machine or RankMachine()
        named = {str(k): int(v) for k, v in lengths.items()}
        start = schedule_of(pipeline)
        key = json.dumps([start.text(), named, ranks, repr(devices), repr(machine)])
        if key in self._kept:
            return TuningResult(_replayed(start, self._kept[key]), [], True)
        tell = progress or (lambda line: None)
        found = [
            TunedSchedule(
                one, predicted(one.graph, named, rank_counts(one.graph, ranks), machine)[0]
            )
            for one in derived(start)
        ]
        found.sort(key=lambda row: row.predicted.seconds)
        tell(f"{len(found)} schedules derived and predicted")
        chosen = found[:measured]
        if not any(row.schedule is start for row in chosen):
            chosen.append(next(row for row in found if row.schedule is start))
        bench = _Bench(named, ranks, devices, target, config)
        times = bench.times([row.schedule for row in chosen], rounds, budget_s, tell)
        told = [
            TunedSchedule(row.schedule, row.predicted, statistics.median(t) if t else None)
            for row, t in zip(chosen, times, strict=True)
        ]
        told.sort(key=lambda row: float("inf") if row.seconds is None else row.seconds)
        rest = [row for row in found if all(row is not other for other in chosen)]
        best = told[0].schedule
        self._keep(key, best)
        return TuningResult(best, [*told, *rest], False)

    def _keep(self, key: str, best: Schedule) -> None:
        self._kept[key] = [[s.name, list(s.arguments)] for s in best.steps]
        if self._path is not None:
            self._path.write_text(json.dumps(self._kept), "utf-8")


def _replayed(start: Schedule, steps: Any) -> Schedule:
    for name, arguments in steps:
        start = start.apply(AppliedTransformation(name, tuple(arguments)))
    return start


def derived(start: Schedule, most: int = MOST) -> list[Schedule]:
    """Schedules of a program in breadth, each transformation taken as far as it goes."""
    found, seen, level = [start], {start.graph.key}, [start]
    while level and len(found) < most:
        following = []
        for one in level:
            for step in _largest(one):
                other = one.apply(step)
                if other.graph.key not in seen and len(found) < most:
                    seen.add(other.graph.key)
                    following.append(other)
                    found.append(other)
        level = following
    return found


def _largest(one: Schedule) -> Iterator[AppliedTransformation]:
    """Legal next transformations, without those that do a part of what another one does."""
    steps = list(one.legal())
    for step in steps:
        names = {x for x in step.arguments if isinstance(x, str)}
        others = [s for s in steps if s.name == step.name and s is not step]
        if step.name == "fuse" or step.name == "overlap":
            if any(names < set(s.arguments) for s in others):
                continue
        if step.name == "reorder":
            own = [s for s in others if s.arguments[0] == step.arguments[0]]
            if any(len(s.arguments) > len(step.arguments) for s in own):
                continue
        yield step


class _Bench:
    """Measures schedules on random values."""

    def __init__(
        self, lengths: Mapping[str, int], ranks: int, devices: Any, target: Any, config: Any
    ) -> None:
        self.lengths = lengths
        self.ranks = ranks
        self.devices = devices
        self.target = target
        self.config = config

    def times(
        self, schedules: list[Schedule], rounds: int, budget_s: float, tell: Callable[[str], None]
    ) -> list[list[float]]:
        """Per schedule the seconds of its steps, taken in turns."""
        began = time.perf_counter()
        sides: list[tuple[Any, Any]] = []
        found: list[list[float]] = [[] for _ in schedules]
        try:
            for one in schedules:
                sides.append(self._side(one))
                if time.perf_counter() - began > budget_s:
                    break
            for turn in range(rounds + 1):
                for (session, step), times in zip(sides, found, strict=False):
                    start = time.perf_counter()
                    session.run(step)
                    if turn:  # the first one warms up
                        times.append(time.perf_counter() - start)
                tell(f"round {turn} of {rounds}")
                if time.perf_counter() - began > budget_s and turn:
                    break
        finally:
            for session, _ in sides:
                session.close()
        return found

    def _side(self, one: Schedule) -> tuple[Any, Any]:
        """A session, and the operation that does a step."""
        graph = fs.Graph()
        with graph.as_default():
            built = one.build(self._values(one), self.devices)
            outputs = [x.op for xs in built.outputs.values() for x in xs]
            step = fs.group(built.update, *outputs)
            session = fs.Session(self.target, graph=graph, config=self.config)
            session.run(fs.global_variables_initializer())
        return session, step

    def _values(self, one: Schedule) -> dict[str, Any]:
        sizes = BoundSizes(rank_counts(one.graph, self.ranks), self.lengths)
        draw = np.random.default_rng(0)
        values: dict[str, Any] = {}
        for a in one.graph.arguments:
            dtype = a.type.dtype.np_dtype
            if a.type.group is None:
                values[a.name] = fs.constant(1e-3, a.type.dtype)
                continue
            values[a.name] = []
            for rank in range(self.ranks):
                shape = sizes.part(a.type, rank)
                first = draw.uniform(0.1, 1.0, shape).astype(dtype)
                with fs.device(self._place(a.type.group.name, rank)):
                    values[a.name].append(fs.Variable(first, name=f"{a.name}_{rank}"))
        return values

    def _place(self, group: str, rank: int) -> Any:
        places = self.devices
        if isinstance(places, Mapping):
            places = {str(k): v for k, v in places.items()}[group]
        return None if places is None else places[rank]


__all__ = ["TunedSchedule", "Tuner", "TuningResult"]
