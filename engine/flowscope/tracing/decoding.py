"""From the trace of a step to its spans: rows that name lanes, nodes, frames and iterations.

The readings of code tell when each node ran (`flowscope.plan.codegen.readings`); to them come what
helper threads did, when the step stood still, and what was done before and after it. A time in
which the step stood still is nobody's: a span that it falls into begins after it, or, of a loop or
branch, has it taken out of its total.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import numpy as np

from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.program import Node
from flowscope.runtime.trace.part_trace import PartTrace
from flowscope.runtime.trace.step_trace import Rows, StepTrace, waited
from flowscope.tracing.nodes import PlanNodes, sent_bytes
from flowscope.tracing.recording import Frames, Lane, LaneKind, Spans

Array = Any

#: The columns of spans.
_NAMES = ("lane", "node", "frame", "iteration", "begin", "end", "nbytes")
_WIDTH = len(_NAMES)

#: In the name of a lane, between its device and the error of that one's clock.
_ERROR = " \u00b1 "


class Lanes:
    """The lanes of a recording, as they come up."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, LaneKind], int] = {}
        self._threads: dict[int, int] = {}

    def number(self, name: str, kind: LaneKind) -> int:
        """Returns the position of a lane."""
        return self._found.setdefault((name, kind), len(self._found))

    def of_thread(self, thread: int, name: str, kind: LaneKind) -> int:
        """Returns the position of a lane that each thread with steps has one of."""
        number = self._threads.setdefault(thread, len(self._threads) + 1)
        return self.number(name if number == 1 else f"{name} (thread {number})", kind)

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """All of them."""
        return tuple([Lane(*key) for key in self._found])


@frozen
class StepSpans:
    """What a step's trace tells.

    Attributes:
        spans: The spans; the nodes by their positions in the plan, the frames by rows of `frames`.
        frames: The loops that ran.
        count, self_ns: Per node of the plan, of what is kept and what was dropped.
        failed: The node that ran when the step failed, as far as that is known; -1 for none.
    """

    spans: Spans
    frames: Frames
    count: Array
    self_ns: Array


def decoded(trace: StepTrace, nodes: PlanNodes, lanes: Lanes) -> StepSpans:
    """Decodes the trace of a step.

    Args:
        trace: The trace.
        nodes: The nodes of its plan.
        lanes: Where new lanes are noted.
    """
    if trace.apart:
        return apart(trace, nodes, lanes)
    if trace.rows is not None:
        return probed(trace, trace.rows, nodes, lanes)
    table, reading, cursor = trace.read()
    at = nodes.of_table(table)
    own_ns = reading.end - reading.begin - waited(reading, trace.waits)
    owner = at[table.owner[reading.slots]] if len(at) else np.empty(0, np.int32)
    rows = table.parts(reading)
    size = len(nodes.nodes)
    count = np.bincount(owner[rows], minlength=size).astype(np.int64)
    self_ns = np.bincount(owner, own_ns, size).astype(np.int64)
    if trace.dropped is not None:
        np.add.at(count, at, trace.dropped.count)
        np.add.at(self_ns, at, trace.dropped.self_ns)
    frames, renumbered = _frames(trace, reading, at)
    devices = _devices(trace, nodes, lanes)
    begin = _after_waits(reading, trace)
    owners = owner[rows]
    own = Spans(
        devices[owners] if size else owners,
        owners,
        renumbered[reading.frame[rows]],
        reading.iteration[rows],
        begin[rows],
        reading.end[rows],
        _told_by_shapes(nodes)[owners],
    )
    spans = _joined([own, _open(trace, cursor, at, devices, renumbered), _besides(trace, lanes)])
    return StepSpans(spans, frames, count, self_ns)


