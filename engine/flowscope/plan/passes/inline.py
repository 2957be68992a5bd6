"""Inline: calls of functions are replaced by the functions' bodies (SPEC W46).

A body's nodes stand at the call's place in program order, in the body's own order, so their effects
on variables fall where the call stands. What controls the call controls every node of the body;
what the call controls waits for all of them. A node remembers the operation of the body and the
call; the path of calls tells random ops of different calls apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from flowscope.graph.operation import Operation, Tensor
from flowscope.plan.program import Node, Program, Value, needed

#: The op types that this pass takes away.
CALL, PARAMETER = "Call", "Parameter"


def inline(program: Program, read: type) -> Program:
    """Returns the program without calls, and without what only unused results needed.

    Args:
        program: What `prune` returned.
        read: The op that reads a variable: of a fed variable it is the feed.
    """
    if not any(n.op.type == CALL for n in program.nodes):
        return program
    inliner = _Inliner(read)
    for node in program.nodes:
        inliner.add(node, (node.order,))
    fetches = tuple([inliner.same.get(v, v) for v in program.fetches])
    targets = tuple(inliner.standing(program.targets))
    whole = dataclasses.replace(
        program, nodes=tuple(inliner.nodes), fetches=fetches, targets=targets
    )
    alive = needed(whole)
    return dataclasses.replace(whole, nodes=tuple([n for n in whole.nodes if n in alive]))


class _Inliner:
    """Walks through nodes and bodies; `same` maps values that were replaced."""

    def __init__(self, read: type) -> None:
        self._read = read
        self.nodes: list[Node] = []
        self.same: dict[Value, Value] = {}
        self._instead: dict[Node, tuple[Node, ...]] = {}

    def add(self, node: Node, order: tuple[object, ...]) -> None:
        """Adds a node, or the body that it calls, at a place in program order."""
        node.order = order
        node.inputs = tuple([self.same.get(v, v) for v in node.inputs])
        node.control = self.standing(node.control)
        if node.op.type == CALL:
            self._add_body(node, order)
        elif self._is_fed(node):
            self.same[node.outputs[0]] = node.inputs[0]
            self._instead[node] = ()
        else:
            self.nodes.append(node)

    def standing(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Returns the nodes that stand for `nodes` now."""
        return tuple(dict.fromkeys(m for n in nodes for m in self._instead.get(n, (n,))))

    def _is_fed(self, node: Node) -> bool:
        return type(node.op) is self._read and node.inputs[0].node is None

    def _add_body(self, call: Node, order: tuple[object, ...]) -> None:
        function = call.op.function  # type: ignore[attr-defined]
        values: dict[Tensor, Value] = {}
        nodes: dict[Operation, Node] = {}
        first = len(self.nodes)
        for op in function.block.operations:
            if op.type == PARAMETER:
                values[op.outputs[0]] = call.inputs[op.definition.index]
                continue
            node = nodes[op] = _copy(op, call, values)
            node.control = (*call.control, *(nodes[c] for c in op.control_inputs if c in nodes))
            values.update(zip(op.outputs, node.outputs, strict=True))
            self.add(node, (*order, op.order))
        for result, value in zip(function.outputs, call.outputs, strict=False):
            self.same[value] = self.same.get(values[result], values[result])
        self._instead[call] = tuple(self.nodes[first:]) or call.control


def _copy(op: Operation, call: Node, values: dict[Tensor, Value]) -> Node:
    name = f"{call.name}/{op.name.rpartition('/')[2]}"
    specs = [t.spec for t in op.outputs]
    inputs = tuple([values[t] for t in op.inputs[: op.definition.kernel_inputs]])
    origins = (op, *call.origins)
    path = (*call.path, call.name)
    return Node(op.definition, name, (), inputs, specs, op.device or call.requested, origins, path)


__all__ = ["CALL", "PARAMETER", "inline"]
