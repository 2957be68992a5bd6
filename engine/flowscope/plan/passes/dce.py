"""Dead-code elimination: branches and loops keep what somebody uses of their results.

A loop may have variables that only its own next iterations would read, and lists that a gradient
reads in another plan: they go, with all that only they need. Which variables stay is a fixpoint:
those that are used afterwards, by the condition, by effects, or by the next value of one that
stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from flowscope.ops.core.flow import Placeholder
from flowscope.plan.ir.program import Node, Program, Value, is_back_edge, outer_values
from flowscope.plan.ir.rewriting import ProgramEdits, with_nodes
from flowscope.plan.ir.structured import CondNode, LoopNode


def eliminate_dead_code(program: Program) -> Program:
    """Returns an ordered program without results of blocks that nothing uses."""
    if not any(n.blocks for n in program.nodes):
        return program
    edits = ProgramEdits()
    live = set(program.fetches)
    live.update(v for n in program.nodes for v in n.inputs if is_back_edge(v, n))
    kept = set(program.targets)
    for node in reversed(program.nodes):
        if not _is_needed(node, live, kept):
            edits.drop(node)
            continue
        if isinstance(node, CondNode):
            live.update(_trim_cond(node, live, edits))
        elif isinstance(node, LoopNode):
            live.update(_trim_loop(node, live, edits))
        else:
            live.update(node.inputs)
        kept.update(node.control)
    return edits.applied(program)


def _is_needed(node: Node, live: set[Value], kept: set[Node]) -> bool:
    if node in kept or isinstance(node.op, Placeholder) or any(v in live for v in node.outputs):
        return True
    return node.has_effect


def _trim_cond(node: CondNode, live: set[Value], edits: ProgramEdits) -> list[Value]:
    """Leaves to a branch the results that are used; returns what it takes then."""
    used = [i for i, v in enumerate(node.outputs) if v in live]
    blocks = [_block(b, b.feeds, [b.fetches[i] for i in used]) for b in node.blocks]
    return _trimmed(node, [node.pred], blocks, used, edits)


def _trim_loop(node: LoopNode, live: set[Value], edits: ProgramEdits) -> list[Value]:
    """Leaves to a loop the variables and lists that are used; returns what it takes then."""
    op, body, conditions = node.op, node.body, node.conditions
    n = node.variables
    pushed = [j for j in range(n + 1, len(node.outputs)) if node.outputs[j] in live]
    variables = {i for i in range(n) if node.outputs[i] in live}
    for block in conditions:
        variables |= _used_feeds(block, block.fetches)
    while True:
        wanted = [body.fetches[i] for i in variables] + [body.fetches[j - 1] for j in pushed]
        used = _used_feeds(body, wanted)
        if {i for i in used if i < n} <= variables:
            break
        variables |= {i for i in used if i < n}
    kept = sorted(variables)
    lists = sorted(i for i in used if i >= n)
    results = [body.fetches[i] for i in kept] + [body.fetches[j - 1] for j in pushed]
    feeds = [body.feeds[i] for i in (*kept, *lists)]
    blocks = [
        *[_block(b, [b.feeds[i] for i in kept], b.fetches) for b in conditions],
        _block(body, feeds, results),
    ]
    if len(kept) < n or len(lists) < node.lists:
        edits.change(node, op=dataclasses.replace(op, variables=len(kept), lists=len(lists)))
    given = (*node.starts, *node.taken)
    explicit = [*node.inputs[: op.first], *[given[i] for i in (*kept, *lists)]]
    return _trimmed(node, explicit, blocks, [*kept, n, *pushed], edits)


def _trimmed(
    node: Node, explicit: list[Value], blocks: list[Program], used: list[int], edits: ProgramEdits
) -> list[Value]:
    """Gives a node these blocks, and some of its outputs; returns what it takes then."""
    if any(a is not b for a, b in zip(blocks, node.blocks, strict=True)):
        outputs = tuple([node.outputs[i] for i in used])
        edits.change(node, inputs=tuple(explicit), blocks=tuple(blocks), outputs=outputs)
    return [*explicit, *outer_values(blocks)]


def _used_feeds(block: Program, wanted: Iterable[Value]) -> set[int]:
    """Returns the positions of the feeds that some values of a block, and its effects, need."""
    live = set(wanted)
    kept: set[Node] = set()
    for node in reversed(block.nodes):
        if _is_needed(node, live, kept):
            live.update(node.inputs)
            kept.update(node.control)
    return {i for i, v in enumerate(block.feeds) if v in live}


def _block(block: Program, feeds: Sequence[Value], fetches: Sequence[Value]) -> Program:
    """Returns a block with these results, and the nodes that they and its effects need."""
    if len(feeds) < len(block.feeds) or len(fetches) < len(block.fetches):
        block = dataclasses.replace(block, feeds=tuple(feeds), fetches=tuple(fetches))
    found = eliminate_dead_code(block)
    live, kept = set(found.fetches), set[Node]()
    nodes = []
    for node in reversed(found.nodes):
        if _is_needed(node, live, kept):
            live.update(node.inputs)
            kept.update(node.control)
            nodes.append(node)
    return with_nodes(found, nodes[::-1])


__all__ = ["eliminate_dead_code"]
