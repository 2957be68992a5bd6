"""Trim: branches and loops keep what somebody uses of their results.

A loop may have variables that only its own next iterations would read, and lists that a gradient
reads in another plan: they go, with all that only they need. Which variables stay is a fixpoint:
those that are used afterwards, by the condition, by effects, or by the next value of one that
stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from flowscope.plan.program import Node, Program, Value, is_back_edge, outer_values
from flowscope.plan.rewriting import count_versions
from flowscope.plan.structured import CondNode, LoopNode


def trim(program: Program) -> Program:
    """Returns an ordered program without results of blocks that nothing uses."""
    if not any(n.blocks for n in program.nodes):
        return program
    live = set(program.fetches)
    live.update(v for n in program.nodes for v in n.inputs if is_back_edge(v, n))
    kept = set(program.targets)
    nodes: list[Node] = []
    for node in reversed(program.nodes):
        if not _is_needed(node, live, kept):
            continue
        if isinstance(node, CondNode):
            _trim_cond(node, live)
        elif isinstance(node, LoopNode):
            _trim_loop(node, live)
        live.update(node.inputs)
        kept.update(node.control)
        nodes.append(node)
    nodes.reverse()
    count_versions(nodes)  # what a block no longer does is no access of its node any more
    return dataclasses.replace(program, nodes=tuple(nodes))


def _is_needed(node: Node, live: set[Value], kept: set[Node]) -> bool:
    if node in kept or node.op.type == "Placeholder" or any(v in live for v in node.outputs):
        return True
    return node.has_effect


def _trim_cond(node: CondNode, live: set[Value]) -> None:
    used = [i for i, v in enumerate(node.outputs) if v in live]
    node.outputs = _renumbered([node.outputs[i] for i in used])
    node.blocks = tuple([
        _block(b, b.feeds, [b.fetches[i] for i in used]) for b in node.blocks
    ])  # fmt: skip
    node.inputs = (node.pred, *outer_values(node.blocks))


def _trim_loop(node: LoopNode, live: set[Value]) -> None:
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
    node.blocks = (
        *[_block(b, [b.feeds[i] for i in kept], b.fetches) for b in conditions],
        _block(body, feeds, results),
    )
    given = (*node.starts, *node.taken)
    explicit = [*node.inputs[: op.first], *[given[i] for i in (*kept, *lists)]]
    node.inputs = (*explicit, *outer_values(node.blocks))
    node.outputs = _renumbered([node.outputs[i] for i in (*kept, n, *pushed)])
    node.op = dataclasses.replace(op, variables=len(kept), lists=len(lists))


def _used_feeds(block: Program, wanted: Iterable[Value]) -> set[int]:
    """Returns the positions of the feeds that some values of a block, and its effects, need."""
    live = set(wanted)
    kept: set[Node] = set()
    for node in reversed(block.nodes):
        if _is_needed(node, live, kept):
            live.update(node.inputs)
            kept.update(node.control)
    return {i for i, v in enumerate(block.feeds) if v in live}


def _block(block: Program, feeds: Iterable[Value], fetches: Iterable[Value]) -> Program:
    """Returns a block with these results, and the nodes that they and its effects need."""
    changed = dataclasses.replace(block, feeds=tuple(feeds), fetches=tuple(fetches))
    live, kept = set(changed.fetches), set[Node]()
    nodes = []
    for node in reversed(trim(changed).nodes):
        if _is_needed(node, live, kept):
            live.update(node.inputs)
            kept.update(node.control)
            nodes.append(node)
    return dataclasses.replace(changed, nodes=tuple(reversed(nodes)))


def _renumbered(values: list[Value]) -> tuple[Value, ...]:
    for i, v in enumerate(values):
        v.index = i
    return tuple(values)


__all__ = ["trim"]
