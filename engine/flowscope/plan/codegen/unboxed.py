"""Unboxed scalars: numbers of loops that generated code computes as Python's own.

A Python integer or float is added and compared in a quarter of the time that a NumPy scalar takes,
with the same results: float64 is what Python computes with, and integers are wrapped where they can
leave their range. To box one takes long, so a value is unboxed only if all that reads it in loops
computes with unboxed values too. What is read from outside a loop is converted before the loop.

Which values are unboxed is the largest set in which each follows from unboxed values, constants and
values from outside its loop, and none is read by anything else: found by taking away what does not
fit until all does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen, mutable
from flowscope.graph.values.dtypes import DType, bool_, float64, int32, int64
from flowscope.graph.values.expression import FIRST, Expression
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.kernels import device_type, is_assignment
from flowscope.plan.ir.known_ops import ADD, GREATER, LESS, LOGICAL_AND
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode

_NUMBERS: tuple[DType, ...] = (int32, int64, float64)


@mutable
class Unboxed:
    """What is unboxed in a program.

    Attributes:
        values: The values.
        bounded: Nodes whose results cannot leave their range.
    """

    values: set[Value] = field(default_factory=set)
    bounded: set[Node] = field(default_factory=set)


def unboxed_values(program: Program) -> Unboxed:
    """The values that can be unboxed in the loops of a program."""
    found = Unboxed()
    scopes = list(_scopes(program))
    if len(scopes) < 2:
        return found
    _Search(scopes, found).run()
    return found


@frozen
class _Scope:
    """A block: of a loop or a branch, or the program itself."""

    program: Program
    owner: Node | None
    #: Where each value that can be seen was made: the innermost loop around that place.
    loop: Node | None


def _scopes(
    program: Program, owner: Node | None = None, loop: Node | None = None
) -> Iterator[_Scope]:
    yield _Scope(program, owner, loop)
    for node in program.nodes:
        for block in node.blocks:
            inner = node if isinstance(node, LoopNode) else loop
            yield from _scopes(block, node, inner)


class _Search:
    """The fixpoint."""

    def __init__(self, scopes: list[_Scope], found: Unboxed) -> None:
        self._scopes = scopes
        self._unboxed = found
        #: The innermost loop that each value is made in.
        self._loop: dict[Value, Node | None] = {}
        self._around: dict[Node, Node | None] = {}

    def run(self) -> None:
        for scope in self._scopes:
            for v in (*scope.program.feeds, *[v for n in scope.program.nodes for v in n.outputs]):
                self._loop[v] = scope.loop
            for node in scope.program.nodes:
                if isinstance(node, LoopNode):
                    self._around[node] = scope.loop
        for scope in self._scopes:
            if scope.loop is not None:
                self._guess(scope)
        while self._removed():
            pass
        for scope in self._scopes:
            owner = scope.owner
            if isinstance(owner, LoopNode) and scope.program is owner.body:
                self._bound(owner)

    def _guess(self, scope: _Scope) -> None:
        self._unboxed.values.update(v for v in scope.program.feeds if _is_number(v))
        for node in scope.program.nodes:
            if is_unboxable(node):
                self._unboxed.values.add(node.outputs[0])
            elif isinstance(node, LoopNode):
                self._unboxed.values.update(v for v in node.results if _is_number(v))

    def _removed(self) -> bool:
        """Takes away what does not fit; returns whether there was something."""
        before = len(self._unboxed.values)
        for scope in self._scopes:
            for node in scope.program.nodes:
                self._check(node, scope)
            if isinstance(scope.owner, LoopNode):
                self._check_loop(scope, scope.owner)
            else:
                self._drop(scope.program.fetches)
        return len(self._unboxed.values) < before

    def _drop(self, values: Any) -> None:
        self._unboxed.values.difference_update(values)

    def _check(self, node: Node, scope: _Scope) -> None:
        raw = self._unboxed.values
        if isinstance(node, LoopNode):
            return
        if isinstance(node, CondNode):
            self._drop(node.outputs)
            return
        if node.outputs and node.outputs[0] in raw:
            if not all(self._can_be_unboxed(v, scope) for v in node.inputs):
                raw.discard(node.outputs[0])
        if not (node.outputs and node.outputs[0] in raw):
            self._drop(node.inputs)

    def _can_be_unboxed(self, value: Value, scope: _Scope) -> bool:
        if value in self._unboxed.values or is_constant(value):
            return True
        is_outside = self._loop.get(value, None) is not scope.loop
        is_number = _is_number(value) or value.spec.dtype is bool_
        return is_outside and is_number and _is_on_host(value)

    def _check_loop(self, scope: _Scope, node: LoopNode) -> None:
        raw, program = self._unboxed.values, scope.program
        if program is not node.body:
            if program.fetches[0] not in raw:
                self._drop([])
            for a, b in zip(program.feeds, node.parameters, strict=False):
                if a not in raw or b not in raw:
                    self._drop([a, b])
            return
        for feed, after, out, start in zip(
            node.parameters, node.next_values, node.results, node.starts, strict=True
        ):
            if feed in raw and not (after in raw or self._can_be_unboxed(after, scope)):
                raw.discard(feed)
            if not _is_on_host(start):
                raw.discard(feed)
            if feed not in raw:
                self._drop([after, out, start])
        self._drop(node.kept_values)
        self._drop(node.elements)
        self._drop([] if node.count is None else [node.count])
        self._drop(node.taken)

    def _bound(self, node: LoopNode) -> None:
        """Notes additions of 1 to what the condition says is below something."""
        if len(node.blocks) < 2:
            return
        cond, body = node.blocks
        below: set[Value] = set()
        stack = list(cond.fetches)
        while stack:
            made = stack.pop().node
            if made is None or made not in cond.nodes:
                continue
            if isinstance(made.op, LOGICAL_AND):
                stack += made.inputs
            if isinstance(made.op, LESS):
                below.add(made.inputs[0])
            if isinstance(made.op, GREATER):
                below.add(made.inputs[1])
        pairs = zip(cond.feeds, body.feeds, strict=False)
        low = {b for a, b in pairs if a in below}
        for n in body.nodes:
            if isinstance(n.op, ADD) and n.inputs[0] in low and is_number(n.inputs[1], 1):
                self._unboxed.bounded.add(n)


def _is_on_host(value: Value) -> bool:
    """Whether a value is known to lie in the host's memory, or is a parameter of a block."""
    node = value.node
    if node is None or device_type(node) == "CPU":
        return True
    return value.index in node.op.outputs_on_host(len(node.outputs))


