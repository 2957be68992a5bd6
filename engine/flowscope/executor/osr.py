"""On-stack replacement: a machine goes on where a step has left its code.

Where code is left says `flowscope.plan.executables.optimistic`.

The machine starts the step as if nothing had been done, but what the code has done does not run
again: its values are known, or nobody needs them any more. So tokens travel until only what is
still to be done is ready, and all frames, iterations and orders are as if the machine had come that
far by itself.

- A unit of nodes that were done gives what they gave. What lowering added - orders, pivots - is
  computed, as it has no effects.
- A branch or loop that was passed gives its results to those around, and lets nothing in.
- A branch that the code was in is taken, whatever the predicate has become. A loop that it was in
  is entered with its variables as they were in that iteration, under that iteration's number; in
  the middle of a body the condition held.

What belongs to later iterations waits until all this is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowscope.errors import InternalError
from flowscope.executor.frames import Iteration
from flowscope.executor.machine import Machine
from flowscope.executor.static import Unit, UnitKind
from flowscope.plan.analysis.locations import BlockLocation, DeoptState, LoopState
from flowscope.plan.ir.invocation import Invoker
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.passes.lower import Lowered

_TRUE = np.True_


def resume(
    machine: Machine,
    lowered: Lowered,
    constants: Mapping[Value, Any],
    modules: Modules,
    feeds: tuple[Any, ...],
    state: DeoptState,
) -> None:
    """Brings a new machine to where a step is.

    Args:
        machine: The machine; it has not been started.
        lowered: What it runs.
        constants: The values of constants.
        modules: The array modules of its nodes.
        feeds: The values of the feeds.
        left: Where the step is, in the program as it was before it was lowered.

    Raises:
        InternalError: if the code has run a part of a unit only.
    """
    _Resuming(machine, lowered, constants, modules, state).run(feeds)


class _Resuming:
    def __init__(
        self,
        machine: Machine,
        lowered: Lowered,
        constants: Mapping[Value, Any],
        modules: Modules,
        state: DeoptState,
    ) -> None:
        self._machine = machine
        self._lowered = lowered
        self._constants = constants
        self._modules = modules
        self._values = state.values
        #: Nodes of the program as it was that are done.
        self._done: set[Node] = set()
        #: Of passed branches and loops: what lets values in, and what gives their results.
        self._closed: set[Node] = set()
        self._ends: list[tuple[Node, Value | None]] = []
        #: What the Switches of branches and bodies that the code was in are told.
        self._taken: dict[Node, bool] = {}
        #: Loops that the code was in, by the names of their frames.
        self._loops: dict[str, BlockLocation] = {}
        #: By Enter of these loops what enters in place of what did first.
        self._entering: dict[Node, Any] = {}
        #: The iterations that the code was in the middle of, from the outermost.
        self._current: dict[Iteration, None] = {}
        for i, location in enumerate(state.locations):
            self._note(location, state.locations[i - 1] if i else None)

    # -- what the code has done -----------------------------------------------------------------

    def _note(self, location: BlockLocation, around: BlockLocation | None) -> None:
        if around is not None and location.part == "branch":
            node = around.program.nodes[around.index]
            is_first = location.program is node.blocks[0]
            self._taken.update((e, is_first) for e in self._lowered.doors[node].entries)
        if location.loop is not None:
            self._note_loop(location, location.loop)
        if location.part != "back":
            self._pass(location.program, location.index)

    def _note_loop(self, location: BlockLocation, state: LoopState) -> None:
        name, made = next((n, m) for n, m in self._lowered.loops.items() if m.node is state.node)
        self._loops[name] = location
        variables = state.variables
        if location.part == "body":
            variables = [self._values.get(v) for v in location.program.feeds]
            test = self._machine.graph.unit_of(made.test)
            self._taken.update((taker.node, True) for _, _, taker in test.targets[0])
            for condition in made.node.conditions:
                self._pass(condition, len(condition.nodes))
        for merge, value in zip(made.variables, variables, strict=True):
            self._entering[_entry(merge)] = value
        if made.counter is not None:
            self._entering[_entry(made.counter)] = np.int64(state.count)

    def _pass(self, program: Program, count: int) -> None:
        """Notes that the first nodes of a block are done."""
        for node in program.nodes[:count]:
            self._done.add(node)
            doors = self._lowered.doors.get(node)
            if doors is not None:
                self._closed.update(doors.entries)
                self._ends += doors.ends

    # -- what follows ---------------------------------------------------------------------------

    def run(self, feeds: tuple[Any, ...]) -> None:
        """Starts the machine, and lets tokens travel."""
        machine = self._machine
        root = machine.root.iterations[0]
        root.outstanding += 1
        machine.start(feeds)
        root.outstanding -= 1
        self._arrive(root)
        waiting: list[tuple[Unit, Iteration]] = []
        while machine.backlog:
            unit, it = machine.backlog.popleft()
            if it in self._current and self._pass_on(unit, it):
                it.outstanding -= 1
            else:
                waiting.append((unit, it))
        machine.backlog.extend(waiting)
        for it in reversed(self._current):
            machine.release(it)

    def _arrive(self, it: Iteration) -> None:
        """Begins with an iteration: gives the results of passed branches and loops in it."""
        self._current[it] = None
        it.outstanding += 1  # until all is done here
        for node, output in self._ends:
            unit = self._machine.graph.unit_of(node)
            if unit.inner is it.frame.static:
                value = np.True_ if output is None else self._values.get(output)
                self._machine.give(unit, it, (value, None)[: len(unit.body.outputs)])

    def _pass_on(self, unit: Unit, it: Iteration) -> bool:
        """Does what a unit that is ready is to do by now; returns False if that is nothing."""
        machine = self._machine
        if it.dead[unit.at]:
            machine.move(unit, it)
        elif unit.kind >= UnitKind.KERNEL:
            return self._give_again(unit, it)
        elif unit.node not in self._closed:
            self._move(unit, it)
        return True

    def _move(self, unit: Unit, it: Iteration) -> None:
        node, slots, base = unit.node, it.slots, unit.base
        if node in self._taken:
            slots[base + 1] = self._taken[node]
        elif node in self._entering:
            slots[base] = self._entering[node]
        self._machine.move(unit, it)
        if unit.kind is UnitKind.ENTER:
            self._enter(unit, it)

    def _enter(self, unit: Unit, it: Iteration) -> None:
        assert unit.child is not None and it.children is not None
        location = self._loops.get(unit.child.name)
        frame = it.children[unit.child]
        first = frame.iterations[0]
        if location is None or location.loop is None or first in self._current:
            return
        first.number = location.loop.count
        frame.started = location.loop.count + 1
        if location.part != "back":
            self._arrive(first)

    def _give_again(self, unit: Unit, it: Iteration) -> bool:
        """Gives what a unit gave, if it is done or was added by lowering."""
        body = unit.body
        known = [self._lowered.kept.get(n) for n in body.nodes]
        are_done = {n in self._done for n in known if n is not None}
        if are_done == {False}:
            return False
        if len(are_done) == 2:
            raise InternalError(f"{unit} was left in its middle")
        values = dict(zip(body.inputs, it.slots[unit.base : unit.end], strict=True))
        it.slots[unit.base : unit.end] = unit.blank
        for node, before in zip(body.nodes, known, strict=True):
            if before is not None:
                found = [self._values.get(v) for v in before.outputs]
            else:
                found = self._computed(node, values)
            values.update(zip(node.outputs, found, strict=True))
        self._machine.give(unit, it, tuple([values[v] for v in body.outputs]))
        return True

    def _computed(self, node: Node, values: dict[Value, Any]) -> list[Any]:
        """Computes a node that lowering added; of what nobody needs any more nothing follows."""
        inputs = [values[v] if v in values else self._constants.get(v) for v in node.inputs]
        if any(x is None for x in inputs):
            return [None] * len(node.outputs)
        return list(Invoker(node, self._modules)(None, (), inputs))


def _entry(merge: Node) -> Node:
    """Returns the Enter of a loop's variable."""
    node = merge.inputs[0].node
    assert node is not None
    return node


__all__ = ["resume"]
