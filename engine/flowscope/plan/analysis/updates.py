"""Update groups: which writes belong together, what they need, and an order in which they adjoin.

A group is an optimizer's update, by the attribute `group` of its writes, or what one `fs.group`
waits for directly. A branch or a loop that writes for a group is a member as a whole. Groups that
need parts of each other are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowscope.ops.core.flow import NoOp
from flowscope.ops.state.update_groups import EndUpdate
from flowscope.plan.analysis.effects import leaves
from flowscope.plan.ir.lowering import Accesses, Key, is_ambient
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import changed, in_order
from flowscope.plan.ir.structured import LoopNode


@dataclass(frozen=True, eq=False)
class UpdateGroup:
    """The writes of one update group in one block.

    Attributes:
        members: In program order: writes, and nodes whose blocks write.
        whole: The members, and what must run between them.
        values: What must be there before the first of them.
        control: What must be done before.
    """

    members: tuple[Node, ...]
    whole: tuple[Node, ...]
    values: tuple[Value, ...]
    control: tuple[Node, ...]


def join(program: Program) -> Program:
    """Returns the program, in which what a NoOp such as `fs.group`'s waits for is a group."""
    names: dict[Node, str] = {}
    for nodes in (program.nodes, *[b.nodes for n in program.walk() for b in n.blocks]):
        waits = [n for n in nodes if isinstance(n.op, NoOp) and len(n.control) > 1]
        for node in sorted(waits, key=lambda n: not _parts(n)):
            _join(node, names)
    return changed(program, {leaf: {"group": name} for leaf, name in names.items()})


def _parts(group: Node) -> list[Node]:
    """Returns the NoOps by which a group on several devices waits on each of them."""
    named = f"{group.name}/"
    return [n for n in group.control if isinstance(n.op, NoOp) and n.name.startswith(named)]


def _join(group: Node, names: dict[Node, str]) -> None:
    """Notes the group of what is written for a NoOp, unless some of that is in one already."""
    waited = [*group.control, *[c for part in _parts(group) for c in part.control]]
    writes = [n for n in waited if n.writes_state and not isinstance(n, LoopNode)]
    leaves_of = {n: [leaf for leaf in leaves(n) if _may_be_grouped(leaf)] for n in writes}
    writes = [n for n in writes if leaves_of[n]]
    is_free = not any(n.update_groups or not names.keys().isdisjoint(leaves_of[n]) for n in writes)
    if len(writes) > 1 and is_free:
        names.update((leaf, group.name) for n in writes for leaf in leaves_of[n])


def _may_be_grouped(leaf: Node) -> bool:
    """Whether a node is no write of something else than a variable, such as of a table."""
    return not leaf.writes_state or any(v.spec.variable is not None for v in leaf.inputs)


def several_writes(nodes: Sequence[Node]) -> list[list[Node]]:
    """Returns the members of each update group in a block that has more than one."""
    members: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.update_groups:
            members.setdefault(name, []).append(node)
    return [m for m in members.values() if len(m) > 1]


def gathered(
    nodes: Sequence[Node], keys: Callable[[Node], Mapping[Key, bool]]
) -> tuple[Sequence[Node], list[UpdateGroup]]:
    """Returns the nodes of a block with each group's side by side behind what it needs.

    Args:
        nodes: The nodes in an order that respects all dependencies; see `let_go`.
        keys: Returns the state that a node touches, by whether it writes it.
    """
    several = several_writes(nodes)
    if not several:
        return nodes, []
    before = _before(nodes, keys)
    groups = [_group(m, nodes, before) for m in several]
    ordered = _ordered(nodes, before, groups)
    if ordered is None:
        found = {n for m in several for n in m}
        groups = [_group([n for n in nodes if n in found], nodes, before)]
        ordered = _ordered(nodes, before, groups)
        assert ordered is not None
    return ordered, groups


def _before(
    nodes: Sequence[Node], keys: Callable[[Node], Mapping[Key, bool]]
) -> dict[Node, dict[Node, None]]:
    """Returns, per node, the nodes of the block that it waits for."""
    own = {n for n in nodes if not is_ambient(n)}
    accesses = Accesses()
    found: dict[Node, dict[Node, None]] = {}
    for node in nodes:
        touched = keys(node)
        ordered = [n for key, writes in touched.items() for n in accesses.before(key, writes)]
        waits = [*(v.node for v in node.inputs), *node.control, *ordered]
        found[node] = dict.fromkeys(n for n in waits if n is not None and n in own)
        for key, writes in touched.items():
            accesses.note(key, node, writes)
    return found


