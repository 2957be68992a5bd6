"""Loops made by hand, for those who look: what stands for one, and how often it runs.

A loop that was lowered is known as it was before. Of one that was made of primitives there is only
its frame: an Enter stands for it, and its iterations are known where a counter goes up to a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowscope.control.dynamic.primitives import Enter, Merge, Switch
from flowscope.executor.frames import Frame
from flowscope.executor.static import ExecutorGraph, StaticFrame, Unit, UnitKind
from flowscope.plan.analysis.saved_for_backward import count_up
from flowscope.plan.ir.known_ops import ADD, LESS, LESS_EQUAL
from flowscope.plan.ir.program import Node, Value, is_back_edge


def entry(graph: ExecutorGraph, frame: StaticFrame) -> Node:
    """Returns the Enter that stands for a loop: the first that leads into its frame."""
    enters = (u.node for u in graph.units if u.child is frame)
    return min(enters, key=lambda node: node.origins[0].id if node.origins else node.order)


def limit_of(graph: ExecutorGraph, frame: Frame) -> int | None:
    """Returns the iterations of `while i < limit: i += step`; None of any other loop, or too soon.

    A limit that comes in by a constant Enter is known once it has come.
    """
    test = _test(frame.static)
    if test is None or not isinstance(test.op, (LESS, LESS_EQUAL)):
        return None
    entered = {u.body.outputs[0]: v for u, v, is_dead in frame.constants if not is_dead}
    merge, bound = test.inputs[0].node, _number(test.inputs[1], entered)
    if merge is None or not isinstance(merge.op, Merge):
        return None
    start = next((v for v in merge.inputs if not is_back_edge(v, merge)), None)
    back = next((v.node for v in merge.inputs if is_back_edge(v, merge)), None)
    if start is None or start.node is None or not isinstance(start.node.op, Enter) or back is None:
        return None
    step = _step(back.inputs[0], merge, entered)
    first = _number(start.node.inputs[0], entered)
    if bound is None or first is None or step is None:
        return None
    return count_up(first, bound if isinstance(test.op, LESS_EQUAL) else bound - 1, step)


def _test(frame: StaticFrame) -> Node | None:
    """The predicate of a frame's LoopCond."""
    conds: list[Unit] = [u for u in frame.units if u.kind is UnitKind.LOOP_COND]
    return conds[0].node.inputs[0].node if len(conds) == 1 else None


def _step(value: Value, merge: Node, entered: Mapping[Value, Any]) -> int | None:
    """The number that an iteration adds to a counter."""
    node = value.node
    if node is None or not isinstance(node.op, ADD):
        return None
    switch = node.inputs[0].node
    if switch is None or not isinstance(switch.op, Switch) or switch.inputs[0].node is not merge:
        return None
    return _number(node.inputs[1], entered)


def _number(value: Value, entered: Mapping[Value, Any]) -> int | None:
    """Returns a value that is a known integer, or has come into the loop as one."""
    node = value.node
    found: Any = value.spec.constant
    if found is None and node is not None and isinstance(node.op, Enter):
        found = entered.get(value, node.inputs[0].spec.constant)
    is_integer = found is not None and value.spec.dtype.kind == "i" and value.spec.shape == ()
    return int(found) if is_integer else None


__all__ = ["entry", "limit_of"]
