"""Which nodes must share a device: components, by union-find.

Nodes share a device that touch one variable or queue, that touch one list or TensorArray - also as
a loop's variable, through branches, in bodies - and that were built in a `colocate_with` block.
Lists never cross from one device to another, their elements do: so who takes elements of a list is
not tied to it. A list that a loop keeps is tied to who makes the kept values, as far as that is
possible (`flowscope.plan.placement.kept_lists`). An empty list is there everywhere, as constants
are. Loops and branches are tied to nothing themselves; those made by hand are one component.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from flowscope.control.dynamic.primitives import (
    Enter,
    Exit,
    Merge,
    NextIteration,
    Primitive,
    Switch,
)
from flowscope.control.lists import EmptyList
from flowscope.graph.values.dtypes import resource, variant
from flowscope.plan.ir.program import Node, Program, Value, is_back_edge
from flowscope.plan.ir.structured import CondNode, LoopNode

_Element = Node | Value
#: The dtypes of what never crosses.
_HELD = (resource, variant)


class Ties:
    """Union-find over nodes and values that remembers why two things were tied."""

    def __init__(self) -> None:
        self._parent: dict[_Element, _Element] = {}
        self._edges: list[tuple[_Element, _Element, str]] = []

    def tie(self, a: _Element, b: _Element, why: str = "") -> None:
        """Ties two things; `why` says what they have in common, if it is not the value itself."""
        self._edges.append((a, b, why))
        x, y = self.root(a), self.root(b)
        if x is not y:
            self._parent[x] = y

    def root(self, one: _Element) -> _Element:
        """The representative of a set of tied elements."""
        parent = self._parent
        while (above := parent.get(one, one)) is not one:
            parent[one] = parent.get(above, above)
            one = above
        return one

    def components(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """Returns the nodes grouped by what they are tied to, in order."""
        groups: dict[_Element, list[Node]] = {}
        parent = self._parent
        for node in nodes:
            groups.setdefault(self.root(node) if node in parent else node, []).append(node)
        return list(groups.values())

    def why(self, a: Node, b: Node) -> str:
        """Says why two nodes of a component share a device: 'both touch variable "v"'."""
        path = self._path(a, b)
        whys = list(dict.fromkeys(filter(None, (_why(*edge) for edge in path))))
        if len(whys) == 1 and len(path) == 2 and not path[0][2]:
            return f"both {whys[0]}"
        steps = list(dict.fromkeys(_step(*edge) for edge in path))
        return ", ".join(filter(None, steps))

    def _path(self, a: Node, b: Node) -> list[tuple[_Element, _Element, str]]:
        """Returns the ties that lead from one node to another, as few as there are."""
        near: defaultdict[_Element, list[tuple[_Element, str]]] = defaultdict(list)
        for x, y, why in self._edges:
            near[x].append((y, why))
            near[y].append((x, why))
        before: dict[_Element, tuple[_Element, str]] = {}
        queue: list[_Element] = [a]
        for one in queue:
            for other, why in near[one]:
                if other is not a and other not in before:
                    before[other] = one, why
                    queue.append(other)
        path: list[tuple[_Element, _Element, str]] = []
        at: _Element = b
        while at is not a:
            earlier, why = before[at]
            path.append((earlier, at, why))
            at = earlier
        return path[::-1]


def _why(a: _Element, b: _Element, why: str) -> str:
    if why:
        return why
    return next((f"touch {thing_of(v)}" for v in (a, b) if isinstance(v, Value)), "")


def _step(a: _Element, b: _Element, why: str) -> str:
    nodes = [f'"{n.name}"' for n in (a, b) if isinstance(n, Node)]
    reason = _why(a, b, why)
    if len(nodes) == 2:
        return f"{nodes[0]} and {nodes[1]} {reason}"
    return f"{nodes[0]} {reason.replace('touch', 'touches', 1)}" if nodes else ""


def thing_of(value: Value) -> str:
    """Says what is touched: a variable, a queue, a list, by its name."""
    if value.spec.dtype is not resource:
        return f'the list "{value.label}"'
    return f'{"resource" if value.spec.variable is None else "variable"} "{value.label}"'


def tied(program: Program) -> Ties:
    """Returns the ties of a program's nodes, those in blocks included, but for kept values."""
    ties = Ties()
    colocated: list[Node] = []
    for node in program.walk():
        if isinstance(node, LoopNode):
            _tie_loop(ties, node)
        elif isinstance(node, CondNode):
            _tie_branches(ties, node)
        else:
            for value in (*node.inputs, *node.outputs):
                if is_held(value):
                    ties.tie(node, value)
            if node.origins and node.origins[0].colocation:
                colocated.append(node)
    if colocated:
        _tie_colocated(ties, program, colocated)
    _tie_handmade(ties, program.nodes)
    return ties


