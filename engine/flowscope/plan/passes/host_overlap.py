"""Overlap: Python functions of one step that do not depend on each other may wait for each other.

One function is called as it is, on the step's own thread. Where there are several that could run at
the same time, each becomes an operation that may wait (`HostFunc`): it is tried in the order of the
program, and while one has not returned the others go on. That holds in branches and loops, and for
branches and loops with functions in them.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.ops.host.py_functions import HostFunc, is_function
from flowscope.plan.ir.program import Node, Program, is_back_edge
from flowscope.plan.ir.rewriting import changed


def overlap(program: Program) -> Program:
    """Returns the program, in which Python functions that may overlap are operations that wait."""
    apart = dict.fromkeys(_apart(program.nodes))
    return changed(program, {n: {"op": HostFunc(n.op)} for n in apart})


def _apart(nodes: Sequence[Node]) -> list[Node]:
    """Returns the functions, in blocks too, that may overlap with another one."""
    calls = [n for n in nodes if _functions(n)]
    found: list[Node] = []
    for node in _independent(nodes, calls) if len(calls) > 1 else ():
        found += _functions(node)
    for node in calls:
        for block in node.blocks:
            found += _apart(block.nodes)
    return found


def _functions(node: Node) -> list[Node]:
    """Returns the functions that a node calls."""
    if node.blocks:
        return [n for block in node.blocks for n in block.walk() if is_function(n.op)]
    return [node] if is_function(node.op) else []


def _independent(nodes: Sequence[Node], functions: Sequence[Node]) -> list[Node]:
    """Returns the functions for which there is another one that neither needs nor is needed."""
    position = {n: 1 << i for i, n in enumerate(functions)}
    needs: dict[Node, int] = {}
    for node in nodes:
        before = [v.node for v in node.inputs if v.node is not None and not is_back_edge(v, node)]
        found = 0
        for b in (*before, *node.control):
            found |= needs.get(b, 0) | position.get(b, 0)
        needs[node] = found
    apart: dict[Node, None] = {}
    for i, a in enumerate(functions):
        for b in functions[i + 1 :]:
            if not (needs[b] & position[a] or needs[a] & position[b]):
                apart.update({a: None, b: None})
    return list(apart)


__all__ = ["overlap"]
