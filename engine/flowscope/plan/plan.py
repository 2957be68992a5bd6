"""From (fetches, feeds) to a Plan: the passes in order, and what they leave behind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol, get_args

from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.plan.analysis.costs import Costs
from flowscope.plan.codegen.code import Code
from flowscope.plan.codegen.parallel_for import ParallelFor
from flowscope.plan.codegen.sections import MakeTasks
from flowscope.plan.codegen.variants import PLAIN, Variant
from flowscope.plan.executables.back_ends import BackEnd, CodeTarget, Executable
from flowscope.plan.executables.execution import Execution
from flowscope.plan.ir.collector import paused_collector
from flowscope.plan.ir.invocation import Invocation
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.origins import PlannedOperations
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.partition.partitions import Mode, Partition, back_end_of, partitioned
from flowscope.plan.passes.regions import Region, handles_of, whole_region
from flowscope.plan.pipeline import PASSES, sources, stages

if TYPE_CHECKING:
    from flowscope.plan.analysis.saved_for_backward import SavedForBackward
    from flowscope.plan.codegen.native_hooks import LoopCompiler, NativeMaker
    from flowscope.plan.ir.tensor_map import TensorAt, TensorMap
    from flowscope.plan.partition.compiled_partitions import CompiledPartition
    from flowscope.plan.placement.by_cost import ByCost

#: What `Plan.text` shows: the program after each pass, and what is made of the last.
STAGES = (
    "prune",
    "inline",
    *(one.name for one in PASSES),
    "partition",
    "lower",
    "program",
    "code",
    "native",
)


class PlanningDevice(Protocol):
    """What planning needs to know of a device."""

    @property
    def xp(self) -> Any:
        """The array module that its kernels use."""

    @property
    def device_type(self) -> str:
        """ "CPU" or "GPU"."""

    @property
    def parallel_for(self) -> ParallelFor | None:
        """Has several threads take parts of a kernel; None where one does it all."""

    @property
    def make_tasks(self) -> MakeTasks | None:
        """Has other threads run parts of code early; None where one thread does it all."""

    def native_compiler(self) -> LoopCompiler | None:
        """What compiles loops of single numbers while they run; None where all stays Python."""

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
        merges: Whether equal operations are merged, in compiled mode.
        folds: Whether constants are folded, in compiled mode.
        overlaps: Whether Python functions may run at the same time.
        is_apart: Whether the partitions of its devices run on threads of their own.
        as_bfloat16: Whether float32 numbers go to other devices as bfloat16.
        late_receives: Whether what comes from other devices waits until its use is near.
        by_cost: How devices are chosen by cost; None where the first one is taken.
        wishes: Devices asked for in the place of what operations ask for, by their ids.
    """

    fetches: Sequence[Tensor]
    targets: Sequence[Operation]
    feeds: Sequence[Tensor]
    mode: Mode
    devices: Sequence[DeviceSpec]
    soft_placement: bool
    read: type
    merges: bool = True
    folds: bool = True
    overlaps: bool = True
    is_apart: bool = False
    as_bfloat16: bool = False
    late_receives: bool = False
    by_cost: ByCost | None = None
    wishes: Mapping[int, str] = field(default_factory=dict)


#: So many variants of a plan's code are kept: each set of breakpoints asks for another one.
MOST_VARIANTS = 8


class Variants:
    """The variants of a plan's code that were asked for last."""

    def __init__(self, make: Callable[[Variant], Executable]) -> None:
        self._make = make
        self._made: dict[Variant, Executable] = {}

    def of(self, variant: Variant) -> Executable:
        """Returns a variant."""
        found = self._made.get(variant)
        if found is None:
            found = self._made.setdefault(variant, self._make(variant))
            for one in [*self._made][:-MOST_VARIANTS]:
                self._made.pop(one, None)
        return found

    @property
    def made(self) -> list[Executable]:
        """Those that were made."""
        return [*self._made.values()]


