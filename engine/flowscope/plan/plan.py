"""From (fetches, feeds) to a Plan: the passes in order, and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, get_args

from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.plan.codegen.function import Code, generate, unsafe_positions
from flowscope.plan.codegen.parallel_for import Share
from flowscope.plan.execution import Execution, execution, is_executed
from flowscope.plan.interpret import Interpreter
from flowscope.plan.optimistic import as_left
from flowscope.plan.origins import Operations
from flowscope.plan.passes.dce import trim
from flowscope.plan.passes.host_overlap import overlap
from flowscope.plan.passes.inline import inline
from flowscope.plan.passes.licm import invariants
from flowscope.plan.passes.matmul_fusion import products
from flowscope.plan.passes.matmul_slicing import parts
from flowscope.plan.passes.order import order
from flowscope.plan.passes.place import place
from flowscope.plan.passes.prune import prune
from flowscope.plan.passes.regions import Region, regions
from flowscope.plan.passes.simplify import simplify
from flowscope.plan.passes.update_groups import updates
from flowscope.plan.program import Node, Program
from flowscope.plan.region_formation import inside
from flowscope.plan.saved_for_backward import Kept, kept
from flowscope.plan.stepping import Stepper
from flowscope.plan.updates import join

#: "compiled": generated code; "op": one operation at a time, nothing simplified; "tokens": as
#: tokens arrive, in frames and iterations, nothing simplified.
Mode = Literal["compiled", "op", "tokens"]
#: The passes by name, in their order, and the code.
Stage = Literal[
    "prune",
    "inline",
    "order",
    "products",
    "simplify",
    "place",
    "updates",
    "lower",
    "program",
    "code",
]


class Backend(Protocol):
    """What planning needs to know of a device."""

    @property
    def xp(self) -> Any:
        """The array module that its kernels use."""

    @property
    def share(self) -> Share | None:
        """Has several threads take parts of a kernel; None where one does it all."""

    def active(self) -> AbstractContextManager[Any]:
        """Returns a context in which new arrays of `xp` lie on the device."""


@frozen
class Request:
    """What a plan is made of.

    Attributes:
        fetches: Tensors whose values are wanted.
        targets: Operations that must run.
        feeds: Tensors whose values will be given.
        mode: How regions are run.
        devices: Full names of the devices, best first.
        soft_placement: Whether impossible device wishes are passed over.
        read: The op that reads a variable.
        drive: Returns what runs an `Execution` with an array module, as a plan's function.
        merges: Whether equal operations are merged, in compiled mode.
        folds: Whether constants are folded, in compiled mode.
    """

    fetches: Sequence[Tensor]
    targets: Sequence[Operation]
    feeds: Sequence[Tensor]
    mode: Mode
    devices: Sequence[DeviceSpec]
    soft_placement: bool
    read: type
    drive: Callable[[Execution, Any], Callable[..., tuple[Any, ...]]]
    merges: bool = True
    folds: bool = True

    def stages(self, operations: Operations) -> Iterator[tuple[Stage, Program]]:
        """Yields the program after each pass, by the pass's name.

        A pass may change the nodes of the program before it: look at each as it comes.

        Args:
            operations: Notes the operations that nodes come from.
        """
        program = prune(self.fetches, self.targets, self.feeds, self.read, operations)
        yield "prune", program
        program = join(inline(program, self.read, operations))
        yield "inline", program
        program = trim(order(program))
        yield "order", program
        program = trim(products(parts(invariants(program))))
        yield "products", program
        if self.mode == "compiled" and (self.merges or self.folds):
            program = trim(simplify(program, self.merges, self.folds))
            yield "simplify", program
        program = overlap(place(program, self.devices, self.soft_placement))
        yield "place", program
        runs_alone = self.mode == "op" and is_executed(program)
        yield "updates", updates(program, by_tokens=self.mode == "tokens" or runs_alone)


@frozen
class Plan:
    """How one (fetches, feeds, mode) is run. Immutable, independent of any session's state."""

    request: Request
    program: Program
    region: Region
    #: Runs the region: (gate, run, feeds, resources) -> the fetched values.
    function: Callable[..., tuple[Any, ...]]
    #: The same one operation at a time where somebody steps through it.
    by_op: Callable[..., tuple[Any, ...]]
    #: None where no code runs the whole program.
    code: Code | None
    #: What the executor runs, None where it has nothing to do.
    execution: Execution | None
    #: Handles of variables that are read before the step writes them.
    required: tuple[Node, ...]
    is_random: bool
    #: All operations that it was made from, by id: an edit of one makes it stale.
    operations: Mapping[int, Operation]

    def kept(self, iterations: int | None = None, dimension: int | None = None) -> Kept:
        """Returns what its loops keep for their gradients, in bytes, told before any run.

            print(session.plan(train, [x]).kept(dimension=32))

        Counted are the data of the arrays, exactly where shapes and iterations are known; where a
        branch keeps something, the larger of both. Up to 200 bytes of Python's per value, and what
        is computed with the values, come on top.

        Args:
            iterations: How often loops run for which planning cannot tell.
            dimension: The size of dimensions that are not known, such as a batch's.

        Returns:
            A tuple with one entry per loop: `name`, `iterations`, `tensors`,
            `bytes_per_iteration`, `nbytes`. Its own `nbytes` is the sum.
        """
        return kept(self.program, iterations, dimension)

    def text(self, stage: Stage = "program") -> str:
        """Returns the program as text after a pass, or the generated code.

        Args:
            stage: "prune", "inline", "order", "products", "simplify", "place", "updates": the
                program after this pass, planned again from the graph as it is now; "program": the
                program that is run; "lower": what the executor runs; "code": the generated code.

        Raises:
            InvalidArgumentError: if there is no such stage.
        """
        if stage == "program":
            return self.program.text()
        if stage == "code":
            mode = self.request.mode
            return self.code.text if self.code is not None else f"{mode} mode: no code"
        if stage == "lower":
            return _lowered(self.execution)
        for name, program in self.request.stages(Operations()):
            if name == stage:
                return program.text()
        if stage in get_args(Stage):
            return f"{self.request.mode} mode: nothing is simplified"
        raise InvalidArgumentError(
            f"expected a stage among {', '.join(get_args(Stage))}, got {stage!r}"
        )


