"""What is said where a fetched value has none: it is on a way that was not taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from flowscope.control.dynamic.primitives import LoopCond, Switch
from flowscope.errors import InvalidArgumentError
from flowscope.graph.operation import Operation, where
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node, Value

#: Stands for the end of a node among its outputs, for what only waits for it.
_ORDER = -1


def dead_fetch(value: Value, operations: Mapping[int, Operation]) -> InvalidArgumentError:
    """Returns the error for a fetched value that is dead: it names the Switch and its predicate.

    Args:
        value: The fetched value.
        operations: The operations that nodes come from, by id.
    """
    node = value.node
    assert node is not None
    ways = _ways(value, operations)
    message = f'the fetched "{value.label}" has no value: it is on a way that was not taken'
    if len(ways) == 1:
        ((switch, index),) = ways
        message += f', for "{switch.inputs[1].name}" was {not index}'
    elif ways:
        message += "; what it follows from comes through several Switches"
    lines = [_line(switch, index) for switch, index in ways]
    facts = where(node.origins[0]) if node.origins else {}
    return InvalidArgumentError(message).located(
        op=named(node.name, node.origins), op_type=node.op.type, inputs=lines, **facts
    )


def _ways(value: Value, operations: Mapping[int, Operation]) -> list[tuple[Operation, int]]:
    """Returns the Switches of the user's that a value follows from, with the outputs taken.

    The nearest ones come first. A Switch that ends a loop is none of them: its Exit has a value
    once the loop has begun.
    """
    found: dict[tuple[Operation, int], None] = {}
    waiting = deque([(value.node, value.index)])
    seen = set(waiting)
    while waiting:
        node, index = waiting.popleft()
        if node is None:
            continue
        if index >= 0 and isinstance(node.op, Switch) and not _is_end_of_loop(node):
            origins = [operations[o.id] for o in node.origins if o.type == Switch.__name__]
            found.update(((o, index), None) for o in origins[:1])
        before = [*((v.node, v.index) for v in node.inputs), *((c, _ORDER) for c in node.control)]
        new = [one for one in before if one not in seen]
        seen.update(new)
        waiting += new
    return list(found)


def _is_end_of_loop(node: Node) -> bool:
    pred = node.inputs[1].node
    return pred is not None and isinstance(pred.op, LoopCond)


def _line(switch: Operation, index: int) -> str:
    made = where(switch)["origin"]
    place = f", made in {made}" if made else ""
    pred = f'"{switch.inputs[1].name}" is {bool(index)}'
    return f'follows from "{switch.name}:{index}", which has a value where {pred}{place}'


__all__ = ["dead_fetch"]
