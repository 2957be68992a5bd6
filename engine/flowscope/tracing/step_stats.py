"""`RunMetadata.step_stats.dev_stats` of a traced step, as readers of TensorFlow 1's expect it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from flowscope.graph.constant import Const
from flowscope.graph.shapes import size_of
from flowscope.plan.program import Node
from flowscope.runtime import config
from flowscope.runtime.config import DeviceStepStats, NodeExecStats, device_stats
from flowscope.runtime.step_trace import StepTrace, clock
from flowscope.tracing.decoding import Lanes, decoded, device_of_lane
from flowscope.tracing.nodes import PlanNodes


def stats_of(trace: StepTrace) -> tuple[DeviceStepStats, ...]:
    """Returns what ran when in a step, per device, by begin."""
    nodes, lanes = PlanNodes(trace.plan.program), Lanes()
    spans = decoded(trace, nodes, lanes).spans
    epoch_ns = time.time_ns() - clock()
    found: dict[str, list[NodeExecStats]] = {}
    for node in trace.plan.program.walk():
        if isinstance(node.op, Const):  # constants, and what was folded into one
            begin = trace.begin + epoch_ns
            found.setdefault(node.device, []).append(_stats(node, begin, begin))
    told = lanes.lanes
    for row in sorted(range(len(spans)), key=lambda i: (spans.begin[i], -spans.end[i])):
        position = int(spans.node[row])
        if position >= 0:
            times = int(spans.begin[row]) + epoch_ns, int(spans.end[row]) + epoch_ns
            one = _stats(nodes.nodes[position], *times)
            device = device_of_lane(told[int(spans.lane[row])].name)
            found.setdefault(device, []).append(one)
    return tuple(
        DeviceStepStats(device=name, node_stats=rows, thread_names={0: name})
        for name, rows in found.items()
    )


def _stats(node: Node, begin_ns: int, end_ns: int) -> NodeExecStats:
    start_us = begin_ns // 1000
    end_us = max(1, -(-(end_ns - start_us * 1000) // 1000))
    took_ns = end_ns - begin_ns
    return NodeExecStats(
        node_name=node.name,
        all_start_micros=start_us,
        op_start_rel_micros=0,
        op_end_rel_micros=end_us,
        all_end_rel_micros=end_us,
        timeline_label=label(node),
        scheduled_micros=start_us,
        all_start_nanos=begin_ns,
        op_end_rel_nanos=took_ns,
        all_end_rel_nanos=took_ns,
        scheduled_nanos=begin_ns,
        **_outputs(node),
    )


def label(node: Node) -> str:
    """Returns a node as TensorFlow's timelines read it: "name = Type(input, input)"."""
    inputs = ", ".join(v.label for v in node.inputs)
    return f"{node.name} = {node.op.type}({inputs})"


def _outputs(node: Node) -> dict[str, Any]:
    """Returns what is told of the outputs: their shapes, and their bytes where these are known."""
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
    used = config.AllocatorMemoryUsed(
        allocator_name="numpy", total_bytes=total, peak_bytes=total, live_bytes=total
    )
    return {"output": outputs, "memory": [used] if total else []}


def _nbytes(shape: Sequence[int | None] | None, dtype: Any) -> int:
    size = None if shape is None or None in shape else size_of(tuple(shape))
    return 0 if size is None or dtype.kind not in "fiucb" else size * int(dtype.size)


device_stats.append(stats_of)

__all__ = ["label", "stats_of"]
