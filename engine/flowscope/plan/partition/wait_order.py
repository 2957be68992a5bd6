"""Wait order: partitions never wait for each other in a circle.

A step goes on as long as its waits have an order. There are two kinds of waiting code.

*In place*: a partition is one function, and its thread stands at a Recv until the value is there.
Each node waits for all nodes before it in its partition, and each Recv for its Send. All partitions
are projections of one program; a Send stands where its value is made, before the Recv. So the order
of that program is one that all waits respect. `waits_in_circle` proves it per plan: it passes the
Sends and Recvs of all partitions, those of each branch, and one iteration of each loop. The later
iterations repeat it, each behind the one before.

*By units* (`plan.executables.region_formation`): where something else than a Recv may wait - a
queue, a lock, a Python function - what blocks is a unit by itself, and the machine runs a region
once all that it takes is there. So a region waits for what any of its nodes waits for. This adds
no circle:

1. All nodes of a region depend on the same *sources*. These are the units that wait, and what comes
   out of branches and loops.
2. A way out of a region and back into it, over any partitions, leads through a source: what stands
   alone in the region's place is one, and other places are left through Merges and Exits only.
3. Take a circle of regions, and the last source on each of its ways from one region into the next.
   By 1 the node at which the circle leaves a region depends on the source through which the circle
   came in. So each source depends on the one before it: then the program has a circle by itself.
4. It has none: data, control inputs, accesses to state and the waits of update groups point
   backwards in the program's order, and a Send stands before its Recv.

`unit_circle` looks for a circle of units over all partitions. The verifier of the tests calls it
for every plan; by the above it never finds one, and takes as long as forming the units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.executables.region_formation import formed
from flowscope.plan.ir.crossings import has_waits
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.program import Node, Program, is_back_edge
from flowscope.plan.passes.lower import lower


def waits_in_circle(programs: Sequence[Program]) -> tuple[str, ...]:
    """Returns the keys of Recvs that would wait in place for ever; () if there are none.

    What none of the programs sends comes from elsewhere, and is taken to be there. Linear in the
    nodes.
    """
    events = [_crossings(program) for program in programs]
    missing = {key for part in events for key, is_send in part if is_send}
    waiting: dict[str, Iterator[tuple[str, bool]]] = {}
    ready = [iter(part) for part in events]
    while ready:
        part = ready.pop()
        for key, is_send in part:
            if not is_send and key in missing:
                waiting[key] = part
                break
            if is_send:
                missing.discard(key)
                if key in waiting:
                    ready.append(waiting.pop(key))
    return tuple(waiting)


def _crossings(program: Program) -> list[tuple[str, bool]]:
    """Returns the keys of what a program sends and receives in its order; whether it sends."""
    ops = [n.op for n in program.walk() if isinstance(n.op, Send | Recv)]
    return [(op.key, isinstance(op, Send)) for op in ops if isinstance(op, Send | Recv)]


def unit_circle(programs: Sequence[Program], by_regions: bool) -> list[Node]:
    """Returns the first nodes of units that wait for each other in a circle; [] if there are none.

    Args:
        programs: The programs of all partitions of a plan.
        by_regions: Whether units are regions; else each node is one.
    """
    units = [unit for program in programs for unit in _units(program, by_regions)]
    unit_of = {node: unit[0] for unit in units for node in unit}
    sends = {n.op.key: n for n in unit_of if isinstance(n.op, Send)}
    waits: dict[Node, set[Node]] = {}
    after: dict[Node, list[Node]] = {}
    for unit in units:
        before = {unit_of[n] for node in unit for n in _before(node, sends) if n in unit_of}
        waits[unit[0]] = before - {unit[0]}
        for one in waits[unit[0]]:
            after.setdefault(one, []).append(unit[0])
    ready = [first for first, before in waits.items() if not before]
    while ready:
        done = ready.pop()
        del waits[done]
        for first in after.get(done, ()):
            waits[first].discard(done)
            if not waits[first]:
                ready.append(first)
    return list(waits)


def _units(program: Program, by_regions: bool) -> list[list[Node]]:
    if not by_regions:
        return [[n] for n in lower(program).program.nodes if not is_ambient(n)]
    alone, regions = formed(lower(program, has_waits))
    return [*([n] for n in alone), *regions]


def _before(node: Node, sends: Mapping[str, Node]) -> Iterator[Node]:
    """Yields what a node of a lowered program waits for."""
    yield from (v.node for v in node.inputs if v.node is not None and not is_back_edge(v, node))
    yield from node.control
    if isinstance(node.op, Recv) and node.op.key in sends:
        yield sends[node.op.key]


__all__ = ["unit_circle", "waits_in_circle"]
