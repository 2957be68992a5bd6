"""The program as cut, as views see it: a lane per device, and what goes from one to another.

Each lane is the part of the latest plan that its device has, lowered in full, with a Send where a
value leaves it and a Recv where one comes: an edge leads from each Send to its Recv.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.live.graphs.lowered import LoweredNames, Teller
from flowscope.live.protocol.schema import Node
from flowscope.plan.ir.memories import short_name
from flowscope.plan.passes.lower import lower
from flowscope.plan.passes.partition import project
from flowscope.plan.plan import Plan


def partition_nodes(plan: Plan, numbers: dict[str, int] | None = None) -> tuple[Node, ...]:
    """Returns the nodes of all devices' parts of a plan's program.

    Args:
        plan: The plan.
        numbers: Numbers of nodes that are no operation of the user's, by name; new ones are added.
    """
    names = LoweredNames({} if numbers is None else numbers)
    tellers = []
    for part in sorted(project(plan.program), key=lambda p: p.device):
        program = lower(part.program).program
        fed = {value: plan.request.feeds[value.index].op for value in program.feeds}
        lane = short_name(part.device)
        tellers.append(Teller(program.nodes, fed, names, plan.operations, lane))
    sends = {key: number for t in tellers for key, number in t.sends.items()}
    return tuple(_in_order([list(t.nodes(sends)) for t in tellers]))


def _in_order(lanes: Sequence[list[Node]]) -> list[Node]:
    """Returns the nodes of all lanes in one order, in which a Send stands before its Recv.

    There is one: all parts of a program are subsequences of one order.
    """
    told: list[Node] = []
    known: set[int] = set()
    waiting = [list(reversed(lane)) for lane in lanes]
    while any(waiting):
        ready = [w for w in waiting if w and _is_there(w[-1], known)]
        for lane in ready or [w for w in waiting if w][:1]:
            while lane and (not ready or _is_there(lane[-1], known)):
                told.append(lane.pop())
                known.add(told[-1].id)
                if not ready:
                    break
    return told


def _is_there(node: Node, known: set[int]) -> bool:
    return node.type != "Recv" or all(number in known for number, _ in node.inputs)


__all__ = ["partition_nodes"]
