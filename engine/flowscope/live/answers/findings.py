"""Why steps are slow, for views: what was traced, and how steps follow each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from flowscope.live.answers.asking import (
    Asked,
    AskedRecording,
    Send,
    answers,
    recorded_answers,
)
from flowscope.live.answers.batches import Batches
from flowscope.live.protocol.trace_schema import AskFindings, Findings, SlowFinding
from flowscope.runtime.session.session import Session
from flowscope.tracing.findings import Pace, why_slow
from flowscope.tracing.recording import Recording

if TYPE_CHECKING:
    from flowscope.live.answers.traces import Tracing

#: Seconds over which steps are counted, and after which a pause begins a count anew.
WINDOW_S, PAUSE_S = 10.0, 2.0
NOTHING_TRACED = "no step was traced yet: run some steps while this view records"


class PaceMeter:
    """Counts the steps of a session, and the plans that were made for them, while it runs."""

    def __init__(self) -> None:
        #: (time, steps, nanoseconds in steps, plans made).
        self._samples: deque[tuple[float, int, int, int]] = deque()

    def look(self, session: Session, now_s: float) -> None:
        """Takes a sample where steps have ended since the last one."""
        samples = self._samples
        if samples and session.steps == samples[-1][1]:
            return
        if samples and (session.steps < samples[-1][1] or now_s - samples[-1][0] > PAUSE_S):
            samples.clear()
        samples.append((now_s, session.steps, session.busy_ns, session.planner.calls.misses))
        while len(samples) > 2 and now_s - samples[1][0] >= WINDOW_S:
            samples.popleft()

    @property
    def pace(self) -> Pace | None:
        """How steps followed each other; None where too few have run."""
        if len(self._samples) < 2:
            return None
        (begin_s, first, busy, made), (end_s, last, busy_now, made_now) = (
            self._samples[0],
            self._samples[-1],
        )
        steps = last - first
        step_s = (busy_now - busy) / 1e9 / steps
        return Pace(steps / (end_s - begin_s), step_s, steps, made_now - made)


class FindingQuestions:
    """Answers why steps are slow, on a thread: of many spans that takes a while.

    Of the questions that one view has asked meanwhile, the last one is answered.
    """

    def __init__(self) -> None:
        self._batches: Batches[tuple[AskFindings, Callable[[Findings], None]]]
        self._batches = Batches("flowscope findings")

    def ask(
        self, tracing: Tracing | None, asked: AskFindings, send: Callable[[Findings], None]
    ) -> None:
        """Has a question answered, through `send`, on this thread or another one."""
        if tracing is None or not tracing.version:
            send(refused(asked, NOTHING_TRACED))
            return
        self._batches.put((asked, send), partial(_answer, tracing))


def refused(asked: AskFindings, why: str) -> Findings:
    """Returns an answer that finds nothing."""
    return Findings(asked.request_id, why, 0, 0.0, (), asked.view)


def _answer(tracing: Tracing, asking: list[tuple[AskFindings, Callable[[Findings], None]]]) -> None:
    recording = tracing.recording()
    newest = {asked.view: (asked, send) for asked, send in asking}
    for asked, send in newest.values():
        send(told(asked, recording, tracing.pace, asked.program))


def told(asked: AskFindings, recording: Recording, pace: Pace | None, plan: int | None) -> Findings:
    """Returns the answer of a recording; see `why_slow`."""
    found = why_slow(recording, pace, plan)
    rows = [SlowFinding(f.kind, f.share, f.text, f.advice, f.operations) for f in found]
    return Findings(asked.request_id, "", found.steps, found.step_s, tuple(rows), asked.view)


@answers(AskFindings)
def _live(channel: Asked, asked: AskFindings, send: Send) -> None:
    channel.part(FindingQuestions).ask(channel.tracing, asked, send)


@recorded_answers(AskFindings)
def _recorded(one: AskedRecording, asked: AskFindings) -> Findings:
    return told(asked, one.recording, None, None)


__all__ = ["FindingQuestions", "PaceMeter", "refused", "told"]
