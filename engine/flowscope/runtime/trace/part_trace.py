"""Traces of a step's partitions, each taken where it runs, as plain columns that can travel.

A partition is traced as a plan is: by a variant of its code that reads a clock, or, where it has no
code, one operation at a time. What it reads is decoded where it was read, for there the code is;
then it names nodes by their names, and goes to the process that has asked for the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from flowscope.graph.current_step import current_step
from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Crossing, Recv, Send
from flowscope.plan.codegen.variants import PLAIN, Variant
from flowscope.plan.executables.back_ends import Executable, Function
from flowscope.plan.ir.program import Node
from flowscope.plan.partition.compiled_partitions import reconcile_back_ends
from flowscope.plan.passes.regions import whole_region
from flowscope.plan.plan import Plan
from flowscope.runtime.trace.sent_sizes import SizingChannel
from flowscope.runtime.trace.step_trace import StepTrace, clock

#: Spans of one partition that are told: the newest.
MOST_SPANS = 1 << 16

_COLUMNS = ("node", "frame", "iteration", "begin", "end")


@frozen
class PartTrace:
    """What a partition did in a step.

    Attributes:
        device: Its device.
        names: The names of its nodes.
        node, frame, iteration: Per span the position of its name, the number of the loop's frame
            that it lies in, and the iteration there; -1 for none.
        begin, end: Per span, nanoseconds of the clock of the process that has asked for the step.
        frames: Per frame its number, the position of the loop's name, the number of the frame
            around, and the iteration there.
        sends, receives: The positions of the names of what sends and receives, with the keys.
        sizes: A row per value that was sent, the newest of each key in order: the position among
            `sends`, and its bytes.
        error_ns: So wrong the times may be, beside those of other processes.
    """

    device: str
    names: tuple[str, ...]
    node: Any
    frame: Any
    iteration: Any
    begin: Any
    end: Any
    frames: Any
    sizes: Any
    sends: tuple[tuple[int, str], ...] = ()
    receives: tuple[tuple[int, str], ...] = ()
    error_ns: int = 0


class PartPlan:
    """A partition, to a trace: what is asked of a plan that is traced.

    Args:
        back_end: The name of the code back end.
        executable: What runs it.
        make: Makes a variant of its code.
    """

    def __init__(
        self, back_end: str, executable: Executable, make: Callable[[Variant], Executable]
    ) -> None:
        self.back_end = back_end
        self.executable = executable
        self._make = make
        self._made: dict[Variant, Executable] = {}

    def variant(self, variant: Variant) -> Executable:
        """Returns a variant of its code, made when it is first asked for."""
        if variant == PLAIN:
            return self.executable
        found = self._made.get(variant)
        if found is None:
            found = self._made.setdefault(variant, self._make(variant))
        return found


def part_plans(plan: Plan) -> list[PartPlan]:
    """Returns the partitions of a plan that run apart in this process, as its parts are."""
    return [
        PartPlan(
            one.back_end,
            part.executable,
            partial(plan.compile_part, one.back_end, whole_region(one.program, True)),
        )
        for one, part in zip(reconcile_back_ends(plan.partitions), plan.parts, strict=True)
    ]


class PartRecorder:
    """Traces a partition in one step.

    Args:
        device: Its device.
        plan: The partition.
    """

    def __init__(self, device: str, plan: PartPlan) -> None:
        self._device = device
        traced: Any = plan
        self._trace = StepTrace(traced, clock())
        self._traced: Function = self._trace.traced(lambda function: function)
        #: The bytes of what it has sent, by keys.
        self._sizes: dict[str, deque[int]] = {}

    def function(self, gate: Any, run: Any, feeds: Any, resources: Any) -> Any:
        """Runs the partition, in the place of the plain function."""
        step: Any = current_step()
        step.channel = SizingChannel(step.channel, self._sizes)
        return self._traced(gate, run, feeds, resources)

    def taken(self) -> PartTrace:
        """The partition's trace by this process's clock, once it has ended."""
        if self._trace.rows is not None:
            return self._taken_one_by_one()
        table, reading, _ = self._trace.read()
        rows = np.flatnonzero(table.parts(reading))[-MOST_SPANS:]
        sends = _keyed(table.nodes, Send)
        return PartTrace(
            self._device,
            tuple([node.name for node in table.nodes]),
            table.owner[reading.slots][rows].astype(np.int32),
            reading.frame[rows].astype(np.int32),
            reading.iteration[rows].astype(np.int32),
            reading.starts[rows].astype(np.int64),
            reading.end[rows].astype(np.int64),
            reading.frames.astype(np.int64).reshape(-1, 4),
            self._sent(sends),
            sends,
            _keyed(table.nodes, Recv),
        )

    def _taken_one_by_one(self) -> PartTrace:
        """Operations that ran one by one know no frames here, only their iterations."""
        assert self._trace.rows is not None
        rows = self._trace.rows.rows[-MOST_SPANS:]
        nodes = list(dict.fromkeys(row.node for row in rows))
        positions = {n: i for i, n in enumerate(nodes)}
        node = [positions[row.node] for row in rows]
        ends = [row.end for row in rows]
        before = [self._trace.rows.begin, *ends[:-1]]
        begins = [row.begin or last for row, last in zip(rows, before, strict=False)]
        iteration = [row.iterations[-1] if row.iterations else -1 for row in rows]
        sends = _keyed(nodes, Send)
        return PartTrace(
            self._device,
            tuple([n.name for n in nodes]),
            np.array(node, np.int32),
            np.full(len(rows), -1, np.int32),
            np.array(iteration, np.int32),
            np.array(begins, np.int64),
            np.array(ends, np.int64),
            np.empty((0, 4), np.int64),
            self._sent(sends),
            sends,
            _keyed(nodes, Recv),
        )

    def _sent(self, sends: Sequence[tuple[int, str]]) -> Any:
        """Returns the rows of `PartTrace.sizes`."""
        rows = [(i, n) for i, (_, key) in enumerate(sends) for n in self._sizes.get(key, ())]
        return np.array(rows, np.int64).reshape(-1, 2)


def _keyed(nodes: Sequence[Node], kind: type[Crossing]) -> tuple[tuple[int, str], ...]:
    """Returns the positions of what sends, or receives, with the keys."""
    return tuple([(i, n.op.key) for i, n in enumerate(nodes) if isinstance(n.op, kind)])


def packed(trace: PartTrace) -> tuple[dict[str, Any], list[Any]]:
    """Returns a trace as plain data and arrays, as a message carries them."""
    columns = [getattr(trace, name) for name in _COLUMNS]
    told = {
        "device": trace.device,
        "names": list(trace.names),
        "sends": [list(pair) for pair in trace.sends],
        "receives": [list(pair) for pair in trace.receives],
    }
    return told, [*columns, trace.frames, trace.sizes]


def unpacked(
    told: dict[str, Any], arrays: Sequence[Any], ahead_ns: int, error_ns: int
) -> PartTrace:
    """Returns the trace of another process by this one's clock.

    Args:
        told, arrays: What `packed` has returned there.
        ahead_ns: So far that process' clock is ahead of this one.
        error_ns: The most that this is wrong.
    """
    node, frame, iteration, begin, end, frames, sizes = arrays
    names = tuple(told["names"])
    times = begin - ahead_ns, end - ahead_ns
    sends, receives = [tuple([(i, key) for i, key in told[n]]) for n in ("sends", "receives")]
    columns = node, frame, iteration, *times, frames, sizes
    return PartTrace(told["device"], names, *columns, sends, receives, error_ns)


#: How many arrays `packed` returns.
ARRAYS = len(_COLUMNS) + 2

__all__ = [
    "ARRAYS",
    "MOST_SPANS",
    "PartPlan",
    "PartRecorder",
    "PartTrace",
    "packed",
    "part_plans",
    "unpacked",
]
