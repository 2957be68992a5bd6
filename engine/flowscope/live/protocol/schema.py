"""The messages between the engine and a view, as data.

One protocol, version 15: after `Connect` the kernel answers with one `Snapshot`, then with numbered
`Delta`s; a view that sees a gap in `seq` asks again with `Connect`. Each view has numbers of its
own, and says `Ack` for each message; two at most are on their way. A view that is silent for long
is taken for closed, so it says `Alive`. A view sends `Command`s; each is answered with one `Reply`.
The TypeScript types of the front end are generated from these classes
(`flowscope.live.protocol.typescript`), so both sides read the same page.

Every message is a JSON object whose `kind` names its class in lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# This is what a view is told of a cluster.
from flowscope.live.protocol.cluster_schema import (
    AskCluster as AskCluster,
    Cluster as Cluster,
    ClusterStatus as ClusterStatus,
    Finding as Finding,
    LostState as LostState,
    QueueFill as QueueFill,
    WaitStatus as WaitStatus,
    WorkerStatus as WorkerStatus,
)

# And this is what it is told of traces.
from flowscope.live.protocol.debug_schema import (
    AskCulprit as AskCulprit,
    AskValues as AskValues,
    BreakpointState as BreakpointState,
    BreakpointWish as BreakpointWish,
    Culprit as Culprit,
    CulpritStep as CulpritStep,
    DebugState as DebugState,
    Replacement as Replacement,
    StopState as StopState,
    Values as Values,
    ValueState as ValueState,
    WatchWish as WatchWish,
)

# An operation is explained with these.
from flowscope.live.protocol.explain_schema import (
    AskExplanation as AskExplanation,
    ExplainedTensor as ExplainedTensor,
    Explanation as Explanation,
    Sentence as Sentence,
)

# This is what it is told of loops that run.
from flowscope.live.protocol.frames_schema import (
    FrameState as FrameState,
    Iteration as Iteration,
    Position as Position,
    RunState as RunState,
    Token as Token,
)

# What is told of the past is made of these.
from flowscope.live.protocol.history_schema import (
    AskHistory as AskHistory,
    HistoryState as HistoryState,
    RecordWish as RecordWish,
    ReplayWish as ReplayWish,
    TensorHistory as TensorHistory,
)

# And of queues, and of what belongs to its input.
from flowscope.live.protocol.input_schema import (
    HelperState as HelperState,
    QueueState as QueueState,
    QueueWait as QueueWait,
)

# This is what it is told of devices.
from flowscope.live.protocol.placement_schema import (
    AskPlacement as AskPlacement,
    CandidateState as CandidateState,
    MovePrediction as MovePrediction,
    MoveState as MoveState,
    MoveWish as MoveWish,
    OpPlacementState as OpPlacementState,
    Placement as Placement,
)
from flowscope.live.protocol.questions import Answer as Answer, Question as Question

# What a view is to run is told with these.
from flowscope.live.protocol.run_schema import (
    FetchChange as FetchChange,
    Fetched as Fetched,
    Need as Need,
    Outcome as Outcome,
    RunSetup as RunSetup,
    ScalarState as ScalarState,
)

# What writers of summaries were given.
from flowscope.live.protocol.summary_schema import (
    AskSummaries as AskSummaries,
    HistogramSeries as HistogramSeries,
    ImageSeries as ImageSeries,
    ScalarSeries as ScalarSeries,
    Summaries as Summaries,
    SummaryState as SummaryState,
    TextSeries as TextSeries,
)
from flowscope.live.protocol.trace_schema import (
    AskExport as AskExport,
    AskFindings as AskFindings,
    AskSpans as AskSpans,
    Export as Export,
    Findings as Findings,
    ProgramState as ProgramState,
    SlowFinding as SlowFinding,
    Spans as Spans,
    StepSummary as StepSummary,
    Table as Table,
    TraceGap as TraceGap,
    TraceLane as TraceLane,
    TraceNode as TraceNode,
    TraceState as TraceState,
)

# And these are its variables.
from flowscope.live.protocol.variables_schema import (
    AskVariables as AskVariables,
    Variables as Variables,
    VariableState as VariableState,
)

PROTOCOL = 15


@dataclass(frozen=True)
class Output:
    """One output of an operation."""

    dtype: str
    #: Dimensions; None for an unknown dimension; None as a whole for an unknown rank.
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Origin:
    """The user's line that made an operation."""

    #: File name, or None where the line stands in a notebook cell.
    file: str | None
    #: Execution count of the notebook cell, or None for a file.
    cell: int | None
    #: Line in the file or cell, from 1.
    line: int
    #: The line's text, stripped; "" where it cannot be read.
    text: str
    #: The function that the line stands in; "" at the top of a file or a cell.
    function: str = ""
    #: The Python variable that takes what the line makes; "" where there is none.
    variable: str = ""


