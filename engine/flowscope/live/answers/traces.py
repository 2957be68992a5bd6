"""Traces for views: steps are traced now and then, and told as heat and, on request, as spans.

While views want traces, each look at a session asks for its next step; so a step that is not traced
pays nothing. All views of a graph share what was traced.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowscope.debug.explain import Measured, measured
from flowscope.live.answers.asking import (
    Asked,
    AskedRecording,
    Send,
    answers,
    recorded_answers,
    refusals,
)
from flowscope.live.answers.findings import PaceMeter
from flowscope.live.answers.sampling import SamplingSchedule
from flowscope.live.protocol.schema import (
    AskExport,
    AskSpans,
    Export,
    ProgramState,
    Spans,
    StepSummary,
    Table,
    TraceGap,
    TraceLane,
    TraceNode,
    TraceState,
)
from flowscope.live.protocol.tables import Numbers
from flowscope.plan.plan import Plan
from flowscope.runtime.session.session import Session
from flowscope.runtime.step.samples import Sample
from flowscope.runtime.trace.step_trace import StepTrace
from flowscope.runtime.trace.tracers import attach, detach
from flowscope.tracing.findings import Pace
from flowscope.tracing.recorder import Recorder
from flowscope.tracing.recording import Recording, Totals, TracedNode, TracedStep
from flowscope.tracing.typical import ProgramFigures
from flowscope.tracing.windows import window

#: Spans that are kept for views.
MOST = 1 << 17
#: Steps whose spans can be asked for.
STEPS = 200
#: Programs whose figures are told, at most.
PROGRAMS = 8
#: So much earlier than it is due a step may be traced: looks come at regular times.
_EARLY_S = 0.05
#: The share of a core that telling of steps may take.
_SHARE = 0.02
_PHASES = ("forward", "gradient", "update")


class Tracing:
    """What is traced of a session for views.

    Attributes:
        steps_per_s: How many steps views want; 0 for none.
        cost_s: The processor's seconds that it took to tell of the latest one. Steps are traced so
            seldom that this is a small share of a core.
    """

    def __init__(self) -> None:
        self.steps_per_s = 0.0
        self._recorder = Recorder(MOST)
        self.cost_s = 0.0
        self._sample_due_s = 0.0
        self._plans_made = 0
        self._session: Session | None = None
        self._rows = HeatRows()
        #: By the numbers of the steps in memory, which are held with them.
        self._summaries: dict[int, tuple[TracedStep, StepSummary]] = {}
        self._schedule = SamplingSchedule()
        self._meter = PaceMeter()

    # -- a tracer of the session ----------------------------------------------------------------

    def wants(self, plan: Plan) -> bool:
        """Whether the step that begins is to be traced as a whole.

        Not one that may last: nothing of it is told before its end.
        """
        if not self.steps_per_s:
            return False
        is_wanted = self._schedule.wants(plan, time.monotonic(), self._interval_s)
        if not is_wanted:
            self._rest()
        return is_wanted

    @property
    def _interval_s(self) -> float:
        return max(1 / self.steps_per_s - _EARLY_S, self.cost_s / _SHARE)

    def _rest(self) -> None:
        """Has the steps that follow run as if nobody had asked, where no plan is due."""
        if self._session is not None and not self._schedule.is_any_due():
            detach(self._session, self)

    def take(self, trace: StepTrace) -> None:
        """Takes the trace of a step."""
        self._rest()
        self._recorder.take(trace)

    def ask(self, session: Session, now_s: float) -> None:
        """Has the next step of each plan traced that is due, and parts of steps that last."""
        running = self._schedule.look(session.gate.inside, self._seen_plans(session), now_s)
        self._meter.look(session, now_s)
        if not self.steps_per_s:
            return
        if self._session is not session or self._schedule.is_any_due():
            self._session = session
            attach(session, self)
        if now_s < self._sample_due_s:
            return
        self._sample_due_s = now_s + self._interval_s
        for step in running:
            if step.call.trace is None and step.call.elsewhere is None:
                step.sample = Sample(step, self._recorder)

    def _seen_plans(self, session: Session) -> list[Plan]:
        """Returns the plan that ran last, and those that were made since the look before."""
        calls = session.planner.calls
        if session is self._session and calls.misses == self._plans_made:
            return [] if session.latest_plan is None else [session.latest_plan]
        self._plans_made = calls.misses
        return [call.plan for call in calls.all()]

    def end(self, session: Session) -> None:
        """Has no more steps traced."""
        self.steps_per_s, self._session = 0.0, None
        detach(session, self)

    # -- what is told ---------------------------------------------------------------------------

    def measured(self) -> Measured:
        """The times of operations in the steps that were traced."""
        return measured(*self._recorder.totals())

    def recording(self) -> Recording:
        """The recording of all that is kept."""
        return self._recorder.recording()

    def whole(self) -> Recording:
        """The recording of all that is kept, with the graph where that can be written."""
        return replace(self._recorder.recording(), graph=self._recorder.graph())

    @property
    def pace(self) -> Pace | None:
        """How steps followed each other lately; None where too few have run."""
        return self._meter.pace

    def typical(self) -> tuple[tuple[TracedNode, ...], Totals, tuple[ProgramFigures, ...]]:
        """The times of operations in a typical step; see `Recorder.typical`."""
        return self._recorder.typical()

    @property
    def version(self) -> int:
        """Grows with everything that is traced."""
        return self._recorder.version

    def state(self) -> TraceState | None:
        """The message for all views; None where nothing was traced."""
        if not self.version and not self.steps_per_s:
            return None
        version = self.version
        nodes, totals, programs = self.typical()
        now_ns = self._recorder.now_ns
        states = tuple([_program(one, now_ns) for one in programs[:PROGRAMS]])
        told = heat(nodes, totals, [one.number for one in states], self._rows)
        return TraceState(self.steps_per_s, version, version, self._steps(), states, told)

    def _steps(self) -> tuple[StepSummary, ...]:
        """Returns the newest steps that are kept; those that were told are not looked at again."""
        steps = self._recorder.steps(STEPS)
        known = self._summaries
        self._summaries = {id(s): known.get(id(s)) or (s, summary(s)) for s in steps}
        return tuple([one for _, one in self._summaries.values()])

    def spans(self, asked: AskSpans) -> Spans:
        """Returns the answer to a view that asks for spans."""
        version = self.version
        number = self._recorder.newest if asked.step is None else asked.step
        recording = self._recorder.recording(-1 if number is None else number)
        step = next((s for s in reversed(recording.steps) if s.number == number), None)
        return spans_of(recording, step, asked, version)


_NONE: Table = Numbers({})


def summary(step: TracedStep) -> StepSummary:
    """The message of a step."""
    s = step.split
    return StepSummary(
        number=step.number,
        begin_us=step.begin / 1e3,
        end_us=step.end / 1e3,
        compute_us=s.compute / 1e3,
        copies_us=s.copies / 1e3,
        waits_us=s.waits / 1e3,
        python_us=s.python / 1e3,
        other_us=s.other / 1e3,
        spans=step.last - step.first,
        error=step.error,
        is_whole=step.is_whole,
    )


class HeatRows:
    """The rows of heat: which operations ran, by which nodes, in which phase, of which program.

    They stay the same from look to look, mostly, and are remembered.
    """

    def __init__(self) -> None:
        self._key: tuple[int, bytes] = 0, b""
        self._found: Any = np.empty((4, 0), np.int32)
        self._plans: Any = np.empty(0, np.int64)

    def plans(self, told: Sequence[TracedNode]) -> Any:
        """Returns the number of each node's plan."""
        if len(self._plans) != len(told):
            self._plans = np.array([n.plan for n in told], np.int64)
        return self._plans

    def of(self, told: Sequence[TracedNode], ran: Any) -> Any:
        """Returns operations, nodes, phases and programs as rows of an array.

        Args:
            told: The nodes; more may come, but those that have come stay.
            ran: Positions of those that ran.
        """
        key = len(told), ran.tobytes()
        if key != self._key:
            rows = [
                (op, i, _PHASES.index(told[i].phase), told[i].plan)
                for i in ran.tolist()
                for op in told[i].operations
            ]
            self._key = key
            self._found = np.array(rows, np.int32).reshape(-1, 4).T.copy()
        return self._found


