"""Simplify: each value is computed once, and not at all where planning can (SPEC W33, O20).

Three rules, tried on every node whose outputs follow from its inputs alone:

- *forward*: an output that equals an input bit by bit (`Op.forwards`) is that input;
- *fold*: a node of constants alone becomes a constant, computed by its own kernel;
- *merge*: two nodes with the same op, inputs, control inputs, device wish and colocation are one;
  so are two reads of a variable between which the step does not write it.

Nodes that nothing needs any more are left out. Nothing here changes a bit of any result, and what
has effects, draws random numbers or may block is left alone. A node that stays remembers the
operations of all that were merged into it.

Source: value numbering, Click 1995, "Global code motion, global value numbering".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

from flowscope.control.primitives import Primitive
from flowscope.graph.constant import Const, Literal
from flowscope.graph.dtypes import resource, string, variant
from flowscope.graph.op import Spec, has_kernel, kernel_of
from flowscope.plan.origins import OperationRef
from flowscope.plan.program import Node, Program, Value, needed, outer_values
from flowscope.plan.rewriting import origins_of

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
    """One walk through the nodes in order; `same` maps what was replaced to what stands for it."""

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
        self._same: dict[Value, Value] = around._same if around else {}
        #: None where a feed took a node's place.
        self._instead: dict[Node, Node | None] = {}
        self._known: dict[Value, Any] = around._known if around else {}
        self._seen: dict[Hashable, Node] = {}
        self._changed = False
        #: Per node what was replaced by it, and per folded node what its constant was made of.
        self._joined: dict[Node, list[Node]] = {}
        self._made: dict[Node | None, tuple[OperationRef, ...]] = around._made if around else {}
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
        nodes = []
        for node in self._program.nodes:
            nodes.append(self._visit(node))
            self._own.add(nodes[-1])
        for by, joined in self._joined.items():
            by.origins = origins_of([by, *joined])
        if not (self._changed or self._same):
            return self._program
        program = dataclasses.replace(
            self._program,
            nodes=tuple(dict.fromkeys(n for n in nodes if n is not None)),
            fetches=tuple([self._same.get(v, v) for v in self._program.fetches]),
            targets=(*self._standing(self._program.targets), *self._behind),
        )
        alive = needed(program)
        kept = tuple([n for n in program.nodes if n in alive or n.op.type == "Placeholder"])
        return dataclasses.replace(program, nodes=kept)

    def _visit(self, node: Node) -> Node | None:
        """Returns the node that stands for `node` from now on; None where only a value does."""
        given = node.inputs
        if self._same:
            node.inputs = tuple([self._same.get(v, v) for v in node.inputs])
        if self._instead and node.control:
            node.control = self._standing(node.control)
        if node.control or any(
            v.spec.constant is not None and v.node in self._waiting for v in node.inputs
        ):
            self._waiting.add(node)
        if node.blocks:
            inside = outer_values(node.blocks)
            explicit = node.inputs[: len(node.inputs) - len(inside)]
            parts = [_Simplifier(b, self) for b in node.blocks]
            node.blocks = tuple([p.run() for p in parts])
            node.inputs = (*explicit, *outer_values(node.blocks))
            self._wait(node, [n for p in parts for n in p._beyond])
            return node
        if node.op.reads_state and not node.op.has_effect:
            return self._standing_for(node, node)
        if not node.op.is_pure or not node.outputs or node.op.type == "Placeholder":
            return node
        if self._forwarded(node):
            return None
        return self._standing_for(node, self._folded(node, given))

    def _standing_for(self, node: Node, candidate: Node) -> Node:
        key = _key(candidate) if self._merges else None
        stands = candidate if key is None else self._seen.setdefault(key, candidate)
        if stands is not node:
            self._replace(node, stands, stands.outputs)
        return stands

    def _standing(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        found = dict.fromkeys(self._instead.get(n, n) for n in nodes)
        return tuple([n for n in found if n is not None])

    def _forwarded(self, node: Node) -> bool:
        if len(node.outputs) != 1 or node.control or node in self._program.targets:
            return False
        output = node.outputs[0]
        if not (self._trusts or node.op.template == "{0}"):
            return False
        index = node.op.forwards(tuple([v.spec for v in node.inputs]), output.spec)
        if index is None:
            return False
        source = node.inputs[index]
        if source.spec.dtype is resource:
            return False
        is_here = source.node is not None and source.node in self._own
        # One output of a branch or loop may be there before the others.
        is_part = is_here and source.node is not None and bool(source.node.blocks)
        if (is_part or not is_here) and self._is_waited_for(node):
            return False
        self._replace(node, source.node, (source,))
        if not is_here:
            self._instead[node] = None
            self._beyond += [source.node] if source.node and node in self._awaited else []
        return True

    def _wait(self, node: Node, beyond: list[Node]) -> None:
        """Has a node wait for what stands here and nodes of its blocks wait for."""
        here = [n for n in beyond if n in self._own and n not in node.control]
        node.control = (*node.control, *dict.fromkeys(here))
        self._beyond += [n for n in beyond if n not in self._own]

    def _replace(self, node: Node, by: Node | None, values: tuple[Value, ...]) -> None:
        self._changed = True
        self._instead[node] = by
        self._same.update(zip(node.outputs, values, strict=True))
        if by is not None:
            self._joined.setdefault(by, []).append(node)

    def _folded(self, node: Node, given: tuple[Value, ...]) -> Node:
        """Returns a constant in the place of a node, where its value is known; else the node.

        Args:
            node: The node.
            given: Its inputs before any of them were replaced.
        """
        if not self._folds:
            return node
        if isinstance(node.op, Const):
            if not node.control:
                self._known[node.outputs[0]] = node.op.value.array
            return node
        if len(node.outputs) != 1 or node in self._waiting or self._is_waited_for(node):
            return node
        value = self._value(node)
        if value is None:
            return node
        spec = node.outputs[0].spec
        op = Const(Literal(value), spec.dtype)
        known = Spec(spec.dtype, np.shape(value), value)
        sources = [self._made.get(v.node, v.node.origins) for v in given if v.node]
        found = tuple(dict.fromkeys(o for s in (node.origins, *sources) for o in s))
        self._made[node] = found[:_MOST_ORIGINS]
        constant = Node(op, node.name, node.order, (), [known], node.requested, self._made[node])
        self._known[constant.outputs[0]] = value
        return constant

    def _is_waited_for(self, node: Node) -> bool:
        """Whether others wait for a node: they wait for its inputs then, though it is known."""
        return node in self._awaited and not self._is_sequential

    def _is_told(self, node: Node) -> bool:
        """Whether a value that follows from shapes may stand for a node that computes it.

        What has these shapes may fail when it runs, because they are others. So it stays.
        """
        behind, stack = [], list(node.inputs)
        while stack:
            value = stack.pop()
            if value.node is not None and value not in self._known:
                is_sure = value.node.op.needs_shape_only
                stack += value.node.inputs if is_sure else ()
                behind += [] if is_sure or _cannot_fail(value.node) else [value.node]
        if behind and (self._is_block or not self._own.issuperset(behind)):
            return False
        self._behind.update(dict.fromkeys(behind))
        return True

    def _value(self, node: Node) -> Any:
        spec = node.outputs[0].spec
        if spec.dtype in (resource, string, variant):
            return None
        if spec.constant is not None and self._trusts and self._is_told(node):
            return spec.constant
        values = [self._known.get(v) for v in node.inputs]
        if not values or any(v is None for v in values) or (spec.nbytes or 0) > FOLD_BYTES:
            return None
        if not has_kernel(node.op, "CPU"):
            return None
        try:
            specs = [v.spec for v in node.inputs], [spec]
            with np.errstate(all="ignore"):
                value = kernel_of(node.op, "CPU", *specs)(np, *values)
        except Exception:
            return None  # it will fail, or not, when it runs
        return value if value.nbytes <= FOLD_BYTES else None


def _cannot_fail(node: Node) -> bool:
    return node.op.type == "Placeholder" or node.op.is_handle or node.op.reads_state


def _key(node: Node) -> Hashable | None:
    """Returns what two nodes have in common that compute the same; None if that cannot be said."""
    op: Hashable = node.op
    if isinstance(node.op, Const):
        array = node.op.value.array
        if not isinstance(array, np.ndarray | np.generic) or array.nbytes > FOLD_BYTES:
            return None
        if array.dtype == object:
            return None
        op = (node.op.dtype, array.shape, array.tobytes())
    colocation = node.origins[0].colocation if node.origins else ()
    context = frozenset(node.control), node.requested, colocation
    key = (type(node.op), op, node.inputs, node.versions, *context)
    try:
        hash(key)
    except TypeError:
        return None
    return key


__all__ = ["FOLD_BYTES", "simplify"]
