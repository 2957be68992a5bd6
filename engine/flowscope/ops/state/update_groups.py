"""Ops that a plan puts around the writes of an update group, so that it is done as a whole or not.

Users do not build with them: see `flowscope.plan.analysis.updates`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.graph.current_step import current_step
from flowscope.graph.op import Array, ArrayModule, Cost, Op, Spec, frozen
from flowscope.graph.values.dtypes import variant


class _Around(Op, abstract=True, reads_state=True, accepts_empty=True, is_differentiable=False):
    # It orders like a read of the variables, and reads none: they need not have a value.
    is_stateful: ClassVar[bool] = True

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        return Cost(0.0, 0.0)


@frozen
class CheckUpdate(_Around):
    """Raises what a write would raise, before its group changes anything.

    Attributes:
        write: The write's op; the inputs are the write's.
    """

    write: Op

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        return ()

    def kernel(self, xp: ArrayModule, *inputs: Array) -> None:
        self.write.check(*inputs)  # type: ignore[attr-defined]


@frozen
class AwaitUpdate(Op, accepts_empty=True, is_differentiable=False):
    """Waits for all that the writes of a group need: where something blocks, these come apart."""

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        return Cost(0.0, 0.0)

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        return ()

    def kernel(self, xp: ArrayModule, *inputs: Array) -> None:
        return None


@frozen
class BeginUpdate(_Around):
    """Keeps the values of variables until the group has ended, and other steps from writing them.

    If the step fails in between, the values are put back: see `VariableState.keep`.

    Attributes:
        variables: How many inputs are handles; the others are waited for only.
        group: What the step calls the group, where several processes write for it; else "".
    """

    variables: int
    group: str = ""

    def infer(self, *inputs: Spec) -> Spec:
        return Spec(variant, ())

    def kernel(self, xp: ArrayModule, *inputs: Array) -> list[Any]:
        # All steps take them in one order, so none waits for a variable while it keeps a later one.
        states = sorted(inputs[: self.variables], key=lambda state: state.rank)
        updates = _shared(self.group)
        if updates is None:
            return [state for state in states if state.keep()]
        updates.begin(self.group, states)
        return []


@frozen
class EndUpdate(_Around):
    """Drops the values that BeginUpdate has kept, and lets other steps write.

    Attributes:
        group: As that of the BeginUpdate.
    """

    group: str = ""

    def infer(self, kept: Spec) -> tuple[Spec, ...]:
        return ()

    def kernel(self, xp: ArrayModule, kept: list[Any]) -> None:
        updates = _shared(self.group)
        if updates is not None:
            updates.end(self.group)
        for state in kept:
            state.settle()


def _shared(group: str) -> Any:
    """Returns where the step has groups of several processes; None where one runs all of it."""
    return current_step().whole.updates if group else None