def heat(
    told: Sequence[TracedNode],
    totals: Totals,
    programs: Sequence[int],
    rows: HeatRows | None = None,
) -> Table:
    """Returns where the time of a step went, a row per operation of a program.

    Args:
        told: The nodes.
        totals: What they take in a step.
        programs: The numbers of the plans whose nodes are told.
        rows: The rows of the look before.
    """
    known = rows or HeatRows()
    plans = known.plans(told)
    ran = np.flatnonzero((totals.count > 0) & np.isin(plans, programs))
    ids, nodes, phases, numbers = known.of(told, ran)
    step_ns = np.bincount(plans, totals.self_ns, 1 + plans.max(initial=0))
    return Numbers({
        "id": ids,
        "program": numbers,
        "node": nodes,
        "phase": phases,
        "count": np.asarray(totals.count[nodes], np.float64),
        "self_us": totals.self_ns[nodes] / 1e3,
        "total_us": totals.total_ns[nodes] / 1e3,
        "share": totals.self_ns[nodes] / np.maximum(1.0, step_ns[numbers]),
    })  # fmt: skip


def heat_of(recording: Recording) -> tuple[tuple[ProgramState, ...], Table]:
    """Returns the mean of all steps of a recording, as one program."""
    steps = max(1, recording.traced_steps)
    nodes = [replace(node, plan=0) for node in recording.nodes]
    t = recording.totals
    mean = Totals(t.count / steps, t.self_ns / steps, t.total_ns / steps)
    state = ProgramState(0, "", "mean", recording.traced_steps, -1.0)
    return (state,), heat(nodes, mean, [0])


