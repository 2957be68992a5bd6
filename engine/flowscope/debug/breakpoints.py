"""Breakpoints: where a step is to be held, and on which conditions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.debug.conditions import Condition
from flowscope.debug.targets import BreakpointTarget, Standing
from flowscope.errors import FailedPreconditionError, InvalidArgumentError
from flowscope.graph.current_step import current_step
from flowscope.graph.lazy import frozen
from flowscope.graph.origins.origin import stacklevel
from flowscope.graph.values.dtypes import resource
from flowscope.plan.analysis.locations import iterations_in
from flowscope.plan.ir.breakpoints import BreakTest
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan
from flowscope.runtime.session.remote import asked, fetched

if TYPE_CHECKING:
    from flowscope.debug.debugger import Debugger

#: What is asked of a value: a condition that was parsed, or a function of the user's.
When = Condition | Callable[[Any], Any]


@frozen
class Conditions:
    """When a breakpoint holds a step: all of these are met.

    Attributes:
        when: What the value has to be; None for anything.
        iteration: The iteration of the innermost loop; a tuple is that of all loops around, from
            the outermost. None for any.
        step: The number of the run in its session; None for any.
        hits: From which time on, of those on which all else is met.
    """

    when: When | None = None
    iteration: int | tuple[int, ...] | None = None
    step: int | None = None
    hits: int = 1

    def __str__(self) -> str:
        parts = [
            f"{name} = {value}"
            for name, value in (("iteration", self.iteration), ("step", self.step))
            if value is not None
        ]
        if self.when is not None:
            name = getattr(self.when, "__qualname__", None)
            parts.append(str(self.when) if name is None else f"{name}(value)")
        if self.hits > 1:
            parts.append(f"from hit {self.hits} on")
        return " and ".join(parts)


def conditions(when: Any, iteration: Any, step: Any, hits: int) -> Conditions:
    """Returns the conditions of a breakpoint; see `Debugger.break_before` for the arguments."""
    if isinstance(when, str):
        when = Condition(when)
    if when is not None and not callable(when):
        raise InvalidArgumentError(
            f"a breakpoint: expected a condition such as 'max > 3' or a function as when, got "
            f"{when!r}"
        )
    given = iteration if isinstance(iteration, tuple) else (iteration,)
    for name, value in (("step", step), ("hits", hits), *[("iteration", i) for i in given]):
        if value is not None and (not isinstance(value, int) or value < 0):
            raise InvalidArgumentError(
                f"a breakpoint: expected an integer of 0 or more as {name}, got {value!r}"
            )
    return Conditions(when, iteration, step, max(hits, 1))


class Breakpoint:
    """Holds steps before or after chosen operations. Made by `Debugger.break_before` and its kin.

    Attributes:
        number: Its number in the session, from 1.
        target: What it means: an operation, a scope, an op type, a line.
        is_after: Whether it stands after the operation, else before it.
        conditions: When it holds a step.
        hits: How often its conditions were met, but for `hits` itself.
        error: What its condition has raised last; None if nothing. It is told by a warning, and
            the step is not held.
    """

    def __init__(
        self,
        debugger: Debugger,
        number: int,
        target: BreakpointTarget,
        is_after: bool,
        conditions: Conditions,
    ) -> None:
        self._debugger = debugger
        self._is_enabled = True
        self.number = number
        self.target = target
        self.is_after = is_after
        self.conditions = conditions
        self.hits = 0
        self.error: Exception | None = None

    @property
    def is_enabled(self) -> bool:
        """Whether it holds steps; it can be set."""
        return self._is_enabled

    @is_enabled.setter
    def is_enabled(self, is_enabled: bool) -> None:
        self._is_enabled = bool(is_enabled)
        self._debugger.arm()
        if is_enabled:
            self._debugger.tell_who_passes()

    def remove(self) -> None:
        """Takes it away; running steps do not ask it any more."""
        self._is_enabled = False
        self._debugger.remove(self)

    def where(self) -> tuple[str, ...]:
        """Returns where it stands in the plans that the session has, a line for each operation.

        An operation that was merged with another one, or folded, says what stands in its place.
        """
        return tuple(dict.fromkeys(map(str, self.standing())))

    def standing(self) -> tuple[Standing, ...]:
        """Returns where it stands in the plans that the session has, as data."""
        return self._debugger.standing(self)

    @property
    def has_target(self) -> bool:
        """Whether it means some operations; a watchpoint of everything does not."""
        return self.target != BreakpointTarget()

    def tests(self, plan: Plan, meant: Sequence[Node]) -> list[tuple[str, BreakTest]]:
        """The tests that code makes, by the names of the nodes.

        Args:
            plan: The plan.
            meant: The nodes that the target means there.
        """
        return [(name, self._test(node)) for name, node in {n.name: n for n in meant}.items()]

    def _test(self, node: Node) -> BreakTest:
        """The test at a node: a function of (run, iterations of the loops there, values)."""
        wanted = self.conditions
        iteration = wanted.iteration
        values = node.outputs if self.is_after else node.inputs
        at = next((i for i, v in enumerate(values) if v.spec.dtype is not resource), None)
        test = partial(self._is_met, at)
        if isinstance(iteration, int) and wanted.when is None and wanted.step is None:
            return IterationTest(test, iteration)
        return test

    def _is_met(
        self, at: int | None, run: Any, counts: tuple[int, ...], values: Sequence[Any]
    ) -> bool:
        """Whether a step is to be held; `at` is the position of the value that is asked of."""
        if not self._is_enabled:
            return False  # code that has begun asks on
        wanted = self.conditions
        iterations = iterations_in(run, counts)
        if wanted.iteration is not None:
            is_path = isinstance(wanted.iteration, tuple)
            there = iterations if is_path else iterations[-1:]
            if there != (wanted.iteration if is_path else (wanted.iteration,)):
                return False
        step = current_step()
        if wanted.step is not None and step.number != wanted.step:
            return False
        if wanted.when is not None:
            value = None if at is None else values[at]
            if not self._asks(wanted.when, value, iterations, step):
                return False
        self.hits += 1
        if self.hits < wanted.hits:
            return False
        step.met = self
        return True

    def _asks(self, when: When, value: Any, iterations: tuple[int, ...], step: Any) -> bool:
        """Whether a condition holds; one that raises is told, and does not."""
        try:
            return self._holds(when, value, iterations, step)
        except Exception as e:
            self._failed(e)
            return False

    def _failed(self, error: Exception) -> None:
        """Tells that a condition has raised an error: once for each that is another."""
        is_known = repr(self.error) == repr(error)
        self.error = error
        if not is_known:
            kind = type(self).__name__.lower()
            warnings.warn(
                f"{kind} {self.number} of {self.target}: the condition {self.conditions} has "
                f"raised {type(error).__name__}: {error}; one that raises does not hold the step",
                RuntimeWarning,
                stacklevel(),
            )

    def _holds(self, when: When, value: Any, iterations: tuple[int, ...], step: Any) -> bool:
        if isinstance(when, Condition):
            iteration = iterations[-1] if iterations else 0
            facts = {"iteration": iteration, "step": step.number, "hits": self.hits}
            if not when.asks_value:
                return when(None, facts)
            return bool(asked(partial(_met, when, facts), _known(value)))
        return bool(when(fetched(_known(value))))

    def __repr__(self) -> str:
        side = "after" if self.is_after else "before"
        told = str(self.conditions)
        text = f"<Breakpoint {self.number} {side} {self.target}" + (f" if {told}" if told else "")
        return text + ("" if self.is_enabled else ", disabled") + f", {self.hits} hits>"


def _known(value: Any) -> Any:
    """Returns a value that a condition asks of.

    Raises:
        FailedPreconditionError: if there is none.
    """
    if value is None:
        raise FailedPreconditionError(
            "there is no value to ask of: the operation has none there, or it is in an update "
            "group, in which no step is held"
        )
    return value


def _met(when: Condition, facts: Mapping[str, int], value: Any) -> bool:
    """Whether a condition holds: asked where the value is."""
    return when(value, facts)


class IterationTest:
    """Asks a test in one iteration of the innermost loop.

    Attributes:
        iteration: The iteration; code that is in a loop may ask in no other one.
    """

    __slots__ = ("_test", "iteration")

    def __init__(self, test: BreakTest, iteration: int) -> None:
        self._test = test
        self.iteration = iteration

    def __call__(self, run: Any, counts: tuple[int, ...], values: Sequence[Any]) -> object:
        """Runs the test if it is due and gives its result."""
        if counts and counts[-1] != self.iteration:
            return False
        return self._test(run, counts, values)


def joined(tests: Sequence[BreakTest]) -> BreakTest:
    """One test for several breakpoints; it asks all of them, because each counts its hits."""
    if len(tests) == 1:
        return tests[0]

    def test(run: Any, counts: tuple[int, ...], values: Sequence[Any]) -> bool:
        found = [one(run, counts, values) for one in tests]
        return any(found)

    return test


__all__ = ["Breakpoint", "Conditions", "IterationTest", "conditions", "joined"]
