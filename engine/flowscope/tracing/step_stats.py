"""`RunMetadata.step_stats.dev_stats` of a traced step, as readers of TensorFlow 1's expect it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from flowscope.graph.constant import Const
from flowscope.graph.values.shapes import size_of
from flowscope.plan.ir.program import Node
from flowscope.runtime import config
from flowscope.runtime.config import DeviceStepStats, NodeExecStats, device_stats
from flowscope.runtime.trace.step_trace import StepTrace, clock
from flowscope.tracing.allocations import MemoryRecord, allocations
from flowscope.tracing.decoding import Lanes, decoded, device_of_lane
from flowscope.tracing.nodes import PlanNodes
from flowscope.tracing.scheduling import scheduled


def stats_of(trace: StepTrace) -> tuple[DeviceStepStats, ...]:
    """The operations of a step per device, sorted by their begin."""
    nodes, lanes = PlanNodes(trace.plan.program), Lanes()
    whole = decoded(trace, nodes, lanes)
    spans, could_begin = whole.spans, scheduled(whole, nodes, trace.begin)
    records = allocations(trace, whole, nodes)
    epoch_ns = time.time_ns() - clock()
    found: dict[str, list[NodeExecStats]] = {}
    for node in trace.plan.program.walk():
        if isinstance(node.op, Const):  # constants, and what was folded into one
            begin = trace.begin + epoch_ns
            found.setdefault(node.device, []).append(_stats(node, begin, begin, begin, []))
    told = lanes.lanes
    for row in sorted(range(len(spans)), key=lambda i: (spans.begin[i], -spans.end[i])):
        position = int(spans.node[row])
        if position >= 0:
            times = could_begin[row], int(spans.begin[row]), int(spans.end[row])
            could, begin, end = [t + epoch_ns for t in times]
            taken = [MemoryRecord(r.time + epoch_ns, r.nbytes) for r in records.get(row, ())]
            one = _stats(nodes.nodes[position], could, begin, end, taken)
            device = device_of_lane(told[int(spans.lane[row])].name)
            found.setdefault(device, []).append(one)
    return tuple(
        DeviceStepStats(device=name, node_stats=rows, thread_names={0: name})
        for name, rows in found.items()
    )


def _stats(
    node: Node, could_begin_ns: int, begin_ns: int, end_ns: int, records: list[MemoryRecord]
) -> NodeExecStats:
    start_us = begin_ns // 1000
    end_us = max(1, -(-(end_ns - start_us * 1000) // 1000))
    took_ns = end_ns - begin_ns
    made = NodeExecStats(
        node_name=node.name,
        all_start_micros=start_us,
        op_start_rel_micros=0,
        op_end_rel_micros=end_us,
        all_end_rel_micros=end_us,
        timeline_label=label(node),
        scheduled_micros=could_begin_ns // 1000,
        all_start_nanos=begin_ns,
        op_end_rel_nanos=took_ns,
        all_end_rel_nanos=took_ns,
        scheduled_nanos=could_begin_ns,
        **_outputs(node, records),
    )
    made.memory_stats.persistent_memory_size = _written_bytes(node)
    return made


def _written_bytes(node: Node) -> int:
    """Returns the bytes of the variables that a node writes, as far as shapes are known."""
    if not node.writes_state:
        return 0
    specs = [h.outputs[0].spec.variable for h in node.handles]
    return sum(_nbytes(spec.shape, spec.dtype) for spec in specs if spec is not None)


def label(node: Node) -> str:
    """Returns a node as TensorFlow's timelines read it: "name = Type(input, input)"."""
    inputs = ", ".join(v.label for v in node.inputs)
    return f"{node.name} = {node.op.type}({inputs})"


def _outputs(node: Node, records: list[MemoryRecord]) -> dict[str, Any]:
    """Descriptions of the outputs: their shapes, and their bytes where these are known.

    Args:
        node: The node.
        records: When memory was taken and given back; nanoseconds since 1970.
    """
    outputs, total = [], 0
    for slot, value in enumerate(node.outputs):
        shape, dtype = value.spec.shape, value.spec.dtype
        nbytes = _nbytes(shape, dtype)
        total += nbytes
        made = config.NodeOutput(slot=slot)
        described = made.tensor_description
        described.dtype = dtype.as_datatype_enum
        described.shape.unknown_rank = shape is None
        described.shape.dim = [
            config.TensorShapeDim(size=-1 if d is None else d) for d in shape or ()
        ]
        described.allocation_description.requested_bytes = nbytes
        described.allocation_description.allocated_bytes = nbytes
        described.allocation_description.allocator_name = "numpy"
        outputs.append(made)
    total = total or sum(r.nbytes for r in records if r.nbytes > 0)  # by what was fed
    used = config.AllocatorMemoryUsed(
        allocator_name="numpy", total_bytes=total, peak_bytes=total, live_bytes=total
    )
    used.allocation_records = [
        config.AllocationRecord(alloc_micros=r.time // 1000, alloc_bytes=r.nbytes) for r in records
    ]
    return {"output": outputs, "memory": [used] if total or records else []}


def _nbytes(shape: Sequence[int | None] | None, dtype: Any) -> int:
    size = None if shape is None or None in shape else size_of(tuple(shape))
    return 0 if size is None or dtype.kind not in "fiucb" else size * int(dtype.size)


device_stats.append(stats_of)

__all__ = ["label", "stats_of"]
