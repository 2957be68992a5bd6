"""Edits of programs that several passes make."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from flowscope.graph.op import Op
from flowscope.graph.operation import Operation
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


def renumbered(values: list[Value]) -> tuple[Value, ...]:
    """Returns a node's outputs, counted anew."""
    for i, v in enumerate(values):
        v.index = i
    return tuple(values)


def made_like(op: Op, like: Node, inputs: tuple[Value, ...]) -> Node:
    """Returns a new node with one output, in the place of another one."""
    spec: Any = op.infer(*[v.spec for v in inputs])
    return Node(op, f"{like.name}/{op.type}", like.order, inputs, [spec], like.requested,
                like.origins, like.path)  # fmt: skip


def origins_of(nodes: Iterable[Node | None]) -> tuple[Operation, ...]:
    """Returns the operations that nodes came from, each once."""
    return tuple(dict.fromkeys(o for n in nodes if n is not None for o in n.origins))


__all__ = [
    "explicit_inputs",
    "made_like",
    "origins_of",
    "renumbered",
    "replaced",
    "uses",
    "with_blocks",
]
