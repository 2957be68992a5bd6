"""Functions that are run by what their op makes, not by the step: of each element of a dataset.

Such an op has a function as its attribute `function`. A plan puts a `FunctionProgram` in its place:
a program of its own, in which all that the function captures is a feed, or a copy of the handle. It
has gone through the passes, for one CPU. It is plain data, as the plan's program is, and whoever
runs it makes the code (`flowscope.runtime.datasets.dataset_functions`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from flowscope.control.calls import Call
from flowscope.control.specs import outside
from flowscope.errors import InvalidArgumentError
from flowscope.graph.operation import where
from flowscope.graph.values.dtypes import resource
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.serialization import program_of, rows_of
from flowscope.plan.partition.partitions import Mode, back_end_of
from flowscope.plan.passes.regions import handles_of


class FunctionProgram:
    """The program of a function that is planned apart; immutable.

    Attributes:
        name: The node that runs it.
        program: What it computes. Its feeds are the function's inputs, without handles.
        back_end: The name of the code back end that compiles it.
        seed: The graph's seed, None for none.
        handles: Which of the function's inputs stand for its handles, in their order.
        feeds: Which of them are its feeds.
        is_pure: Whether it does nothing but compute: what nobody wants need not be computed.
        made: What a process has made of it; not part of what is sent.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        back_end: str,
        seed: int | None,
        handles: tuple[int, ...],
        feeds: tuple[int, ...],
    ) -> None:
        self.name = name
        self.program = program
        self.back_end = back_end
        self.seed = seed
        self.handles = handles
        self.feeds = feeds
        self.is_pure = not any(n.has_effect for n in program.walk() if not n.op.is_handle)
        self.made: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        facts = (self.back_end, self.seed, self.handles, self.feeds)
        return _read, (self.name, rows_of(self.program), *facts)

    def __eq__(self, other: object) -> bool:
        """Whether another one computes the same: of operations with the same names and ops."""
        if self is other or not isinstance(other, FunctionProgram):
            return self is other
        return self.name == other.name and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self.name)

    def _facts(self) -> list[Any]:
        return [(n.name, n.op, [v.label for v in n.inputs]) for n in self.program.walk()]

    def __repr__(self) -> str:
        return f"<program of {len(self.program.nodes)} nodes>"


def _read(name: str, rows: Any, *facts: Any) -> FunctionProgram:
    return FunctionProgram(name, program_of(rows), *facts)


def call_of(node: Node) -> Program:
    """Returns a program that calls the function of a node, for the passes.

    Args:
        node: The node; what the function captures is last among its inputs.

    Raises:
        InvalidArgumentError: if it captures a variable that is fed.
    """
    function: Any = node.op.function  # type: ignore[attr-defined]
    captured = node.inputs[len(node.inputs) - len(function.captures) :]
    first = len(function.parameters) - len(captured)
    handles: list[Node] = []
    feeds: list[Value] = []
    given: list[Value] = []
    for i, parameter in enumerate(function.parameters):
        spec = outside(parameter.spec)
        if spec.dtype is not resource:
            feeds.append(Value(None, len(feeds), spec))
            given.append(feeds[-1])
            continue
        source = captured[i - first].node if i >= first else None
        if source is None or not source.op.is_handle:
            raise _located(node, "a function of elements cannot use a variable that is fed")
        known = next((h for h in handles if h.op == source.op), None)
        if known is None:
            known = Node(source.op, source.name, (i,), (), [spec], "", source.origins, source.path)
            handles.append(known)
        given.append(known.outputs[0])
    specs = [outside(t.spec) for t in function.outputs]
    # Random numbers follow from the path: that of a function without inputs, which makes the
    # dataset of an iterator, is the same for whichever operation comes to the iterator first.
    path = (*(node.path if function.parameters else ()), function.name)
    place = (len(function.parameters),)
    name = function.name
    call = Node(Call(function), name, place, tuple(given), specs, "", node.origins, path)
    return Program((*handles, call), tuple(feeds), call.outputs, (call,))


def with_program(node: Node, program: Program, mode: Mode) -> Any:
    """Returns the op of a node with the program that the passes have made of its function.

    Raises:
        InvalidArgumentError: if something in it may wait for others.
    """
    waiting = next((n for n in program.walk() if n.op.is_blocking), None)
    if waiting is not None:
        raise _located(
            node,
            f'"{waiting.name}" may wait for other steps, and a function of elements runs in none: '
            "take its value outside, and capture that",
        )
    op: Any = node.op
    function = op.function
    captured = node.inputs[len(node.inputs) - len(function.captures) :]
    first = len(function.parameters) - len(captured)
    sources = {v.node.name: i for i, v in enumerate(captured, first) if v.node is not None}
    kinds = [t.spec.dtype is resource for t in function.parameters]
    made = FunctionProgram(
        node.name if function.parameters else function.name,
        program,
        back_end_of(program, mode),
        function.graph.seed,
        tuple([sources[h.name] for h in handles_of(program)]),
        tuple([i for i, is_handle in enumerate(kinds) if not is_handle]),
    )
    return dataclasses.replace(op, function=made)


def all_nodes(program: Program) -> Iterator[Node]:
    """Yields the nodes of a program, of its blocks, and of programs that its ops run by themselves.

    In an order that is the same for a program that was sent.
    """
    for node in program.walk():
        yield node
        inner = getattr(node.op, "function", None)
        if isinstance(inner, FunctionProgram):
            yield from all_nodes(inner.program)


def _located(node: Node, message: str) -> InvalidArgumentError:
    error = InvalidArgumentError(message)
    error = error.located(op=node.name, op_type=node.op.type, **where(node.origins[0]))
    return error


__all__ = ["FunctionProgram", "all_nodes", "call_of", "with_program"]