@dataclass(frozen=True)
class Carried:
    """One variable of a loop: the frame's back edge leads from its result to its parameters."""

    #: Position among the inputs of the Loop operation of the value that it starts with.
    input: int
    #: The Parameter operation that stands for it in the body.
    parameter: int
    #: The Parameter operation that stands for it in the condition; None without a condition.
    test: int | None
    #: What the body hands to the next iteration: (operation in the body, which of its outputs).
    result: tuple[int, int]
    #: Which output of the Loop operation is its value at the end.
    output: int


@dataclass(frozen=True)
class Source:
    """An operation of the graph as written that a node of the lowered program was made of."""

    id: int
    name: str
    #: Op type: "Cond" or "Loop" where the node is a part of a branch or a loop.
    type: str


@dataclass(frozen=True)
class Node:
    """One operation of the graph. Its scopes are the "/"-separated parts of its name."""

    #: Number in the graph, never used twice.
    id: int
    name: str
    #: Op type, e.g. "MatMul".
    type: str
    #: Data inputs in order: (id of the producer, which of its outputs).
    inputs: tuple[tuple[int, int], ...]
    #: Control inputs: ids of the operations that must finish first.
    control: tuple[int, ...]
    outputs: tuple[Output, ...]
    #: Attributes as text, e.g. {"transpose_a": "False"}.
    attributes: dict[str, str]
    #: The device that the user asked for, "" for none.
    device: str
    #: The device that the latest plan chose, None before a first run.
    placed: str | None
    #: One sentence from the op's docstring.
    summary: str
    origin: Origin | None
    #: Why it cannot be used since a cell was run again, and what to do; None if it can.
    stale: str | None = None
    #: The body that it stands in: a function's, a branch's or a loop's, by its name, which is also
    #: the body's scope; "" for none.
    body: str = ""
    #: Whether an output of it is a result of that body.
    is_result: bool = False
    #: The function that it calls, "" for none.
    calls: str = ""
    #: The bodies of its own that it runs, by name: a branching operation's, a loop's.
    runs: tuple[str, ...] = ()
    #: What each of `runs` is to it: "cond" and "body" of a loop, "then" and "else" of a branching
    #: operation.
    roles: tuple[str, ...] = ()
    #: What decides: the bool that a branching operation takes (an input of it), or the result of a
    #: loop's condition: (operation, which of its outputs). None where a loop only counts.
    predicate: tuple[int, int] | None = None
    #: Of a loop: its variables.
    carried: tuple[Carried, ...] = ()
    #: Values that its bodies (also a called function's) take besides: (Parameter operation in the
    #: body, position among this operation's inputs). The same in all iterations of a loop, but for
    #: elements of lists in the loop of a gradient.
    enters: tuple[tuple[int, int], ...] = ()
    #: What comes out of its bodies besides a loop's variables: (operation in a body, which of its
    #: outputs, position among this operation's outputs). Of branches: the results of each.
    leaves: tuple[tuple[int, int, int], ...] = ()
    #: Of a branching operation: ids of the operations outside that are computed for it alone, and
    #: yet whichever branch is taken.
    always_runs: tuple[int, ...] = ()
    #: In the program as lowered: the operations that it was made of; () in the graph as written.
    made_from: tuple[Source, ...] = ()
    #: The scope that shows it, where its name does not say it: in a loop of primitives made by
    #: hand, the scope of that loop's frame or one inside of it. "" elsewhere.
    scope: str = ""
    #: Of an Enter: the path of the scope that shows the frame which it leads into. "" elsewhere.
    frame: str = ""
    #: Of a product or a convolution: multiplications and additions of one invocation. An unknown
    #: dimension counts as one. 0 of others.
    flops: float = 0.0


#: How the fields of `Node` travel: as columns of numbers. "number": itself; "text", "attributes"
#: and "origin": its index in the table, -1 for None; "numbers", "pairs" and "outputs": how many,
#: and behind the counts of all rows the values: numbers, pairs of them, indices of outputs. Fields
#: that are not named here stand in `Columns.rest`.
COLUMNS: dict[str, Literal["number", "text", "numbers", "pairs", "outputs", "attributes", "origin"]]
COLUMNS = {
    "id": "number",
    "name": "text",
    "type": "text",
    "inputs": "pairs",
    "control": "numbers",
    "outputs": "outputs",
    "attributes": "attributes",
    "device": "text",
    "placed": "text",
    "summary": "text",
    "origin": "origin",
    "body": "text",
    "is_result": "number",
}


