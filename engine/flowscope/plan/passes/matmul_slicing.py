"""Matmul slicing: of a matrix product, only the columns that somebody uses are computed.

A recurrent cell multiplies what it is given and its state, joined, by one matrix. The gradient
splits the product with the matrix's transpose into the two again, and often uses one of them only:
what a layer is given has no gradient where it is data. So where one part of a product's columns is
used, the product is made with that part of the matrix, which is taken once, before any loop.

It changes the last bits of results, for BLAS sums in another order in matrices of other sizes. So
it is done in all modes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowscope.control.matmul_ops import Part
from flowscope.ops.array.joining import Split, SplitEven
from flowscope.ops.linalg.products import MatMul
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import ProgramEdits, changed, made_like, origins_of, uses
from flowscope.plan.ir.structured import LoopNode


def slice_matmuls(program: Program) -> Program:
    """Returns the ordered program with smaller matrix products."""
    if not program.has_true_specs or not any(isinstance(n.op, MatMul) for n in program.walk()):
        return program
    inner = {n: tuple([slice_matmuls(b) for b in n.blocks]) for n in program.nodes if n.blocks}
    program = changed(program, {n: {"blocks": b} for n, b in inner.items() if b != n.blocks})
    program = _hoisted(program)
    edits = ProgramEdits()
    taken: dict[tuple[Value, Part], Node] = {}
    for product, split, i in _found(program):
        key = (product.inputs[1], _part(product, split, i))
        if key not in taken:
            taken[key] = made_like(key[1], product, key[:1])
            edits.insert([taken[key]], product)
        _narrow(product, taken[key].outputs[0], split, edits)
        edits.same[split.outputs[i]] = product.outputs[0]
        edits.drop(split)
    return edits.applied(program)


def _found(program: Program) -> Iterator[tuple[Node, Node, int]]:
    """Yields products in their order, what splits them, and which part of it is used."""
    used, position = uses(program), {n: i for i, n in enumerate(program.nodes)}
    waited = {*program.targets, *[c for n in program.nodes for c in n.control]}
    found: dict[Node, tuple[Node, int]] = {}
    for split in program.nodes:
        if not isinstance(split.op, (Split, SplitEven)) or split in waited or split.control:
            continue
        product = split.inputs[0].node
        living = [i for i, v in enumerate(split.outputs) if used[v]]
        if product not in position or used[split.inputs[0]] > 1 or len(living) != 1:
            continue
        assert product is not None
        is_plain = isinstance(product.op, MatMul) and all(v.spec.rank == 2 for v in product.inputs)
        if is_plain and split.op.axis in (1, -1) and None not in _widths(split):
            found[product] = split, living[0]
    for product in sorted(found, key=position.__getitem__):
        yield product, *found[product]


def _widths(split: Node) -> list[Any]:
    """Returns how many columns the parts of a matrix have, None where that is not known."""
    return [v.spec.shape[1] if v.spec.shape is not None else None for v in split.outputs]


def _part(product: Node, split: Node, i: int) -> Part:
    lengths = _widths(split)
    start = sum(lengths[:i])
    assert isinstance(product.op, MatMul)
    return Part(0 if product.op.transpose_b else 1, start, start + lengths[i])


def _narrow(product: Node, part: Value, split: Node, edits: ProgramEdits) -> None:
    """Has a product multiply by a part of its matrix."""
    (result,) = product.outputs
    inputs = (product.inputs[0], part)
    spec: Any = product.op.infer(*[v.spec for v in inputs])
    origins = origins_of([product, split])
    edits.change(product, inputs=inputs, origins=origins, specs={result: spec})


def _hoisted(program: Program) -> Program:
    """Returns the program with parts of matrices from outside of loops before these."""
    edits = ProgramEdits()
    for loop in program.nodes:
        if isinstance(loop, LoopNode):
            body = loop.body
            own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
            for node in body.nodes:
                if isinstance(node.op, Part) and own.isdisjoint(node.inputs):
                    edits.move(node, loop)
    return edits.applied(program)


__all__ = ["slice_matmuls"]