def make_plan(
    request: Request, devices: Mapping[str, Backend], generator: Callable[..., Any]
) -> Plan:
    """Returns the plan of a request.

    Args:
        request: Fetches, feeds, mode, devices.
        devices: The devices by name; "" for a program without nodes.
        generator: `generator(run, op_seed)` makes a random generator.
    """
    program, used = planned(request)
    (region,) = regions(program)
    return built(request, program, region, used, devices, generator)


def planned(request: Request) -> tuple[Program, dict[int, Operation]]:
    """Returns the program of a request, and all operations that it was made from, by id."""
    if request.mode not in get_args(Mode):
        raise InvalidArgumentError(
            f"expected mode to be one of {get_args(Mode)}, got {request.mode!r}"
        )
    used = {t.op.id: t.op for t in (*request.fetches, *request.feeds)}
    found = Operations()
    for name, program in request.stages(found):
        if name in ("prune", "inline"):  # later passes have no others
            used.update((o.id, found[o.id]) for n in program.walk() for o in n.origins)
    return program, used


def built(
    request: Request,
    program: Program,
    region: Region,
    used: Mapping[int, Operation],
    devices: Mapping[str, Backend],
    generator: Callable[..., Any],
) -> Plan:
    """Returns the plan of a program that is one region; see `make_plan`."""
    device = devices[program.device]
    xp, share = device.xp, device.share

    def write(part: Region) -> Code:
        told = inside(generator)
        return generate(part, xp, told, Stepper(part, xp, told).rest, share=share)

    def write_whole(part: Region) -> Code:
        return generate(part, xp, generator, as_left, share=share, within=as_left)

    with device.active():  # constants are put on the device
        needed = required(program)
        stepper = Stepper(region, xp, generator)
        code, executed = None, None
        function: Callable[..., tuple[Any, ...]]
        if request.mode == "tokens" or is_executed(program):
            if request.mode == "compiled":
                executed = execution(region, xp, write, write_whole, used)
            else:
                executed = execution(region, xp, None, None, used)
            function = request.drive(executed, xp)
            code = executed.code
        elif request.mode == "compiled":
            code = generate(region, xp, generator, stepper.rest, share=share)
            function = code.function
        else:
            function = Interpreter(region, xp, generator, unsafe_positions(region.nodes))
    return Plan(
        request=request,
        program=program,
        region=region,
        function=function,
        by_op=stepper if code and not executed else function,
        code=code,
        execution=executed,
        required=needed,
        is_random=any(n.op.is_random for n in program.walk()),
        operations=used,
    )


def _lowered(executed: Execution | None) -> str:
    if executed is None:
        return "nothing is lowered: the program is generated code, or runs one operation at a time"
    return executed.lowered.program.text()


def required(program: Program) -> tuple[Node, ...]:
    """Returns the handles of variables that the program reads before it writes them.

    Reads in blocks do not count, for it is not known whether they run.
    """
    written: set[Node] = set()
    found: dict[Node, None] = {}
    for node in program.nodes:
        for handle in node.handles:
            reads = node.op.reads_state and not node.op.accepts_empty and not node.blocks
            if reads and handle not in written:
                found[handle] = None
            if node.writes_state:
                written.add(handle)
    return tuple(found)
