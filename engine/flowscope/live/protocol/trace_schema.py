"""What a view is told of traces, as data: a part of `flowscope.live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.live.protocol.questions import Answer, Question


@dataclass(frozen=True)
class Table:
    """Numbers as they travel: columns one behind the other in a buffer of the message.

    The numbers are little-endian; each column begins at a multiple of 8 bytes.
    """

    rows: int
    #: Which of the message's buffers has the columns.
    buffer: int
    columns: tuple[tuple[str, Literal["int32", "float64"]], ...]


@dataclass(frozen=True)
class StepSummary:
    """A step that was traced. Its times are microseconds since the recording's begin."""

    number: int
    begin_us: float
    end_us: float
    #: Where its time went: in operations; feeds converted, fetches put together and transfers; held
    #: or waiting for others; in the user's program since the step before, where that was traced
    #: too; in the engine itself.
    compute_us: float
    copies_us: float
    waits_us: float
    python_us: float
    other_us: float
    spans: int
    #: What it failed with, "" for nothing.
    error: str
    #: Whether it was traced from its begin to its end.
    is_whole: bool


@dataclass(frozen=True)
class ProgramState:
    """What the figures of a program - what one call of `run` asks for - were made of."""

    #: Its number: the column "program" of `TraceState.heat`.
    number: int
    #: What it fetches and runs, such as "train, loss"; "" for all of a recording.
    name: str
    #: How its figures were made: medians of the newest steps without the first; the first step, the
    #: only one so far; parts of steps that last, or that failed; the mean of all steps.
    basis: Literal["median", "first", "parts", "mean"]
    #: The number of steps, or parts of steps, that they were made of.
    steps: int
    #: How long ago the newest of these ended, in seconds, when this was told; -1 in a recording.
    age_s: float


@dataclass(frozen=True)
class TraceState:
    """What is traced, and where the time of the traced steps went."""

    #: Steps a second that are traced for views; 0 while none are.
    steps_per_s: float
    #: Grows with everything that is traced: what was asked of spans is old then.
    version: int
    #: Steps that were traced so far, also those of which only totals are kept.
    traced_steps: int
    #: The steps whose spans can be asked for, the oldest first.
    steps: tuple[StepSummary, ...]
    #: What a step of each program costs, those that took the most time first.
    programs: tuple[ProgramState, ...]
    #: A row per operation of a program: "id", "program", "node" (a node of the plan; several
    #: operations that were made one have the same, and its time counts once), "phase" (0 forward,
    #: 1 gradient, 2 update); of one step "count", "self_us" and "total_us" (with what it runs); and
    #: "share": its own part of the time of a step of its program.
    heat: Table


@dataclass(frozen=True)
class TraceLane:
    """What runs beside others: a device, a helper thread, the user's program."""

    name: str
    kind: Literal[
        "device", "helper", "transfer", "wait", "pause", "feeds", "fetches", "python", "compiling"
    ]


@dataclass(frozen=True)
class TraceNode:
    """A node of a plan: its time counts once, whatever it was made of."""

    name: str
    #: Op type.
    type: str
    #: The operations that it was made of; () of what planning added.
    operations: tuple[int, ...]
    device: str
    phase: Literal["forward", "gradient", "update"]
    #: Whether it runs others, whose spans lie inside of its own.
    kind: Literal["op", "loop", "branch"]


@dataclass(frozen=True)
class TraceGap:
    """A time of which nothing is kept: nobody's."""

    #: Position of the lane.
    lane: int
    begin_us: float
    end_us: float
    #: How many spans were dropped; 0 where nothing was traced.
    spans: int
    #: One line for people.
    why: str


@dataclass(frozen=True)
class AskSpans(Question, recorded=True):
    """A view asks what happened in a step; the answer is one `Spans`."""

    request_id: int
    #: The number of the step, None for the newest.
    step: int | None
    #: The part of it that is wanted, by the recording's time; None from its begin, to its end.
    begin_us: float | None
    end_us: float | None
    #: So many spans at most: those that are too narrow for that are told as one.
    most: int
    #: The view that asks.
    view: int
    kind: Literal["ask_spans"] = "ask_spans"


@dataclass(frozen=True)
class Spans(Answer, to=AskSpans):
    """The answer to `AskSpans`: what happened in a step, as finely as was asked for."""

    request_id: int
    #: `TraceState.version` of what is told.
    version: int
    #: None where the step is not kept any more, or nothing was traced yet; all else is empty then.
    step: StepSummary | None
    #: The part of the step that is told.
    begin_us: float
    end_us: float
    lanes: tuple[TraceLane, ...]
    #: The nodes of the spans, by position.
    nodes: tuple[TraceNode, ...]
    #: The loops that ran, a row each: "loop" (position of the node), "parent" (row of the frame
    #: around, -1 for none) and "iteration" (the iteration there).
    frames: Table
    #: A row each, by begin, outer ones first: "lane"; "node" (-1 where it is no operation's, or
    #: where several spans that are too narrow are told as one); "frame" (row, -1 outside of loops);
    #: "iteration" there; "begin_us"; "end_us"; "count" (how many spans it stands for); "depth" (how
    #: many spans of its lane it lies in); "critical" (1 on the critical path of the step); "nbytes"
    #: (bytes that went over in a lane of transfers; -1 where that is not known, and elsewhere).
    spans: Table
    gaps: tuple[TraceGap, ...]
    #: Bytes of the values that are alive: "time_us", "nbytes" (from then on).
    memory: Table
    #: The view that it is for.
    view: int = 0
    kind: Literal["spans"] = "spans"


@dataclass(frozen=True)
class AskFindings(Question, recorded=True):
    """A view asks why steps take as long as they do; the answer is one `Findings`."""

    view: int
    request_id: int
    #: The program whose steps are meant: `ProgramState.number`.
    program: int
    kind: Literal["ask_findings"] = "ask_findings"


@dataclass(frozen=True)
class SlowFinding:
    """Why steps are slow: see `flowscope.tracing.findings`."""

    topic: Literal["operation", "copies", "waiting", "python", "plans"]
    #: Its part of a step's time, 0 to 1.
    share: float
    text: str
    advice: str
    #: The operations that it is about, the most costly first.
    ops: tuple[int, ...]


@dataclass(frozen=True)
class Findings(Answer, to=AskFindings):
    """The answer to `AskFindings`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: Of how many steps, and seconds of one of them with the time before it.
    steps: int
    step_s: float
    #: The largest share first; () where nothing stands out.
    findings: tuple[SlowFinding, ...]
    #: The view that it is for.
    view: int
    kind: Literal["findings"] = "findings"


@dataclass(frozen=True)
class AskExport(Question):
    """A view asks for what was traced as a file; the answer is one `Export`."""

    view: int
    request_id: int
    #: "chrome" (and Perfetto), "recording" (for `fs.tracing.load`), or "html", a page that needs no
    #: kernel.
    what: str
    kind: Literal["ask_export"] = "ask_export"


@dataclass(frozen=True)
class Export(Answer, to=AskExport):
    """The answer to `AskExport`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    #: The file's name, its media type, and its content in base 64.
    name: str
    media: str
    content: str
    #: The view that it is for.
    view: int
    kind: Literal["export"] = "export"
