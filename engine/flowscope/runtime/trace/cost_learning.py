"""Learning costs: a step runs one operation at a time, and a clock is read after each.

The figures go into the session's table (`plan.analysis.costs.CostTable`), from which plans that
are made later take them.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowscope.plan.analysis.costs import CostTable
from flowscope.plan.ir.program import Node, Value
from flowscope.plan.ir.structured import CondNode, LoopNode
from flowscope.plan.plan import Plan

if TYPE_CHECKING:
    from flowscope.runtime.session.session import Session


def learn_costs(
    session: Session, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, steps: int = 3
) -> dict[Node, float]:
    """Runs some steps, with all their effects, and notes what their operations take.

    Of operations in branches and loops those are measured whose inputs are made there. How often
    loops run and which branches are taken is noted too, and the shapes of values that planning does
    not know.

    Args:
        session: The session.
        fetches, feed_dict: As for `Session.run`.
        steps: How many steps to run; the quickest counts.

    Returns:
        Seconds by the nodes of the plan that is there now; it stays as it is.
    """
    given = dict(feed_dict or {})
    call = copy.copy(session._call(fetches, given, session.config.mode))
    feeds = tuple([c(v) for c, v in zip(call.converters, given.values(), strict=True)])
    clock = _Clock(call.plan, feeds, session._planner.cost_table)
    probed = call.plan.executable.probed(clock)

    def function(*args: Any) -> tuple[Any, ...]:
        clock.start()
        return probed(*args)

    call.function = call.wrap(function)
    for _ in range(steps):
        session._step(call, feeds)
    return clock.found


class _Clock:
    """Is told of each invocation; see `flowscope.plan.ir.invocation.Probe`."""

    def __init__(self, plan: Plan, feeds: tuple[Any, ...], table: CostTable) -> None:
        self.found: dict[Node, float] = {}
        self._table = table
        self._shapes: dict[Value, Any] = dict(zip(plan.program.feeds, feeds, strict=True))
        self._since = 0.0
        #: The branch, and whether it was taken, by a node that runs where it was.
        self._taken: dict[Node, CondNode] = {}
        self._ran: set[CondNode] = set()
        for node in plan.program.walk():
            if isinstance(node, CondNode):
                for block in node.blocks:
                    if block.nodes:
                        self._taken[block.nodes[0]] = node
                        break

    def start(self) -> None:
        """Notes that a step begins."""
        self._since = time.perf_counter()

    def __call__(self, node: Node, iterations: tuple[int, ...], outputs: Sequence[Any]) -> None:
        seconds = time.perf_counter() - self._since
        shapes = [self._shapes.get(v) for v in node.inputs]
        if not node.blocks and all(
            s is not None or v.spec.shape == () for s, v in zip(shapes, node.inputs, strict=True)
        ):
            self._table.learn(node, shapes, seconds)
            self.found[node] = min(seconds, self.found.get(node, seconds))
        if not node.blocks:
            self._table.learn_made(node, outputs)
        if node in self._taken:
            self._ran.add(self._taken[node])
        if isinstance(node, LoopNode):
            self._table.learn_often(node, float(outputs[node.variables]))
        elif isinstance(node, CondNode) and any(b.nodes for b in node.blocks):
            is_first = node in self._ran
            self._table.learn_often(node, float(is_first == bool(node.then.nodes)))
            self._ran.discard(node)
        self._shapes.update(zip(node.outputs, map(_Shaped, outputs), strict=False))
        self._since = time.perf_counter()


class _Shaped:
    """What is kept of an array: its shape."""

    __slots__ = ("shape",)

    def __init__(self, value: Any) -> None:
        self.shape = getattr(value, "shape", ())


__all__ = ["learn_costs"]
