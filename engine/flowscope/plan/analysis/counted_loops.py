"""Counted loops: those of which it is known before the first iteration how many there will be.

A loop is one if it runs while a variable is less than a limit that does not change, and every
iteration adds the same to that variable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.plan.ir.known_ops import ADD, LESS, LESS_EQUAL
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import LoopNode


@frozen
class Counted:
    """How a loop counts.

    Attributes:
        variable: The number of the variable that counts.
        limit: What it counts up to.
        step: By how much.
        is_inclusive: Whether the loop runs with the limit, too.
    """

    variable: int
    limit: Value
    step: int
    is_inclusive: bool


def counted(loop: LoopNode) -> Counted | None:
    """Returns how a loop counts; None where its condition alone tells when it ends.

    The condition does nothing but compare, on the loop's device.
    """
    if loop.condition is None or loop.count is not None:
        return None
    test = _only_node(loop.condition, loop.device)
    if test is None or not isinstance(test.op, (LESS, LESS_EQUAL)):
        return None
    (counter, limit), is_inclusive = test.inputs, isinstance(test.op, LESS_EQUAL)
    if counter not in loop.condition.feeds or limit in loop.condition.feeds:
        return None
    if not counter.spec.dtype.is_integer or counter.spec.shape != () or limit.spec.shape != ():
        return None
    variable = loop.condition.feeds.index(counter)
    step = _step(loop, variable)
    if step is None or not _stays_in_range(counter, limit, step, is_inclusive):
        return None
    return Counted(variable, limit, step, is_inclusive)


def _only_node(condition: Program, device: str) -> Node | None:
    """Returns the only node of a condition that computes, if its result is the condition."""
    found = [n for n in condition.nodes if not is_ambient(n)]
    is_it = len(found) == 1 and not found[0].control and found[0].device == device
    return found[0] if is_it and condition.fetches[0].node is found[0] else None


def _step(loop: LoopNode, variable: int) -> int | None:
    """The constant that every iteration adds to a variable; None if there is none."""
    node = loop.next_values[variable].node
    if node is None or node not in loop.body.nodes or not isinstance(node.op, ADD):
        return None
    parameter = loop.parameters[variable]
    others = [v for v in node.inputs if v is not parameter]
    if len(others) != 1 or others[0].node is None or not isinstance(others[0].node.op, Const):
        return None
    op: Any = others[0].node.op
    step = int(op.value.array) if np.ndim(op.value.array) == 0 else 0
    return step if step > 0 else None


def _stays_in_range(counter: Value, limit: Value, step: int, is_inclusive: bool) -> bool:
    """Whether the variable reaches the limit before it reaches the end of its dtype."""
    if step == 1 and not is_inclusive:
        return True
    most = limit.spec.constant
    return most is not None and int(most) + step <= int(counter.spec.dtype.max)


__all__ = ["Counted", "counted"]
