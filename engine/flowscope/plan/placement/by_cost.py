"""Placement by cost: what the pass `place` is given where devices are chosen by simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from flowscope.graph.devices import DeviceSpec
from flowscope.graph.lazy import frozen
from flowscope.plan.analysis.costs import Costs
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.placement.machine import PlacementMachine
from flowscope.plan.placement.simulation import Greedy, Group, Prediction

#: A component with the devices that it can have.
Component = tuple[Sequence[Node], Sequence[DeviceSpec]]


@frozen
class ByCost:
    """How devices are chosen by simulated greedy execution.

    Attributes:
        machine: The devices.
        costs: Returns the costs of a program.
        settled: Devices of operations that were placed before, by their ids: there they stay.
        is_one_thread: Whether one thread gives work to all devices.
        tried: Is told of each simulation; None for nobody.
    """

    machine: PlacementMachine
    costs: Callable[[Program], Costs]
    settled: Mapping[int, str] = field(default_factory=dict)
    is_one_thread: bool = False
    tried: Callable[[Greedy], None] | None = None

    def choose(
        self, program: Program, components: Sequence[Component]
    ) -> list[tuple[str, Node | None, str]]:
        """Returns the device of each component, the node that chose it, and why.

        Args:
            program: The program, in order.
            components: Its components.
        """
        machine = self.machine
        numbers: dict[int, int] = {}
        groups: list[Group] = []
        kept: dict[int, int] = {}
        lists: dict[int, list[int]] = {}
        for nodes, devices in components:
            found = lists.get(id(devices))
            if found is None:
                for d in devices:
                    if id(d) not in numbers:
                        numbers[id(d)] = machine.numbers[str(d)]
                found = lists[id(devices)] = [numbers[id(d)] for d in devices]
            settled = self._settled(nodes)
            if settled in found:
                kept[len(groups)] = settled
            groups.append((nodes, found))
        costs = self.costs(program)
        greedy = Greedy(program, machine, costs, groups, kept, self.is_one_thread)
        greedy.run()
        pays = self._pays(program, costs, greedy, groups, kept)
        if not pays:
            first = {i: kept.get(i, devices[0]) for i, (_, devices) in enumerate(groups)}
            greedy = Greedy(program, machine, costs, groups, first, self.is_one_thread)
            greedy.run()
        if self.tried is not None:
            self.tried(greedy)
        full = set(greedy.full)
        answers: list[tuple[str, Node | None, str]] = []
        for i, (nodes, _) in enumerate(groups):
            chooser = next((n for n in nodes if n in greedy.tried), None)
            why = "stands where it is used"
            if i in kept:
                why = "stays where it was placed before"
            elif not pays:
                why = "steps are quickest with all on the first device"
            elif chooser in full:
                why = "no device has the memory for it; this one has most"
            elif chooser is not None:
                why = "finishes first there"
            answers.append((machine.names[greedy.places[nodes[0]]], chooser, why))
        return answers

    def _pays(
        self,
        program: Program,
        costs: Costs,
        greedy: Greedy,
        groups: Sequence[Group],
        kept: Mapping[int, int],
    ) -> bool:
        """Whether what was found is quicker than the first device for all; nobody looks ahead."""
        names, seconds = self.machine.names, []
        first = {
            n: names[kept.get(i, devices[0])]
            for i, (nodes, devices) in enumerate(groups)
            for n in nodes
        }
        chosen = {n: names[device] for n, device in greedy.places.items()}
        if chosen == first:
            return True
        for devices in (chosen, first):
            step = Prediction(program, self.machine, costs, self.is_one_thread, devices)
            step.take_costs_of(greedy)
            seconds.append(step.run())
            if devices is first and step.is_over_full:
                return True
        return seconds[0] <= seconds[1]

    def _settled(self, nodes: Sequence[Node]) -> int:
        """Returns the number of the device that a component has from before; -1 for none."""
        if self.settled:
            for node in nodes:
                name = self.settled.get(node.origins[0].id) if node.origins else None
                if name is not None:
                    return self.machine.numbers.get(name, -1)
        return -1


__all__ = ["ByCost"]
