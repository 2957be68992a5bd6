"""What a view is told of a debugger, and asks of it, as data: a part of `live.protocol.schema`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowscope.live.protocol.questions import Answer, Question
from flowscope.live.protocol.trace_schema import Table


@dataclass(frozen=True)
class BreakpointWish:
    """A breakpoint that a view asks for: exactly one of `op`, `scope`, `op_type` and `line`."""

    #: The name of an operation.
    op: str | None
    #: The name of a scope: all operations in it.
    scope: str | None
    op_type: str | None
    #: A line, from 1, of a notebook cell (its execution count) or of a file.
    line: int | None
    cell: int | None
    file: str | None
    #: Whether it stands after the operations, else before them.
    is_after: bool
    #: A comparison such as "max > 3", "" for none: see `flowscope.debug.conditions`.
    when: str
    #: The iteration of the innermost loop, the number of the run; None for any.
    iteration: int | None
    step: int | None
    #: From which time on it holds.
    hits: int


@dataclass(frozen=True)
class WatchWish:
    """A watchpoint that a view asks for, of values of what is named, or of everything."""

    #: As of a `BreakpointWish`; all None for everything.
    op: str | None
    scope: str | None
    op_type: str | None
    line: int | None
    cell: int | None
    file: str | None
    #: What no value may be, such as "min < 0 or max > 1"; "" for not finite.
    when: str
    #: Names of operations and scopes that may have such values.
    exceptions: tuple[str, ...]
    #: Whether the step ends with an error there, else it is held.
    raises: bool


@dataclass(frozen=True)
class Replacement:
    """A value that a view gives to a tensor of the held step."""

    #: `StopState.id`, and the tensor's name.
    stop: str
    tensor: str
    #: Numbers as JSON: "0.5", "[[1, 2], [3, 4]]"; a number alone fills the tensor's shape.
    text: str


@dataclass(frozen=True)
class BreakpointState:
    """A breakpoint or a watchpoint of a session."""

    number: int
    #: What it means, and when it holds, as text.
    target: str
    conditions: str
    is_after: bool
    is_enabled: bool
    hits: int
    #: What its condition has raised last, "" for nothing: it did not hold there.
    error: str
    #: The operations that it means in the plans that there are, and the lines that say where each
    #: stands: one that was merged with another stands there, one that was folded nowhere.
    ops: tuple[int, ...]
    where: tuple[str, ...]
    is_watch: bool = False
    #: What a watchpoint has found last, "" for nothing.
    found: str = ""
    #: Whether it holds steps wherever a value is not finite: "stop at the first NaN".
    stops_at_nan: bool = False
    #: Whether a view has set it: it is set in the next session of the graph too.
    follows: bool = False


@dataclass(frozen=True)
class StopState:
    """A step that is held: values can be asked of it until it goes on."""

    #: What tells it from the stops of other steps, and from those of this one before and after.
    id: str
    #: The number of the run; None before it has one.
    step: int | None
    #: The operation that runs next; None at the end of an iteration and of the step.
    op: int | None
    #: The loops around with their iterations, "outer:3/inner:0"; "" and () outside of loops.
    frame: str
    iterations: tuple[int, ...]
    #: The breakpoint that it is held at, None for a pause or a move.
    breakpoint: int | None
    #: Whether it is a step of the past that is computed again: moves are meant for it, not for the
    #: step that is held.
    is_past: bool = False
    #: Where that runs next; "" where the session has one device only, and where `op` is None.
    device: str = ""
    #: Where a transfer runs next: the value that is sent, and the device that sends it; else "".
    sent: str = ""
    sender: str = ""
    #: The operation whose value a watchpoint holds it for; None for none.
    culprit: int | None = None


@dataclass(frozen=True)
class DebugState:
    """The breakpoints of a session, and the steps that are held."""

    breakpoints: tuple[BreakpointState, ...]
    stops: tuple[StopState, ...]
    #: Breakpoints of views that cannot be set in this session yet, a sentence each.
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskValues(Question):
    """A view asks for values at a stop; the answer is `Values`."""

    view: int
    request_id: int
    #: `StopState.id`.
    stop: str
    #: Names of tensors, or of operations for their first outputs; () for all that is alive.
    tensors: tuple[str, ...]
    #: Of a tensor of more than two axes: the place along each of those before the last two, where
    #: the picture is taken; () for the first. What is beyond an axis' end is its last place.
    at: tuple[int, ...]
    kind: Literal["ask_values"] = "ask_values"


@dataclass(frozen=True)
class ValueState:
    """A tensor at a stop."""

    name: str
    state: Literal["alive", "not yet", "gone", "absent"]
    #: Since when it is gone, what it is the same as, what it is in this plan; "" for nothing.
    why: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    #: How many elements are finite, not a number, infinite.
    finite: int
    nan: int
    inf: int
    #: Of the finite elements; None where there are none, or of strings.
    min: float | None
    max: float | None
    mean: float | None
    #: One column "count": finite elements in bins of one width from `min` to `max`.
    histogram: Table
    #: The last two axes as a picture, row by row: one column "level", 0 (`low`) to 254 (`high`),
    #: 255 for what is not finite. Only where it was asked for by name.
    picture: Table
    width: int
    height: int
    low: float
    high: float


@dataclass(frozen=True)
class Values(Answer, to=AskValues):
    """The answer to `AskValues`."""

    request_id: int
    #: "" where it is the answer; else why there is none: the step has gone on, no such tensor.
    error: str
    values: tuple[ValueState, ...]
    #: The view that it is for.
    view: int
    kind: Literal["values"] = "values"


@dataclass(frozen=True)
class AskCulprit(Question):
    """A view asks what made the value for which a watchpoint holds a step; see `Culprit`."""

    view: int
    request_id: int
    #: `StopState.id`.
    stop: str
    kind: Literal["ask_culprit"] = "ask_culprit"


@dataclass(frozen=True)
class CulpritStep:
    """An operation on the way to a culprit."""

    op: int
    name: str
    type: str


@dataclass(frozen=True)
class Culprit(Answer, to=AskCulprit):
    """The answer to `AskCulprit`."""

    request_id: int
    #: "" where it is the answer; else why there is none.
    error: str
    stop: str
    #: "nan", "inf", or a condition that was met.
    what: str
    #: The number of the run; None before it has one.
    step: int | None
    iterations: tuple[int, ...]
    #: From where the first such value of the step was made, or was before it, to the culprit.
    path: tuple[CulpritStep, ...]
    #: The user's line that made the culprit, "" for none, and what stands there.
    place: str
    source: str
    #: What held such a value before the step, a text each.
    already: tuple[str, ...]
    outputs: tuple[ValueState, ...]
    inputs: tuple[ValueState, ...]
    #: Why the step cannot be computed again, "" if it can.
    why_not: str
    #: The view that it is for.
    view: int
    kind: Literal["culprit"] = "culprit"