def let_go(block: Program, keys: Callable[[Node], Mapping[Key, bool]]) -> Program:
    """Returns a block in which pure nodes do not wait for members whose values they do not take.

    What such a node computes is the same before the group as after it.

    Args:
        block: The block.
        keys: Returns the state that a node touches, by whether it writes it.
    """
    after = {n for members in several_writes(block.nodes) for n in members}
    if not after:
        return block
    before = _before(block.nodes, keys)
    found: dict[Node, Mapping[str, Any]] = {}
    for node in block.nodes:
        if node in after or not any(b in after for b in before[node]):
            continue
        needs_value = any(v.node in after for v in node.inputs)
        is_pure = node.op.is_pure and not isinstance(node.op, NoOp) and not node.blocks
        if is_pure and not needs_value:
            found[node] = {"control": tuple([c for c in node.control if c not in after])}
        else:
            after.add(node)
    return changed(block, found)


def _group(
    members: list[Node], nodes: Sequence[Node], before: Mapping[Node, Iterable[Node]]
) -> UpdateGroup:
    after, whole = set[Node](), set(members)
    for node in nodes:
        if any(b in after or b in whole for b in before[node]):
            after.add(node)
    for node in reversed(nodes):
        if node in whole:
            whole.update(b for b in before[node] if b in after)
    inside = [n for n in nodes if n in whole]
    values = [v for n in inside for v in n.inputs if v.node not in whole]
    control = [b for n in inside for b in before[n] if b not in whole]
    given = {v.node for v in values}
    return UpdateGroup(
        tuple(members),
        tuple(inside),
        tuple(dict.fromkeys(v for v in values if not is_ambient(v.node))),
        tuple(dict.fromkeys(b for b in control if b not in given)),
    )


def _ordered(
    nodes: Sequence[Node],
    before: Mapping[Node, Iterable[Node]],
    groups: Sequence[UpdateGroup],
) -> list[Node] | None:
    """Returns the nodes with those of a group side by side; None where that is impossible."""
    first = {n: g.whole[0] for g in groups for n in g.whole}
    if len(first) < sum(len(g.whole) for g in groups):
        return None
    whole = {g.whole[0]: g.whole for g in groups}
    units = [n for n in nodes if first.get(n, n) is n]
    missing: dict[Node, set[Node]] = {}
    for unit in units:
        parts = whole.get(unit, (unit,))
        waits = {first.get(b, b) for n in parts for b in _needed(n, before)}
        missing[unit] = waits - {unit}
    found = in_order(units, missing)
    if len(found) < len(units):
        return None
    return [n for unit in found for n in whole.get(unit, (unit,))]


def _needed(node: Node, before: Mapping[Node, Iterable[Node]]) -> Iterator[Node]:
    """Yields what stands before a node: what it waits for, constants and handles too."""
    yield from before[node]
    yield from (v.node for v in node.inputs if v.node is not None and v.node in before)


def unsafe_positions(nodes: tuple[Node, ...]) -> frozenset[int]:
    """Returns the positions before which no safepoint may stand: inside an update group.

    A node with blocks stands for the writes in them; see `unsafe_inside`. A group that is written
    on several devices has an end for each: it is done with all of them, or put back.
    """
    spans = [*_spans(nodes), *_ends(nodes)]
    return frozenset(i for a, b in spans for i in range(a + 1, b + 1))


def unsafe_inside(nodes: tuple[Node, ...]) -> frozenset[int]:
    """Returns the positions of nodes with blocks in which no safepoint may stand at all."""
    return frozenset(i for a, b in _spans(nodes) if a < b for i in range(a, b + 1))


def _spans(nodes: tuple[Node, ...]) -> list[tuple[int, int]]:
    spans: dict[str, tuple[int, int]] = {}
    for i, node in enumerate(nodes):
        for group in node.update_groups:
            first, _ = spans.get(group, (i, i))
            spans[group] = (first, i)
    return list(spans.values())


def _ends(nodes: tuple[Node, ...]) -> list[tuple[int, int]]:
    """Returns the first and the last end of each group: all of them come after the same writes."""
    spans: dict[frozenset[Node], tuple[int, int]] = {}
    for i, node in enumerate(nodes):
        if isinstance(node.op, EndUpdate):
            writes = frozenset(node.control)
            first, _ = spans.get(writes, (i, i))
            spans[writes] = (first, i)
    return list(spans.values())


__all__ = [
    "UpdateGroup",
    "gathered",
    "join",
    "let_go",
    "several_writes",
    "unsafe_inside",
    "unsafe_positions",
]
