"""How the functions of datasets run: made code once per process, then called per element.

Who goes through a dataset is a step, on its own thread, or a thread that computes ahead. A step
that is to end ends where its code would have a safepoint; it is not paused in a function, whose
operations are none of its plan's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.errors import CancelledError, OpError
from flowscope.graph.current_step import current_step
from flowscope.plan.analysis.locations import Moves
from flowscope.plan.codegen.variants import PLAIN
from flowscope.plan.executables.back_ends import CodeTarget, Executable, code_back_ends
from flowscope.plan.ir.breakpoints import NO_TESTS
from flowscope.plan.ir.invocation import InvocationError
from flowscope.plan.ir.modules import Modules
from flowscope.plan.passes.regions import whole_region
from flowscope.runtime.state.queue_transactions import goes_back
from flowscope.runtime.state.random_generators import generator
from flowscope.runtime.step.driver import Driver
from flowscope.runtime.step.failures import located

if TYPE_CHECKING:
    from flowscope.plan.partition.element_functions import FunctionProgram
    from flowscope.runtime.step.step import Step
    from flowscope.runtime.threads.host_calls import HostThreads

#: An odd number that spreads numbers over 64 bits (Knuth's multiplier for LCGs).
_MIX = 6364136223846793005
_WORD = (1 << 64) - 1


def mixed(path: int, number: int) -> int:
    """Returns 64 bits that tell a number behind a path from all others."""
    return (path * _MIX + number + 1) & _WORD


class PassControl:
    """Ends the computation of elements from outside, and has the threads that compute ahead.

    Code takes it in the place of a step's gate.

    Attributes:
        threads: The threads of the engine; None where nothing can be computed ahead.
        is_ended: Whether the iterator was dropped, or set on another dataset.
        is_by_op: False: see `flowscope.runtime.waits.gate.Gate`, in whose place it stands in code.
        moves: What nobody looks at.
    """

    __slots__ = ("is_by_op", "is_ended", "moves", "threads")

    def __init__(self, threads: HostThreads | None = None) -> None:
        self.threads = threads
        self.is_ended = False
        self.is_by_op = False
        self.moves = Moves()

    def check(self) -> None:
        """Raises if the step that goes through the dataset is to end, or the iterator was dropped.

        Raises: what `Gate.hold` does.
        """
        step: Step | None = current_step()
        if step is not None:
            if step.gate.raised:
                step.gate.check(step)
        elif self.is_ended:
            raise CancelledError("the iterator was set on another dataset, or dropped")

    @property
    def raised(self) -> bool:
        """Whether code is to call `hold` at its safepoints."""
        step: Step | None = current_step()
        return self.is_ended if step is None else step.gate.raised

    def hold(self, point: int, here: Any = None) -> bool:
        """Raises what `check` does; code goes on as it is."""
        self.check()
        return False

    def breakpoints(self) -> Any:
        """None: breakpoints stand in the step's plan."""
        return NO_TESTS


def _executable(function: FunctionProgram) -> Executable:
    """The executable of a program; one per process."""
    if function.made is None:
        back_end = code_back_ends(Driver)[function.back_end]
        modules = Modules(np, {}, function.program.walk())
        function.made = back_end.compile(
            whole_region(function.program), CodeTarget(modules, generator), PLAIN
        )
    found: Executable = function.made
    return found


class ElementFunction:
    """A function with what it has captured, to be called with elements.

    Args:
        function: The program.
        captured: The values of what it captures, behind the components of elements.
        control: Ends calls from outside.
        key: What random numbers follow from where the graph has no seed.
        path: Tells the place of the function in its dataset from others.
    """

    def __init__(
        self,
        function: FunctionProgram,
        captured: Sequence[Any],
        control: PassControl,
        key: int,
        path: int,
    ) -> None:
        self._function = function
        self._executable = _executable(function)
        self._run = self._executable.function
        self._going = control
        self._key, self._path = key, path
        inputs = len(function.feeds) + len(function.handles)
        count = inputs - len(captured)
        values = dict(enumerate(captured, count))
        self._resources = tuple([values[i] for i in function.handles])
        self._rest = tuple([values[i] for i in function.feeds if i >= count])

    @property
    def is_pure(self) -> bool:
        """Whether it does nothing but compute."""
        return self._function.is_pure

    def __call__(self, number: int, element: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the results for an element.

        Args:
            number: The element's, from 0: random numbers follow from it, and errors tell it.
            element: Its components.

        Raises:
            OpError: if the function fails; with its operation, and the user's line.
        """
        run = self._function.seed, self._key, mixed(self._path, number)
        try:
            return self._run(self._going, run, element + self._rest, self._resources)
        except Exception as e:
            found = e
        if goes_back(found):  # the step ends, which is not this function's failure
            raise found.kernel_error if isinstance(found, InvocationError) else found
        error, cause = self._located(found)
        told = f'element {number} of "{self._function.name}": {error.message}'
        facts = error.facts() | {"op": error.op or error.op_name}
        raise error.reworded(told).located(**facts) from cause

    def _located(self, error: Exception) -> tuple[OpError, BaseException | None]:
        if isinstance(error, InvocationError):
            return located(error)
        failed = self._executable.failed(error)
        if failed is None:
            is_known = isinstance(error, OpError)
            return (error if is_known else OpError(repr(error))), error.__cause__  # type: ignore[return-value]
        return located(InvocationError(failed, error))


__all__ = ["ElementFunction", "PassControl", "mixed"]
