"""Prune: from the graph to the program that the fetches need, cut at the feeds."""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import resource
from flowscope.plan.ir.origins import PlannedOperations
from flowscope.plan.ir.program import Node, Program, TensorKey, Value
from flowscope.plan.ir.structured import kind_of


def prune(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    read: type,
    operations: PlannedOperations,
) -> Program:
    """Returns the program of `fetches` and `targets`, nodes in order of creation.

    A fed tensor's producer does not run for its sake. Feeding a variable's handle feeds every read
    of it; fetching a handle fetches the variable's value.

    Args:
        fetches: Tensors whose values are wanted.
        targets: Operations that must run.
        feeds: Tensors whose values will be given.
        read: The op that reads a variable.
        operations: Notes the operations that nodes come from.
    """
    fed = {t: Value(None, i, t.spec) for i, t in enumerate(feeds)}
    handles = {t for t in feeds if t.spec.dtype is resource}
    needed = needed_operations(fetches, targets, feeds, read)
    values: dict[Tensor, Value] = dict(fed)
    nodes: dict[Operation, Node] = {}
    tensors: list[tuple[TensorKey, Value]] = []
    for op in sorted(needed, key=lambda op: op.order):
        if handles and type(op.definition) is read and op.inputs[0] in handles:
            values[op.outputs[0]] = fed[op.inputs[0]]
            tensors.append(((op.id, 0, ()), fed[op.inputs[0]]))
            continue
        nodes[op] = _node(op, operations)
        for tensor, value in zip(op.outputs, nodes[op].outputs, strict=True):
            values.setdefault(tensor, value)
    _connect(nodes, values)
    extra: list[Node] = []
    wanted = tuple(_fetched(t, values, read, extra, operations) for t in fetches)
    return Program(
        (*nodes.values(), *extra),
        tuple(fed.values()),
        wanted,
        tuple([nodes[op] for op in targets if op in nodes]),
        tensors=tuple(tensors),
    )


def _node(op: Operation, operations: PlannedOperations) -> Node:
    specs, definition = [t.spec for t in op.outputs], op.definition
    if definition.is_handle and op.graph.is_reshaped(op):
        definition = definition.opened()
        specs = [definition.infer()]
    kind = kind_of(definition)
    place, origins = (op.order,), (operations.ref(op),)
    return kind(definition, op.name, place, (), specs, op.device, origins)


def _connect(nodes: dict[Operation, Node], values: dict[Tensor, Value]) -> None:
    for op, node in nodes.items():
        if op.inputs:
            taken = op.inputs[: op.definition.kernel_inputs]
            node.inputs = tuple([values[t] for t in taken])
        if op.control_inputs:
            node.control = tuple([nodes[c] for c in op.control_inputs if c in nodes])


def needed_operations(
    fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Sequence[Tensor], read: type
) -> set[Operation]:
    """Returns the operations that `fetches` and `targets` need, cut at the feeds.

    Args:
        fetches, targets, feeds, read: As for `prune`.
    """
    fed = set(feeds)
    handles = {t for t in feeds if t.spec.dtype is resource}
    stack = [*[t.op for t in fetches if t not in fed], *targets]
    needed = set(stack)
    while stack:
        op = stack.pop()
        if handles and type(op.definition) is read and op.inputs[0] in handles:
            continue
        for t in op.inputs[: op.definition.kernel_inputs]:
            if t not in fed and t.op not in needed:
                needed.add(t.op)
                stack.append(t.op)
        for c in op.control_inputs:
            if c not in needed and not _is_fed(c, fed):
                needed.add(c)
                stack.append(c)
    return needed


def _is_fed(op: Operation, fed: set[Tensor]) -> bool:
    return bool(op.outputs) and all(t in fed for t in op.outputs)


def _fetched(
    tensor: Tensor,
    values: dict[Tensor, Value],
    read: type,
    extra: list[Node],
    operations: PlannedOperations,
) -> Value:
    value = values[tensor]
    if tensor.spec.dtype is not resource or value.node is None:
        return value
    op = tensor.op
    spec = tensor.spec.variable
    assert spec is not None
    origins = (operations.ref(op),)
    name, place = f"{op.name}/fetch", (op.order,)
    node = Node(read(), name, place, (value,), [spec], op.device, origins)
    extra.append(node)
    return node.outputs[0]
