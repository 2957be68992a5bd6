"""The passes: which there are, in what order they run, and why each is right.

One row per pass. What runs a plan's passes, what `Plan.text` can show and what ARCHITECTURE.md says
of them follow from this table. A pass is a function of a program alone: it returns another one, or
the same where it finds nothing to do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from flowscope.control.dynamic.primitives import Enter
from flowscope.graph.current_step import check_preparation
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.plan.analysis.updates import join
from flowscope.plan.executables.execution import is_executed
from flowscope.plan.ir.origins import PlannedOperations
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.partition.partitions import Mode
from flowscope.plan.passes.dce import eliminate_dead_code
from flowscope.plan.passes.host_overlap import overlap
from flowscope.plan.passes.inline import inline
from flowscope.plan.passes.licm import hoist_loop_invariants
from flowscope.plan.passes.matmul_fusion import fuse_matmuls
from flowscope.plan.passes.matmul_slicing import slice_matmuls
from flowscope.plan.passes.order import order
from flowscope.plan.passes.place import place
from flowscope.plan.passes.prune import prune
from flowscope.plan.passes.simplify import simplify
from flowscope.plan.passes.transfers import insert_transfers
from flowscope.plan.passes.update_groups import make_groups_whole

if TYPE_CHECKING:
    from flowscope.plan.placement.by_cost import ByCost


class PlanRequest(Protocol):
    """What passes read of a request; see `flowscope.plan.plan.Request`."""

    @property
    def fetches(self) -> Sequence[Tensor]: ...  # noqa: D102
    @property
    def targets(self) -> Sequence[Operation]: ...  # noqa: D102
    @property
    def feeds(self) -> Sequence[Tensor]: ...  # noqa: D102
    @property
    def mode(self) -> Mode: ...  # noqa: D102
    @property
    def devices(self) -> Sequence[DeviceSpec]: ...  # noqa: D102
    @property
    def soft_placement(self) -> bool: ...  # noqa: D102
    @property
    def by_cost(self) -> ByCost | None: ...  # noqa: D102
    @property
    def wishes(self) -> Mapping[int, str]: ...  # noqa: D102
    @property
    def read(self) -> type: ...  # noqa: D102
    @property
    def merges(self) -> bool: ...  # noqa: D102
    @property
    def folds(self) -> bool: ...  # noqa: D102
    @property
    def overlaps(self) -> bool: ...  # noqa: D102
    @property
    def is_apart(self) -> bool: ...  # noqa: D102
    @property
    def as_bfloat16(self) -> bool: ...  # noqa: D102
    @property
    def late_receives(self) -> bool: ...  # noqa: D102


@frozen
class Pass:
    """A row of the table.

    Attributes:
        name: What `Plan.text` calls the program after it.
        run: The function: (program, request) -> program.
        does: What it does, in one sentence.
        because: The property that makes it right, in one sentence.
        modes: The modes in which it runs.
        is_wanted: Whether a request in these modes wants it.
    """

    name: str
    run: Callable[[Program, PlanRequest], Program]
    does: str
    because: str
    modes: tuple[Mode, ...] = ("compiled", "op", "tokens")
    is_wanted: Callable[[PlanRequest], bool] = lambda request: True

    def runs_for(self, request: PlanRequest) -> bool:
        """Whether a request's program goes through it."""
        return request.mode in self.modes and self.is_wanted(request)


def _simplified(program: Program, request: PlanRequest) -> Program:
    return simplify(program, request.merges, request.folds)


def _groups_made_whole(program: Program, request: PlanRequest) -> Program:
    has_waits = is_executed(program)
    by_tokens = request.mode == "tokens" or (request.mode == "op" and has_waits)
    return make_groups_whole(program, by_tokens, request.is_apart, has_waits)


def _opened(program: Program) -> Program:
    handles = [v.spec.variable for n in program.nodes if n.op.is_handle for v in n.outputs]
    if all(variable is None or variable.shape is not None for variable in handles):
        return program
    from flowscope.plan.passes.open_shapes import open_shapes  # few variables have open shapes

    return open_shapes(program)


def _lifted(program: Program) -> Program:
    if not any(type(n.op) is Enter for n in program.walk()):
        return program
    from flowscope.plan.passes.lift import lift_loops  # few programs have loops by hand

    return lift_loops(program)


def _expanded(program: Program) -> Program:
    if not any(n.op.is_expanded for n in program.walk()):
        return program
    from flowscope.plan.passes.collectives import expand_collectives  # few programs have them

    return expand_collectives(program)


def _late(program: Program) -> Program:
    from flowscope.plan.passes.late_receives import delay_receives  # few sessions ask for it

    return delay_receives(program)


def _dce(name: str, does: str) -> Pass:
    return Pass(
        name,
        lambda program, _: eliminate_dead_code(program),
        does,
        "no fetch, target, effect, condition or next value of a living variable reads what goes",
    )


