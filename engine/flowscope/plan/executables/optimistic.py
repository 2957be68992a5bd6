"""Optimistic execution: what blocks is one function first, as if nothing had to wait.

Each operation that blocks is an attempt there. If one fails, the function returns where it is and
what is alive (`DeoptState`), as at a safepoint, and the executor goes on from there; see
`flowscope.executor.osr`. So whoever need not wait pays for no tokens.
"""

from __future__ import annotations

from typing import Any

from flowscope.plan.analysis.locations import DeoptState
from flowscope.plan.analysis.updates import unsafe_inside, unsafe_positions
from flowscope.plan.ir.crossings import is_crossing
from flowscope.plan.ir.program import Program
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.passes.lower import Lowered

#: A program with more operations that block is not tried: at each of them all that is alive is
#: written down, so the code would grow with their square.
MOST = 100


def to_executor(
    gate: Any, run: Any, resources: tuple[Any, ...], state: DeoptState
) -> DeoptState | None:
    """Deoptimizes to the executor; see `flowscope.plan.codegen.safepoints.Deopt`.

    Returns:
        None inside of a region, which the executor runs as a whole: the code is left after it.
    """
    location = state.locations[-1]
    node = location.loop.node if location.part == "back" and location.loop else None
    if node is not None:
        return state if any(n.op.is_blocking for b in node.blocks for n in b.walk()) else None
    nodes = location.program.nodes[location.index : location.index + 1]
    return state if any(n.op.is_blocking for n in nodes) else None


def can_run_optimistically(program: Program, lowered: Lowered) -> bool:
    """Whether the executor can go on wherever the function of a program may be left.

    Not where more than `MOST` operations block; where something is held until the step ends, which
    nobody would give back; where a loop in which something blocks keeps values for a gradient, or
    has a condition that must not run once its count is reached; where something blocks between the
    writes of one update group; or where values are sent and received: the machine does so by
    iterations, code in order.
    """
    walked = list(program.walk())
    if any(is_crossing(n.op) for n in walked):
        return False
    if any(n.op.ends_with_step for n in walked) or sum(n.op.is_blocking for n in walked) > MOST:
        return False
    loops = [made.node for made in lowered.loops.values()]
    if any(_has_lists(n) for n in loops) or not set(lowered.doors) <= {*walked}:
        return False
    return not any(_is_split(p) for p in _programs(program))


def _has_lists(loop: LoopNode) -> bool:
    return bool(loop.taken or loop.kept)


def _programs(program: Program) -> list[Program]:
    return [program, *[b for n in program.walk() for b in n.blocks]]


def _is_split(program: Program) -> bool:
    """Whether something blocks between two writes of one update group."""
    nodes = program.nodes
    unsafe = unsafe_positions(nodes)
    inside = unsafe_inside(nodes)
    return any(
        (i in unsafe and node.op.is_blocking)
        or (
            (i in unsafe or i in inside)
            and any(n.op.is_blocking for b in node.blocks for n in b.walk())
        )
        for i, node in enumerate(nodes)
    )


__all__ = ["can_run_optimistically", "to_executor"]
