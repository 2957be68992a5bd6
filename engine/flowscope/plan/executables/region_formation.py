"""Cut: a program in which something blocks becomes regions, which run while something else waits.

Nodes of one place that wait for the same sources - operations that block or send, and what comes
out of a branch or around a loop - are one region and become one function. Joining them delays
nobody: they could not have begun before. Regions cannot wait for each other in a circle, in this
partition or over several: see `plan.partition.wait_order`. Branches and loops in which nothing
blocks stay inside.

Where the program can be tried as one function first (see `plan.executables.optimistic`), a region
lies between two operations that block, in the order of the program: when the function is left at
one of them, each region has run or has not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from flowscope.ops.core.send_recv import Send
from flowscope.plan.analysis.locations import RegionRun
from flowscope.plan.codegen.code import Code, CodeAtNeed
from flowscope.plan.executables.units import PRIMITIVES, UnitBody, body_of
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.passes.lower import Lowered
from flowscope.plan.passes.regions import Region

#: Writes the code of a region, whose `run` is a `RegionRun`.
Write = Callable[[Region], Code]
#: What comes out of a branch or around a loop. Behind it, it stands for all that it waits for.
_RESULTS = frozenset(("Merge", "Exit", "NextIteration"))
#: Units that are no sources: what takes their values stands in another place than they do.
_DOORS = frozenset(("Switch", "Enter", "LoopCond"))
#: The driver counts the update groups that have begun.
_ALONE = PRIMITIVES | {"BeginUpdate", "EndUpdate"}


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
    alone, regions = formed(lowered, is_optimistic)
    used = _users(lowered.program)
    bodies = [body_of(node, modules) for node in alone]
    bodies += [_region_body(nodes, used, write, modules) for nodes in regions]
    return tuple(bodies)


def formed(lowered: Lowered, is_optimistic: bool = False) -> tuple[list[Node], list[list[Node]]]:
    """Returns the nodes that stand alone, and the nodes of each region in their order.

    Each source that somebody waits for is a bit, so what a node waits for is a number. It takes
    memory for as many bits per node as there are sources, and is linear in the nodes otherwise.
    """
    alone: list[Node] = []
    regions: dict[tuple[int, int, int], list[Node]] = {}
    waits: dict[Node, int] = {}
    source, passed = 1, 0
    nodes = [n for n in lowered.program.nodes if not is_ambient(n)]
    awaited = {before for n in nodes if n.op.type not in _RESULTS for before in _before(n)}
    for node in nodes:
        sources = 0
        for before in _before(node) if node.op.type not in _RESULTS else ():
            sources |= waits.get(before, 0)
        if stands_alone(node):
            alone.append(node)
            passed += is_optimistic and node.op.is_blocking
            if node in awaited and node.op.type not in _DOORS:
                sources |= source
                source <<= 1
        else:
            regions.setdefault((lowered.places[node], sources, passed), []).append(node)
        waits[node] = sources
    return alone, list(regions.values())


def stands_alone(node: Node) -> bool:
    """Whether a node is a unit by itself: what waits, and what the executor has to see."""
    op = node.op
    return op.type in _ALONE or op.is_blocking or isinstance(op, Send)


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


__all__ = ["Write", "cut", "formed", "region_generator", "stands_alone"]
