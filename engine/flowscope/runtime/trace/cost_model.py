"""`RunMetadata.cost_graph`: what the operations of a step cost, and in which steps it is told."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from flowscope.graph.messages.message import Message, Repeated
from flowscope.graph.providers import load
from flowscope.runtime.config import TensorShapeDims

if TYPE_CHECKING:
    from flowscope.plan.plan import Plan
    from flowscope.runtime.config import GraphOptions
    from flowscope.runtime.trace.step_trace import StepTrace

__all__ = ["CostGraphDef", "CostModel", "cost_graph_of"]


class InputInfo(Message):
    """An input of an operation.

    Attributes:
        preceding_node: The `id` of the operation that makes it.
        preceding_port: Which of its outputs it is.
    """

    preceding_node: int = 0
    preceding_port: int = 0


class OutputInfo(Message):
    """An output of an operation.

    Attributes:
        size: Its bytes; -1 where its shape is not known before the step.
        alias_input_port: -1: nothing is said about shared memory.
        shape: Its static shape.
        dtype: The number of its dtype.
    """

    size: int = -1
    alias_input_port: int = -1
    shape: TensorShapeDims = TensorShapeDims()
    dtype: int = 0


class CostNode(Message):
    """An operation of a step.

    Attributes:
        name: Its name.
        device: Where it ran.
        id: Its number in the message.
        input_info, output_info: Its inputs and outputs.
        compute_cost, compute_time: Microseconds that it took: of a loop without its body's
            operations, of one in a loop in all iterations.
        is_final: Whether it is fetched, or run for its effects.
        control_input: The `id`s of the operations that it waits for.
        temporary_memory_size, persistent_memory_size, memory_time: 0: they are not measured.
        inaccurate: Whether its time is not known: it took part in another one's.
    """

    name: str = ""
    device: str = ""
    id: int = 0
    input_info: Repeated[InputInfo] = Repeated(InputInfo)
    output_info: Repeated[OutputInfo] = Repeated(OutputInfo)
    temporary_memory_size: int = 0
    persistent_memory_size: int = 0
    compute_cost: int = 0
    compute_time: int = 0
    memory_time: int = 0
    is_final: bool = False
    control_input: list[int] = []  # noqa: RUF012
    inaccurate: bool = False


class CostGraphDef(Message):
    """What the operations of a step cost.

    Attributes:
        node: The operations, those of loops and branches behind them.
    """

    node: Repeated[CostNode] = Repeated(CostNode)


#: Makes the message of a traced step; `flowscope.tracing` does.
cost_graphs: list[Callable[[StepTrace], CostGraphDef]] = []


class CostModel:
    """Has every so many steps of a plan traced for `RunMetadata.cost_graph`; is a `Tracer`.

    Args:
        options: Says of how many steps one, and behind how many.
    """

    def __init__(self, options: GraphOptions) -> None:
        self._every = options.build_cost_model
        self._after = options.build_cost_model_after
        #: Runs by the identity of their plan, which is no key of a dict itself.
        self._counts: dict[int, int] = {}

    def wants(self, plan: Plan) -> bool:
        """Whether the step that begins is one of those that are told."""
        key = id(plan)
        if key not in self._counts:
            weakref.finalize(plan, self._counts.pop, key, None)
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        beyond = count - self._after
        return beyond >= 0 and (beyond + 1) % self._every == 0

    def take(self, trace: StepTrace) -> None:
        """Does nothing: the run's metadata tell about the step."""


def cost_graph_of(trace: StepTrace) -> CostGraphDef:
    """The costs of the operations of a traced step."""
    load("cost_graphs")
    return cost_graphs[0](trace)
