"""Place: a device for every node, those in branches and loops included.

Nodes that must share a device form a component (`flowscope.plan.placement.ties`); a component's
devices are those with all its kernels that all its wishes allow (SPEC W14). As in TensorFlow the
first of them is taken, accelerators first. A constant that nobody has asked a device for stands
where it is used. A branch or a loop itself is where its condition is made.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from flowscope.graph.constant import Const
from flowscope.graph.devices import DeviceSpec
from flowscope.plan.placement.choices import Choices, key_of
from flowscope.plan.placement.makers import Makers
from flowscope.plan.placement.ties import Ties, tied
from flowscope.plan.program import Node, Program
from flowscope.plan.rewriting import Edits


def place(program: Program, devices: Sequence[DeviceSpec], soft: bool) -> Program:
    """Returns the program with `device` and `reason` set on every node.

    Args:
        program: An ordered program.
        devices: The devices of the session, best first.
        soft: Whether a wish that cannot be fulfilled is passed over, with a note.

    Raises:
        InvalidArgumentError: if a wish cannot be fulfilled, or the wishes of nodes that must share
            a device contradict each other, and `soft` is not set.
    """
    makers = Makers(program)
    ties = tied(program, makers)
    placer = _Placer(Choices(devices, ties), ties, soft)
    plain = [n for n in program.walk() if not n.blocks]
    for component in ties.components(plain):
        placer.place(component)
    placer.place_constants(plain)
    for node in program.walk():
        if node.blocks:
            placer.place_owner(node, makers)
    placed = Edits()
    for (device, reason), nodes in placer.nodes_by_place().items():
        placed.change_all(nodes, {"device": device, "reason": reason})
    found = placed.applied(program)
    notes = tuple(placer.notes)
    return dataclasses.replace(found, notes=(*found.notes, *notes)) if notes else found


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
        key = key_of(node)
        found = self._alone.get(key)
        if found is not None:
            self.places[node] = found
            return
        notes = len(self.notes)
        self._place(component)
        if len(self.notes) == notes:
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
                    if device in [str(d) for d in self._choices.of_node(used)[1]]:
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

    def _place(self, component: list[Node]) -> None:
        able, allowed = self._choices.of(component)
        if not able or not (allowed or self._soft):
            raise self._choices.refusal(component)
        chosen = str((allowed or able)[0])
        wishes = [n for n in component if n.requested]
        asked = next((n for n in wishes if n.op.is_handle), wishes[0] if wishes else None)
        for node in component:
            if not allowed and node.requested:
                reason = self._moved(node)
                self.notes.append(f'"{node.name}": {reason}')
            else:
                reason = _reason(node, asked if allowed else None)
            self.places[node] = chosen, reason

    def _moved(self, node: Node) -> str:
        """Says why a wish was passed over."""
        _, allowed = self._choices.of_node(node)
        why = "which what it shares a device with cannot have" if allowed else "which is not there"
        return f"asked for {node.requested}, {why}; moved"


def _reason(node: Node, asked: Node | None) -> str:
    if node.requested and (asked is None or node is asked or not asked.op.is_handle):
        return f"asked for {node.requested}"
    if asked is not None:
        return f'shares a device with "{asked.name}", which asked for {asked.requested}'
    return "the first device with a kernel"
