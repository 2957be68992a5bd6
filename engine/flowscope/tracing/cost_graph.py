"""`RunMetadata.cost_graph` of a traced step."""

from __future__ import annotations

from typing import Any

from flowscope.plan.ir.program import Node, Value
from flowscope.runtime.config import TensorShapeDim, TensorShapeDims
from flowscope.runtime.trace.cost_model import (
    CostGraphDef,
    CostNode,
    InputInfo,
    OutputInfo,
    cost_graphs,
)
from flowscope.runtime.trace.step_trace import StepTrace
from flowscope.tracing.decoding import Lanes, decoded
from flowscope.tracing.nodes import PlanNodes


def cost_graph_of(trace: StepTrace) -> CostGraphDef:
    """The cost of each operation of a step."""
    program = trace.plan.program
    timed = PlanNodes(program)
    self_ns = decoded(trace, timed, Lanes()).self_ns
    numbers: dict[Node, int] = {n: i for i, n in enumerate(program.walk())}
    final = {v.node for v in program.fetches} | set(program.targets)
    found = CostGraphDef()
    for node, number in numbers.items():
        at = timed.index.get(node)
        micros = 0 if at is None else -(-int(self_ns[at]) // 1000)
        found.node.append(
            CostNode(
                name=node.name,
                device=node.device,
                id=number,
                input_info=[
                    InputInfo(preceding_node=numbers[v.node], preceding_port=v.index)
                    for v in node.inputs
                    if v.node in numbers
                ],
                output_info=[_output(v) for v in node.outputs],
                compute_cost=micros,
                compute_time=micros,
                is_final=node in final,
                control_input=[numbers[n] for n in node.control if n in numbers],
                inaccurate=at is None,
            )
        )
    return found


def _output(value: Value) -> OutputInfo:
    spec = value.spec
    facts: dict[str, Any] = {"size": -1 if spec.nbytes is None else spec.nbytes}
    if spec.dtype.kind != "v":
        facts["dtype"] = spec.dtype.as_datatype_enum
    dims = [TensorShapeDim(size=-1 if d is None else d) for d in spec.shape or ()]
    return OutputInfo(shape=TensorShapeDims(dim=dims, unknown_rank=spec.shape is None), **facts)


cost_graphs.append(cost_graph_of)

__all__ = ["cost_graph_of"]
