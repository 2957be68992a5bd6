"""The messages between the engine and a view, as data.

One protocol, version 1: after `Connect` the kernel answers with one `Snapshot`, then with numbered
`Delta`s; a view that sees a gap in `seq` asks again with `Connect`. A view sends `Command`s; each
is answered with one `Reply`. The TypeScript types of the front end are generated from these classes
(`flowscope.live.typescript`), so both sides read the same page.

Every message is a JSON object whose `kind` names its class in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PROTOCOL = 1


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


@dataclass(frozen=True)
class GraphChange:
    """What became of operations since the message before (a snapshot has all of them)."""

    #: Grows with every change of the graph.
    version: int
    added: tuple[Node, ...]
    #: Ids of operations whose `placed` became known, with the device.
    placed: tuple[tuple[int, str], ...]
    #: Operations that were told before and are others now: a notebook cell was run again.
    changed: tuple[Node, ...] = ()
    #: Ids of operations that are gone.
    removed: tuple[int, ...] = ()
    #: Ids of all operations that the latest re-run of a cell has changed or added.
    marked: tuple[int, ...] = ()


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
class SessionState:
    """What a session is doing."""

    #: "idle": no step for a while; "paused": held at a safepoint; "pausing" and "stopping": asked
    #: for, and the step has not reached its next safepoint yet.
    state: Literal["idle", "running", "pausing", "paused", "stopping", "closed"]
    #: Steps finished since the session was made.
    steps: int
    #: Over the last second or so; None when idle.
    steps_per_s: float | None
    #: Mean seconds of a step over the same window; None when idle.
    step_time_s: float | None
    progress: Progress | None


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
    control: Literal["live", "between cells"]
    kind: Literal["snapshot"] = "snapshot"


@dataclass(frozen=True)
class Delta:
    """What changed since the message with the number before."""

    seq: int
    #: None where nothing changed.
    graph: GraphChange | None
    session: SessionState | None
    kind: Literal["delta"] = "delta"


@dataclass(frozen=True)
class Reply:
    """The answer to a command."""

    command_id: int
    ok: bool
    #: What was done, or why not; shown to the user.
    message: str
    kind: Literal["reply"] = "reply"


@dataclass(frozen=True)
class Connect:
    """A view asks for a snapshot: when it opens, and after a gap."""

    #: Number that the view drew for itself: two views of one widget are told apart by it.
    view: int
    kind: Literal["connect"] = "connect"


@dataclass(frozen=True)
class Disconnect:
    """A view has closed: nothing need be sent for its sake."""

    view: int
    kind: Literal["disconnect"] = "disconnect"


@dataclass(frozen=True)
class Command:
    """A view asks for something to be done at the next safepoint."""

    command_id: int
    name: Literal["pause", "resume", "stop"]
    kind: Literal["command"] = "command"


FromKernel = Snapshot | Delta | Reply
FromView = Connect | Disconnect | Command
