"""Culprits: which operation made what a watchpoint holds a step for, of what, and how that came.

Of the operation's inputs many are gone by then: code writes over what nothing needs any more. Where
the step is recorded it is computed again up to the operation, one operation at a time; that tells
the inputs, and which operations before it had already made such values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flowscope.debug.stops import StoppedTensor
from flowscope.debug.watchpoints import WatchedValue, Watchpoint, is_finite
from flowscope.errors import OpError
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, where
from flowscope.plan.ir.program import Node
from flowscope.runtime.session.remote import is_array

if TYPE_CHECKING:
    from flowscope.debug.replay import Replay
    from flowscope.debug.stops import Stop


@frozen
class Culprit:
    """The operation that made what a step is held for; made by `Stop.culprit`.

    Attributes:
        op: The operation. A fed tensor's where it was not made at all.
        what: "nan", "inf", or the condition that was met.
        step: The number of the run.
        iterations: Of the loops around, from the outermost.
        outputs, inputs: Its tensors as they were.
        path: From the operation that made the first such value of the step, or the fed tensor,
            variable or constant that held it before, to the operation: each an input of the next.
        already: What it follows from that held such a value before the step, as a text each.
        why_not: Why the step cannot be computed again, "" if it can: `debug.replay` does.
    """

    op: Operation
    what: str
    step: int | None
    iterations: tuple[int, ...]
    outputs: tuple[StoppedTensor, ...]
    inputs: tuple[StoppedTensor, ...]
    path: tuple[Operation, ...]
    already: tuple[str, ...]
    why_not: str

    def __str__(self) -> str:
        at = f", iteration {'/'.join(map(str, self.iterations))}" if self.iterations else ""
        lines = [f'{self.what} made by "{self.op.name}" ({self.op.type}), step {self.step}{at}']
        lines += [f"  made by {place}" for place in [where(self.op)["origin"]] if place]
        lines += [f"  input {_told(look)}" for look in self.inputs]
        lines += [f"  output {_told(look)}" for look in self.outputs]
        if len(self.path) > 1:
            lines.append("  it came by " + " -> ".join(op.name for op in self.path))
        lines += [f"  it was there before in {one}" for one in self.already]
        last = f"it cannot be computed again: {self.why_not}" if self.why_not else ""
        return "\n".join([*lines, "  " + (last or f"sess.debug.replay({self.step}) computes it")])


def _told(look: StoppedTensor) -> str:
    found = look.statistics
    if found is None:
        return f'"{look.name}": {look.state}, {look.why}'
    bad = f", {found.nan} NaN, {found.inf} infinite" if found.nan or found.inf else ""
    range = "" if found.min is None else f" {found.min:.6g} to {found.max:.6g}"
    return f'"{look.name}": {found.dtype}{list(found.shape)}{range}{bad}'


def culprit(stop: Stop, again: Callable[[], Replay], computes: bool) -> Culprit | None:
    """The culprit of the value that holds a step; None where no watchpoint holds it.

    Args:
        stop: Where it is held.
        again: Returns the step, to be computed again.
        computes: Whether it is computed again where inputs are gone.
    """
    point = stop.breakpoint
    found = point.found_in(stop.step) if isinstance(point, Watchpoint) else None
    if found is None or found.op is None:
        return None
    why_not = ""
    try:
        replay = again()
    except OpError as e:
        replay, why_not = None, e.message
    outputs = tuple([stop.look(t) for t in found.op.outputs])
    inputs = [stop.look(t) for t in found.op.inputs if not t.op.definition.is_handle]
    path = found.path
    if replay is not None and computes and found.op.inputs:
        with suppress(OpError), replay:
            inputs, path = _computed_again(replay, found, inputs)
    return Culprit(
        found.op, found.what, stop.step, found.iterations, outputs, tuple(inputs), path,
        found.already, why_not,
    )  # fmt: skip


def _computed_again(
    replay: Replay, found: WatchedValue, inputs: Sequence[StoppedTensor]
) -> tuple[list[StoppedTensor], tuple[Operation, ...]]:
    """Returns the inputs and the path, from the step computed again up to the operation."""
    assert found.op is not None
    bad: set[int] = set()

    def probe(node: Node, iterations: tuple[int, ...], outputs: Sequence[Any]) -> None:
        if any(is_array(one) and not is_finite(one) for one in outputs):
            bad.update(op.id for op in node.origins)

    stop = replay.before_operation(found.op, found.iterations or None, probe)
    looks = [look if look.statistics else stop.look(look.name) for look in inputs]
    return looks, _path(found, bad)


def _path(found: WatchedValue, bad: set[int]) -> tuple[Operation, ...]:
    """Returns the chain of operations with such values that leads to the one that was found."""
    chain: list[Operation] = []
    at, seen = found.op, set[Operation]()
    while at is not None and at not in seen:
        chain.append(at)
        seen.add(at)
        at = next((t.op for t in at.inputs if t.op.id in bad), None)
    if len(chain) == 1:
        return found.path
    head = [op for op in found.path[:-1] if op not in seen] if chain[-1] in found.path else []
    return (*head, *reversed(chain))


__all__ = ["Culprit", "culprit"]
