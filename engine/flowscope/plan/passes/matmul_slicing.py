"""Parts: of a matrix product, only the columns that somebody uses are computed.

A recurrent cell multiplies what it is given and its state, joined, by one matrix. The gradient
splits the product with the matrix's transpose into the two again, and often uses one of them only:
what a layer is given has no gradient where it is data. So where one part of a product's columns is
used, the product is made with that part of the matrix, which is taken once, before any loop.

It changes the last bits of results, for BLAS sums in another order in matrices of other sizes. So
it is done in all modes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from flowscope.control.matmul_ops import Part
from flowscope.plan.program import Node, Program, Value
from flowscope.plan.rewriting import (
    explicit_inputs,
    made_like,
    origins_of,
    replaced,
    uses,
    with_blocks,
)
from flowscope.plan.structured import LoopNode


def parts(program: Program) -> Program:
    """Returns the ordered program with smaller matrix products."""
    if not program.has_true_specs or not any(n.op.type == "MatMul" for n in program.walk()):
        return program
    for node in program.nodes:
        if node.blocks:
            explicit = explicit_inputs(node)
            with_blocks(node, tuple([parts(b) for b in node.blocks]), explicit)
    chosen = {product: (split, i) for product, split, i in _found(program)}
    taken: dict[tuple[Value, Part], Node] = {}
    same: dict[Value, Value] = {}
    gone: set[Node] = set()
    nodes: list[Node] = []
    for node in program.nodes:
        if isinstance(node, LoopNode):
            nodes += _hoisted(node)
        if node in chosen:
            split, i = chosen[node]
            key = (node.inputs[1], _part(node, split, i))
            if key not in taken:
                taken[key] = made_like(key[1], node, key[:1])
                nodes.append(taken[key])
            _narrow(node, taken[key].outputs[0], split)
            same[split.outputs[i]] = node.outputs[0]
            gone.add(split)
        if node not in gone:
            nodes.append(node)
    return replaced(dataclasses.replace(program, nodes=tuple(nodes)), same)


def _found(program: Program) -> Iterator[tuple[Node, Node, int]]:
    """Yields products, what splits them, and which part of it is used."""
    used, own = uses(program), set(program.nodes)
    waited = {*program.targets, *[c for n in program.nodes for c in n.control]}
    for split in program.nodes:
        if split.op.type not in ("Split", "SplitEven") or split in waited or split.control:
            continue
        product = split.inputs[0].node
        living = [i for i, v in enumerate(split.outputs) if used[v]]
        if product is None or product not in own or used[split.inputs[0]] > 1 or len(living) != 1:
            continue
        op: Any = split.op
        is_plain = product.op.type == "MatMul" and all(v.spec.rank == 2 for v in product.inputs)
        if is_plain and op.axis in (1, -1) and None not in _widths(split):
            yield product, split, living[0]


def _widths(split: Node) -> list[Any]:
    """Returns how many columns the parts of a matrix have, None where that is not known."""
    return [v.spec.shape[1] if v.spec.shape is not None else None for v in split.outputs]


def _part(product: Node, split: Node, i: int) -> Part:
    lengths = _widths(split)
    start = sum(lengths[:i])
    op: Any = product.op
    return Part(0 if op.transpose_b else 1, start, start + lengths[i])


def _narrow(product: Node, part: Value, split: Node) -> None:
    product.inputs = (product.inputs[0], part)
    op: Any = product.op
    product.outputs[0].spec = op.infer(*[v.spec for v in product.inputs])
    product.origins = origins_of([product, split])


def _hoisted(loop: LoopNode) -> list[Node]:
    """Takes parts of matrices from outside of a loop out of it; returns them."""
    body = loop.body
    own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
    found = [n for n in body.nodes if n.op.type == "Part" and own.isdisjoint(n.inputs)]
    if found:
        explicit = loop.explicit
        rest = tuple([n for n in body.nodes if n not in found])
        with_blocks(loop, (*loop.conditions, dataclasses.replace(body, nodes=rest)), explicit)
    return found


__all__ = ["parts"]