def probed(trace: StepTrace, rows: Rows, nodes: PlanNodes, lanes: Lanes) -> StepSpans:
    """Decodes the trace of a step whose operations ran one by one.

    An interval belongs to the operation that ends it. Loops and branches begin with what is first
    in them; where a machine of tokens runs them they have no spans, only frames.
    """
    devices, found = _devices(trace, nodes, lanes), _Probed(nodes)
    count, self_ns = np.zeros((2, len(nodes.nodes)), np.int64)
    for node, (often, took) in rows.dropped.items():
        position = nodes.find(node)
        if position >= 0:
            count[position] += often
            self_ns[position] += took
    last = rows.begin
    sizes = _told_by_shapes(nodes).tolist()
    waits = deque(trace.waits)
    spans: list[tuple[int, ...]] = []
    for row in rows.rows:
        begin = row.begin or last
        while waits and waits[0].end <= row.end:
            begin = max(begin, waits.popleft().end)
        last = row.end
        position = nodes.find(row.node)
        if position < 0:
            continue
        count[position] += 1
        self_ns[position] += row.end - begin
        start, place = found.span(position, row.iterations, begin)
        nbytes = sizes[position]
        spans.append((int(devices[position]), position, *place, start, row.end, nbytes))
    joined = _joined([_spans(spans), _besides(trace, lanes)])
    return StepSpans(joined, found.frames(), count, self_ns)


class _Probed:
    """Finds the frames of invocations, and where loops and branches have begun."""

    def __init__(self, nodes: PlanNodes) -> None:
        self._nodes = nodes
        self._frames: dict[tuple[int, tuple[int, ...]], int] = {}
        self._rows: list[tuple[int, int, int]] = []
        self._begun: dict[tuple[int, tuple[int, ...]], int] = {}

    def span(
        self, position: int, iterations: tuple[int, ...], begin: int
    ) -> tuple[int, tuple[int, int]]:
        """Returns when a span begins that ends now, and its frame and iteration.

        Args:
            position: The node.
            iterations: Those of the loops around.
            begin: When the interval begins that ends now.
        """
        around = self._nodes.around(position)
        depth = sum(self._nodes.traced[p].kind == "loop" for p in around)
        path = iterations[-depth:] if depth else ()
        loops = 0
        for p in around:
            self._begun.setdefault((p, path[:loops]), begin)
            loops += self._nodes.traced[p].kind == "loop"
        begin = self._begun.pop((position, path), begin)
        frame = -1
        for i, p in enumerate([p for p in around if self._nodes.traced[p].kind == "loop"]):
            key = p, path[:i]
            if key not in self._frames:
                self._frames[key] = len(self._rows)
                self._rows.append((p, frame, path[i - 1] if i else -1))
            frame = self._frames[key]
        return begin, (frame, path[-1] if path else -1)

    def frames(self) -> Frames:
        """Returns the frames."""
        columns = np.array(self._rows, np.int32).reshape(-1, 3).T
        return Frames(*columns)


def _devices(trace: StepTrace, nodes: PlanNodes, lanes: Lanes) -> Array:
    """Returns the lane of each node: what goes from one device to another has its own."""
    keys = [_lane_of(n, trace.plan.program.device) for n in nodes.nodes]
    found = {key: lanes.of_thread(trace.thread, *key) for key in dict.fromkeys(keys)}
    return np.array([found[key] for key in keys], np.int32)


def _lane_of(node: Node, default: str) -> tuple[str, LaneKind]:
    op = node.op
    if isinstance(op, Transfer) and op.send_device != op.recv_device:
        return f"{op.send_device} \u2192 {op.recv_device}", "transfer"
    return node.device or default, "device"


def _told_by_shapes(nodes: PlanNodes) -> Array:
    """Returns the bytes that each node brings over as shapes tell it; the last one is of -1."""
    is_elsewhere = [_lane_of(n, "")[1] == "transfer" for n in nodes.nodes]
    pairs = zip(nodes.nodes, is_elsewhere, strict=True)
    return np.array([*[sent_bytes(n) if there else -1 for n, there in pairs], -1], np.int64)


