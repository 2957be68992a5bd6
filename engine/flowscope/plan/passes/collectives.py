"""Collectives: in the place of an operation that all ranks share come its pieces, on their devices.

A collective says which pieces compute the outputs that somebody uses
(`Op.expand`); what they exchange becomes ordinary transfers later. A piece knows the operation that
it comes from, and is named after it. All of it is done in all modes, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.graph.op import Op
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import ProgramEdits, uses


def expand_collectives(program: Program) -> Program:
    """Returns the ordered program with pieces in the place of collectives, in blocks too."""
    edits = ProgramEdits()
    _expand_all(program, edits)
    return edits.applied(program)


def _expand_all(program: Program, edits: ProgramEdits) -> None:
    used = uses(program)
    for node in program.nodes:
        for block in node.blocks:
            _expand_all(block, edits)
        if node.op.is_expanded:
            wanted = [i for i, v in enumerate(node.outputs) if used[v]]
            _expand(node, wanted or range(len(node.outputs)), edits)


def _expand(node: Node, wanted: Sequence[int], edits: ProgramEdits) -> None:
    """Puts pieces in the place of a collective; what waited for it waits for all of them."""
    made: list[Node] = []
    found = node.op.expand(
        node.inputs, [v.spec for v in node.inputs], wanted, _adding(node, made, edits)
    )
    edits.insert(made, node)
    edits.drop(node, made)
    edits.same.update((node.outputs[i], value) for i, value in found.items())


def _adding(
    node: Node, made: list[Node], edits: ProgramEdits
) -> Callable[[Op, Sequence[Value], str], Value]:
    """The function that adds a piece: the op, its inputs, the device that it asks for."""

    def add(op: Op, inputs: Sequence[Value], device: str) -> Value:
        taken = tuple([edits.same.get(v, v) for v in inputs])
        spec: Any = op.infer(*[v.spec for v in taken])
        name = f"{node.name}/{op.type}_{len(made)}"
        wished = device or node.requested
        piece = Node(op, name, node.order, taken, [spec], wished, node.origins, node.path)
        piece.control = node.control
        made.append(piece)
        return piece.outputs[0]

    return add


__all__ = ["expand_collectives"]