@dataclass(frozen=True)
class Columns:
    """Nodes as they travel: tables here, and the columns in a buffer of the message."""

    #: Number of nodes.
    rows: int
    #: Which of the message's buffers has the columns: little-endian int32 numbers.
    buffer: int
    texts: tuple[str, ...]
    outputs: tuple[Output, ...]
    attributes: tuple[dict[str, str], ...]
    origins: tuple[Origin, ...]
    #: (row, fields that have no column and are not what they mostly are).
    rest: tuple[tuple[int, dict[str, object]], ...]


@dataclass(frozen=True)
class GraphChange:
    """What became of operations since the message before (a snapshot has all of them)."""

    #: Grows with every change of the graph.
    version: int
    added: Sequence[Node]
    #: Ids of operations whose `placed` became known, with the device.
    placed: tuple[tuple[int, str], ...]
    #: Operations that were told before and are others now: a notebook cell was run again.
    changed: Sequence[Node] = ()
    #: Ids of operations that are gone.
    removed: tuple[int, ...] = ()
    #: Ids of all operations that the latest cell has changed or added; () of the first one.
    marked: tuple[int, ...] = ()
    #: Of the program as lowered: the names of what the step fetches that it is of; () of the graph
    #: as written.
    fetches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """How far a loop has come that was wrapped in `fs.progress`."""

    description: str
    done: int
    #: None where the length is not known.
    total: int | None
    elapsed_s: float
    #: Seconds left, None where it cannot be told.
    eta_s: float | None


@dataclass(frozen=True)
class Failure:
    """How the latest step failed."""

    #: The operation, None where it is not known.
    op: int | None
    #: One line: the error's class and what it says.
    message: str