def _frames(trace: StepTrace, reading: Any, at: Array) -> tuple[Frames, Array]:
    """Returns the frames that spans name, and the rows of the numbers that the reading has."""
    opened = {} if trace.cursor is None else trace.cursor.open
    loops = [b for b in trace.table.blocks if b.next >= 0 and b.close in opened]
    before = [(opened[b.close].frame, at[b.node], *opened[b.close].around) for b in loops]
    new = reading.frames.copy()
    if len(new):
        new[:, 1] = at[new[:, 1]]
    rows = np.array([*before, *new.tolist()], np.int64).reshape(-1, 4)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    most = int(rows[:, 0].max(initial=-1))
    renumbered = np.full(most + 2, -1, np.int32)  # the last one is that of -1
    renumbered[rows[:, 0]] = np.arange(len(rows))
    parents = renumbered[rows[:, 2]]
    frames = Frames(rows[:, 1].astype(np.int32), parents, rows[:, 3].astype(np.int32))
    return frames, renumbered


def _after_waits(reading: Any, trace: StepTrace) -> Array:
    """Returns the begins of spans, behind what stood still in them: an operation begins after."""
    begin = reading.starts.copy()
    for wait in trace.waits:
        i = int(np.searchsorted(reading.end, wait.end))
        if i < len(begin) and reading.begin[i] <= wait.begin and begin[i] == reading.begin[i]:
            begin[i] = wait.end
    return begin


def _open(trace: StepTrace, cursor: Any, at: Array, devices: Array, frames: Array) -> Spans:
    """Returns the spans of what had begun and did not end: the step failed, or was left."""
    table = trace.table
    rows: list[tuple[int, ...]] = []
    if not trace.error:
        return _spans([])
    end = trace.end
    blocks = [b for b in reversed(table.blocks) if b.close in cursor.open]
    place = (-1, -1)
    if blocks:
        loops = [b for b in blocks if b.next >= 0]
        if loops:
            one = cursor.open[loops[0].close]
            place = int(frames[one.frame]), one.count - 1
    slot = cursor.entry[0]
    if slot >= 0 and cursor.entry[0] == cursor.entry[1]:
        node = int(at[table.owner[slot]])
        rows.append((int(devices[node]), node, *place, cursor.last, end))
    for block in blocks:
        one = cursor.open[block.close]
        node = int(at[block.node])
        around = int(frames[one.around[0]]), one.around[1]
        rows.append((int(devices[node]), node, *around, one.begin, end))
    return _spans(rows)


def _besides(trace: StepTrace, lanes: Lanes) -> Spans:
    """Returns the spans of what is no operation's own."""
    own = partial(lanes.of_thread, trace.thread)
    rows = [
        (own("feeds", "feeds"), -1, -1, -1, trace.planned, trace.fed),
        (own("fetches", "fetches"), -1, -1, -1, trace.end, trace.done),
    ]
    rows += [(own(f"{w.kind}s", w.kind), -1, -1, -1, w.begin, w.end) for w in trace.waits]
    rows += [(lanes.number(p.thread, "helper"), -1, -1, -1, p.begin, p.end) for p in trace.parts]
    return _spans([r for r in rows if r[5] > r[4]])


def _spans(rows: list[tuple[int, ...]]) -> Spans:
    """Returns spans that are given as rows; those that bring nothing over leave out the bytes."""
    whole = [(*row, -1) if len(row) < _WIDTH else row for row in rows]
    columns = np.array(whole, np.int64).reshape(-1, _WIDTH).T
    small = [c.astype(np.int32) for c in columns[:4]]
    return Spans(*small, *columns[4:])


def _joined(parts: list[Spans]) -> Spans:
    """Returns spans in the order of their ends, inner ones first."""
    columns = [np.concatenate([getattr(p, name) for p in parts]) for name in _NAMES]
    order = np.argsort(columns[5], kind="stable")
    return Spans(*[c[order] for c in columns])


