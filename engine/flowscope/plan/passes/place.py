"""Place: a device for every node. So far the first device that wishes and kernels allow.

Nodes that must share a device - those that were built in a `colocate_with` block, and all that
touch one variable - form a component (union-find); a component's devices are those that all its
members allow (SPEC W14).

What stands in branches and loops runs where these do. A wish in there for a device of the same
memory is fulfilled; one for another memory moves the whole where it can.

A program is not cut yet: one whose nodes would lie in different memories runs on the CPU as a
whole, and a note says why.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence

from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.dtypes import SMALL, string
from flowscope.graph.op import has_kernel
from flowscope.graph.operation import where
from flowscope.plan.origins import named
from flowscope.plan.program import Node, Program
from flowscope.plan.rewriting import Edits

#: Dtypes that only the CPU's array module has.
_CPU_ONLY = SMALL | {string}


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
    placer = _Placer(devices, soft)
    for component in _components(program.nodes):
        placer.place(component)
    gathered = _gathered(program.nodes, devices, placer.places)
    for node in program.nodes:
        for inner in _inside(node):
            placer.place_inside(inner, node)
    placed = Edits()
    for (device, reason), nodes in placer.nodes_by_place().items():
        placed.change_all(nodes, {"device": device, "reason": reason})
    found = placed.applied(program)
    notes = (*placer.notes, *gathered)
    return dataclasses.replace(found, notes=(*found.notes, *notes)) if notes else found


def _inside(node: Node) -> Iterator[Node]:
    """Yields the nodes in a node's blocks."""
    for block in node.blocks:
        yield from block.walk()


def _memory(device: str) -> str:
    """Returns what names the memory of a device: all CPUs of a process share theirs."""
    head, _, kind = device.rpartition("/device:")
    return f"{head}/device:CPU" if kind.startswith("CPU") else device


def _gathered(
    nodes: Sequence[Node], devices: Sequence[DeviceSpec], at: dict[Node, tuple[str, str]]
) -> list[str]:
    """Moves all nodes to the CPU if they lie in different memories; returns a note if so."""
    if len({_memory(device) for device in {device for device, _ in at.values()}}) < 2:
        return []
    first: dict[str, Node] = {}
    for node in nodes:
        first.setdefault(_memory(at[node][0]), node)
    cpu = next(d for d in devices if d.device_type == "CPU")
    stuck = next((n for n in nodes if not _can_run(n, cpu)), None)
    if stuck is not None:
        raise InvalidArgumentError(
            "no device has kernels for the whole program, and it cannot be cut yet: "
            f"{stuck.op.type} does not run on {cpu}"
        ).located(op=named(stuck.name, stuck.origins), op_type=stuck.op.type, **_where(stuck))
    places = ", ".join(f'{at[n][0]} ("{n.name}": {at[n][1]})' for n in first.values())
    why = f"the program needs {places}, and cannot be cut yet: it runs on {cpu} as a whole"
    for node in nodes:
        if _memory(at[node][0]) != _memory(str(cpu)):
            at[node] = str(cpu), why
    return [why]


def _can_run(node: Node, device: DeviceSpec) -> bool:
    """Whether the device has a kernel for the node's op, and can hold its values.

    A node with blocks lies where all that they run can.
    """
    if node.blocks:
        return all(_can_run(n, device) for b in node.blocks for n in b.nodes)
    if not has_kernel(node.op, device.device_type or ""):
        return False
    return device.device_type == "CPU" or _is_plain(node)


def _is_plain(node: Node) -> bool:
    return not any(v.spec.dtype in _CPU_ONLY for v in (*node.inputs, *node.outputs))


def _where(node: Node) -> dict[str, str | None]:
    return where(node.origins[0]) if node.origins else {}


def _components(nodes: Sequence[Node]) -> list[list[Node]]:
    """Returns the nodes grouped by whom they must share a device with, in order."""
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while (above := parent.get(node, node)) is not node:
            parent[node] = parent.get(above, above)
            node = above
        return node

    by_name: dict[str, Node] | None = None
    for node in nodes:
        partners = list(node.handles)
        names = [name for o in node.origins for name in o.colocation]
        if names:
            by_name = by_name or {n.name: n for n in nodes}
            partners += [by_name[name] for name in names if name in by_name]
        for partner in partners:
            parent[root(node)] = root(partner)
    groups: dict[Node, list[Node]] = {}
    for node in nodes:
        groups.setdefault(root(node) if parent else node, []).append(node)
    return list(groups.values())


