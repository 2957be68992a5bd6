"""Code back ends: what makes something to run of a region.

Planning asks for them by name. A session holds its own (`code_back_ends`), and may hold others: a
back end is an object with a method `compile`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from flowscope.errors import UnimplementedError
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation
from flowscope.plan.analysis.costs import Costs
from flowscope.plan.analysis.updates import unsafe_positions
from flowscope.plan.codegen.code import Code
from flowscope.plan.codegen.function import generate
from flowscope.plan.codegen.parallel_for import ParallelFor
from flowscope.plan.codegen.sections import MakeTasks
from flowscope.plan.codegen.variants import PLAIN, Breakpoints, Variant
from flowscope.plan.executables.execution import Execution, execution
from flowscope.plan.executables.interpret import Interpreter
from flowscope.plan.executables.optimistic import to_executor
from flowscope.plan.executables.region_formation import region_generator
from flowscope.plan.executables.stepping import Stepper
from flowscope.plan.ir.invocation import Invocation, InvocationError, Probe
from flowscope.plan.ir.modules import Modules
from flowscope.plan.passes.regions import Region

if TYPE_CHECKING:
    from flowscope.plan.codegen.native_hooks import NativeMaker

#: Runs a region: (gate, run, feeds, resources) -> its outputs.
Function = Callable[..., tuple[Any, ...]]
#: Makes a function that runs an `Execution` with the array modules of its nodes.
Drive = Callable[[Execution, Modules], Function]


@frozen
class CodeTarget:
    """For what code is made.

    Attributes:
        modules: The array modules of its nodes.
        generator: `generator(run, op_seed)` makes the random generator of one invocation.
        parallel_for: Has several threads take parts of a kernel; None where one does it all.
        operations: The operations that nodes come from, by id, where these are known.
        costs: What nodes take; None for what follows from their shapes.
        make_tasks: Has other threads run parts of code early; None where one thread does it all.
        before: Code of a program that may be much like it; see `generate`.
        native: Makes the compiler of loops of single numbers; None where all stays Python.
    """

    modules: Modules
    generator: Callable[..., Any]
    parallel_for: ParallelFor | None = None
    operations: Mapping[int, Operation] = field(default_factory=dict)
    costs: Costs | None = None
    make_tasks: MakeTasks | None = None
    before: Code | None = None
    native: NativeMaker | None = None


class Executable:
    """What a back end has made of a region.

    Attributes:
        function: Runs it: (gate, run, feeds, resources) -> its outputs.
        by_op: The same one operation at a time, where somebody steps through it.
        code: The generated code, None where there is none.
        execution: What the executor runs, None where it has nothing to do.
    """

    __slots__ = ("_probed", "by_op", "code", "execution", "function")

    def __init__(
        self,
        function: Function,
        probed: Callable[[Probe], Function],
        by_op: Function | None = None,
        code: Code | None = None,
        execution: Execution | None = None,
    ) -> None:
        self._probed = probed
        self.function = function
        self.by_op = by_op or function
        self.code = code
        self.execution = execution

    def probed(self, probe: Probe) -> Function:
        """Returns the same one operation at a time, of which a probe is told after each.

        Of code that is not taken apart the variants tell more quickly: `Plan.variant`.
        """
        return self._probed(probe)

    @property
    def text(self) -> str:
        """The source of the code; "" where there is none."""
        return "" if self.code is None else self.code.text

    def failed(self, error: BaseException) -> Invocation | None:
        """Returns the invocation that raised an error of the function; None if none did."""
        if isinstance(error, InvocationError):
            return error.invocation
        return None if self.code is None else self.code.failed(error.__traceback__)


class BackEnd(Protocol):
    """Makes something to run of regions."""

    def compile(self, region: Region, target: CodeTarget, variant: Variant) -> Executable:
        """The executable of a region.

        Args:
            region: The region.
            target: For what it is made.
            variant: What is added to its code.

        Raises:
            UnimplementedError: if it makes no code that the variant could be added to.
        """


class PythonCode:
    """Writes a region as one Python function."""

    def compile(self, region: Region, target: CodeTarget, variant: Variant = PLAIN) -> Executable:
        """The executable of a region."""
        modules, generator = target.modules, variant.generator(target.generator)
        stepper = Stepper(region, modules, generator, target.native)
        code = generate(
            region,
            modules,
            generator,
            stepper.rest,
            parallel_for=target.parallel_for,
            variant=variant,
            costs=target.costs,
            make_tasks=target.make_tasks,
            before=target.before,
            native=target.native,
        )
        by_op = OpByOp()
        return Executable(
            code.function, lambda p: by_op.compile(region, target).probed(p), stepper, code
        )


class OpByOp:
    """Interprets a region, one operation at a time."""

    def compile(self, region: Region, target: CodeTarget, variant: Variant = PLAIN) -> Executable:
        """The executable of a region."""
        _check_plain(variant, "op")
        unsafe = unsafe_positions(region.nodes)
        function = Interpreter(region, target.modules, target.generator, unsafe)
        return Executable(function, lambda probe: partial(function, probe=probe))


class Tokens:
    """Has the executor's machine run a region.

    Args:
        drive: Makes a function that runs an execution.
        is_compiled: Whether what need not wait is Python code; else operations run one by one.
    """

    def __init__(self, drive: Drive, is_compiled: bool) -> None:
        self._drive = drive
        self._is_compiled = is_compiled

    def compile(self, region: Region, target: CodeTarget, variant: Variant = PLAIN) -> Executable:
        """The executable of a region; with breakpoints the driver runs one operation at a time."""
        if self._is_compiled and isinstance(variant, Breakpoints):
            return Tokens(self._drive, is_compiled=False).compile(region, target)
        _check_plain(variant, "tokens")
        modules, generator = target.modules, target.generator
        parallel_for, native = target.parallel_for, target.native

        def write(part: Region) -> Code:
            told = region_generator(generator)
            rest = Stepper(part, modules, told, native).rest
            return generate(part, modules, told, rest, parallel_for=parallel_for, native=native)

        def write_optimistic(part: Region) -> Code:
            return generate(
                part,
                modules,
                generator,
                to_executor,
                parallel_for=parallel_for,
                inner_deopt=to_executor,
                native=native,
            )

        if self._is_compiled:
            executed = execution(region, modules, write, write_optimistic, target.operations)
        else:
            executed = execution(region, modules, None, None, target.operations)
        function = self._drive(executed, modules)
        single = Tokens(self._drive, is_compiled=False)

        def probed(probe: Probe) -> Function:
            if self._is_compiled:
                return single.compile(region, target).probed(probe)
            return partial(function, probe=probe)

        return Executable(function, probed, None, executed.code, executed)


def _check_plain(variant: Variant, name: str) -> None:
    if variant != PLAIN:
        raise UnimplementedError(
            f'the code back end "{name}" makes no code that {type(variant).__name__} could be '
            "added to: run the program in compiled mode, without operations that wait"
        )


def code_back_ends(drive: Drive) -> dict[str, BackEnd]:
    """Returns the code back ends that there are, by name.

    Args:
        drive: Makes a function that runs an `Execution` with its nodes' array modules.
    """
    return {
        "python": PythonCode(),
        "op": OpByOp(),
        "tokens": Tokens(drive, is_compiled=False),
        "regions": Tokens(drive, is_compiled=True),
    }


__all__ = ["BackEnd", "CodeTarget", "Executable", "code_back_ends"]
