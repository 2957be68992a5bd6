"""Executions: what the executor runs in place of one generated function.

In tokens mode that is any program, one operation at a time; in all modes it is a program in which
something may wait for others, or that has primitives made by hand.

Where nothing has to wait in the end, the executor is not needed: in compiled mode a program in
which something blocks is also one function, which is tried first. See
`flowscope.plan.executables.optimistic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flowscope.graph.operation import Operation
from flowscope.plan.codegen.code import Code
from flowscope.plan.executables.optimistic import can_run_optimistically
from flowscope.plan.executables.region_formation import Write, cut
from flowscope.plan.executables.units import PRIMITIVES, UnitBody, constants, single_bodies
from flowscope.plan.ir.crossings import has_waits
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Program, Value
from flowscope.plan.passes.lower import Lowered, lower
from flowscope.plan.passes.regions import Region


@dataclass(frozen=True, eq=False)
class Execution:
    """What the executor needs of a plan.

    Attributes:
        region: What the program takes and gives.
        lowered: The lowered program.
        bodies: Its units.
        constants: The values of its constants.
        code: What is tried first; None for nothing.
        operations: The operations that nodes come from, by id.
    """

    region: Region
    lowered: Lowered
    bodies: tuple[UnitBody, ...]
    constants: dict[Value, Any]
    code: Code | None = None
    operations: Mapping[int, Operation] = field(default_factory=dict)


def is_executed(program: Program) -> bool:
    """Whether a program can only be run by the executor, whatever the mode."""
    return any(n.op.is_blocking or n.op.type in PRIMITIVES for n in program.walk())


def execution(
    region: Region,
    modules: Modules,
    write: Write | None,
    write_optimistic: Write | None = None,
    operations: Mapping[int, Operation] | None = None,
) -> Execution:
    """A program in the form in which the executor runs it.

    Args:
        region: The program's nodes, with what it takes and gives.
        modules: The array modules of its nodes.
        write: Writes the code of what runs without waiting; None where operations run one by one.
            With primitives made by hand they always do.
        write_optimistic: Writes the code of the whole program, which is left where something waits.
    """
    code: Code | None = None
    program = Program(region.nodes, region.inputs, region.outputs)
    if write is not None and not any(n.op.type in PRIMITIVES for n in program.walk()):
        lowered = lower(program, has_waits)
        if write_optimistic is not None and can_run_optimistically(program, lowered):
            code = write_optimistic(region)
        bodies = cut(lowered, write, modules, code is not None)
    else:
        lowered = lower(program)
        bodies = single_bodies(lowered.program, modules)
    return Execution(
        region, lowered, bodies, constants(lowered.program.nodes, modules), code, operations or {}
    )


__all__ = ["Execution", "execution", "is_executed"]
