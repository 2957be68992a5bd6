"""Simplify: each value is computed once, and not at all where planning can.

Three rules, tried on every node whose outputs follow from its inputs alone:

- *forward*: an output that equals an input bit by bit (`Op.forwards`) is that input;
- *fold*: a node of constants alone becomes a constant, computed by its own kernel;
- *merge*: two nodes with the same op, inputs, control inputs, device wish and colocation are one;
  so are two reads of a variable between which the step does not write it.

All nodes are looked at first, in terms of the program as it was; then the new program is made in
one go. Nodes that nothing needs any more are left out. Nothing here changes a bit of any result,
and what has effects, draws random numbers or may block is left alone. A node that stays remembers
the operations of all that were merged into it.

Source: value numbering, Click 1995, "Global code motion, global value numbering".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from flowscope.control.dynamic.primitives import Primitive
from flowscope.graph.constant import Const, Literal
from flowscope.graph.op import Spec, has_kernel, kernel_of
from flowscope.graph.values.dtypes import resource, string, variant
from flowscope.graph.values.expression import FIRST
from flowscope.ops.core.flow import Placeholder
from flowscope.plan.ir.origins import OperationRef
from flowscope.plan.ir.program import Node, Program, Value, needed, versions
from flowscope.plan.ir.rewriting import ProgramEdits, changed, origins_of, with_nodes

#: A folded constant has at most so many bytes: more is quicker made again than kept and read.
FOLD_BYTES = 1 << 16
#: A folded constant remembers at most so many operations: in a long chain each has those before.
_MOST_ORIGINS = 1000


def simplify(program: Program, merges: bool = True, folds: bool = True) -> Program:
    """Returns the ordered program with fewer nodes, to the same results.

    Args:
        program: The program.
        merges: Whether equal nodes are merged.
        folds: Whether constants are folded.

    One with primitives of control flow made by hand stays as it is: a constant in the place of what
    follows from dead or from iterated values would be alive, and there once.
    """
    if any(isinstance(n.op, Primitive) for n in program.nodes):
        return program
    return _Simplifier(program, None, merges, folds).run()


class _Simplifier:
    """One walk through the nodes of a block in order, noting what stands for what."""

    def __init__(
        self,
        program: Program,
        around: _Simplifier | None = None,
        merges: bool = True,
        folds: bool = True,
    ) -> None:
        self._program = program
        self._merges: bool = around._merges if around else merges
        self._folds: bool = around._folds if around else folds
        self._edits: ProgramEdits = around._edits if around else ProgramEdits()
        self._same: dict[Value, Value] = self._edits.same
        self._versions = versions(program.nodes)
        self._known: dict[Value, Any] = around._known if around else {}
        self._seen: dict[Hashable, Node] = {}
        #: Per node what was replaced by it, and per folded node what its constant was made of.
        self._joined: dict[Node, list[Node]] = around._joined if around else {}
        self._made: dict[Node | None, tuple[OperationRef, ...]] = around._made if around else {}
        #: Constants that this pass has made.
        self._constants: set[Node] = around._constants if around else set()
        self._is_block = around is not None
        #: Nodes that must run though only their shapes are used, and these are known.
        self._behind: dict[Node, None] = {}
        self._trusts: bool = around._trusts if around else program.has_true_specs
        #: Whether nothing of the step ever waits: then what a block takes in is always there.
        self._is_sequential: bool = (
            around._is_sequential if around else not any(n.op.is_blocking for n in program.walk())
        )
        self._awaited = {c for n in program.nodes for c in n.control}
        #: What stands in the program itself, not in one around it.
        self._own: set[Node | None] = set()
        #: Nodes that wait, or whose known inputs do: a constant in their place would not.
        self._waiting: set[Node | None] = around._waiting if around else set()
        #: Nodes around it that nodes of it wait for.
        self._beyond: list[Node] = []

    def run(self) -> Program:
        """Returns the program in which values are computed once."""
        self.look()
        for by, joined in self._joined.items():
            origins = origins_of([by, *joined])
            if by in self._constants:
                by.origins = origins
            else:
                self._edits.change(by, origins=origins)
        if self._behind:
            targets = (*self._program.targets, *self._behind)
            self._program = dataclasses.replace(self._program, targets=targets)
        found = self._edits.applied(self._program)
        return found if found is self._program else _alive(found)

    def look(self) -> None:
        """Notes what stands for what, in the block and in its blocks."""
        for node in self._program.nodes:
            self._own.add(self._visit(node))

    def _visit(self, node: Node) -> Node | None:
        """Returns the node that stands for `node` from now on; None where only a value does."""
        same = self._same
        inputs = tuple([same.get(v, v) for v in node.inputs]) if same else node.inputs
        control = self._standing(node.control) if node.control else ()
        if control or any(v.spec.constant is not None and v.node in self._waiting for v in inputs):
            self._waiting.add(node)
        if node.blocks:
            parts = [_Simplifier(b, self) for b in node.blocks]
            for part in parts:
                part.look()
            self._wait(node, control, [n for p in parts for n in p._beyond])
            return node
        if node.op.reads_state and not node.op.has_effect:
            return self._standing_for(node, node, inputs, control)
        if not node.op.is_pure or not node.outputs or isinstance(node.op, Placeholder):
            return node
        if self._forwarded(node, inputs, control):
            return None
        made = self._folded(node, inputs, control)
        return self._standing_for(node, made, inputs if made is node else (), control)

    def _standing_for(
        self, node: Node, candidate: Node, inputs: tuple[Value, ...], control: tuple[Node, ...]
    ) -> Node:
        """The node in place of a node: an equal one that was seen before, or a candidate.

        Args:
            node: The node.
            candidate: It, or a constant in its place.
            inputs, control: What the candidate takes and waits for now.
        """
        wanted = (inputs, frozenset(control), self._versions.get(node, ()))
        key = _key(candidate, wanted) if self._merges else None
        stands = candidate if key is None else self._seen.setdefault(key, candidate)
        if stands is not node:
            if stands is candidate:
                self._edits.insert([stands], node)
            self._replace(node, stands, stands.outputs)
        return stands

    def _standing(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        instead = self._edits.instead
        return tuple(dict.fromkeys(m for n in nodes for m in instead.get(n, (n,))))

    def _forwarded(self, node: Node, inputs: tuple[Value, ...], control: tuple[Node, ...]) -> bool:
        if len(node.outputs) != 1 or control or node in self._program.targets:
            return False
        output = node.outputs[0]
        if not (self._trusts or node.op.expression == FIRST):
            return False
        index = node.op.forwards(tuple([v.spec for v in inputs]), output.spec)
        if index is None:
            return False
        source = inputs[index]
        if source.spec.dtype is resource:
            return False
        is_here = source.node is not None and source.node in self._own
        # One output of a branch or loop may be there before the others.
        is_part = is_here and source.node is not None and bool(source.node.blocks)
        if (is_part or not is_here) and self._is_waited_for(node):
            return False
        self._replace(node, source.node, (source,))
        if not is_here:
            self._edits.instead[node] = ()
            self._beyond += [source.node] if source.node and node in self._awaited else []
        return True

    def _wait(self, node: Node, control: tuple[Node, ...], beyond: list[Node]) -> None:
        """Has a node wait for what stands here and nodes of its blocks wait for."""
        here = [n for n in beyond if n in self._own and n not in control]
        if here:
            self._edits.change(node, control=(*node.control, *dict.fromkeys(here)))
        self._beyond += [n for n in beyond if n not in self._own]

    def _replace(self, node: Node, by: Node | None, values: tuple[Value, ...]) -> None:
        self._edits.instead[node] = () if by is None else (by,)
        self._same.update(zip(node.outputs, values, strict=True))
        if by is not None:
            self._joined.setdefault(by, []).append(node)

    def _folded(self, node: Node, inputs: tuple[Value, ...], control: tuple[Node, ...]) -> Node:
        """Returns a constant in the place of a node, where its value is known; else the node.

        Args:
            node: The node.
            inputs, control: What it takes and waits for now.
        """
        if not self._folds:
            return node
        if isinstance(node.op, Const):
            if not control:
                self._known[node.outputs[0]] = node.op.value.array
            return node
        if len(node.outputs) != 1 or node in self._waiting or self._is_waited_for(node):
            return node
        value = self._value(node, inputs)
        if value is None:
            return node
        spec = node.outputs[0].spec
        op = Const(Literal(value), spec.dtype)
        known = Spec(spec.dtype, np.shape(value), value)
        sources = [self._made.get(v.node, v.node.origins) for v in node.inputs if v.node]
        found = tuple(dict.fromkeys(o for s in (node.origins, *sources) for o in s))
        self._made[node] = found[:_MOST_ORIGINS]
        constant = Node(op, node.name, node.order, (), [known], node.requested, self._made[node])
        self._constants.add(constant)
        self._known[constant.outputs[0]] = value
        return constant

    def _is_waited_for(self, node: Node) -> bool:
        """Whether others wait for a node: they wait for its inputs then, though it is known."""
        return node in self._awaited and not self._is_sequential

    def _is_told(self, inputs: tuple[Value, ...]) -> bool:
        """Whether a value that follows from shapes may stand for a node that takes these inputs.

        What has these shapes may fail when it runs, because they are others. So it stays.
        """
        behind, stack = [], list(inputs)
        while stack:
            value = stack.pop()
            value = self._same.get(value, value)
            if value.node is not None and value not in self._known:
                is_sure = value.node.op.needs_shape_only
                stack += value.node.inputs if is_sure else ()
                behind += [] if is_sure or _cannot_fail(value.node) else [value.node]
        if behind and (self._is_block or not self._own.issuperset(behind)):
            return False
        self._behind.update(dict.fromkeys(behind))
        return True

    def _value(self, node: Node, inputs: tuple[Value, ...]) -> Any:
        spec = node.outputs[0].spec
        if spec.dtype in (resource, string, variant):
            return None
        if spec.constant is not None and self._trusts and self._is_told(inputs):
            return spec.constant
        values = [self._known.get(v) for v in inputs]
        if not values or any(v is None for v in values) or (spec.nbytes or 0) > FOLD_BYTES:
            return None
        if not has_kernel(node.op, "CPU"):
            return None
        try:
            specs = [v.spec for v in inputs], [spec]
            with np.errstate(all="ignore"):
                value = kernel_of(node.op, "CPU", *specs)(np, *values)
        except Exception:
            return None  # it will fail, or not, when it runs
        return value if value.nbytes <= FOLD_BYTES else None


def _cannot_fail(node: Node) -> bool:
    return isinstance(node.op, Placeholder) or node.op.is_handle or node.op.reads_state


def _alive(program: Program) -> Program:
    """Returns a program, and its blocks, without what nothing needs."""
    inner = {n: tuple([_alive(b) for b in n.blocks]) for n in program.nodes if n.blocks}
    program = changed(program, {n: {"blocks": b} for n, b in inner.items() if b != n.blocks})
    alive = needed(program)
    kept = [n for n in program.nodes if n in alive or isinstance(n.op, Placeholder)]
    return with_nodes(program, kept)


def _key(node: Node, wanted: tuple[Hashable, ...]) -> Hashable | None:
    """A key that is equal for nodes that compute the same; None if a node has none.

    Args:
        node: The node.
        wanted: What it takes and waits for, and the writes that it comes after.
    """
    op: Hashable = node.op
    if isinstance(node.op, Const):
        array = node.op.value.array
        if not isinstance(array, np.ndarray | np.generic) or array.nbytes > FOLD_BYTES:
            return None
        if array.dtype == object:
            return None
        op = (node.op.dtype, array.shape, array.tobytes())
    colocation = node.origins[0].colocation if node.origins else ()
    key: tuple[Any, ...] = (type(node.op), op, *wanted, node.requested, colocation)
    try:
        hash(key)
    except TypeError:
        return None
    return key


__all__ = ["FOLD_BYTES", "simplify"]
