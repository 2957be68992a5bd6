"""Which devices a component of nodes can have: those with all its kernels, by its wishes.

Of nodes that touch one resource or list, and contradict each other, one leads: who makes the
resource's handle or what the list keeps, else the first one that was built. The others follow it,
as TensorFlow's do. What cannot be is an error that names the component: two of its nodes that
contradict each other, what each asks for and at which line, and what they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowscope.errors import InvalidArgumentError
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.op import Spec, has_kernel
from flowscope.graph.operation import where
from flowscope.graph.values.dtypes import SMALL, string
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node
from flowscope.plan.placement.ties import Ties, is_held

#: Dtypes that only the CPU's array module has.
_CPU_ONLY = SMALL | {string}
#: What `Choices.of` returns of a component: devices with kernels, and those that wishes allow.
Found = tuple[list[DeviceSpec], list[DeviceSpec]]


class Choices:
    """Finds the devices of components; remembers what it found for equal nodes.

    Args:
        devices: The devices of the session, best first.
        ties: Why nodes share a device.
    """

    def __init__(self, devices: Sequence[DeviceSpec], ties: Ties | None = None) -> None:
        self.devices = devices
        self._ties = ties or Ties()
        self._known: dict[tuple[object, ...], Found] = {}
        self._names = {id(d): str(d) for d in devices}
        self._sets: dict[int, frozenset[str]] = {}

    def of(self, component: Sequence[Node]) -> Found:
        """Returns the devices with kernels for all nodes, and those that all wishes allow too."""
        able, allowed = self.of_node(component[0])
        for node in component[1:]:
            also_able, also_allowed = self.of_node(node)
            if also_able is not able:
                able = [d for d in able if d in also_able]
            if also_allowed is not allowed:
                allowed = [d for d in allowed if d in also_allowed]
        return able, allowed

    def of_node(self, node: Node) -> Found:
        """Returns the same for one node."""
        key = key_of(node)
        found = self._known.get(key)
        if found is None:
            able = [d for d in self.devices if can_run(node, d)]
            wish = DeviceSpec.from_string(node.requested)
            found = self._known[key] = able, [d for d in able if wish.allows(d)]
        return found

    def led(self, component: Sequence[Node]) -> list[DeviceSpec]:
        """Returns the devices with kernels that are allowed where those that can follow do so."""
        able, _ = self.of(component)
        if not all(self.of_node(n)[1] for n in component):
            return []  # one asks for what is not there
        lists = [self.of_node(n)[1] for n in _binding(component)]
        return [d for d in able if all(d in allowed for allowed in lists)]

    def name(self, device: DeviceSpec) -> str:
        """Returns the full name of one of the devices."""
        return self._names[id(device)]

    def allows(self, node: Node, device: str) -> bool:
        """Whether a node could have the device of this name."""
        _, allowed = self.of_node(node)
        found = self._sets.get(id(allowed))
        if found is None:
            found = self._sets[id(allowed)] = frozenset(map(self.name, allowed))
        return device in found

    def refusal(self, component: Sequence[Node]) -> InvalidArgumentError:
        """Returns the error for a component that no device fits."""
        able, _ = self.of(component)
        which = 1 if able else 0
        alone = next((n for n in component if not self.of_node(n)[which]), None)
        if alone is not None:
            node, what = alone, self._alone(alone)
        else:
            node, other = self._contradiction(_binding(component) if which else component, which)
            what = f"{self._says(node, which)}, {self._says(other, which)}"
            what += f"; {self._ties.why(node, other)}" if other is not node else ""
        names = ", ".join(str(d) for d in self.devices)
        hint = "; ConfigProto(allow_soft_placement=True) would move it" if able else ""
        error = InvalidArgumentError(f"{what}; this session has {names}{hint}")
        return error.located(
            op=named(node.name, node.origins), op_type=node.op.type, **place_of(node)
        )

    def _alone(self, node: Node) -> str:
        able, _ = self.of_node(node)
        return (
            f"no device fits {node.requested!r}"
            if able
            else f"no device has a kernel for {node.op.type}"
        )

    def _contradiction(self, component: Sequence[Node], which: int) -> tuple[Node, Node]:
        """Returns two nodes whose devices have nothing in common: those with wishes first."""
        nodes = sorted(component, key=lambda n: not n.requested)
        first = {key_of(n): n for n in reversed(nodes)}
        some = [first[k] for k in dict.fromkeys(key_of(n) for n in nodes)]
        for i, node in enumerate(some):
            mine = self.of_node(node)[which]
            for other in some[i + 1 :]:
                if not any(d in mine for d in self.of_node(other)[which]):
                    return node, other
        return some[0], some[-1]

    def _says(self, node: Node, which: int) -> str:
        """Says what a node wants, or what it has kernels for."""
        place = place_of(node).get("origin")
        at = f" in {place}" if place else ""
        if which and node.requested and len(self.of_node(node)[0]) == len(self.devices):
            return f'"{node.name}" asks for {node.requested}{at}'
        kinds = dict.fromkeys(d.device_type or "" for d in self.of_node(node)[0])
        asks = f" and asks for {node.requested}" if node.requested else ""
        return f'"{node.name}" ({node.op.type}{at}) runs on {", ".join(kinds)} only{asks}'


def leader(component: Iterable[Node]) -> Node | None:
    """Returns the node whose wish others follow that touch the same; None if none has a wish."""
    return min([n for n in component if n.requested], key=_precedence, default=None)


def _precedence(node: Node) -> tuple[int, int]:
    """Sort key: makers of handles first, then nodes that follow none, in the order of creation."""
    rank = 0 if node.op.is_handle else 1 + _touches(node)
    return rank, node.origins[0].id if node.origins else 0


def _binding(component: Sequence[Node]) -> list[Node]:
    """Returns the nodes whose wishes count where those that can follow do so."""
    first = leader(component)
    return [n for n in component if n is first or is_binding(n)]


def is_binding(node: Node) -> bool:
    """Whether a node's wish counts whatever others ask for: it does not follow what it touches."""
    return node.op.is_handle or not _touches(node)


def _touches(node: Node) -> bool:
    """Whether a node makes, takes or gives a handle or a list."""
    return any(map(is_held, node.outputs)) or any(map(is_held, node.inputs))


def key_of(node: Node) -> tuple[object, ...]:
    """Returns all that a node's choices depend on."""
    return node.requested, type(node.op), node.op.devices, is_plain(node)


def can_run(node: Node, device: DeviceSpec) -> bool:
    """Whether the device has a kernel for the node's op, and can hold its values."""
    if not has_kernel(node.op, device.device_type or ""):
        return False
    return device.device_type == "CPU" or is_plain(node)


def is_plain(node: Node) -> bool:
    """Whether all devices can hold a node's values."""
    for v in node.inputs:
        if v.spec.dtype in _CPU_ONLY or (v.spec.variable is not None and not _fits(v.spec)):
            return False
    for v in node.outputs:
        if v.spec.dtype in _CPU_ONLY or (v.spec.variable is not None and not _fits(v.spec)):
            return False
    return True


def _fits(spec: Spec | None) -> bool:
    while spec is not None:
        if spec.dtype in _CPU_ONLY:
            return False
        spec = spec.variable
    return True


def place_of(node: Node) -> dict[str, str | None]:
    """Returns the facts of an error about the line that made a node."""
    return where(node.origins[0]) if node.origins else {}


__all__ = ["Choices", "Found", "can_run", "is_binding", "is_plain", "key_of", "leader", "place_of"]
