"""From (fetches, feeds) to a Plan: the passes in order, and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.operation import Operation, Tensor
from flowscope.plan.code import Code, generate, unsafe_positions
from flowscope.plan.interpret import Interpreter
from flowscope.plan.passes.order import order
from flowscope.plan.passes.place import place
from flowscope.plan.passes.prune import prune
from flowscope.plan.passes.regions import Region, regions
from flowscope.plan.program import Node, Program

#: "compiled": generated code; "op": one operation at a time.
Mode = Literal["compiled", "op"]


@dataclass(frozen=True)
class Plan:
    """How one (fetches, feeds, mode) is run. Immutable, independent of any session's state."""

    program: Program
    region: Region
    #: Runs the region: (gate, run, feeds, resources) -> the fetched values.
    function: Callable[..., tuple[Any, ...]]
    #: None in op mode.
    code: Code | None
    #: Handles of variables that are read before the step writes them.
    required: tuple[Node, ...]
    is_random: bool

    def text(self, stage: Literal["program", "code"] = "program") -> str:
        """Returns the placed program, or the generated code, as text."""
        if stage == "program":
            return self.program.text()
        return self.code.source if self.code is not None else "op mode: no code"


def make_plan(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    *,
    mode: Mode,
    devices: Sequence[DeviceSpec],
    soft_placement: bool,
    xp: Any,
    generator: Callable[[Any, int], Any],
    read: type,
) -> Plan:
    """Returns the plan that computes `fetches` and runs `targets` when `feeds` are given.

    Args:
        mode: How regions are run.
        devices: Full names of the devices, best first.
        soft_placement: Whether impossible device wishes are passed over.
        xp: The devices' array module.
        generator: `generator(run, op_seed)` makes a random generator.
        read: The op that reads a variable.
    """
    if mode not in get_args(Mode):
        raise InvalidArgumentError(f"expected mode to be one of {get_args(Mode)}, got {mode!r}")
    program = place(order(prune(fetches, targets, feeds, read)), devices, soft_placement)
    (region,) = regions(program)
    code = generate(region, xp, generator) if mode == "compiled" else None
    function = (
        code.function
        if code
        else Interpreter(region, xp, generator, unsafe_positions(region.nodes))
    )
    return Plan(
        program=program,
        region=region,
        function=function,
        code=code,
        required=_required(program),
        is_random=any(n.op.is_random for n in program.nodes),
    )


def _required(program: Program) -> tuple[Node, ...]:
    written: set[Node] = set()
    required: dict[Node, None] = {}
    for node in program.nodes:
        for handle in node.handles:
            if node.op.reads_state and handle not in written and not node.op.accepts_empty:
                required[handle] = None
            if node.op.writes_state:
                written.add(handle)
    return tuple(required)
