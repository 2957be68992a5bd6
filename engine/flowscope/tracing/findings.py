"""Findings: why steps take as long as they do, in five sentences at most, each with its evidence.

    with fs.profile() as profiled:
        for batch in batches:
            sess.run(train, {x: batch})
    print(profiled.why_slow())

Looked at are whole steps that did not fail; of plans that ran several times not the first run,
which meets cold caches. "A step" is the mean of these, from the end of the step before to its own
end, so that the shares of all findings have one measure; what an operation takes of it is a median,
which one step on a busy machine does not move. Each threshold is a share that is worth a change of
the program: what lies below is not told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Transfer
from flowscope.ops.input.reader_ops import ReaderRead, ReaderReadUpTo
from flowscope.ops.state.containers.barriers import BarrierTakeMany
from flowscope.ops.state.containers.queue_ops import (
    Dequeue,
    DequeueMany,
    DequeueUpTo,
    Enqueue,
    EnqueueMany,
)
from flowscope.ops.state.containers.staging import StageGet, StagePut
from flowscope.ops.state.iterator_ops import FeedableGetNext, IteratorGetNext
from flowscope.tracing.recording import Recording, TracedNode, TracedStep

Array = Any

#: "operation": one takes a large share; "copies": transfers, feeds, fetches; "waiting": for queues
#: or other devices; "python": the program between two steps; "plans": made again and again.
Kind = Literal["operation", "copies", "waiting", "python", "plans"]

#: Types of operations that bring a value elsewhere, take from a queue, and put into one.
_TRANSFER = Transfer.type
_DEQUEUES = {op.type for op in (Dequeue, DequeueMany, DequeueUpTo, StageGet, BarrierTakeMany)}
_ENQUEUES = {op.type for op in (Enqueue, EnqueueMany, StagePut)}
#: Types of operations that make what nobody has made ahead: all of their time is input's.
_ITERATORS = {op.type for op in (IteratorGetNext, FeedableGetNext)}
_READS = {op.type for op in (ReaderRead, ReaderReadUpTo)}
_INPUTS = _DEQUEUES | _ITERATORS | _READS
#: Stands for a lane: what any lane waits for input.
_INPUT = -1
#: The share of a step from which on a finding is told.
LEAST = {"operation": 0.3, "copies": 0.15, "waiting": 0.15, "python": 0.3, "plans": 0.1}
#: Seconds of a step below which copies and waits are the engine's own overhead.
LEAST_S = 2e-5
#: So many plans of like programs, and for so large a part of their steps, are too many.
MANY_PLANS, PLANS_PER_STEP = 4, 0.25
#: Operations that a finding leads to, at most.
_MOST_OPS = 8


@frozen
class Finding:
    """Why steps are slow.

    Attributes:
        kind: What it is about.
        share: Its part of a step's time, 0 to 1.
        seconds: What it takes of a step.
        text: What was found, as a sentence.
        advice: What could be done, as a sentence.
        names, operations: The operations that it is about, the most costly first: names, and
            numbers in the graph.
    """

    kind: Kind
    share: float
    seconds: float
    text: str
    advice: str
    names: tuple[str, ...]
    operations: tuple[int, ...]


@frozen
class Pace:
    """How steps followed each other where not all of them are traced.

    Attributes:
        steps_per_s: Steps a second.
        step_s: Seconds that one was run, without what is before and behind that.
        steps, plans: How many steps ran, and how many plans were made, in the time looked at.
    """

    steps_per_s: float
    step_s: float
    steps: int
    plans: int


class Findings(tuple[Finding, ...]):
    """What was found, the largest share first, and of what.

    Attributes:
        steps: Of how many steps.
        step_s: Seconds of one, with the time before it.
    """

    steps: int
    step_s: float

    @staticmethod
    def of(found: Iterable[Finding], steps: int, step_s: float) -> Findings:
        """Returns findings in order."""
        made = Findings(sorted(found, key=lambda one: -one.share))
        made.steps, made.step_s = steps, step_s
        return made

    def __repr__(self) -> str:
        if not self.steps:
            return "no whole step was traced: nothing is known"
        head = f"{self.steps} steps of {duration(self.step_s)}"
        if not self:
            return f"{head}: nothing stands out"
        told = [f"{one.share:4.0%}  {one.text}. {one.advice}" for one in self]
        return "\n".join([f"{head}:", *told])


def why_slow(recording: Recording, pace: Pace | None = None, plan: int | None = None) -> Findings:
    """Returns why the steps of a recording take as long as they do.

    Args:
        recording: What was traced.
        pace: How steps followed each other, where the recording has only some of them.
        plan: The plan whose steps are looked at, where the recording has only some; None for all.
    """
    chosen = [s for s in recording.steps if plan is None or s.plan == plan]
    if plan is None:  # what fills queues for the others shows in the waits of these
        fills = {node.plan for node in recording.nodes if node.type in _ENQUEUES}
        chosen = [s for s in chosen if s.plan not in fills] or chosen
    steps = _typical(chosen)
    if not steps:
        return Findings.of((), 0, 0.0)
    looked = _Looked(recording, steps, pace)
    found = [looked.operation(), looked.copies(), looked.waiting(), looked.python()]
    found.append(_plans(recording, pace, looked.step_ns))
    told = [one for one in found if one is not None and _is_worth_telling(one)]
    return Findings.of(told, len(steps), looked.step_ns / 1e9)


def _is_worth_telling(one: Finding) -> bool:
    is_overhead = one.kind in ("copies", "waiting") and one.seconds < LEAST_S
    return one.share >= LEAST[one.kind] and not is_overhead


def _typical(steps: Sequence[TracedStep]) -> list[TracedStep]:
    """Returns the whole steps that did not fail, of plans that ran again without the first.

    Parts of steps that last where there is no whole one.
    """
    by_plan: dict[int, list[TracedStep]] = defaultdict(list)
    unfailed = [step for step in steps if not step.error]
    for step in [step for step in unfailed if step.is_whole] or unfailed:
        by_plan[step.plan].append(step)
    return [s for own in by_plan.values() for s in (own[1:] or own)]


class _Looked:
    """What the steps of a recording add up to.

    Attributes:
        step_ns: Nanoseconds of one step, with the time before it.
    """

    def __init__(
        self, recording: Recording, steps: Sequence[TracedStep], pace: Pace | None
    ) -> None:
        self._recording, self._count = recording, len(steps)
        spans = recording.spans
        self._rows = np.concatenate([np.arange(s.first, s.last) for s in steps]).astype(np.int64)
        #: The position of each row's step.
        self._step = np.repeat(np.arange(self._count), [s.last - s.first for s in steps])
        self._took = (spans.end - spans.begin)[self._rows]
        self._lane = spans.lane[self._rows]
        self._node = spans.node[self._rows]
        self._kinds = [lane.kind for lane in recording.lanes]
        #: Of each row, whether it is of a lane of transfers, and whether of an operation that
        #: brings a value to another device or memory.
        self._moves = self._of_kind("transfer") & (self._node >= 0)
        is_transfer = [n.type == _TRANSFER for n in recording.nodes]
        self._crosses = np.array([*is_transfer, False])[self._node]
        makes = [n.type in _ITERATORS | _READS for n in recording.nodes]
        self._makes_input = np.array([*makes, False])[self._node] & self._of_kind("device")
        self._pace = pace
        self._each_ns = np.array([max(1, s.end - s.begin + s.split.python) for s in steps])
        inside = sum(s.end - s.begin for s in steps) / self._count
        python = sum(s.split.python for s in steps) / self._count
        if pace is not None and pace.steps_per_s > 0:
            around = sum(s.split.copies + s.split.other for s in steps) / self._count
            python = max(0.0, 1e9 / pace.steps_per_s - 1e9 * pace.step_s - around)
        paused = self._sum(self._of_kind("pause")) / self._count
        self._python_ns = python
        self.step_ns = max(1.0, inside - paused + python)

    def _of_kind(self, *kinds: str) -> Array:
        lanes = [i for i, kind in enumerate(self._kinds) if kind in kinds]
        return np.isin(self._lane, lanes)

    def _sum(self, chosen: Array) -> float:
        return float(self._took[chosen].sum())

    def _finding(
        self,
        kind: Kind,
        share: float,
        nanoseconds: float,
        text: str,
        advice: str,
        nodes: Sequence[int] = (),
    ) -> Finding:
        told = [self._recording.nodes[i] for i in nodes[:_MOST_OPS]]
        return Finding(
            kind,
            min(1.0, share),
            nanoseconds / 1e9,
            text,
            advice,
            tuple(dict.fromkeys(name for n in told for name in (n.names or (n.name,)))),
            tuple(dict.fromkeys(op for n in told for op in n.operations)),
        )

    def operation(self) -> Finding | None:
        """Returns the operation that takes most."""
        nodes = self._recording.nodes
        chosen = self._of_kind("device") & (self._node >= 0) & ~self._crosses & ~self._makes_input
        if not chosen.any():
            return None
        is_op = np.array([n.kind == "op" for n in nodes])
        each = np.array([
            np.bincount(self._node[own], self._took[own], len(nodes))
            for own in (chosen & (self._step == step) for step in range(self._count))
        ])  # fmt: skip
        typical = np.where(is_op, np.median(each, axis=0), 0.0)
        top = int(np.argmax(typical))
        node, ns = nodes[top], float(typical[top])
        share = ns / self.step_ns
        if self._pace is None:
            share = float(np.median(each[:, top] / self._each_ns))
        runs = int((self._node[chosen] == top).sum()) / self._count
        often = f" in {runs:.0f} runs" if runs >= 1.5 else ""
        at = f", {node.line.text.strip()}" if node.line is not None and node.line.text else ""
        text = f'"{node.name}" ({node.type}) takes {duration(ns / 1e9)} of a step{often}{at}'
        advice = "Smaller shapes, a cheaper operation or another device for it pay first"
        return self._finding("operation", share, ns, text, advice, [top])

    def copies(self) -> Finding | None:
        """The finding on the time of feeds, fetches and transfers; None if it is short."""
        parts = {kind: self._of_kind(kind) for kind in ("feeds", "fetches")}
        # Where a transfer has a lane of its own, its span on a device is partly a wait.
        told_apart = np.isin(self._node, self._node[self._moves])
        parts["transfer"] = self._of_kind("transfer") | (self._crosses & ~told_apart)
        took = {kind: self._sum(chosen) / self._count for kind, chosen in parts.items()}
        total = sum(took.values())
        share = total / self.step_ns
        most = max(took, key=lambda kind: took[kind])
        if most == "feeds":
            text = f"converting what is fed takes {duration(took[most] / 1e9)} of a step"
            advice = "Feed arrays of the placeholder's dtype, or read data by a queue"
            return self._finding("copies", share, total, text, advice)
        if most == "fetches":
            text = f"putting together what is fetched takes {duration(took[most] / 1e9)} of a step"
            advice = "Fetch less, or fetch it every so many steps"
            return self._finding("copies", share, total, text, advice)
        chosen = parts["transfer"]
        nbytes = np.maximum(0, self._recording.spans.nbytes[self._rows[chosen]]).sum()
        each = np.bincount(
            self._node[chosen & (self._node >= 0)],
            self._took[chosen & (self._node >= 0)],
            len(self._recording.nodes),
        )
        order = [int(i) for i in np.argsort(-each) if each[i] > 0]
        first = f', most of it "{self._recording.nodes[order[0]].name}"' if order else ""
        size = f" for {nbytes / self._count / 1e6:.3g} MB" if nbytes else ""
        text = f"transfers between devices take {duration(took[most] / 1e9)} of a step{size}{first}"
        advice = "Keep what belongs together on one device, or send less of it"
        return self._finding("copies", share, total, text, advice, order)

    def waiting(self) -> Finding | None:
        """The finding on the lane that stands still most, or on what steps wait for input."""
        waits = self._waits_for_devices()
        nodes, spans = self._recording.nodes, self._recording.spans
        for lane in [i for i, kind in enumerate(self._kinds) if kind == "wait"]:
            for row in self._rows[self._lane == lane].tolist():
                after = self._next(row)
                is_input = after >= 0 and nodes[after].type in _INPUTS
                longer = float(spans.end[row] - spans.begin[row])
                waits[_INPUT if is_input else lane][after] += longer
        for i in np.flatnonzero(self._makes_input).tolist():
            waits[_INPUT][int(self._node[i])] += float(self._took[i])
        took = {lane: sum(blamed.values()) / self._count for lane, blamed in waits.items()}
        if not took:
            return None
        lane = max(took, key=lambda i: took[i])
        order = sorted((i for i in waits[lane] if i >= 0), key=lambda i: -waits[lane][i])
        node = nodes[order[0]] if order else None
        before = f', most of it for "{node.name}" ({node.type})' if node is not None else ""
        share = took[lane] / self.step_ns
        if lane == _INPUT:
            text = f"the step waits for input {share:.0%} of its time{before}"
        else:
            is_device = self._kinds[lane] == "device"
            name = self._recording.lanes[lane].name.rpartition("device:")[2]
            who, of = (name, " of a step") if is_device else ("a step", "")
            text = f"{who} stands still for {duration(took[lane] / 1e9)}{of}{before}"
        return self._finding("waiting", share, took[lane], text, _waiting_advice(node), order)

    def _waits_for_devices(self) -> dict[int, dict[int, float]]:
        """Returns nanoseconds by lane and transfer, of partitions that run apart.

        On the device that receives, a transfer lasts from when it is waited for.
        """
        waits: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        moved = np.bincount(
            self._node[self._moves], self._took[self._moves], len(self._recording.nodes)
        )
        for node in np.flatnonzero(moved).tolist():
            own = (self._node == node) & self._of_kind("device")
            for lane in np.unique(self._lane[own]).tolist():
                longer = float(self._took[own & (self._lane == lane)].sum()) - float(moved[node])
                if longer > 0:
                    waits[lane][node] = longer
        return waits

    def _next(self, row: int) -> int:
        """Returns the operation that could begin when a wait was over; -1 for none."""
        spans = self._recording.spans
        after = self._rows[(self._node >= 0) & (spans.begin[self._rows] >= spans.end[row] - 1000)]
        kinds = [self._recording.nodes[int(spans.node[r])].kind for r in after]
        after = after[np.array([kind == "op" for kind in kinds], bool)]
        return int(spans.node[after[np.argmin(spans.begin[after])]]) if len(after) else -1

    def python(self) -> Finding:
        """The finding on the time that the user's program takes between two steps."""
        ns = self._python_ns
        text = f"the program takes {duration(ns / 1e9)} between two steps"
        advice = "Prepare data by a queue, write less between steps, or run many steps as one loop"
        return self._finding("python", ns / self.step_ns, ns, text, advice)


