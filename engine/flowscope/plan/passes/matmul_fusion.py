"""Matmul fusion: matrix products in the form in which they are quick.

Three rules, for matrices whose sizes are known but for the number of rows:

- *sums over iterations*: where a loop adds transpose(x) @ y to a variable in every iteration, as
  gradients do for a matrix that the forward loop multiplies by, it keeps x and y in lists, and one
  product over all rows follows the loop. It does so only where these lists need no more memory than
  the lists that the loop takes elements of, so the peak stays what it is. Which devices are asked
  for makes no difference: one of x and y would cross in every iteration without it, too;
- *sums over terms*: an `AddN` of such products, as gradients of an unrolled loop have, is one
  product too, where the factors are smaller than the products;
- *transposes*: a matrix that few rows are multiplied by, again and again and transposed, is
  transposed once.

They change the last bits of results, for sums are taken in another order. So they are made in all
modes.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from flowscope.control.lists import list_spec
from flowscope.control.matmul_ops import SumOfMatMuls, SumOfProducts, TransposedCopy
from flowscope.graph.lazy import frozen
from flowscope.ops.linalg.products import MatMul
from flowscope.ops.math.arithmetic import AddN
from flowscope.plan.ir.known_ops import ADD
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import ProgramEdits, changed, made_like, origins_of, uses
from flowscope.plan.ir.structured import LoopNode

#: Products of so many rows are as quick alone.
MANY_ROWS = 512
#: From so many rows on, and for smaller matrices, a transpose costs a product nothing.
_FEW_ROWS, _LARGE = 128, 1 << 12
#: Uses of a matrix from which on a transposed copy pays, and terms from which on a joint product.
_OFTEN = 4


def fuse_matmuls(program: Program) -> Program:
    """Returns the ordered program with fewer and larger matrix products."""
    if not program.has_true_specs or not any(isinstance(n.op, MatMul) for n in program.walk()):
        return program
    inner = {n: tuple([fuse_matmuls(b) for b in n.blocks]) for n in program.nodes if n.blocks}
    program = changed(program, {n: {"blocks": b} for n, b in inner.items() if b != n.blocks})
    return _Rewriter(program).run()


class _Rewriter:
    """One walk through the nodes of a block in order."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._uses = uses(program)
        self._own = set(program.nodes)
        self._awaited = {*program.targets, *[c for n in program.nodes for c in n.control]}
        self._edits = ProgramEdits()
        self._transposed: dict[Value, Value] = {}
        self._often = Counter(n.inputs[1] for n in program.nodes if _is_transposing(n))

    def run(self) -> Program:
        for node in self._program.nodes:
            if isinstance(node, LoopNode):
                self._transpose_outside(node)
                self._edits.append(self._after(node), node)
            elif _is_transposing(node) and self._often[node.inputs[1]] >= _OFTEN:
                self._transpose(node, node)
            elif isinstance(node.op, AddN):
                self._join(node)
        return self._edits.applied(self._program)

    # -- transposes

    def _transpose(self, node: Node, before: Node) -> None:
        """Has a product take a transposed copy of its matrix, which is made before a node."""
        a, b = node.inputs
        if b not in self._transposed:
            made = made_like(TransposedCopy(), node, (b,))
            self._edits.insert([made], before)
            self._transposed[b] = made.outputs[0]
        op: Any = node.op
        plain = dataclasses.replace(op, transpose_b=False)
        self._edits.change(node, op=plain, inputs=(a, self._transposed[b]))

    def _transpose_outside(self, loop: LoopNode) -> None:
        """Transposes matrices from outside of a loop before it."""
        body = loop.body
        own = {*body.feeds, *[v for n in body.nodes for v in n.outputs]}
        for node in body.nodes:
            if _is_transposing(node) and node.inputs[1] not in own:
                self._transpose(node, loop)
        for node in body.nodes:
            if isinstance(node.op, TransposedCopy) and node.inputs[0] not in own:
                self._edits.move(node, loop)

    # -- sums

    def _join(self, node: Node) -> None:
        """Makes one product of the products among the terms of a sum."""
        terms = [v for v in node.inputs if self._is_term(v)]
        if len(terms) < _OFTEN or len({v.spec.shape for v in terms}) > 1:
            return
        products = [v.node for v in terms if v.node is not None]
        factors = [p.inputs[0] for p in products], [p.inputs[1] for p in products]
        made = made_like(SumOfMatMuls(), node, (*factors[0], *factors[1]))
        made.origins = origins_of(products)
        self._edits.insert([made], node)
        others = [v for v in node.inputs if v not in terms]
        self._edits.change(node, inputs=(made.outputs[0], *others))
        for product in products:
            if product not in self._awaited:
                self._edits.drop(product)

    def _is_term(self, value: Value) -> bool:
        if value.node not in self._own or not _is_product(value, self._uses):
            return False
        assert value.node is not None
        size, factors = value.spec.nbytes or 0, [v.spec.nbytes for v in value.node.inputs]
        return None not in factors and sum(n or 0 for n in factors) <= size

    def _after(self, loop: LoopNode) -> list[Node]:
        """Takes sums of products out of a loop; returns what follows it."""
        found = _Sums(loop)
        made = []
        for sum_ in found.worth():
            value = sum_.start
            for x, y in sum_.factors:
                (xs, is_x_taken), (ys, is_y_taken) = found.list_of(x), found.list_of(y)
                op = SumOfProducts(is_x_taken != is_y_taken)
                made.append(made_like(op, loop, (value, xs, ys)))
                made[-1].origins = sum_.origins
                value = made[-1].outputs[0]
            self._edits.same[loop.outputs[sum_.index]] = value
        if made:
            found.finish(self._edits)
        return made


