"""Edits of programs that several passes make."""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from flowscope.graph.op import Op
from flowscope.plan.origins import OperationRef
from flowscope.plan.program import Node, Program, Value, outer_values


def explicit_inputs(node: Node) -> tuple[Value, ...]:
    """Returns a node's inputs without those that only its blocks use."""
    return node.inputs[: len(node.inputs) - len(outer_values(node.blocks))]


def with_blocks(node: Node, blocks: tuple[Program, ...], explicit: tuple[Value, ...]) -> None:
    """Gives a node other blocks, and the inputs that follow."""
    node.blocks = blocks
    node.inputs = (*explicit, *outer_values(blocks))


def replaced(program: Program, same: Mapping[Value, Value]) -> Program:
    """Returns a program that uses other values in the place of some; its nodes are changed."""
    if not same:
        return program
    for node in program.nodes:
        if any(v in same for v in node.inputs):
            explicit = tuple([same.get(v, v) for v in explicit_inputs(node)])
            with_blocks(node, tuple([replaced(b, same) for b in node.blocks]), explicit)
    fetches = tuple([same.get(v, v) for v in program.fetches])
    return dataclasses.replace(program, fetches=fetches)


def uses(program: Program) -> Counter[Value]:
    """Returns how often a program's nodes and fetches read each value."""
    return Counter([*(v for n in program.nodes for v in n.inputs), *program.fetches])


def count_versions(nodes: Iterable[Node]) -> None:
    """Notes on every node that touches state which write of each variable it comes after.

    Counted are the writes of the nodes' own block, so a pass that moves a node out of its block
    counts anew.

    Args:
        nodes: The nodes of a block in order.
    """
    writes: dict[Node, int] = {}
    for node in nodes:
        handles = node.handles
        if not handles:
            node.versions = ()
            continue
        node.versions = tuple([writes.get(h, 0) for h in handles])
        if node.writes_state:
            writes.update((h, writes.get(h, 0) + 1) for h in handles)


def renumbered(values: list[Value]) -> tuple[Value, ...]:
    """Returns a node's outputs, counted anew."""
    for i, v in enumerate(values):
        v.index = i
    return tuple(values)


def in_order(nodes: Sequence[Node], before: Mapping[Node, Collection[Node]]) -> list[Node]:
    """Returns nodes behind those that they come after, and else in the order in which they are.

    Nodes that come after each other, and what follows from them, are left out.
    """
    position = {n: i for i, n in enumerate(nodes)}
    missing = {n: len(before[n]) for n in nodes}
    after: dict[Node, list[Node]] = {n: [] for n in nodes}
    for n in nodes:
        for earlier in before[n]:
            after[earlier].append(n)
    ready = [position[n] for n in nodes if not missing[n]]
    found: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        found.append(node)
        for n in after[node]:
            missing[n] -= 1
            if not missing[n]:
                heapq.heappush(ready, position[n])
    return found


def made_like(op: Op, like: Node, inputs: tuple[Value, ...]) -> Node:
    """Returns a new node with one output, in the place of another one."""
    spec: Any = op.infer(*[v.spec for v in inputs])
    return Node(op, f"{like.name}/{op.type}", like.order, inputs, [spec], like.requested,
                like.origins, like.path)  # fmt: skip


def origins_of(nodes: Iterable[Node | None]) -> tuple[OperationRef, ...]:
    """Returns the operations that nodes came from, each once."""
    return tuple(dict.fromkeys(o for n in nodes if n is not None for o in n.origins))


__all__ = [
    "count_versions",
    "explicit_inputs",
    "in_order",
    "made_like",
    "origins_of",
    "renumbered",
    "replaced",
    "uses",
    "with_blocks",
]