@dataclass(frozen=True)
class SessionState:
    """What a session is doing."""

    #: "idle": no step for a while; "stopped": the latest step was stopped or interrupted, and none
    #: has begun since; "paused": held at a safepoint; "pausing" and "stopping": asked for, and the
    #: step has not reached its next safepoint yet.
    state: Literal["idle", "running", "pausing", "paused", "stopping", "stopped", "closed"]
    #: Steps finished since the session was made.
    steps: int
    #: Over the last second or so; None when idle.
    steps_per_s: float | None
    #: Mean seconds of a step over the same window; None when idle.
    step_time_s: float | None
    progress: Progress | None
    #: The queues that have been used.
    queues: tuple[QueueState, ...] = ()
    #: Its queue runners' threads, coordinators and hooks.
    helpers: tuple[HelperState, ...] = ()
    #: None where the latest step did not fail, or another has begun.
    failure: Failure | None = None
    #: None where no breakpoint is set and no step is held.
    debug: DebugState | None = None
    #: None where nothing is recorded.
    history: HistoryState | None = None
    #: None before a view has moved something.
    moved: MoveState | None = None
    #: None before a writer was given a summary.
    summaries: SummaryState | None = None
    #: The full names of its devices; whether some are simulated, which have a clock of their own.
    devices: tuple[str, ...] = ()
    is_simulated: bool = False
    #: Numbers that steps fetch, and writers of summaries are given.
    scalars: tuple[ScalarState, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """Everything a view needs to draw its first picture."""

    seq: int
    protocol: int
    graph_name: str
    graph: GraphChange
    #: None where no session on this graph is open.
    session: SessionState | None
    #: Whether commands are heard while a cell is busy; if not, the view says so.
    #: "recorded": it is a recording, in which nothing runs; "graph": a graph of which no step was
    #: recorded.
    control: Literal["live", "between cells", "recorded", "graph"]
    #: None where no step runs.
    run: RunState | None = None
    #: What `graph` is, and the changes of it that follow: the graph as written, or the program of
    #: the latest step as lowered, or that as cut: a scope per device.
    level: Literal["graph", "lowered", "partitions"] = "graph"
    #: Seconds of silence after which a view is taken for closed; 0 where it need not say `Alive`.
    silence_s: float = 0.0
    #: None where nothing was traced.
    trace: TraceState | None = None
    #: Of a recording: the tensors whose values it has; None where it has none.
    history: HistoryState | None = None
    #: The view that it is for; 0 for all.
    view: int = 0
    kind: Literal["snapshot"] = "snapshot"


@dataclass(frozen=True)
class Delta:
    """What changed since the message with the number before."""

    seq: int
    #: None where nothing changed.
    graph: GraphChange | None
    session: SessionState | None
    #: None where nothing changed; without frames and position when the step has ended.
    run: RunState | None = None
    #: States that came since the message before, and were replaced before the view had room.
    skipped: int = 0
    #: None where nothing changed.
    trace: TraceState | None = None
    #: The view that it is for; 0 for all.
    view: int = 0
    kind: Literal["delta"] = "delta"


@dataclass(frozen=True)
class Reply:
    """The answer to a command."""

    command_id: int
    ok: bool
    #: What was done, or why not; shown to the user.
    message: str
    #: The view that it is for; 0 for all.
    view: int = 0
    kind: Literal["reply"] = "reply"


@dataclass(frozen=True)
class Connect:
    """A view asks for a snapshot: when it opens, and after a gap."""

    #: Number, not 0, that the view drew for itself: views are told apart by it.
    view: int
    #: The version of the protocol that the view speaks.
    protocol: int = PROTOCOL
    kind: Literal["connect"] = "connect"


@dataclass(frozen=True)
class Disconnect:
    """A view has closed: nothing need be sent for its sake."""

    view: int
    kind: Literal["disconnect"] = "disconnect"


@dataclass(frozen=True)
class Alive:
    """A view is still open. One that was taken for closed gets a snapshot, as for a `Connect`."""

    view: int
    kind: Literal["alive"] = "alive"


@dataclass(frozen=True)
class Ack:
    """A view has taken the messages up to this one: there is room for others."""

    view: int
    seq: int
    kind: Literal["ack"] = "ack"


#: What a command may want in detail.
Wish = BreakpointWish | WatchWish | Replacement | RecordWish | ReplayWish | MoveWish


@dataclass(frozen=True)
class Command:
    """A view asks for something to be done at the next safepoint."""

    command_id: int
    #: "step_op": one more operation, then hold; "step_iteration": until the next iteration of the
    #: innermost running loop ends (or the step does), then hold. Both pause a step that runs.
    #: "resume" goes on at the pace that "pace" has set. "level" asks for a snapshot of another
    #: level. "run" runs what is chosen to be fetched, once no cell is running. "trace" has steps
    #: traced, or iterations of a step that lasts, for all views.
    #: "step_out": until the innermost loop has ended; "step_run": to the step's end. "break" sets a
    #: breakpoint, "watch" a watchpoint, "unbreak", "enable" and "disable" take one; "stop_at_nan"
    #: sets, or with 0 removes, a watchpoint of all values that are not finite. "replace" gives a
    #: tensor a value.
    name: Literal[
        "pause",
        "resume",
        "stop",
        "step_op",
        "step_iteration",
        "step_out",
        "step_run",
        "pace",
        "level",
        "run",
        "trace",
        "break",
        "watch",
        "stop_at_nan",
        "unbreak",
        "enable",
        "disable",
        "replace",
        "step_back",
        "record",
        "replay",
        "move",
    ]
    #: For "pace": seconds per operation, 0 for full speed. For "level": that of a snapshot. For
    #: "trace": so many steps a second, 0 for none. For "unbreak", "enable" and "disable": the
    #: breakpoint's number. None for the others but those that have a wish here.
    #: "step_back" computes the held step again, up to the operation that ran last, on "resume" that
    #: ends; "record" has steps recorded, or with None no more; "replay" computes one again.
    #: "move" has an operation or a scope stand on a device from the next step on.
    value: float | str | Wish | None = None
    #: The view that asks.
    view: int = 0
    kind: Literal["command"] = "command"


#: What boxes tell by bars and colours: shares of a step, or devices.
HEATS = ("off", "time", "memory", "device", "weights", "flops")


@dataclass(frozen=True)
class Choose:
    """The user has chosen something in a view; all views of the widget take it over."""

    what: Literal[
        "selection",
        "iteration",
        "open_scopes",
        "find",
        "isolated",
        "fetches",
        "feed",
        "baseline",
        "step",
        "heat",
    ]
    #: "selection": the name of an operation, or the path of a scope with a "/" behind it; None for
    #: nothing. "iteration": (path of a frame, number); None for none. "open_scopes": whether they
    #: are open, by path, for those that were opened or closed by hand. "find": what is sought, ""
    #: for nothing. "isolated": the name of what is shown alone, "" for all. "fetches": their names.
    #: "feed": (name of the tensor, literal or name of a variable; "" for none yet, None if it is
    #: not to be fed). "baseline": the number of the run to compare with; None for the one before.
    #: "step": the number of a recorded step, None for none. "heat": one of `HEATS`.
    value: (
        str
        | int
        | tuple[str, int]
        | tuple[str, ...]
        | tuple[str, str | None]
        | dict[str, bool]
        | None
    )
    kind: Literal["choose"] = "choose"


FromKernel = Snapshot | Delta | Reply | Answer
FromView = Connect | Disconnect | Alive | Ack | Choose | Command | Question
