"""Cut: a program in which something blocks becomes regions, which run while something else waits.

Nodes of one place that wait for the same sources - blocking operations, and what comes out of a
branch or around a loop - are one region and become one function. Joining them delays nobody: they
could not have begun before. Regions cannot wait for each other in a circle, for what a node waits
for includes what its inputs wait for. Branches and loops in which nothing blocks stay inside.

Writes of one update group wait for what any of them waits for, and so stay together.

Where the program can be tried as one function first (see `flowscope.plan.optimistic`), a region
lies
between two operations that block, in the order of the program: when the function is left at one of
them, each region has run or has not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from flowscope.ops.core.send_recv import Send
from flowscope.plan.codegen.code import Code, CodeAtNeed
from flowscope.plan.locations import RegionRun
from flowscope.plan.lowering import is_ambient
from flowscope.plan.modules import Modules
from flowscope.plan.passes.lower import Lowered
from flowscope.plan.passes.regions import Region
from flowscope.plan.program import Node, Program, Value
from flowscope.plan.units import PRIMITIVES, UnitBody, body_of

#: Writes the code of a region, whose `run` is a `RegionRun`.
Write = Callable[[Region], Code]
#: Primitives behind which a region begins: what comes out of them comes when it comes.
_SOURCES = frozenset(("Merge", "Exit", "NextIteration"))


def cut(
    lowered: Lowered, write: Write, modules: Modules, is_optimistic: bool = False
) -> tuple[UnitBody, ...]:
    """Returns the bodies of a lowered program.

    Args:
        lowered: The program; branches and loops in which nothing blocks may be left in it.
        write: Writes the code of a region.
        modules: The array modules of its nodes.
        is_optimistic: Whether the program is tried as one function first.
    """
    program = lowered.program
    waits = _waits(lowered)
    passed = 0
    groups: dict[Any, list[Node]] = {}
    bodies: list[UnitBody] = []
    for node in program.nodes:
        if is_ambient(node):
            continue
        if _stands_alone(node):
            bodies.append(body_of(node, modules))
            passed += is_optimistic and node.op.is_blocking
        else:
            groups.setdefault((lowered.places[node], waits[node], passed), []).append(node)
    used = _users(program)
    made = [_region_body(nodes, used, write, modules) for nodes in groups.values()]
    return (*bodies, *made)


def _stands_alone(node: Node) -> bool:
    return node.op.type in PRIMITIVES or node.op.is_blocking or isinstance(node.op, Send)


def _waits(lowered: Lowered) -> dict[Node, frozenset[Node]]:
    """Returns what each node waits for, of what comes when it comes."""
    nodes = [n for n in lowered.program.nodes if not is_ambient(n)]
    groups: dict[Any, list[Node]] = {}
    for node in nodes:
        if node.writes_state and node.update_group:
            groups.setdefault((node.update_group, lowered.places[node]), []).append(node)
    together: dict[Node, frozenset[Node]] = {}
    while True:
        waits: dict[Node, frozenset[Node]] = {}
        for node in nodes:
            if node.op.type in _SOURCES:
                waits[node] = frozenset([node])
                continue
            before = [waits[b] for b in _before(node) if b in waits]
            own = [node] if node.op.is_blocking else []
            waits[node] = together.get(node, frozenset()).union(own, *before)
        found = {n: frozenset().union(*[waits[m] for m in g]) for g in groups.values() for n in g}
        if found == together:
            return waits
        together = found


def _before(node: Node) -> Iterable[Node]:
    return [*(v.node for v in node.inputs if v.node is not None), *node.control]


def _users(program: Program) -> dict[Value, set[Node | None]]:
    """Returns who takes each value; None stands for the fetches."""
    used: dict[Value, set[Node | None]] = {}
    for node in program.nodes:
        for v in node.inputs:
            used.setdefault(v, set()).add(node)
    for v in program.fetches:
        used.setdefault(v, set()).add(None)
    return used


def _region_body(
    nodes: list[Node], used: dict[Value, set[Node | None]], write: Write, modules: Modules
) -> UnitBody:
    if len(nodes) == 1 and not nodes[0].blocks:
        return body_of(nodes[0], modules)  # its kernel is quicker than a function of one line
    own: set[Node | None] = {*nodes}
    taken = dict.fromkeys(v for n in nodes for v in n.inputs if v.node not in own)
    ambient = [v.node for v in taken if v.node is not None and is_ambient(v.node)]
    inputs = tuple([v for v in taken if not is_ambient(v.node)])
    outputs = tuple([v for n in nodes for v in n.outputs if used.get(v, set()) - own])
    handles = tuple(dict.fromkeys(n for n in ambient if n.op.is_handle))
    whole = (*dict.fromkeys(ambient), *nodes)
    region = Region(whole, inputs, outputs, (False,) * len(outputs), handles)
    code = CodeAtNeed(functools.partial(write, region))
    return UnitBody(tuple(nodes), inputs, outputs, code.function, code, handles)


def region_generator(generator: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the generator for regions: their `run` tells the iterations around."""

    def made(run: RegionRun, seed: int, *path: int) -> Any:
        counts = (path[0], *run.iterations, *path[1:]) if path else ()
        return generator(run.run, seed, *counts)

    return made


__all__ = ["Write", "cut", "region_generator"]
