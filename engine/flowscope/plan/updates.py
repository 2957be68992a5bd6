"""Updates: where operations run one by one, no write of an update group begins before all can.

What the writes of one group need, and what has to touch their variables before them, comes first;
the group *begins* when all of that is there, and *ends* when the last write is done. In between
nothing waits for others, and a step that is to be held goes on until it has ended. A branch or a
loop that writes for the group is a member as a whole.

Groups that need parts of each other are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from flowscope.plan.edits import in_order
from flowscope.plan.lowering import Accesses, Key, is_ambient
from flowscope.plan.program import Node, Value


@dataclass(frozen=True, eq=False)
class UpdateGroup:
    """The writes of one update group in one block.

    Attributes:
        members: In program order: writes, and nodes whose blocks write.
        values: What must be there before the first of them.
        control: What must be done before.
    """

    members: tuple[Node, ...]
    values: tuple[Value, ...]
    control: tuple[Node, ...]


def gathered(
    nodes: Sequence[Node], keys: Callable[[Node], Mapping[Key, bool]]
) -> tuple[Sequence[Node], list[UpdateGroup]]:
    """Returns the nodes of a block, what its update groups need before them, and the groups.

    Args:
        nodes: The nodes in an order that respects all dependencies.
        keys: Returns the state that a node touches, by whether it writes it.
    """
    members: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.update_groups:
            members.setdefault(name, []).append(node)
    several = [m for m in members.values() if len(m) > 1]
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
        tuple(dict.fromkeys(v for v in values if not is_ambient(v.node))),
        tuple(dict.fromkeys(b for b in control if b not in given)),
    )


def _ordered(
    nodes: Sequence[Node],
    before: Mapping[Node, Iterable[Node]],
    groups: Sequence[UpdateGroup],
) -> list[Node] | None:
    """Returns the nodes, what groups need before their members; None where that is impossible."""
    here = set(nodes)
    missing = {n: set(before[n]) for n in nodes}
    for group in groups:
        needs = {v.node for v in group.values} | set(group.control)
        for node in group.members:
            missing[node] |= {n for n in needs if n in here}
    found = in_order(nodes, missing)
    return found if len(found) == len(nodes) else None


__all__ = ["UpdateGroup", "gathered"]
