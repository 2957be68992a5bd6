"""Which operation of a traced step took how much memory when, and when that was given back.

A value takes memory when the operation that makes it ends, and gives it back when the last that
reads it ends, as `plan.analysis.lifetimes` knows. What is no operation's own (the variables of a
loop, and the lists that it keeps) is told with the operation behind which the curve of the step's
memory changes by it; so the records of a step add up to that curve. Where operations run in another
order than the program's (a machine of tokens, partitions that run apart) there is no such curve:
only the operations' own values are told, given back behind the last operation that may read them.

Values whose size is not known are left out, and so is all of a step that is not kept as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flowscope.plan.analysis.lifetimes import Lifetimes, lifetimes
from flowscope.runtime.trace.step_trace import StepTrace
from flowscope.tracing.decoding import StepSpans
from flowscope.tracing.last_readers import LastReaders
from flowscope.tracing.memory import memory_of
from flowscope.tracing.nodes import PlanNodes

#: The back ends that run operations in the program's order.
_IN_ORDER = ("python", "op")


class MemoryRecord(NamedTuple):
    """Memory that was taken, or given back.

    Attributes:
        time: When, by the clock.
        nbytes: How many bytes; negative where they were given back.
    """

    time: int
    nbytes: int


def allocations(
    trace: StepTrace, found: StepSpans, nodes: PlanNodes
) -> dict[int, list[MemoryRecord]]:
    """Returns the records of each span that has some, by the span's row.

    Args:
        trace: The trace of the step.
        found: Its spans, by their ends.
        nodes: The nodes of its plan.
    """
    program = trace.plan.program
    if len(trace.shapes) != len(program.feeds) or not trace.is_whole:
        return {}
    known = lifetimes(program, trace.shapes, trace.rows is not None)
    if trace.apart or trace.plan.back_end not in _IN_ORDER:
        return _own(known, found, nodes, LastReaders(program, found, nodes))[0]
    records, changes = _own(known, found, nodes)
    rows = np.flatnonzero(found.spans.node >= 0).tolist()
    levels = memory_of(known, found, nodes, trace.begin).nbytes
    for row, change in zip(rows, np.diff(levels).tolist(), strict=True):
        if rest := change - changes.get(row, 0):
            records.setdefault(row, []).append(MemoryRecord(int(found.spans.end[row]), rest))
    return records


def _own(
    known: Lifetimes, found: StepSpans, nodes: PlanNodes, readers_of: LastReaders | None = None
) -> tuple[dict[int, list[MemoryRecord]], dict[int, int]]:
    """Returns the records of what operations make, and by how much each span changes the sum.

    Without `readers_of`, what is read by others than the nodes of its block is not given back here.
    """
    spans = found.spans
    ran: dict[int, dict[tuple[int, int], int]] = {}
    places = zip(spans.node.tolist(), spans.frame.tolist(), spans.iteration.tolist(), strict=True)
    for row, (node, frame, iteration) in enumerate(places):
        ran.setdefault(node, {})[frame, iteration] = row
    records: dict[int, list[MemoryRecord]] = {}
    changes: dict[int, int] = {}
    for value in known.values:
        maker = value.value.node
        makes = ran.get(-1 if maker is None else nodes.index.get(maker, -1), {})
        readers = [ran.get(nodes.index.get(n, -2), {}) for n in dict.fromkeys(value.readers)]
        for place, row in makes.items():
            records.setdefault(row, []).append(MemoryRecord(int(spans.end[row]), value.nbytes))
            changes[row] = changes.get(row, 0) + value.nbytes
            last: int | None = None
            if readers and all(place in r for r in readers):
                last = max(r[place] for r in readers)  # rows are in the order of their ends
            elif readers_of is not None:
                last = readers_of.last(value.value, place)
            if last is not None:
                last = max(last, row)
                records[row].append(MemoryRecord(int(spans.end[last]), -value.nbytes))
                changes[last] = changes.get(last, 0) - value.nbytes
    return records, changes


__all__ = ["MemoryRecord", "allocations"]