@frozen
class _Sum:
    """A loop variable to which products are added: its index, start, factors, size of a product."""

    index: int
    start: Value
    factors: list[tuple[Value, Value]]
    nbytes: int
    origins: Any


class _Sums:
    """The sums of products that a loop computes, and how they are taken out of it."""

    def __init__(self, loop: LoopNode) -> None:
        self._loop = loop
        self._conditions, self._body = loop.conditions, loop.body
        self._uses = uses(self._body)
        self._own = {v for node in self._body.nodes for v in node.outputs}
        self._variables, self._taken = loop.parameters, loop.elements
        self._kept = list(loop.kept_values)
        self._lists = list(loop.kept)
        self._gone: set[int] = set()

    def worth(self) -> list[_Sum]:
        """Returns the sums whose factors may be kept, those of the largest products first."""
        if any(not b.has_true_specs for b in self._loop.blocks):
            return []
        tested = {v for c in self._conditions for v in uses(c)}
        budget = sum(_row_bytes(v) for v in self._taken)
        chosen, known = [], set(self._kept)
        found = [self._sum(i) for i in range(len(self._variables))]
        for one in sorted((s for s in found if s), key=lambda s: -s.nbytes):
            factors = {v for pair in one.factors for v in pair} - known
            cost = sum(map(_row_bytes, factors))
            is_tested = any(c.feeds[one.index] in tested for c in self._conditions)
            if cost <= budget and not is_tested:
                budget -= cost
                known |= factors
                chosen.append(one)
        self._gone = {s.index for s in chosen}
        return chosen

    def _sum(self, i: int) -> _Sum | None:
        before, after = self._variables[i], self._body.fetches[i]
        add = after.node
        is_sum = (
            add is not None and after in self._own and isinstance(add.op, ADD)
            and before in add.inputs and self._uses[before] == 1 == self._uses[after]
        )  # fmt: skip
        if not is_sum:
            return None
        assert add is not None
        (term,) = (v for v in add.inputs if v is not before)
        terms = [term]
        if term.node is not None and isinstance(term.node.op, AddN) and self._uses[term] == 1:
            terms = list(term.node.inputs)
        if not all(v in self._own and _is_product(v, self._uses) for v in terms):
            return None
        pairs = [(v.node.inputs[0], v.node.inputs[1]) for v in terms if v.node is not None]
        if not all(v in self._own or v in self._body.feeds for pair in pairs for v in pair):
            return None
        start = self._loop.starts[i]
        origins = origins_of([add, *[v.node for v in terms]])
        return _Sum(i, start, pairs, term.spec.nbytes or 0, origins)

    def list_of(self, value: Value) -> tuple[Value, bool]:
        """Returns the list of a value of the body, and whether the loop takes it."""
        if value in self._taken:
            return self._loop.taken[self._taken.index(value)], True
        if value not in self._kept:
            self._kept.append(value)
            self._lists.append(Value(self._loop, 0, list_spec(value.spec)))
        return self._lists[self._kept.index(value)], False

    def finish(self, edits: ProgramEdits) -> None:
        """Takes the variables out of the loop, and lets it keep the factors."""
        loop, op, gone = self._loop, self._loop.op, self._gone
        stay = [i for i in range(loop.variables) if i not in gone]
        feeds = (*[self._variables[i] for i in stay], *self._taken)
        fetches = (*[self._body.fetches[i] for i in stay], *self._kept)
        conditions = [
            dataclasses.replace(c, feeds=tuple([c.feeds[i] for i in stay]))
            for c in self._conditions
        ]
        adds = {self._body.fetches[i].node for i in gone}
        nodes = tuple([n for n in self._body.nodes if n not in adds])
        body = dataclasses.replace(self._body, nodes=nodes, feeds=feeds, fetches=fetches)
        explicit = [v for i, v in enumerate(loop.explicit) if i - op.first not in gone]
        results = [loop.results[i] for i in stay]
        edits.change(
            loop,
            op=dataclasses.replace(op, variables=len(stay)),
            inputs=tuple(explicit),
            blocks=(*conditions, body),
            outputs=(*results, loop.trip_count, *self._lists),
        )


def _is_product(value: Value, used: Counter[Value]) -> bool:
    """Whether a value is transpose(x) @ y of matrices with few rows, and read once."""
    node = value.node
    if node is None or not isinstance(node.op, MatMul) or used[value] != 1:
        return False
    if not node.op.transpose_a or node.op.transpose_b or value.spec.dtype.kind != "f":
        return False
    if any(v.spec.rank != 2 for v in node.inputs) or value.spec.nbytes is None:
        return False
    rows = [v.spec.shape[0] for v in node.inputs if v.spec.shape is not None]
    return all(r is None or r < MANY_ROWS for r in rows)


def _is_transposing(node: Node) -> bool:
    """Whether a node multiplies few rows by the transpose of a large matrix."""
    op = node.op
    if not isinstance(op, MatMul) or op.transpose_a or not op.transpose_b:
        return False
    a, b = (v.spec for v in node.inputs)
    if a.rank != 2 or b.rank != 2 or b.nbytes is None or b.dtype.kind != "f":
        return False
    rows = a.shape[0] if a.shape is not None else None
    return (rows is None or rows <= _FEW_ROWS) and b.nbytes // b.dtype.size >= _LARGE


def _row_bytes(value: Value) -> int:
    """Returns the bytes of a value, with one row where their number is not known."""
    shape, dtype = value.spec.shape, value.spec.dtype
    if shape is None or dtype.kind == "v":
        return 0
    size = 1
    for d in shape:
        size *= 1 if d is None else d
    return size * dtype.size


__all__ = ["MANY_ROWS", "fuse_matmuls"]
