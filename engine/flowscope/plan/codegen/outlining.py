"""Blocks that stand too deep in others for one Python function: they get a function of their own.

Python's compiler takes 20 loops in each other and 100 locations of indentation. A branch or loop
further in is a region of its own, whose function the function around calls with all that it takes.
Where that is left at a safepoint, the one around is left as well, with what both know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowscope.graph.values.dtypes import resource
from flowscope.plan.analysis.locations import nested_generator
from flowscope.plan.codegen.control_flow import is_safe_inside, number_type
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.passes.regions import Region

if TYPE_CHECKING:
    from flowscope.plan.codegen.function import BlockScope, Writer

#: Loops in each other, and locations of indentation, from which on a block has its own function.
MOST_LOOPS, MOST_LEVELS = 15, 60


def is_outlined(writer: Writer, node: Node) -> bool:
    """Whether a node with blocks gets a function of its own at the place that is being written."""
    loops = sum(f.loop is not None for f in writer.scopes)
    return writer.depth > MOST_LEVELS or (loops >= MOST_LOOPS and isinstance(node, LoopNode))


def write_outlined(writer: Writer, scope: BlockScope, node: Node, name: str) -> None:
    """Writes a call of a node's own function."""
    taken = tuple(dict.fromkeys(v for v in node.inputs if v.spec.dtype is not resource))
    given = tuple([v for v in node.outputs if v in scope.last_use])
    region = Region((node,), taken, given, (False,) * len(given), writer.region.handles)
    inner = type(writer)(
        region,
        writer.modules,
        nested_generator(writer.namespace["generator"]),
        writer.inner_deopt,
        {},
        writer.parallel_for,
        writer.inner_deopt,
        is_safe_inside(writer, scope),
        writer.probe,
        is_outlined=True,
    )
    inner.costs, inner.native_compiler = writer.costs, writer.native_compiler
    code = inner.code()
    writer.namespace[name] = code.function
    arguments = "".join(f"{writer.boxed(v)}, " for v in taken)
    point = writer.point(False)
    writer.emit(
        f"is_left, done = {point}.enter({name}, gate, run, resources, locals(), ({arguments}))",
        node,
    )
    writer.outlined[len(writer.lines)] = code
    writer.emit("if is_left: return done", node)
    released = writer.release(scope, node)
    targets = [writer.slot(scope.wishes.get(v)) for v in given]
    writer.place.assign(given, targets)
    if targets:
        writer.emit(f"{', '.join(targets)}, = done", node)
    for value, target in zip(given, targets, strict=True):
        if value in writer.unboxed.values:
            writer.emit(f"{target} = {number_type(value)}({target})", node)
    writer.emit(f"done = None{writer.clear(scope, released)}")


__all__ = ["is_outlined", "write_outlined"]
