"""Loop-invariant code motion: what is the same in all iterations of a loop is taken out of it.

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

from flowscope.ops.state.variable_ops import ReadVariableOp
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import ProgramEdits, changed, replaced
from flowscope.plan.ir.structured import LoopNode


def hoist_loop_invariants(program: Program) -> Program:
    """Returns the ordered program with less in its loops."""
    if not any(n.blocks for n in program.nodes):
        return program
    inner = {n: tuple([hoist_loop_invariants(b) for b in n.blocks]) for n in program.nodes}
    program = changed(program, {n: {"blocks": b} for n, b in inner.items() if b != n.blocks})
    return _without_lists(_hoisted(program))


def _hoisted(program: Program) -> Program:
    """Returns the program with reads of variables before the loops whose bodies read them."""
    edits = ProgramEdits()
    late: set[Node] = set()
    for node in program.nodes:
        if _is_late(node, late):
            late.add(node)
        if isinstance(node, LoopNode):
            _hoist(node, late, edits)
    return edits.applied(program)


def _is_late(node: Node, late: set[Node]) -> bool:
    """Whether an effect comes before a node: then what is read before it may be another value."""
    has_effect = node.has_effect and not node.op.is_handle
    return has_effect or any(n in late for n in _before(node))


def _before(node: Node) -> list[Node]:
    return [*(v.node for v in node.inputs if v.node is not None), *node.control]


def _hoist(node: LoopNode, late: set[Node], edits: ProgramEdits) -> None:
    """Takes reads of variables out of a loop's body."""
    if node.has_effect or any(n.op.is_blocking for b in node.blocks for n in b.walk()):
        return
    body = node.body
    own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
    found = [n for n in body.nodes if _is_read(n) and own.isdisjoint(n.inputs)]
    if not found:
        return
    waits = [*node.control, *[v.node for v in node.explicit if v.node is not None]]
    control = tuple(dict.fromkeys(n for n in waits if n in late))
    reads = {read: read.copy() for read in found}
    for read, made in reads.items():
        made.control = control
        edits.drop(read)
        edits.same.update(zip(read.outputs, made.outputs, strict=True))
    edits.insert(reads.values(), node)
    _wait_outside(node, reads, edits)


def _wait_outside(node: LoopNode, reads: dict[Node, Node], edits: ProgramEdits) -> None:
    """Has a loop wait for reads that were taken out of it, where nodes of its body waited."""
    waited = dict.fromkeys(reads[c] for n in node.body.walk() for c in n.control if c in reads)
    if waited:
        edits.change(node, control=(*node.control, *waited))


def _is_read(node: Node) -> bool:
    is_plain = isinstance(node.op, ReadVariableOp) and not node.control
    return is_plain and not node.op.has_effect


def _without_lists(program: Program) -> Program:
    """Returns the program, its loops using the values that a forward loop keeps always alike."""
    same: dict[Value, Value] = {}
    for node in program.nodes:
        if isinstance(node, LoopNode):
            body = node.body
            own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
            pairs = zip(node.kept, node.kept_values, strict=True)
            same.update((kept, value) for kept, value in pairs if value not in own)
    edits = ProgramEdits()
    for node in program.nodes:
        if isinstance(node, LoopNode) and not same.keys().isdisjoint(node.taken):
            _use(node, same, edits)
    return edits.applied(program)


def _use(node: LoopNode, same: dict[Value, Value], edits: ProgramEdits) -> None:
    """Has a loop use values as they are, in the place of elements of lists."""
    body, op = node.body, node.op
    pairs = list(zip(node.taken, node.elements, strict=True))
    inside = {element: same[kept] for kept, element in pairs if kept in same}
    feeds = tuple([f for f in body.feeds if f not in inside])
    lists = [kept for kept, _ in pairs if kept not in same]
    left = (*node.inputs[: op.first], *node.starts, *lists)
    body = replaced(dataclasses.replace(body, feeds=feeds), inside)
    less = dataclasses.replace(op, lists=len(lists))
    edits.change(node, op=less, inputs=left, blocks=(*node.conditions, body))


__all__ = ["hoist_loop_invariants"]