def _is_number(value: Value) -> bool:
    return value.spec.shape == () and value.spec.dtype in _NUMBERS


def is_unboxable(node: Node) -> bool:
    """Whether a node computes a number or bool from such ones, by an expression."""
    op = node.op
    if not (op.on_numbers or isinstance(op, Transfer)) or node.control:
        return False
    if device_type(node) != "CPU":
        return False
    specs = [v.spec for v in node.inputs]
    if not all(s.shape == () for s in specs):
        return False
    if isinstance(op, Transfer) and not is_assignment(node):
        return False
    return number_form(node).is_logical or specs[0].dtype in _NUMBERS


def number_form(node: Node) -> Expression:
    """The expression by which a node that `is_unboxable` computes a number or bool."""
    found = node.op.scalar_expression or node.op.expression or FIRST
    return FIRST if isinstance(node.op, Transfer) else found


def is_constant(value: Value) -> bool:
    """Whether a value is a constant of the program, one number or bool."""
    node = value.node
    return node is not None and isinstance(node.op, Const) and value.spec.shape == ()


def literal(value: Value) -> str:
    """Returns a constant number as Python text."""
    assert value.node is not None
    number: Any = value.node.op.value.array.item()  # type: ignore[attr-defined]
    if isinstance(number, float) and not np.isfinite(number):
        return f'float("{number}")'
    return f"({number!r})" if number < 0 else repr(number)


def is_number(value: Value, number: int) -> bool:
    """Whether a value is a constant, this integer."""
    return is_constant(value) and literal(value) == str(number)


def overflow_check(node: Node, name: str, unboxed: Unboxed) -> str | None:
    """Returns a statement that wraps an integer which has left its range; None without need."""
    dtype = node.outputs[0].spec.dtype
    if not number_form(node).may_overflow or dtype is float64 or node in unboxed.bounded:
        return None
    bits = dtype.size * 8
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    wrapped = f"{name} = ({name} + {1 << bits - 1}) % {1 << bits} - {1 << bits - 1}"
    if isinstance(node.op, ADD) and any(
        is_constant(v) and literal(v)[0] != "(" for v in node.inputs
    ):
        return f"if {name} > {high}: {wrapped}"
    return f"if not {low} <= {name} <= {high}: {wrapped}"


__all__ = [
    "Unboxed",
    "is_constant",
    "is_number",
    "is_unboxable",
    "literal",
    "number_form",
    "overflow_check",
    "unboxed_values",
]
