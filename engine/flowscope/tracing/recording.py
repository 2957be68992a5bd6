"""Recordings: what was traced, as columns of numbers and small tables.

All times are nanoseconds since the recording's origin. A span names its lane, its node, and the
frame and iteration that it lies in by their positions in the tables; spans are in the order of
their ends, so that what lies inside of a loop comes before the loop as a whole.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from flowscope.graph.lazy import frozen

Array = Any

#: Of the files that recordings are kept in.
VERSION = 3

Phase = Literal["forward", "gradient", "update"]
#: "device": what a device computed; "helper": parts of its large operations that another thread
#: took; "transfer": copies; "wait": the step waited for others; "pause": it was held; "feeds" and
#: "fetches": what was fed was converted, what was fetched was put together; "python": the user's
#: program, between two steps; "compiling": before its first traced step a plan's code that reads a
#: clock was made, which is no part of the step.
LaneKind = Literal[
    "device", "helper", "transfer", "wait", "pause", "feeds", "fetches", "python", "compiling"
]


@frozen
class RecordedLine:
    """The user's line that made an operation.

    Attributes:
        file: The file, None for a notebook's cell.
        cell: The cell's execution count, None for a file.
        line: The line, from 1.
        text: What stands there, as far as it could be read.
    """

    file: str | None
    cell: int | None
    line: int
    text: str


@frozen
class TracedNode:
    """A node of a plan that was traced. Its time counts once, whatever it was made of.

    Attributes:
        name: Its name.
        type: Its op type.
        operations: The ids of the operations of the graph that it was made of.
        names: Their names.
        line: The user's line that made the first of them; None for none.
        scope: The scope of its name.
        device: The device that it was placed on.
        phase: Whether it computes a gradient, writes for an optimizer, or neither.
        kind: Whether it runs blocks of others, whose spans lie inside of its own.
        parent: Position of the loop or branch that it stands in, -1 for none.
        waits_for: Positions of the nodes that it waits for: its inputs', control inputs', and those
            that touch a variable of its before it. Loops and branches wait as a whole.
        plan: Which of the recording's plans it belongs to.
    """

    name: str
    type: str
    operations: tuple[int, ...]
    names: tuple[str, ...]
    line: RecordedLine | None
    scope: str
    device: str
    phase: Phase
    kind: Literal["op", "loop", "branch"]
    parent: int
    waits_for: tuple[int, ...]
    plan: int


@frozen
class Lane:
    """What runs beside others: a device, a helper thread, the user's program.

    Attributes:
        name: Its name.
        kind: What is in it.
    """

    name: str
    kind: LaneKind


@frozen
class Frames:
    """Loops that ran, one row each.

    Attributes:
        loop: Position of the loop's node.
        parent: Row of the frame around, -1 for none.
        iteration: The iteration there that it belongs to, -1 for none.
    """

    loop: Array
    parent: Array
    iteration: Array


@frozen
class Spans:
    """What happened, one row each, in the order of the ends of each step.

    Attributes:
        lane: Position of the lane.
        node: Position of the node; -1 in the lanes that are no operation's.
        frame: Row of the frame that it lies in, -1 outside of loops.
        iteration: The iteration of that frame, -1 outside of loops.
        begin, end: Nanoseconds.
        nbytes: In a lane of transfers how many bytes went over: measured where partitions run
            apart, else told by shapes; -1 where that is not known, and in other lanes.
    """

    lane: Array
    node: Array
    frame: Array
    iteration: Array
    begin: Array
    end: Array
    nbytes: Array

    def __len__(self) -> int:
        return len(self.begin)


@frozen
class Gap:
    """A time of which nothing is kept.

    Attributes:
        lane: Position of the lane.
        begin, end: Nanoseconds.
        spans: How many spans were dropped; 0 where nothing was traced.
        why: One line for people.
    """

    lane: int
    begin: int
    end: int
    spans: int
    why: str


@frozen
class TimeSplit:
    """Where the time of a step went, in nanoseconds.

    Attributes:
        compute: In operations, loops and branches.
        copies: Feeds converted, fetches put together, transfers between devices.
        waits: It was held, or waited for others.
        python: In the user's program, between the step before and this one; 0 where the step before
            was not traced.
        other: In the engine itself.
    """

    compute: int
    copies: int
    waits: int
    python: int
    other: int


@frozen
class TracedStep:
    """A step that was traced.

    Attributes:
        number: The number of the run in its session.
        plan: Which of the recording's plans it ran.
        begin, end: Nanoseconds, from the call to the result.
        first, last: Its spans: those of rows `first` to before `last`.
        split: Where its time went.
        error: What it failed with, "" for nothing.
        is_whole: Whether it was traced from its begin to its end.
    """

    number: int
    plan: int
    begin: int
    end: int
    first: int
    last: int
    split: TimeSplit
    error: str
    is_whole: bool


@frozen
class Totals:
    """Of each node, exactly for all that was traced, also of what is not kept.

    Attributes:
        count: How often it ran.
        self_ns: Nanoseconds that were its own, without those of what it runs.
        total_ns: Nanoseconds with those.
    """

    count: Array
    self_ns: Array
    total_ns: Array


@frozen
class Memory:
    """Bytes of the values that were alive in the step that was traced last.

    Attributes:
        time: Nanoseconds.
        nbytes: From then on.
    """

    time: Array
    nbytes: Array


@frozen
class KeptValue:
    """A value that a tensor had.

    Attributes:
        step: The number of the run in its session.
        iterations: The numbers of the iterations of the loops around, from the outermost.
        value: The value.
    """

    step: int
    iterations: tuple[int, ...]
    value: Array


@frozen
class TensorValues:
    """The values of a tensor that are kept.

    Attributes:
        name: The tensor's name.
        kept: The values, the oldest first.
        dropped: How many more there were, for which there was no room.
    """

    name: str
    kept: tuple[KeptValue, ...]
    dropped: int


@frozen
class Recording:
    """What was traced.

    Attributes:
        nodes: The nodes that ran.
        lanes: What ran beside others.
        frames: The loops that ran.
        spans: What happened.
        steps: The steps, in order; the newest ones where there were too many.
        gaps: What is not kept.
        totals: Of each node.
        memory: The bytes that were alive.
        traced_steps: How many steps were traced.
        origin_us: When the recording's time begins, in microseconds since 1970.
        graph: The graph, in its JSON form; "" where it was not kept.
        values: What tensors were that were fetched, or that `session.debug.record` has recorded.
    """

    nodes: tuple[TracedNode, ...]
    lanes: tuple[Lane, ...]
    frames: Frames
    spans: Spans
    steps: tuple[TracedStep, ...]
    gaps: tuple[Gap, ...]
    totals: Totals
    memory: Memory
    traced_steps: int
    origin_us: int
    graph: str = ""
    values: tuple[TensorValues, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<fs.tracing.Recording: {self.traced_steps} steps traced, {len(self.steps)} kept, "
            f"{len(self.spans)} spans of {len(self.nodes)} nodes>"
        )

    def path(self, frame: int) -> str:
        """Returns the path of a frame, such as "outer:3/inner"; "" for -1."""
        parts: list[str] = []
        iteration = -1
        while frame >= 0:
            name = self.nodes[int(self.frames.loop[frame])].name.removesuffix("/Loop")
            parts.append(name if iteration < 0 else f"{name}:{iteration}")
            iteration = int(self.frames.iteration[frame])
            frame = int(self.frames.parent[frame])
        return "/".join(reversed(parts))

    def critical_path(self, step: TracedStep) -> Array:
        """Returns the rows of the longest chain of operations that wait for each other, in order.

        Loops and branches count as a whole.

        Args:
            step: One of the steps.
        """
        spans, nodes = self.spans, self.nodes
        is_outermost = np.array([*[n.parent < 0 for n in nodes], False])  # the last one is of -1
        found = step.first + np.flatnonzero(is_outermost[spans.node[step.first : step.last]])
        rows = dict(zip(spans.node[found].tolist(), found.tolist(), strict=True))
        length: dict[int, int] = {}
        before: dict[int, int | None] = {}
        for i in sorted(rows):
            known = [j for j in nodes[i].waits_for if j in length]
            best = before[i] = max(known, key=length.__getitem__, default=None)
            own = int(spans.end[rows[i]] - spans.begin[rows[i]])
            length[i] = own + (0 if best is None else length[best])
        at = max(length, key=length.__getitem__, default=None)
        path: list[int] = []
        while at is not None:
            path.append(rows[at])
            at = before[at]
        return np.array(path[::-1], np.int64)


def empty_memory() -> Memory:
    """Returns the memory of nothing."""
    return Memory(np.empty(0, np.int64), np.empty(0, np.int64))


__all__ = [
    "VERSION",
    "Frames",
    "Gap",
    "KeptValue",
    "Lane",
    "LaneKind",
    "Memory",
    "Phase",
    "RecordedLine",
    "Recording",
    "Spans",
    "TensorValues",
    "TimeSplit",
    "Totals",
    "TracedNode",
    "TracedStep",
    "empty_memory",
]
