"""Raw crossings: what leaves the device of a loop or branch that is made by hand of primitives.

Such a value may be dead, or be one of many iterations. In one process that is no matter: tokens
carry both from any operation to any other. Partitions hand values over that are there, once per
run of the block that they are in: so there a loop or branch by hand has to be on one device.
"""

from __future__ import annotations

from collections.abc import Callable

from flowscope.control.dynamic.primitives import (
    Enter,
    Exit,
    LoopCond,
    Merge,
    Primitive,
    Switch,
)
from flowscope.errors import UnimplementedError
from flowscope.graph.operation import where
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node, Program, is_back_edge


def check_raw_crossings(program: Program, site_of: Callable[[str], str]) -> None:
    """Raises an error if a value of a loop or branch made by hand goes to another partition.

    Args:
        program: The program.
        site_of: The name of a device's partition.

    Raises:
        UnimplementedError: at the user's line of what makes the value.
    """
    for block in (program, *[b for n in program.walk() for b in n.blocks]):
        if any(isinstance(n.op, Primitive) for n in block.nodes):
            _check(block, site_of)


def _check(block: Program, site_of: Callable[[str], str]) -> None:
    depths: dict[Node, int] = {}
    for node in block.nodes:
        before = _before(node)
        depths[node] = _depth(node, max((depths.get(n, 0) for n in before), default=0))
        device = node.op.recv_device if isinstance(node.op, Transfer) else node.device
        for n in before:
            stays = site_of(n.device) == site_of(device)
            if depths.get(n, 0) and not stays and not isinstance(n.op, Transfer):
                raise _leaves(n, device)


def _before(node: Node) -> list[Node]:
    found = [v.node for v in node.inputs if v.node is not None and not is_back_edge(v, node)]
    return [*found, *node.control]


def _depth(node: Node, around: int) -> int:
    """Returns in how many loops and branches by hand a node's values are."""
    op = node.op
    if isinstance(op, Enter):
        return around + 1
    if isinstance(op, Switch):  # that of a loop's variable is as deep as the loop
        pred = node.inputs[1].node
        return around if pred is not None and isinstance(pred.op, LoopCond) else around + 1
    is_loops = any(is_back_edge(v, node) for v in node.inputs)
    if isinstance(op, Exit) or (isinstance(op, Merge) and not is_loops):
        return max(around - 1, 0)
    return around


def _leaves(node: Node, device: str) -> UnimplementedError:
    facts = where(node.origins[0]) if node.origins else {}
    return UnimplementedError(
        "a loop or branch made by hand stays on one device where partitions run apart: "
        f'"{node.name}" on {node.device} is used on {device}; build it with fs.while_loop or '
        "fs.cond, or give all of it one device"
    ).located(op=named(node.name, node.origins), op_type=node.op.type, **facts)


__all__ = ["check_raw_crossings"]