def _waiting_advice(node: TracedNode | None) -> str:
    found = None if node is None else node.type
    if found in _DEQUEUES:
        return "The queue is empty: more threads that fill it, or a larger capacity, help"
    if found in _ITERATORS:
        return "Elements are made too slowly: prefetch them, map in parallel, or cache what stays"
    if found in _READS:
        return "Files are read within the step: have a queue runner read ahead, as train.batch does"
    if found in _ENQUEUES:
        return "The queue is full: who takes elements from it is the slower one"
    return "One device waits for another: give the one that is waited for less, or overlap them"


def _plans(recording: Recording, pace: Pace | None, step_ns: float) -> Finding | None:
    """Returns how often plans of like programs were made."""
    if pace is not None:
        made, steps = pace.plans, pace.steps
        spent = [s.split.other for s in recording.steps if s.is_whole]
        ns = float(np.mean(spent)) if spent else 0.0
        names: tuple[str, ...] = ()
        operations: tuple[int, ...] = ()
    else:
        types: dict[int, set[str]] = defaultdict(set)
        for node in recording.nodes:
            types[node.plan].add(node.type)
        alike: dict[frozenset[str], list[int]] = defaultdict(list)
        for number, found in types.items():
            alike[frozenset(found)].append(number)
        group = max(map(set, alike.values()), key=len, default=set[int]())
        own = [s for s in recording.steps if s.plan in group]
        made, steps = len({s.plan for s in own}), len(own)
        first = {s.plan: s for s in reversed(own)}
        ns = sum(s.split.other for s in first.values()) / max(1, steps)
        last = [n for n in recording.nodes if own and n.plan == own[-1].plan and n.kind == "op"]
        names = tuple(name for n in last[-1:] for name in n.names)
        operations = tuple(op for n in last[-1:] for op in n.operations)
    if made < MANY_PLANS or made < PLANS_PER_STEP * steps:
        return None
    text = (
        f"{made} plans were made for {steps} steps: each asks for other operations than those "
        f"before, and planning takes about {duration(ns / 1e9)} of a step"
    )
    advice = "Build the graph once, before the loop, and feed what changes"
    return Finding(
        "plans", max(LEAST["plans"], min(1.0, ns / step_ns)), ns / 1e9, text, advice, names,
        operations,
    )  # fmt: skip


def duration(seconds: float) -> str:
    """Returns seconds for people: "3.21 ms"."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


__all__ = ["Finding", "Findings", "Pace", "duration", "why_slow"]
