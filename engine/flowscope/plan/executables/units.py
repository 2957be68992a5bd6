"""Units: what the executor runs as a whole, cut from a lowered program.

In tokens mode each operation is one. In compiled mode, where something blocks, they are regions:
see `flowscope.plan.executables.region_formation`.

Constants and handles are no units: their values are there before the step starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flowscope.control.dynamic.primitives import Merge
from flowscope.plan.codegen.code import CodeAtNeed
from flowscope.plan.ir.invocation import Invoker
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Program, Value

#: What the executor does itself.
PRIMITIVES = frozenset(
    ("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger")
)


@dataclass(frozen=True, eq=False)
class UnitBody:
    """Nodes that run as a whole.

    Attributes:
        nodes: The nodes, in order: one, or those of a region.
        inputs: The values that they take from outside; for a single node constants and handles too.
        outputs: The values that others take.
        function: The function of a region's code, else None.
        invoker: What runs a single node; None for a primitive and for what blocks.
        code: The code of a region, None for a single node.
        handles: The handles that a region's function takes.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    function: Callable[..., Any] | None = None
    code: CodeAtNeed | None = None
    handles: tuple[Node, ...] = ()
    invoker: Invoker | None = None


def single_bodies(program: Program, modules: Modules) -> tuple[UnitBody, ...]:
    """Returns a body per node of a lowered program."""
    merged = {v.node for n in program.nodes if isinstance(n.op, Merge) for v in n.inputs}
    return tuple([body_of(n, modules) for n in program.nodes if not is_ambient(n) or n in merged])


def body_of(node: Node, modules: Modules) -> UnitBody:
    """Returns the body of one node."""
    has_none = node.op.type in PRIMITIVES or node.op.is_blocking
    invoker = None if has_none else Invoker(node, modules)
    return UnitBody((node,), node.inputs, node.outputs, invoker=invoker)


def constants(nodes: Sequence[Node], modules: Modules) -> dict[Value, Any]:
    """Returns the values of constants."""
    return {
        n.outputs[0]: modules.function(n)(modules.of(n))
        for n in nodes
        if is_ambient(n) and not n.op.is_handle
    }


__all__ = [
    "PRIMITIVES",
    "UnitBody",
    "body_of",
    "constants",
    "single_bodies",
]