@frozen
class Plan:
    """How one (fetches, feeds, mode) is run. Immutable, independent of any session's state."""

    request: Request
    #: What is run, on all devices, in one order.
    program: Program
    #: The name of the code back end that compiles it.
    back_end: str
    #: Runs it.
    executable: Executable
    #: Makes something to run of one partition.
    compile_part: Callable[..., Executable]
    #: The same with something added.
    variants: Variants
    #: Handles of variables that are read before the step writes them.
    required: tuple[Node, ...]
    is_random: bool
    #: All operations that it was made from, by id: an edit of one makes it stale.
    operations: Mapping[int, Operation]
    #: The programs that were made of the graph, by the names of their stages.
    sources: tuple[tuple[str, Program], ...]
    #: The program as it was placed, before anything was put in between.
    placed: Program
    #: Makes the compiler of loops of single numbers; see `PlanningDevice`.
    native: NativeMaker
    modules: Modules

    @property
    def handles(self) -> tuple[Node, ...]:
        """What stands for the variables and queues that it uses, in the order it takes them."""
        return handles_of(self.program)

    @functools.cached_property
    def parts(self) -> tuple[CompiledPartition, ...]:
        """Its partitions, each to run on a thread of its own; made when first asked for."""
        from flowscope.plan.partition.compiled_partitions import (
            compile_apart,  # most plans run as one function
        )

        return compile_apart(self.partitions, self.handles, self.compile_part)

    @property
    def has_split_groups(self) -> bool:
        """Whether the writes of an update group are on several devices."""
        devices: dict[str, set[str]] = {}
        for node in self.program.walk():
            for group in node.update_groups if not node.blocks else ():
                devices.setdefault(group, set()).add(node.device)
        return any(len(found) > 1 for found in devices.values())

    def variant(self, variant: Variant) -> Executable:
        """The executable of a variant, made when it is first asked for.

        Raises:
            UnimplementedError: if the back end makes no code that it could be added to.
        """
        return self.executable if variant == PLAIN else self.variants.of(variant)

    def failed(self, error: BaseException) -> Invocation | None:
        """Returns the invocation that raised an error of what runs it; None if none did."""
        made = [self.executable, *self.variants.made]
        return next((f for one in made if (f := one.failed(error)) is not None), None)

    @functools.cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """What each device runs of the program; made when first asked for."""
        return self.cut()

    def cut(self, site_of: Callable[[str], str] = str) -> tuple[Partition, ...]:
        """The partitions of the program, one per site.

        Args:
            site_of: Returns the site of a device, by default itself; see
                `flowscope.plan.partition.partitions.partitioned`.
        """
        with paused_collector():
            return partitioned(self.program, self.request.mode, site_of)

    @functools.cached_property
    def tensors(self) -> TensorMap:
        """What became of each tensor of the graph in this plan; made when first asked for."""
        from flowscope.plan.ir.tensor_map import TensorMap

        return TensorMap(self.program, self.sources[-1][1], self.request.feeds, self.operations)

    def locate(self, tensor: Tensor) -> tuple[TensorAt, ...]:
        """Where a tensor is in this plan: its value, another one, a constant or a feed.

        Args:
            tensor: A tensor of the graph; of a function's body, too.

        Returns:
            One answer per call of the function whose body it is in; one for most tensors.
        """
        return self.tensors.locate(tensor)

    def kept(self, iterations: int | None = None, dimension: int | None = None) -> SavedForBackward:
        """The bytes that its loops keep for their gradients, known before any run.

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
        from flowscope.plan.analysis.saved_for_backward import kept

        return kept(self.program, iterations, dimension)

    def stages(self) -> Iterator[tuple[str, Program]]:
        """Yields the program after each pass, by the pass's name.

        The last programs that were made of the graph are kept. The passes behind run again: they
        are functions of the program, and what the graph has become since does not matter.
        """
        yield from self.sources
        yield from stages(self.sources[-1][1], self.request, self.placed)

    def text(self, stage: str = "program") -> str:
        """Returns the program as text after a pass, or the generated code.

        Args:
            stage: The name of a pass, such as "prune", "inline", "licm" or "simplify" (see
                `flowscope.plan.pipeline`): the program after it; "program": the program that is
                run; "partition": what each device runs of it; "lower": what the executor runs;
                "code": the generated code; "native": its loops, and for each whether it runs as
                machine code, or why not.

        Raises:
            InvalidArgumentError: if there is no such stage.
        """
        if stage == "program":
            return self.program.text()
        if stage == "partition":
            return "\n\n".join(f"{p.title}\n{p.program.text()}" for p in self.partitions)
        if stage == "code":
            return self.executable.text or f"{self.request.mode} mode: no code"
        if stage == "native":
            from flowscope.plan.executables.native_report import native_text

            return native_text(self.program, self.executable, self.native(), self.modules.of)
        if stage == "lower":
            return _lowered(self.executable.execution)
        for name, program in self.stages():
            if name == stage:
                return program.text()
        if stage in STAGES:
            return f"{self.request.mode} mode: nothing is simplified"
        raise InvalidArgumentError(f"expected a stage among {', '.join(STAGES)}, got {stage!r}")


def make_plan(
    request: Request,
    devices: Mapping[str, PlanningDevice],
    generator: Callable[..., Any],
    back_ends: Mapping[str, BackEnd],
    costs: Callable[[Program], Costs] | None = None,
    before: tuple[Plan, Mapping[int, str]] | None = None,
) -> Plan:
    """Returns the plan of a request.

    Args:
        request: Fetches, feeds, mode, devices.
        devices: The devices by name; "" for a program without nodes.
        generator: `generator(run, op_seed)` makes a random generator.
        back_ends: The code back ends by name.
        costs: Estimates the costs of the program's nodes; None for estimates from their shapes.
        before: The plan of the same request before operations were moved, and the devices that
            these ask for now, by their ids: what still holds of it is used.
    """
    with paused_collector():
        made = (before and _planned_from(*before, request)) or planned(request)
        code = None if before is None else before[0].executable.code
        return compiled(request, made, devices, generator, back_ends, costs, before=code)


def _planned_from(plan: Plan, moved: Mapping[int, str], request: Request) -> Planned | None:
    """The stages that still hold after operations were moved; None for none."""
    from flowscope.plan.replanning import Before, replanned  # most graphs stay where they are

    before = Before(plan.placed, plan.sources, plan.operations, moved)
    found = replanned(before, request)
    if found is None:
        return None
    return Planned(found.program, plan.operations, found.sources, found.placed)


def in_mode(
    plan: Plan,
    mode: Mode,
    devices: Mapping[str, PlanningDevice],
    generator: Callable[..., Any],
    back_ends: Mapping[str, BackEnd],
) -> Plan:
    """Returns the plan of the same program in another mode, whatever the graph has become since.

    Args:
        plan: The plan.
        mode: How the program is to be run.
        devices, generator, back_ends: See `make_plan`.
    """
    request = replace(plan.request, mode=mode)
    after = dict(stages(plan.sources[-1][1], request))
    program = after[next(reversed(after))]
    made = Planned(program, plan.operations, plan.sources, after["place"])
    return compiled(request, made, devices, generator, back_ends)


@frozen
class Planned:
    """What passes have made of a request.

    Attributes:
        program: The program after the last of them.
        operations: All operations that it was made from, by id.
        sources: The programs that were made of the graph, by the names of their stages.
        placed: The program after the pass `place`: with other devices it is placed anew from here.
    """

    program: Program
    operations: Mapping[int, Operation]
    sources: tuple[tuple[str, Program], ...]
    placed: Program


def planned(request: Request) -> Planned:
    """Returns the program of a request, and what it was made from."""
    if request.mode not in get_args(Mode):
        raise InvalidArgumentError(
            f"expected mode to be one of {get_args(Mode)}, got {request.mode!r}"
        )
    used = {t.op.id: t.op for t in (*request.fetches, *request.feeds)}
    found = PlannedOperations()
    given = tuple(sources(request, found))
    for _, program in given:  # later ones have no other operations
        used.update((o.id, found[o.id]) for n in program.walk() for o in n.origins)
    made = dict(stages(program, request))
    program = made[next(reversed(made))]
    return Planned(program, used, given, made["place"])


def compiled(
    request: Request,
    made: Planned,
    devices: Mapping[str, PlanningDevice],
    generator: Callable[..., Any],
    back_ends: Mapping[str, BackEnd],
    costs: Callable[[Program], Costs] | None = None,
    is_handed_out: bool = True,
    before: Code | None = None,
) -> Plan:
    """Returns the plan of a program: whatever it was made of goes through here.

    Args:
        request: What it was planned for.
        made: The program, and what it was made from.
        devices, generator, back_ends, costs: See `make_plan`.
        is_handed_out: Whether its fetches go to the user, as they come out of its code.
        before: Code of a program that may be much like it.
    """
    program = made.program
    region = whole_region(program, is_handed_out)
    back_end = back_end_of(program, request.mode)
    known = costs and costs(program)
    host = devices[""]
    modules = Modules(host.xp, devices, program.walk())

    def compile_part(name: str, part: Region, variant: Variant = PLAIN) -> Executable:
        target = CodeTarget(
            modules,
            generator,
            host.parallel_for,
            made.operations,
            known,
            native=host.native_compiler,
        )
        return back_ends[name].compile(part, target, variant)

    def compile_variant(variant: Variant) -> Executable:
        target = CodeTarget(
            modules, generator, host.parallel_for, made.operations, known, host.make_tasks,
            before if variant == PLAIN else None, host.native_compiler,
        )  # fmt: skip
        with nullcontext() if modules.current is None else modules.current.active():
            return back_ends[back_end].compile(region, target, variant)

    return Plan(
        request=request,
        program=program,
        back_end=back_end,
        executable=compile_variant(PLAIN),
        compile_part=compile_part,
        variants=Variants(compile_variant),
        required=required(program),
        is_random=any(n.op.is_random for n in program.walk()),
        operations=made.operations,
        sources=made.sources,
        placed=made.placed,
        native=host.native_compiler,
        modules=modules,
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
