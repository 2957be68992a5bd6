"""Replanning: what a plan becomes when operations ask for other devices, made of the plan before.

What the passes before `place` make does not depend on the devices that operations ask for, but for
two things: equal operations are merged where they ask for the same one, and the bodies of functions
ask for what their calls ask for. So the program before `place` stays what it is, if each operation
that was moved

- stands for itself: one node has come from it, which has come from nothing else;
- has no equal: no other node computes the same of the same values, whatever device it asks for;
- is in no call and no state goes by it: variables are merged and ordered by their versions.

Then the operations are placed anew, and only the passes behind that run. Otherwise the whole plan
is made anew; both give the same program.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.rewriting import ProgramEdits
from flowscope.plan.passes.place import place
from flowscope.plan.pipeline import PlanRequest, after_placement


@frozen
class Before:
    """What is used of the plan before.

    Attributes:
        placed: Its program after the pass `place`.
        sources: The programs that were made of the graph, by the names of their stages.
        operations: The operations that it was made from, by id.
        moved: What the moved ones of these ask for now, by their ids; others are as they were.
    """

    placed: Program
    sources: tuple[tuple[str, Program], ...]
    operations: Mapping[int, Operation]
    moved: Mapping[int, str]


@frozen
class Replanned:
    """What has become of it.

    Attributes:
        program: The program after the last pass.
        placed: The program after the pass `place`.
        sources: As before, with what moved operations ask for.
    """

    program: Program
    placed: Program
    sources: tuple[tuple[str, Program], ...]


def replanned(before: Before, request: PlanRequest) -> Replanned | None:
    """The plan of a request from an earlier one; None if all passes have to run."""
    if request.by_cost is not None or request.wishes or before.placed.notes:
        return None
    nodes: dict[int, list[Node]] = {}
    for node in before.placed.walk():
        for origin in node.origins:
            nodes.setdefault(origin.id, []).append(node)
    moved = before.moved
    if not all(_stands_alone(before, i, nodes.get(i, [])) for i in moved):
        return None
    placed = place(before.placed, request.devices, request.soft_placement, None, moved)
    sources = tuple([(name, _asking(given, moved)) for name, given in before.sources])
    return Replanned(after_placement(placed, request), placed, sources)


def _stands_alone(before: Before, moved: int, nodes: list[Node]) -> bool:
    """Whether of the nodes that came from an operation one stands for it, and for it alone."""
    if len(nodes) != 1 or len(nodes[0].origins) != 1:
        return False
    (node,) = nodes
    operation = before.operations[moved]
    is_plain = node.op is operation.definition and not (node.path or node.blocks)
    if not is_plain or node.op.is_handle or node.reads_state or node.writes_state:
        return False
    return not any(_is_equal(node, other) for other in before.placed.walk())


def _is_equal(node: Node, other: Node) -> bool:
    """Whether another node computes the same."""
    if node is other or type(node.op) is not type(other.op):
        return False
    return node.inputs == other.inputs and bool(node.op == other.op)


def _asking(program: Program, moved: Mapping[int, str]) -> Program:
    """Returns a program in which the nodes of moved operations ask for their devices."""
    edits = ProgramEdits()
    for node in program.walk():
        if node.origins and node.origins[0].id in moved:
            edits.change_all([node], {"requested": moved[node.origins[0].id]})
    return edits.applied(program)


__all__ = ["Before", "Replanned", "replanned"]
