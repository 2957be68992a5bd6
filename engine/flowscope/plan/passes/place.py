"""Place: a device for every node, those in branches and loops included.

Nodes that must share a device form a component (`flowscope.plan.placement.ties`); a component's
devices are those with all its kernels that all its wishes allow. As in TensorFlow the
first of them is taken, accelerators first, and what only steers the program stays on the host
(`flowscope.plan.placement.steering`); or, where a session asks for that, the one on which the
component finishes first in a simulated step (`flowscope.plan.placement.simulation`). A constant
that nobody has asked a device for stands where it is used. A branch or a loop itself is where its
condition is made.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flowscope.graph.constant import Const
from flowscope.graph.devices import DeviceSpec, contradict
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.rewriting import ProgramEdits
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.placement.choices import Choices, Found, key_of, leader
from flowscope.plan.placement.makers import Makers
from flowscope.plan.placement.ties import Ties, tied

if TYPE_CHECKING:
    from flowscope.plan.placement.by_cost import ByCost


def place(
    program: Program,
    devices: Sequence[DeviceSpec],
    soft: bool,
    by_cost: ByCost | None = None,
    wishes: Mapping[int, str] | None = None,
) -> Program:
    """Returns the program with `device` and `reason` set on every node.

    Args:
        program: An ordered program.
        devices: The devices of the session, best first.
        soft: Whether a wish that cannot be fulfilled is passed over, with a note.
        by_cost: How devices are chosen by cost; None where the first one is taken.
        wishes: Devices asked for in the place of what operations ask for, by their ids.

    Raises:
        InvalidArgumentError: if a wish cannot be fulfilled, or the wishes of nodes that must share
            a device contradict each other, and `soft` is not set.
    """
    program = _wishing(program, wishes) if wishes else program
    makers, ties = Makers(program), tied(program)
    if any(isinstance(n, LoopNode) and n.kept for n in program.walk()):
        from flowscope.plan.placement.kept_lists import tied_with_kept

        program, makers, ties = tied_with_kept(program, devices)
    placer = _Placer(Choices(devices, ties), ties, soft)
    colocated = [n for n in program.walk() if n.origins and n.origins[0].colocation]
    if colocated:
        from flowscope.plan.placement.colocated import check_colocation

        placer.notes += check_colocation(program, colocated, soft)
    if any(d.device_type != "CPU" for d in devices):
        from flowscope.plan.placement.steering import steering

        placer.steering = steering(program)
    plain = [n for n in program.walk() if not n.blocks]
    components = ties.components(plain)
    if by_cost is None:
        for component in components:
            placer.place(component)
    else:
        placer.place_by_cost(program, components, by_cost)
    placer.place_constants(plain)
    for node in program.walk():
        if node.blocks:
            placer.place_owner(node, makers)
    placed = ProgramEdits()
    for (device, reason), nodes in placer.nodes_by_place().items():
        placed.change_all(nodes, {"device": device, "reason": reason})
    found = placed.applied(program)
    notes = tuple(placer.notes)
    return dataclasses.replace(found, notes=(*found.notes, *notes)) if notes else found


def _wishing(program: Program, wishes: Mapping[int, str]) -> Program:
    """Returns the program with other wishes of some operations."""
    edits = ProgramEdits()
    for node in program.walk():
        wish = wishes.get(node.origins[0].id) if node.origins else None
        if wish is not None:
            edits.change(node, requested=wish)
    return edits.applied(program)


class _Placer:
    """Places components; remembers what it found for equal wishes."""

    def __init__(self, choices: Choices, ties: Ties, soft: bool) -> None:
        self._choices = choices
        self._ties = ties
        self._soft = soft
        #: Device and reason of nodes that share with no other, by what their choices depend on.
        self._alone: dict[tuple[object, ...], tuple[str, str]] = {}
        self.notes: list[str] = []
        #: Device and reason of each node.
        self.places: dict[Node, tuple[str, str]] = {}
        #: Nodes that stay on the host, for they steer the program.
        self.steering: set[Node] = set()

    def nodes_by_place(self) -> dict[tuple[str, str], list[Node]]:
        """Returns the nodes by device and reason."""
        found: defaultdict[tuple[str, str], list[Node]] = defaultdict(list)
        for node, place in self.places.items():
            found[place].append(node)
        return found

    def place(self, component: list[Node]) -> None:
        """Chooses the device of nodes that must share one."""
        if len(component) > 1:
            self._place(component)
            return
        (node,) = component
        if node in self.steering:
            host = next(d for d in self._choices.devices if d.device_type == "CPU")
            self.places[node] = str(host), "steers the program, which the host does"
            return
        key = key_of(node)
        found = None if _passed_over(node) else self._alone.get(key)
        if found is not None:
            self.places[node] = found
            return
        notes = len(self.notes)
        self._place(component)
        if len(self.notes) == notes and not _passed_over(node):
            self._alone[key] = self.places[node]

    def place_constants(self, nodes: Sequence[Node]) -> None:
        """Puts constants that nobody has asked a device for where they are used first."""
        free = {
            n for n in nodes
            if type(n.op) is Const and not n.requested and self._ties.root(n) is n
        }  # fmt: skip
        for node in nodes if free else ():
            for value in node.inputs:
                used = value.node
                if used is not None and used in free and not node.blocks:
                    free.discard(used)
                    device = self.places[node][0]
                    if self._choices.allows(used, device):
                        self.places[used] = device, "stands where it is used"

    def place_owner(self, node: Node, makers: Makers) -> None:
        """Puts a branch or a loop where what it goes by is made; else where its first node is."""
        decider = makers.decider(node)
        if decider is not None:
            self.places[node] = self.places[decider][0], f'goes by "{decider.name}"'
            return
        inner = next((n for b in node.blocks for n in b.walk() if not n.blocks), None)
        first = str(self._choices.devices[0])
        device = first if inner is None else self.places[inner][0]
        self.places[node] = device, "goes by what is fed; stands where its first operation does"

    def place_by_cost(
        self, program: Program, components: list[list[Node]], by_cost: ByCost
    ) -> None:
        """Chooses the devices of all components by a simulated step."""
        found = [self._possible(c) for c in components]
        given = [(c, allowed or able) for c, (able, allowed) in zip(components, found, strict=True)]
        answers = by_cost.choose(program, given)
        for component, (_, allowed), answer in zip(components, found, answers, strict=True):
            self._settle(component, *answer, bool(allowed))

    def _place(self, component: list[Node]) -> None:
        able, allowed = self._possible(component)
        wished = allowed or self._where_state_is(component, able) or able
        device = self._choices.name(wished[0])
        self._settle(component, device, None, "the first device with a kernel", bool(allowed))

    def _where_state_is(
        self, component: list[Node], able: Sequence[DeviceSpec]
    ) -> list[DeviceSpec]:
        """Returns the devices that variables ask for, where others contradict: these follow."""
        wishes = [DeviceSpec.from_string(n.requested) for n in component if n.op.is_handle]
        return [d for d in able if any(w.allows(d) for w in wishes) and wishes]

    def _possible(self, component: list[Node]) -> Found:
        """Returns the devices of a component; raises if there is none."""
        able, allowed = self._choices.of(component)
        if able and not allowed:
            allowed = self._choices.led(component)
        if not able or not (allowed or self._soft):
            raise self._choices.refusal(component)
        return able, allowed

    def _settle(
        self, component: list[Node], chosen: str, chooser: Node | None, why: str, is_allowed: bool
    ) -> None:
        """Notes the device of a component, and the reason of each node."""
        fulfilled = [n for n in component if n.requested and self._choices.allows(n, chosen)]
        first, is_there = leader(fulfilled), set(fulfilled)
        for node in component:
            if node.requested and node not in is_there:
                reason = self._moved(node, first if is_allowed else None)
            elif first is None:
                reason = why
                if chooser is not None and node is not chooser:
                    reason = f'shares a device with "{chooser.name}", which {why}'
            elif node is first or (node.requested and not first.op.is_handle):
                reason = f"asked for {node.requested}"
            else:
                reason = f"shares {_with(first)}"
            passed = _passed_over(node)
            if passed and contradict(passed, chosen) and reason.startswith("asked for"):
                reason = f"asked for {passed}, but is colocated with what {reason}"
            elif passed and contradict(passed, chosen):
                reason = f"asked for {passed}, but {reason}"
            self.places[node] = chosen, reason

    def _moved(self, node: Node, first: Node | None) -> str:
        """Says why a wish was passed over: for that of a node which leads, else with a note."""
        if first is not None:
            return f"asked for {node.requested}, but shares {_with(first)}"
        _, allowed = self._choices.of_node(node)
        why = "which what it shares a device with cannot have" if allowed else "which is not there"
        reason = f"asked for {node.requested}, {why}; moved"
        self.notes.append(f'"{node.name}": {reason}')
        return reason


def _passed_over(node: Node) -> str:
    return node.origins[0].passed_over if node.origins else ""


def _with(first: Node) -> str:
    return f'a device with "{first.name}", which asked for {first.requested}'