#: The passes over programs, in their order.
PASSES: tuple[Pass, ...] = (
    Pass(
        "order",
        lambda program, _: order(program),
        "puts nodes behind what they need, and accesses to one variable in program order",
        "of all orders that respect data and control it takes the one nearest to program order",
    ),
    Pass(
        "open_shapes",
        lambda program, _: _opened(program),
        "forgets static shapes that follow from variables which may have got another shape",
        "a spec that says less is right wherever one that says more is",
    ),
    Pass(
        "lift",
        lambda program, _: _lifted(program),
        "makes loops of those that were made by hand of primitives",
        "a variable is a Merge, what follows from the true side of its Switch runs in each "
        "iteration, and what does not follow from it once more",
        ("compiled",),
    ),
    _dce("dce", "branches and loops keep what somebody uses of their results"),
    Pass(
        "licm",
        lambda program, _: hoist_loop_invariants(program),
        "reads variables before the loops whose bodies read them",
        "a loop without effects reads in every iteration what the variable is where it stands",
    ),
    Pass(
        "matmul_slicing",
        lambda program, _: slice_matmuls(program),
        "computes only the columns that are used of a matrix product",
        "column j of a @ b depends on a and on column j of b alone",
    ),
    Pass(
        "matmul_fusion",
        lambda program, _: fuse_matmuls(program),
        "makes one product of the many that a loop or a sum adds up",
        "the sum of transpose(x[t]) @ y[t] is transpose(x) @ y of all rows, "
        "and one transpose serves all products that take it",
    ),
    _dce("dce_matmuls", "leaves out the terms and lists that nothing reads any more"),
    Pass(
        "simplify",
        _simplified,
        "merges equal nodes, folds constants, passes over what hands its input on",
        "pure nodes of one op, the same inputs and the same version of state have the same bits",
        ("compiled",),
        lambda request: request.merges or request.folds,
    ),
    _dce("dce_simplified", "leaves out the results that were merged with others"),
    Pass(
        "collectives",
        lambda program, _: _expanded(program),
        "puts pieces on the devices of the ranks in the place of collectives",
        "the pieces reduce in the order of the ranks, whatever device or process each is on",
    ),
    Pass(
        "place",
        lambda program, request: place(
            program, request.devices, request.soft_placement, request.by_cost, request.wishes
        ),
        "gives every node a device and a reason",
        "nodes that touch one variable or are colocated share a device that has all their kernels",
    ),
    Pass(
        "transfers",
        lambda program, request: insert_transfers(program, request.as_bfloat16),
        "brings values to the devices and memories that use them: each once, as late as it can be",
        "a transfer gives the bits that it takes, and stands behind what makes them",
    ),
    Pass(
        "late_receives",
        lambda program, _: _late(program),
        "has what comes from another device wait until its use is near",
        "what a transfer waits for stands before it in its block",
        is_wanted=lambda request: request.late_receives,
    ),
    Pass(
        "host_overlap",
        lambda program, _: overlap(program),
        "lets Python functions that do not depend on each other wait for each other",
        "two functions overlap only if neither needs the other by any path of data or control",
        is_wanted=lambda request: request.overlaps,
    ),
    Pass(
        "update_groups",
        _groups_made_whole,
        "puts the writes of an update group side by side, and checks them before the first of them "
        "or keeps what was before",
        "between the first and the last write of a group nothing runs that can fail",
    ),
)


def sources(request: PlanRequest, operations: PlannedOperations) -> Iterator[tuple[str, Program]]:
    """Yields the programs that are made of the graph: after `prune` and `inline`.

    Args:
        request: What is wanted.
        operations: Notes the operations that nodes come from.
    """
    program = prune(request.fetches, request.targets, request.feeds, request.read, operations)
    yield "prune", program
    check_preparation()
    yield "inline", inlined(program, request, operations)


def inlined(program: Program, request: PlanRequest, operations: PlannedOperations) -> Program:
    """The program without calls; functions that run apart are planned.

    Args:
        program: The program.
        request: What is wanted.
        operations: Notes the operations that nodes come from.
    """

    def plan_function(node: Node) -> Any:
        # Few programs have such functions.
        from flowscope.plan.partition.element_functions import call_of, with_program

        cpus = [d for d in request.devices if d.device_type == "CPU"]
        apart: PlanRequest = dataclasses.replace(
            request,  # type: ignore[type-var]
            devices=cpus[:1],
            soft_placement=True,
            by_cost=None,
            wishes={},
            overlaps=False,
            is_apart=False,
        )
        made = inlined(call_of(node), apart, operations)
        for _, after in stages(made, apart):
            made = after
        return with_program(node, made, request.mode)

    return join(inline(program, request.read, operations, plan_function))


def stages(
    program: Program, request: PlanRequest, placed: Program | None = None
) -> Iterator[tuple[str, Program]]:
    """Yields the program after each pass, by the pass's name.

    Args:
        program: The last of `sources`.
        request: What it was made for.
        placed: The program as it was placed before: it is not placed anew then.
    """
    for one in PASSES:
        if one.runs_for(request):
            check_preparation()
            is_placed = one.name == "place" and placed is not None
            program = placed if is_placed and placed else one.run(program, request)
            yield one.name, program


def after_placement(placed: Program, request: PlanRequest) -> Program:
    """The program after the passes behind `place`."""
    first = next(i for i, one in enumerate(PASSES) if one.name == "place") + 1
    for one in PASSES[first:]:
        if one.runs_for(request):
            check_preparation()
            placed = one.run(placed, request)
    return placed


__all__ = ["PASSES", "Pass", "PlanRequest", "after_placement", "inlined", "sources", "stages"]