class _Placer:
    """Places components; remembers what it found for equal wishes."""

    def __init__(self, devices: Sequence[DeviceSpec], soft: bool) -> None:
        self._devices = devices
        self._soft = soft
        self._allowed: dict[tuple[object, ...], tuple[list[DeviceSpec], list[DeviceSpec]]] = {}
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
        key = _key(node)
        found = self._alone.get(key)
        if found is not None:
            self.places[node] = found
            return
        notes = len(self.notes)
        self._place(component)
        if len(self.notes) == notes:
            self._alone[key] = self.places[node]

    def _place(self, component: list[Node]) -> None:
        able, allowed = self._choices(component[0])
        for node in component[1:]:
            also_able, also_allowed = self._choices(node)
            able = [d for d in able if d in also_able]
            allowed = [d for d in allowed if d in also_allowed]
        if not able or not (allowed or self._soft):
            raise self._impossible(component, able)
        chosen = str((allowed or able)[0])
        asked = next((n for n in component if _wish(n)), None)
        for node in component:
            reason = _reason(node, asked, bool(allowed))
            self.places[node] = chosen, reason
            if not allowed and _wish(node):
                self.notes.append(f'"{node.name}": {reason}')

    def place_inside(self, node: Node, owner: Node) -> None:
        """Places a node that runs where the branch or loop around it does."""
        device, reason = self.places[owner][0], f'runs where "{owner.name}" does'
        self.places[node] = device, reason
        wish = _wish(node)
        if not wish:
            return
        able, allowed = self._choices(node)
        near = [d for d in allowed if _memory(str(d)) == _memory(device)]
        if near:
            self.places[node] = str(near[0]), f"asked for {wish}"
            return
        if not allowed and not self._soft:
            raise self._impossible([node], able)
        what = "lies in another memory" if allowed else "is not there"
        reason = f'asked for {wish}, which {what}; runs where "{owner.name}" does'
        self.places[node] = device, reason
        self.notes.append(f'"{node.name}": {reason}')

    def _suits(self, node: Node, device: DeviceSpec) -> bool:
        """Whether all that is asked for in a node's blocks is in a device's memory."""
        memory = _memory(str(device))
        wishes = [inner for inner in _inside(node) if _wish(inner)]
        return all(memory in {_memory(str(d)) for d in self._choices(n)[1]} for n in wishes)

    def _choices(self, node: Node) -> tuple[list[DeviceSpec], list[DeviceSpec]]:
        """Returns the devices that have a kernel, and those among them that the wish allows."""
        key = _key(node)
        found = None if node.blocks else self._allowed.get(key)
        if found is None:
            able = [d for d in self._devices if _can_run(node, d)]
            wish = DeviceSpec.from_string(_wish(node))
            allowed = [d for d in able if wish.allows(d)]
            if node.blocks:
                allowed = [d for d in allowed if self._suits(node, d)] or allowed
            found = able, allowed
            if not node.blocks:
                self._allowed[key] = found
        return found

    def _impossible(self, component: list[Node], able: list[DeviceSpec]) -> InvalidArgumentError:
        bad = next((n for n in component if not self._choices(n)[bool(able)]), None)
        names = ", ".join(str(d) for d in self._devices)
        hint = "; ConfigProto(allow_soft_placement=True) would move it" if able else ""
        if bad is None:
            node = component[0]
            what = "nodes that must share a device ask for different ones: " + _wishes(component)
        else:
            node = bad
            what = (
                f"no device fits {_wish(node)!r}"
                if able
                else f"no device has a kernel for {node.op.type}"
            )
        error = InvalidArgumentError(f"{what}; this session has {names}{hint}")
        return error.located(
            op=named(node.name, node.origins), op_type=node.op.type, **_where(node)
        )


def _key(node: Node) -> tuple[object, ...]:
    """Returns all that a node's choices depend on."""
    return _wish(node), type(node.op), node.op.devices, _is_plain(node)


def _wish(node: Node) -> str:
    """Returns the device that the user asked for: what touches a variable goes where that is."""
    return "" if node.handles else node.requested


def _wishes(component: list[Node]) -> str:
    asked = [n for n in component if _wish(n)] or component
    return ", ".join(f'"{n.name}" for {_wish(n) or "any"}' for n in asked[:6])


def _reason(node: Node, asked: Node | None, is_fulfilled: bool) -> str:
    wish = _wish(node)
    if wish:
        moved = "" if is_fulfilled else ", which is not there; moved"
        return f"asked for {wish}{moved}"
    if asked is not None and is_fulfilled:
        return f'shares a device with "{asked.name}", which asked for {asked.requested}'
    return "the first device with a kernel"
