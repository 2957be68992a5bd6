"""Recorders: keep the traces of the newest steps, and exact totals of all."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, UnimplementedError
from flowscope.plan.analysis.lifetimes import Lifetimes, lifetimes
from flowscope.plan.plan import Plan
from flowscope.runtime.trace.step_trace import MOST, StepTrace, clock
from flowscope.tracing.analysis import split, with_inner
from flowscope.tracing.decoding import Lanes, StepSpans, decoded
from flowscope.tracing.memory import memory_of
from flowscope.tracing.nodes import PlanNodes
from flowscope.tracing.recording import (
    Frames,
    Gap,
    Memory,
    Recording,
    Spans,
    TensorValues,
    TimeSplit,
    Totals,
    TracedNode,
    TracedStep,
    empty_memory,
)
from flowscope.tracing.typical import ProgramFigures, TypicalStep
from flowscope.tracing.values import FetchedValues

#: Steps whose readings need not be packed at once.
_LOOSE = 16
#: The dtypes of the columns of spans.
_SPANS = (np.int32, np.int32, np.int32, np.int32, np.int64, np.int64, np.int64)


class _Kept:
    """A step that is kept.

    Attributes:
        trace: Its trace.
        python: Nanoseconds between the step before and this one.
        split: Where its time went; None as long as nobody has looked.
        spans: How many spans it has.
        told: What is told of it, as if it was the only one.
    """

    def __init__(self, trace: StepTrace, before: StepTrace | None) -> None:
        self.trace = trace
        self.python = _between(before, trace)
        self.split: TimeSplit | None = None
        self.spans = 0
        self.told: TracedStep | None = None


class Recorder:
    """Keeps what is traced: of the newest steps all, of those before only the totals.

    Args:
        most: So many spans are kept, or one step if it has more.
        value_bytes: So many bytes of what steps fetch are kept; 0 for none.

    Attributes:
        version: How many steps were traced so far.
    """

    def __init__(self, most: int = MOST, value_bytes: int = 0) -> None:
        self.version = 0
        self._fetched = FetchedValues(value_bytes)
        self._most = most
        self._size = 0
        self._origin = clock()
        self._origin_us = time.time_ns() // 1000
        self._kept: deque[_Kept] = deque()
        self._last: StepTrace | None = None
        #: The newest ones, whose readings may still be as the code has left them.
        self._loose: deque[StepTrace] = deque()
        #: By the numbers of the plans in memory, which are held with them.
        self._plans: dict[int, tuple[Plan, PlanNodes]] = {}
        #: Per node how often it ran and its own nanoseconds, of the steps that were looked at.
        self._totals: dict[int, Any] = {}
        self._typical: dict[int, TypicalStep] = {}
        #: All nodes of these plans, and where the loops and branches around them are.
        self._traced: tuple[TracedNode, ...] = ()
        self._parents = np.empty(0, np.int64)
        self._dropped: tuple[int, int, int] | None = None
        #: What is known of the plan and the shapes that were asked for last.
        self._known: tuple[tuple[Plan, Any], Lifetimes] | None = None
        self._lock = threading.Lock()

    # -- a tracer -------------------------------------------------------------------------------

    def wants(self, plan: Plan) -> bool:
        """Whether the step that begins is to be traced."""
        return True

    def take(self, trace: StepTrace) -> None:
        """Takes the trace of a step that has ended, or failed."""
        with self._lock:
            self.version += 1
            self._fetched.take(trace.number, trace.plan.request.fetches, trace.fetched)
            self._kept.append(_Kept(trace, self._last))
            self._last = trace
            self._size += len(trace)
            self._loose.append(trace)
            while len(self._loose) > _LOOSE:
                self._loose.popleft().pack()
            while self._size > self._most and len(self._kept) > 1:
                self._drop(self._kept.popleft())

    def _drop(self, kept: _Kept) -> None:
        """Keeps only the totals of a step; steps that follow each other make one gap."""
        if kept.split is None:
            self._look(kept, self._decoded(kept.trace, Lanes()))
        self._size -= len(kept.trace)
        begin, _, spans = self._dropped or (kept.trace.called, 0, 0)
        self._dropped = begin, kept.trace.done, spans + kept.spans

    # -- what is told ---------------------------------------------------------------------------

    def _nodes(self, plan: Plan) -> PlanNodes:
        found = self._plans.get(id(plan))
        if found is None:
            first = sum(len(nodes.nodes) for _, nodes in self._plans.values())
            found = plan, PlanNodes(plan.program, len(self._plans), first)
            self._plans[id(plan)] = found
            self._totals[id(plan)] = np.zeros((2, len(found[1].nodes)), np.int64)
            self._typical[id(plan)] = TypicalStep(plan)
        return found[1]

    def _decoded(self, trace: StepTrace, lanes: Lanes) -> StepSpans:
        return decoded(trace, self._nodes(trace.plan), lanes)

    def _look(self, kept: _Kept, found: StepSpans) -> None:
        """Counts a step in, once."""
        if kept.split is None:
            trace = kept.trace
            self._totals[id(trace.plan)] += [found.count, found.self_ns]
            is_whole = not (trace.is_sample or trace.error)
            typical = self._typical[id(trace.plan)]
            typical.take(found.count, found.self_ns, is_whole, trace.done)
            kept.split = split(kept.trace, int(found.self_ns.sum()), kept.python)
            kept.spans = len(found.spans)

    def totals(self) -> tuple[tuple[TracedNode, ...], Totals]:
        """Returns the nodes and what they add up to, without their spans."""
        with self._lock:
            self._look_at_all()
            return self._summed()

    def _look_at_all(self) -> None:
        for kept in self._kept:
            if kept.split is None:
                self._look(kept, self._decoded(kept.trace, Lanes()))

    def typical(self) -> tuple[tuple[TracedNode, ...], Totals, tuple[ProgramFigures, ...]]:
        """Returns the nodes, what each takes in a typical step of its plan, and of which steps.

        Of plans that fetch the same, as those before and after an edit do, the newest is told. The
        plans that took the most time stand first.
        """
        with self._lock:
            self._look_at_all()
            nodes, _ = self._summed()
            whole = np.zeros((2, len(nodes)))
            told: dict[str, ProgramFigures] = {}
            by_age = sorted(self._plans, key=lambda key: self._typical[key].ended)
            for key in by_age:
                typical, plan = self._typical[key], self._plans[key][1]
                if not typical.ended:  # a plan that was only asked about
                    continue
                basis, steps, rows = typical.figures()
                whole[:, plan.first : plan.first + rows.shape[1]] = rows
                newest_ns = typical.ended - self._origin
                told[typical.name] = ProgramFigures(
                    plan.plan, typical.name, basis, steps, newest_ns, int(rows[1].sum())
                )
            taken = {self._plans[k][1].plan: int(self._totals[k][1].sum()) for k in self._plans}
            programs = sorted(told.values(), key=lambda one: -taken[one.plan])
            total_ns = with_inner(whole[1], self._parents)
            return nodes, Totals(whole[0], whole[1], total_ns), tuple(programs)

    @property
    def now_ns(self) -> int:
        """The time, in nanoseconds since the recorder's origin."""
        return clock() - self._origin

    def _summed(self) -> tuple[tuple[TracedNode, ...], Totals]:
        whole = np.concatenate([np.zeros((2, 0), np.int64), *self._totals.values()], 1)
        if len(self._traced) != whole.shape[1]:
            self._traced = tuple([n for _, p in self._plans.values() for n in p.traced])
            self._parents = np.array([n.parent for n in self._traced], np.int64)
        totals = Totals(whole[0], whole[1], with_inner(whole[1], self._parents))
        return self._traced, totals

    @property
    def newest(self) -> int | None:
        """The number of the newest step that is kept; None where there is none."""
        with self._lock:
            return self._kept[-1].trace.number if self._kept else None

    def steps(self, most: int) -> tuple[TracedStep, ...]:
        """Returns the newest steps that are kept, as far as `totals` has looked at them."""
        with self._lock:
            newest = [*itertools.islice(reversed(self._kept), most)][::-1]
            found = [k for k in newest if k.split is not None]
            for kept in found:
                kept.told = kept.told or self._step(kept, 0)
            return tuple([k.told for k in found if k.told is not None])

    def recording(self, step: int | None = None) -> Recording:
        """The recording of the kept steps.

        Args:
            step: The number of the only step whose spans are wanted, with those of steps that ran
                at the same time; None for those of all.
        """
        with self._lock:
            lanes = Lanes()
            chosen = _around(self._kept, step)
            found = [self._decoded(k.trace, lanes) for k in chosen]
            for kept, one in zip(chosen, found, strict=True):
                self._look(kept, one)
            spans, frames, steps = self._joined(chosen, found, lanes)
            nodes, totals = self._summed()
            gaps = self._gaps(chosen)
            memory = self._memory(chosen[-1].trace, found[-1]) if chosen else empty_memory()
            return Recording(
                nodes, lanes.lanes, frames, spans, steps, gaps, totals,
                memory, self.version, self._origin_us,
            )  # fmt: skip

    def _memory(self, trace: StepTrace, found: StepSpans) -> Memory:
        """Returns the bytes that were alive over a step; nothing of a part of one that lasts."""
        program = trace.plan.program
        if len(trace.shapes) != len(program.feeds) or not trace.is_whole:
            return empty_memory()
        key = trace.plan, trace.shapes
        if self._known is None or self._known[0] != key:
            self._known = key, lifetimes(program, trace.shapes, trace.rows is not None)
        made = memory_of(self._known[1], found, self._nodes(trace.plan), trace.begin)
        return Memory(made.time - self._origin, made.nbytes)

    def fetched(self) -> tuple[TensorValues, ...]:
        """The fetched values of the steps that are still kept."""
        with self._lock:
            return self._fetched.told()

    def graph(self) -> str:
        """Returns the graph of the steps in its JSON form; "" where there is none to be written."""
        operations = [op for plan, _ in self._plans.values() for op in plan.operations.values()]
        if not operations:
            return ""
        try:
            return operations[-1].graph.as_graph_def().to_json()
        except (DTypeError, UnimplementedError):
            return ""  # functions of the user's, say, are no data

    def _joined(
        self, chosen: list[_Kept], found: list[StepSpans], lanes: Lanes
    ) -> tuple[Spans, Frames, tuple[TracedStep, ...]]:
        """Returns the spans and frames of steps, one behind the other, and the steps."""
        parts: list[tuple[Any, ...]] = []
        frames: list[tuple[Any, ...]] = []
        told: list[TracedStep] = []
        rows = frame_rows = 0
        for kept, one in zip(chosen, found, strict=True):
            first, s, f = self._nodes(kept.trace.plan).first, one.spans, one.frames
            begin, end = s.begin, s.end
            if kept.python:
                lane = lanes.of_thread(kept.trace.thread, "Python", "python")
                called = kept.trace.called - kept.trace.compiled_ns - self._origin
                parts.append(_row(lane, called - kept.python, called))
                rows += 1
            if kept.trace.compiled_ns:
                lane = lanes.of_thread(kept.trace.thread, "compiling", "compiling")
                called = kept.trace.called - self._origin
                parts.append(_row(lane, called - kept.trace.compiled_ns, called))
                rows += 1
            node, frame = _shifted(s.node, first), _shifted(s.frame, frame_rows)
            times = begin - self._origin, end - self._origin
            parts.append((s.lane, node, frame, s.iteration, *times, s.nbytes))
            frames.append((f.loop + first, _shifted(f.parent, frame_rows), f.iteration))
            told.append(self._step(kept, rows))
            rows, frame_rows = rows + len(s), frame_rows + len(f.loop)
        return Spans(*_columns(parts, _SPANS)), Frames(*_columns(frames, _SPANS[:3])), tuple(told)

    def _step(self, kept: _Kept, first: int) -> TracedStep:
        assert kept.split is not None
        trace = kept.trace
        return TracedStep(
            -1 if trace.number is None else trace.number,
            self._nodes(trace.plan).plan,
            trace.called - self._origin,
            trace.done - self._origin,
            first,
            first + kept.spans,
            kept.split,
            trace.error,
            trace.is_whole,
        )

    def _gaps(self, chosen: list[_Kept]) -> tuple[Gap, ...]:
        lane, o = 0, self._origin  # the first lane is a device's, where there is any
        gaps = []
        if self._dropped is not None:
            begin, end, spans = self._dropped
            gaps.append(Gap(lane, begin - o, end - o, spans, "dropped: newer steps took its place"))
        why = "dropped: newer iterations took its place"
        for trace in [k.trace for k in chosen]:
            d, rows = trace.dropped, trace.rows
            if d is not None:
                gaps.append(Gap(lane, d.begin - o, d.end - o, d.spans, why))
            if rows is not None and rows.spans:
                gaps.append(Gap(lane, trace.begin - o, rows.begin - o, rows.spans, why))
        return tuple(gaps)


def _around(kept: Sequence[_Kept], step: int | None) -> list[_Kept]:
    """Returns a step, the last one, and those that ran at the same time; all where none is said."""
    own = [k for k in kept if k.trace.number == step]
    if step is None or not own:
        return list(kept) if step is None else []
    begin, end = own[-1].trace.called, own[-1].trace.done
    beside = [k for k in kept if k.trace.called < end and k.trace.done > begin and k not in own]
    return [*beside, *own]


def _between(before: StepTrace | None, trace: StepTrace) -> int:
    """Returns the nanoseconds between two steps that followed each other, else 0."""
    if before is None or before.number is None or before.thread != trace.thread:
        return 0
    follows = trace.number == before.number + 1 and trace.called >= before.done
    return trace.called - trace.compiled_ns - before.done if follows else 0


def _row(lane: int, begin: int, end: int) -> tuple[list[int], ...]:
    """Returns the columns of a span that is no operation's."""
    return [lane], [-1], [-1], [-1], [begin], [end], [-1]


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
