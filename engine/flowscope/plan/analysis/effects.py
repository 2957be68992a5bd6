"""Effects: what a node does beyond its outputs, and to which state."""

from __future__ import annotations

from flowscope.control.dynamic.primitives import Primitive
from flowscope.ops.core.flow import NoOp
from flowscope.ops.core.send_recv import Crossing
from flowscope.plan.ir.lowering import Key
from flowscope.plan.ir.program import Node

#: Stands for the world outside, among what accesses are ordered by.
WORLD = "world"


def leaves(node: Node) -> list[Node]:
    """Returns the nodes without blocks that a node runs: itself, or those in its blocks."""
    if not node.blocks:
        return [node]
    return [n for block in node.blocks for n in block.walk() if not n.blocks]


def is_worldly(node: Node) -> bool:
    """Whether a node acts on the world outside: not on a variable, a queue, or its own step."""
    op = node.op
    if isinstance(op, Primitive | NoOp | Crossing) or op.is_handle:
        return False
    return op.has_effect and not op.is_blocking and not node.handles


def touched(node: Node) -> dict[Key, bool]:
    """Returns the state that a node touches, by whether it writes it."""
    keys: dict[Key, bool] = {}
    for inner in leaves(node):
        for handle in inner.handles:
            keys[handle] = keys.get(handle, False) or inner.writes_state
        if is_worldly(inner):
            keys[WORLD] = True
    return keys


__all__ = ["WORLD", "is_worldly", "leaves", "touched"]