def apart(trace: StepTrace, nodes: PlanNodes, lanes: Lanes) -> StepSpans:
    """Decodes the trace of a step whose partitions ran apart, each in its own lane.

    What one process sends and another receives is a span of its own, from the begin of the one to
    the end of the other: its clocks are aligned, as well as that could be measured.
    """
    size = len(nodes.nodes)
    count, self_ns = np.zeros((2, size), np.int64)
    spans: list[Spans] = []
    frames: list[tuple[int, int, int]] = []
    for part in trace.apart:
        at = np.array(nodes.positions(part.names, [*part.sends, *part.receives]), np.int32)
        owners = at[part.node] if len(at) else np.empty(0, np.int32)
        known = owners >= 0
        count += np.bincount(owners[known], minlength=size).astype(np.int64)
        self_ns += _own_ns(part, owners, size)
        numbers = {int(row[0]): i + len(frames) for i, row in enumerate(part.frames)}
        rows = np.array([numbers.get(int(n), -1) for n in part.frame], np.int32)
        frames += [
            (int(at[loop]), numbers.get(int(around), -1), int(iteration))
            for _, loop, around, iteration in part.frames
        ]
        lane = np.full(len(owners), lanes.number(_lane(part), "device"), np.int32)
        nothing = np.full(len(owners), -1, np.int64)
        times = part.begin, part.end
        spans.append(Spans(lane, owners, rows, part.iteration, *times, nothing))
    spans += [_transfers(trace, nodes, lanes), _besides(trace, lanes)]
    told = Frames(*np.array(frames, np.int32).reshape(-1, 3).T)
    return StepSpans(_joined(spans), told, count, self_ns)


def _lane(part: PartTrace) -> str:
    """Returns the name of a partition's lane; of another process it says how sure its clock is."""
    return part.device + (f"{_ERROR}{part.error_ns / 1e3:.3g} \u00b5s" if part.error_ns else "")


def device_of_lane(name: str) -> str:
    """Returns the device that a lane is named after, without the error of its clock."""
    return name.partition(_ERROR)[0]


def _own_ns(part: PartTrace, owners: Array, size: int) -> Array:
    """Returns per node of the plan the nanoseconds of its spans, without those inside of them."""
    found = np.zeros(size + 1, np.int64)  # the last one is of what the plan has not
    inside: list[list[int]] = []
    rows = zip(owners.tolist(), part.begin.tolist(), part.end.tolist(), strict=True)
    for owner, begin, end in rows:  # in the order of their ends: inner ones first
        own = end - begin
        while inside and inside[-1][0] >= begin:
            own -= inside.pop()[1]
        inside.append([begin, end - begin])
        found[owner] += own
    return found[:size]


def _transfers(trace: StepTrace, nodes: PlanNodes, lanes: Lanes) -> Spans:
    """Returns a span for each value that went from one process to another."""
    sent = {key: (part, i, n) for part in trace.apart for n, (i, key) in enumerate(part.sends)}
    rows: list[tuple[int, ...]] = []
    for receiver in trace.apart:
        for i, key in receiver.receives:
            sender, j, number = sent.get(key, (None, -1, -1))
            if sender is None:
                continue
            (node,) = nodes.positions([""], [(0, key)])
            lane = lanes.number(f"{sender.device} \u2192 {receiver.device}", "transfer")
            begins = sender.begin[sender.node == j].tolist()
            ends = receiver.end[receiver.node == i].tolist()
            sizes = sender.sizes[sender.sizes[:, 0] == number, 1].tolist()
            last = min(len(begins), len(ends))  # of what one side has dropped, the newest are left
            sizes = [-1] * (last - len(sizes)) + sizes
            if last:
                newest = zip(begins[-last:], ends[-last:], sizes[-last:], strict=True)
                rows += [(lane, node, -1, -1, min(b, e), e, n) for b, e, n in newest]
    return _spans(rows)


__all__ = ["Lanes", "StepSpans", "decoded"]
