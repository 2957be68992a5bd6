"""Recorders: keep the traces of the newest steps, and exact totals of all."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, UnimplementedError
from flowscope.plan.plan import Plan
from flowscope.runtime.step_trace import MOST, StepTrace, clock
from flowscope.tracing.analysis import critical_path, split, with_inner
from flowscope.tracing.decoding import Lanes, StepSpans, decoded
from flowscope.tracing.nodes import PlanNodes
from flowscope.tracing.recording import (
    Frames,
    Gap,
    Recording,
    Spans,
    Totals,
    TracedStep,
    empty_memory,
)


class Recorder:
    """Keeps what is traced: of the newest steps all, of those before only the totals.

    Args:
        most: So many spans are kept, or one step if it has more.

    Attributes:
        version: How many steps were traced so far.
    """

    def __init__(self, most: int = MOST) -> None:
        self.version = 0
        self._most = most
        self._kept = 0
        self._origin = clock()
        self._origin_us = time.time_ns() // 1000
        self._traces: deque[StepTrace] = deque()
        self._plans: dict[int, PlanNodes] = {}
        self._held: list[Plan] = []
        self._totals: dict[int, Any] = {}
        self._dropped: list[tuple[int, int, int]] = []
        self._lock = threading.Lock()
        self._recording: tuple[int, Recording] | None = None

    def wants(self, plan: Plan) -> bool:
        """Whether the step that begins is to be traced."""
        return True

    def take(self, trace: StepTrace) -> None:
        """Takes the trace of a step that has ended, or failed."""
        with self._lock:
            self.version += 1
            self._traces.append(trace)
            self._kept += len(trace)
            while self._kept > self._most and len(self._traces) > 1:
                self._drop(self._traces.popleft())

    def _nodes(self, plan: Plan) -> PlanNodes:
        found = self._plans.get(id(plan))
        if found is None:
            first = sum(len(p.nodes) for p in self._plans.values())
            found = PlanNodes(plan.program, len(self._plans), first)
            self._plans[id(plan)] = found
            self._held.append(plan)  # its number in memory stays its own
            self._totals[id(plan)] = np.zeros((2, len(found.nodes)), np.int64)
        return found

    def _drop(self, trace: StepTrace) -> None:
        """Keeps only the totals of a step; steps that follow each other make one gap."""
        found = decoded(trace, self._nodes(trace.plan), Lanes())
        self._totals[id(trace.plan)] += [found.count, found.self_ns]
        self._kept -= len(trace)
        begin, spans = trace.called, int(found.count.sum())
        if self._dropped:
            begin, _, before = self._dropped.pop()
            spans += before
        self._dropped.append((begin, trace.done, spans))

    def recording(self) -> Recording:
        """Returns what is kept."""
        with self._lock:
            if self._recording is None or self._recording[0] != self.version:
                self._recording = self.version, self._made()
            return self._recording[1]

    def graph(self) -> str:
        """Returns the graph of the steps in its JSON form; "" where there is none to be written."""
        operations = [op for plan in self._held for op in plan.operations.values()]
        if not operations:
            return ""
        try:
            return operations[-1].graph.as_graph_def().to_json()
        except (DTypeError, UnimplementedError):
            return ""  # functions of the user's, say, are no data

    def _made(self) -> Recording:
        lanes = Lanes()
        steps = [(t, decoded(t, self._nodes(t.plan), lanes)) for t in self._traces]
        nodes = tuple([n for p in self._plans.values() for n in p.traced])
        totals = {key: t.copy() for key, t in self._totals.items()}
        for trace, found in steps:
            totals[id(trace.plan)] += [found.count, found.self_ns]
        whole = np.concatenate([np.zeros((2, 0), np.int64), *totals.values()], 1)
        parents = np.array([n.parent for n in nodes], np.int64)
        spans, frames, told = self._joined(steps, lanes)
        return Recording(
            nodes,
            lanes.lanes,
            frames,
            spans,
            told,
            self._gaps(lanes),
            Totals(whole[0], whole[1], with_inner(whole[1], parents)),
            empty_memory(),
            self.version,
            self._origin_us,
        )

    def _joined(
        self, steps: list[tuple[StepTrace, StepSpans]], lanes: Lanes
    ) -> tuple[Spans, Frames, tuple[TracedStep, ...]]:
        """Returns the spans and frames of all steps, one behind the other, and the steps."""
        parts: list[tuple[Any, ...]] = []
        frames: list[tuple[Any, ...]] = []
        told: list[TracedStep] = []
        rows = frame_rows = 0
        before: StepTrace | None = None
        for trace, found in steps:
            nodes, s, f = self._nodes(trace.plan), found.spans, found.frames
            python = self._python(before, trace)
            if python:
                lane, end = (
                    lanes.of_thread(trace.thread, "Python", "python"),
                    trace.called - self._origin,
                )
                parts.append(tuple([[v] for v in (lane, -1, -1, -1, end - python, end)]))
                rows += 1
            node, frame = _shifted(s.node, nodes.first), _shifted(s.frame, frame_rows)
            times = s.begin - self._origin, s.end - self._origin
            parts.append((s.lane, node, frame, s.iteration, *times))
            frames.append((f.loop + nodes.first, _shifted(f.parent, frame_rows), f.iteration))
            told.append(self._step(trace, found, nodes, rows, python))
            rows, frame_rows = rows + len(s), frame_rows + len(f.loop)
            before = trace
        return Spans(*_columns(parts, _SPANS)), Frames(*_columns(frames, _SPANS[:3])), tuple(told)

    def _step(
        self, trace: StepTrace, found: StepSpans, nodes: PlanNodes, first: int, python: int
    ) -> TracedStep:
        return TracedStep(
            -1 if trace.number is None else trace.number,
            nodes.plan,
            trace.called - self._origin,
            trace.done - self._origin,
            first,
            first + len(found.spans),
            first + critical_path(found.spans, nodes),
            split(trace, int(found.self_ns.sum()), python),
            trace.error,
            trace.is_whole,
        )

    @staticmethod
    def _python(before: StepTrace | None, trace: StepTrace) -> int:
        """Returns the nanoseconds between two steps that followed each other, else 0."""
        if before is None or before.number is None or before.thread != trace.thread:
            return 0
        follows = trace.number == before.number + 1 and trace.called >= before.done
        return trace.called - before.done if follows else 0

    def _gaps(self, lanes: Lanes) -> tuple[Gap, ...]:
        lane = 0  # that of the device, where there is any
        o = self._origin
        gaps = [Gap(lane, b - o, e - o, n, "dropped: newer steps took its place")
                for b, e, n in self._dropped]  # fmt: skip
        for trace in self._traces:
            d, rows = trace.dropped, trace.rows
            why = "dropped: newer iterations took its place"
            if d is not None:
                gaps.append(Gap(lane, d.begin - o, d.end - o, d.spans, why))
            if rows is not None and rows.spans:
                gaps.append(Gap(lane, trace.begin - o, rows.begin - o, rows.spans, why))
        return tuple(gaps)


#: The dtypes of the columns of spans.
_SPANS = (np.int32, np.int32, np.int32, np.int32, np.int64, np.int64)


def _shifted(positions: Any, by: int) -> Any:
    """Returns positions in a longer table; -1 stays."""
    return np.where(positions < 0, -1, positions + by)


def _columns(parts: list[tuple[Any, ...]], kinds: tuple[Any, ...]) -> list[Any]:
    """Returns columns that are given in pieces."""
    return [
        np.concatenate([np.empty(0, kind), *[p[i] for p in parts]]).astype(kind)
        for i, kind in enumerate(kinds)
    ]


__all__ = ["Recorder"]
