"""Invariants: what is the same in all iterations of a loop is taken out of it.

Two rules:

- a variable that a loop's body reads is read before the loop, if the loop does nothing but compute:
  no effect, nothing that waits. What stands in a condition stays: it may wait for another step;
- what a forward loop would keep of such a value, a backward loop uses as it is, without a list.

The first rule is right because every iteration reads the same value: the one that the variable has
where the loop stands. So the read takes the loop's place in program order, after the writes that
the loop comes after (its *version* is counted anew there), and waits for what the loop waits for.
"""

from __future__ import annotations

import dataclasses

from flowscope.plan.program import Node, Program, Value
from flowscope.plan.rewriting import count_versions, explicit_inputs, replaced, with_blocks
from flowscope.plan.structured import LoopNode


def invariants(program: Program) -> Program:
    """Returns the ordered program with less in its loops."""
    if not any(n.blocks for n in program.nodes):
        return program
    nodes: list[Node] = []
    late: set[Node] = set()
    for node in program.nodes:
        if _is_late(node, late):
            late.add(node)
        if node.blocks:
            explicit = explicit_inputs(node)
            with_blocks(node, tuple([invariants(b) for b in node.blocks]), explicit)
        if isinstance(node, LoopNode):
            nodes += _hoisted(node, late)
        nodes.append(node)
    count_versions(nodes)
    for node in nodes:
        if isinstance(node, LoopNode):
            _unlist(node, nodes)
    return dataclasses.replace(program, nodes=tuple(nodes))


def _is_late(node: Node, late: set[Node]) -> bool:
    """Whether an effect comes before a node: then what is read before it may be another value."""
    has_effect = node.has_effect and not node.op.is_handle
    return has_effect or any(n in late for n in _before(node))


def _before(node: Node) -> list[Node]:
    return [*(v.node for v in node.inputs if v.node is not None), *node.control]


def _hoisted(node: LoopNode, late: set[Node]) -> list[Node]:
    """Takes reads of variables out of a loop's body; returns them."""
    if node.has_effect or any(n.op.is_blocking for b in node.blocks for n in b.walk()):
        return []
    body = node.body
    own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
    found = [n for n in body.nodes if _is_read(n) and own.isdisjoint(n.inputs)]
    rest = tuple([n for n in body.nodes if n not in found])
    explicit = node.explicit
    with_blocks(node, (*node.conditions, dataclasses.replace(body, nodes=rest)), explicit)
    waits = [*node.control, *[v.node for v in explicit if v.node is not None]]
    for read in found:
        read.control = tuple(dict.fromkeys(n for n in waits if n in late))
    _wait_outside(node, found)
    return found


def _wait_outside(node: LoopNode, reads: list[Node]) -> None:
    """Has a loop wait for reads that were taken out of it, where nodes of its body waited."""
    waited: dict[Node, None] = {}
    for inner in node.body.walk() if reads else ():
        if any(c in reads for c in inner.control):
            waited.update((c, None) for c in inner.control if c in reads)
            inner.control = tuple([c for c in inner.control if c not in reads])
    node.control = (*node.control, *waited)


def _is_read(node: Node) -> bool:
    is_plain = node.op.type == "ReadVariableOp" and not node.control
    return is_plain and not node.op.has_effect


def _unlist(forward: LoopNode, nodes: list[Node]) -> None:
    """Has loops use the values that a forward loop keeps alike in every iteration."""
    body = forward.body
    own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
    pairs = zip(forward.kept, forward.kept_values, strict=True)
    same = {kept: value for kept, value in pairs if value not in own}
    if same:
        for node in nodes:
            if isinstance(node, LoopNode) and not same.keys().isdisjoint(node.inputs):
                _use(node, same)


def _use(node: LoopNode, same: dict[Value, Value]) -> None:
    body, op = node.body, node.op
    pairs = list(zip(node.taken, node.elements, strict=True))
    inside = {element: same[kept] for kept, element in pairs if kept in same}
    feeds = tuple([f for f in body.feeds if f not in inside])
    lists = [kept for kept, _ in pairs if kept not in same]
    left = (*node.inputs[: op.first], *node.starts, *lists)
    body = replaced(dataclasses.replace(body, feeds=feeds), inside)
    node.op = dataclasses.replace(op, lists=len(lists))
    with_blocks(node, (*node.conditions, body), left)


__all__ = ["invariants"]