def is_held(value: Value) -> bool:
    """Whether a value never crosses: a handle, a list that may have elements."""
    if value.spec.dtype is variant:
        return value.node is None or type(value.node.op) is not EmptyList
    return value.spec.dtype is resource


def _tie_loop(ties: Ties, loop: LoopNode) -> None:
    for i, start in enumerate(loop.starts):
        if start.spec.dtype in _HELD:
            inside = [b.feeds[i] for b in loop.blocks]
            _tie_held(ties, [*inside, start, loop.next_values[i], loop.results[i]])
    for taken, element in zip(loop.taken, loop.elements, strict=True):
        _tie_held(ties, [taken, element])
    for kept, value in zip(loop.kept, loop.kept_values, strict=True):
        _tie_held(ties, [kept, value])


def _tie_branches(ties: Ties, branch: CondNode) -> None:
    for i, value in enumerate(branch.outputs):
        _tie_held(ties, [value, *[b.fetches[i] for b in branch.blocks]])


def _tie_held(ties: Ties, values: Iterable[Value]) -> None:
    """Ties those of some values that never cross: they are one list, or one handle."""
    held = [v for v in values if is_held(v)]
    for a, b in zip(held, held[1:], strict=False):
        ties.tie(a, b)


def _tie_colocated(ties: Ties, program: Program, nodes: list[Node]) -> None:
    """Ties nodes to those that their `colocate_with` names: of the same call, where there are.

    The first origin of a node is the operation that it computes; what others asked for, which were
    dropped for it, goes with them.
    """
    by_name: defaultdict[str, list[Node]] = defaultdict(list)
    for node in program.walk():
        if not node.blocks:
            for origin in node.origins[:1]:
                by_name[origin.name].append(node)
            if node.origins and node.name != node.origins[0].name:
                by_name[node.name].append(node)
    for node in nodes:
        for name in node.origins[0].colocation:
            found = by_name.get(name, ())
            for other in [n for n in found if n.path == node.path] or found:
                if other is not node:
                    ties.tie(node, other, "were colocated")


def _tie_handmade(ties: Ties, nodes: Sequence[Node]) -> None:
    """Ties what stands in loops and branches that were made by hand."""
    primitives = [n for n in nodes if isinstance(n.op, Primitive)]
    if not primitives:
        return
    after: defaultdict[Node, list[Node]] = defaultdict(list)
    for node in nodes:
        for earlier in _before(node):
            after[earlier].append(node)
    starts = [n for n in primitives if isinstance(n.op, Switch | Enter | NextIteration)]
    within = _reached(starts, lambda n: () if _closes(n) else after[n])
    between = _reached(primitives, lambda n: after[n]) & _reached(primitives, _before)
    group = [n for n in nodes if n in within or n in between]
    for a, b in zip(group, group[1:], strict=False):
        ties.tie(a, b, "stand in a loop or branch made by hand, which runs on one device")


def _before(node: Node) -> Iterator[Node]:
    yield from (v.node for v in node.inputs if v.node is not None)
    yield from node.control


def _closes(node: Node) -> bool:
    """Whether what takes its output stands behind the loop or branch."""
    is_end = isinstance(node.op, Merge) and not any(is_back_edge(v, node) for v in node.inputs)
    return is_end or isinstance(node.op, Exit)


def _reached(starts: Iterable[Node], follow: Callable[[Node], Iterable[Node]]) -> set[Node]:
    found, stack = set(starts), list(starts)
    while stack:
        for node in follow(stack.pop()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


__all__ = ["Ties", "is_held", "thing_of", "tied"]