def _program(one: ProgramFigures, now_ns: int) -> ProgramState:
    age_s = max(0.0, (now_ns - one.newest_ns) / 1e9)
    return ProgramState(one.plan, one.name, one.basis, one.steps, age_s)


def spans_of(recording: Recording, step: TracedStep | None, asked: AskSpans, version: int) -> Spans:
    """Returns the answer to a view that asks for the spans of a step.

    Args:
        recording: What was recorded.
        step: The step, one of the recording's; None where it is not kept.
        asked: What the view asks.
        version: `TraceState.version`.
    """
    if step is None:
        found = asked.request_id, version, None, 0.0, 0.0, (), ()
        return Spans(*found, frames=_NONE, spans=_NONE, gaps=(), memory=_NONE, view=asked.view)
    return _spans(recording, step, asked, version)


def _told(n: TracedNode) -> TraceNode:
    return TraceNode(n.name, n.type, n.operations, n.device, n.phase, n.kind)


def _spans(recording: Recording, step: TracedStep, asked: AskSpans, version: int) -> Spans:
    begin = step.begin if asked.begin_us is None else int(asked.begin_us * 1e3)
    end = step.end if asked.end_us is None else int(asked.end_us * 1e3)
    found = window(recording, step, begin, end, asked.most)
    nodes = [recording.nodes[i] for i in found.nodes]
    columns: dict[str, Any] = dict(found.columns)
    columns["begin_us"], columns["end_us"] = columns.pop("begin") / 1e3, columns.pop("end") / 1e3
    columns["nbytes"] = columns["nbytes"].astype(np.float64)  # more than an int32 holds
    memory = recording.memory
    return Spans(
        asked.request_id,
        version,
        summary(step),
        begin / 1e3,
        end / 1e3,
        tuple([TraceLane(lane.name, lane.kind) for lane in recording.lanes]),
        tuple([_told(node) for node in nodes]),
        Numbers(found.frames),
        Numbers(columns),
        tuple([
            TraceGap(g.lane, g.begin / 1e3, g.end / 1e3, g.spans, g.why)
            for g in recording.gaps
            if g.begin < end and g.end > begin
        ]),
        Numbers({"time_us": memory.time / 1e3, "nbytes": memory.nbytes.astype(np.float64)}),
        asked.view,
    )  # fmt: skip


@answers(AskSpans)
def _live(channel: Asked, asked: AskSpans, send: Send) -> None:
    send((channel.tracing or Tracing()).spans(asked))


@recorded_answers(AskSpans)
def _recorded(one: AskedRecording, asked: AskSpans) -> Spans:
    steps = one.recording.steps
    found = [s for s in steps if asked.step is None or s.number == asked.step]
    return spans_of(one.recording, found[-1] if found else None, asked, 1)


@answers(AskExport)
def _export(channel: Asked, asked: AskExport, send: Send) -> None:
    send(_no_file(asked, "this view saves no files"))


@refusals(AskExport)
def _no_file(asked: AskExport, why: str) -> Export:
    return Export(asked.request_id, why, "", "", "", asked.view)


__all__ = [
    "MOST",
    "STEPS",
    "HeatRows",
    "Tracing",
    "heat",
    "heat_of",
    "spans_of",
    "summary",
]
