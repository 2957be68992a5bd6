"""Rewiring: inputs of operations that are there are replaced by other tensors."""

from __future__ import annotations

from collections.abc import Sequence

from flowscope.errors import DTypeError, GraphError, InvalidArgumentError
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.order import in_order


def replace_inputs(replacements: Sequence[tuple[Operation, int, Tensor]]) -> None:
    """Replaces inputs of operations, all of them or, where an error is raised, none.

    What was inferred of the operations' outputs stays: the caller sees to it that it still holds.

    Args:
        replacements: (operation, which input, the new tensor).

    Raises:
        GraphError: if a tensor is stale, or stands in another graph or block than the operation.
        DTypeError: if the tensor has another dtype than the input.
        InvalidArgumentError: if operations would depend on themselves.
    """
    for op, index, tensor in replacements:
        _check(op, op.inputs[index], tensor)
    before = [(op, op.inputs) for op, _, _ in replacements]
    for op, index, tensor in replacements:
        op.inputs = (*op.inputs[:index], tensor, *op.inputs[index + 1 :])
    for block in {op.block: op for op, _, _ in replacements}:
        reached = in_order(block.operations)
        if len(reached) == len(block.operations):
            continue
        for op, inputs in reversed(before):
            op.inputs = inputs
        known = set(reached)
        op = next(op for op, _, _ in replacements if op not in known)
        raise InvalidArgumentError(f'"{op.name}" would depend on itself').located(
            op=op, op_type=None, **where(op)
        )
    for op, _, _ in replacements:
        op.graph.edited(op)


def _check(op: Operation, old: Tensor, new: Tensor) -> None:
    facts = {"op": op, "op_type": None, **where(op)}
    if new.op.graph is not op.graph or new.op.block is not op.block:
        raise GraphError(f'"{new.name}" does not stand in the block of "{op.name}"').located(
            **facts
        )
    if op.stale is not None or new.op.stale is not None:
        stale = new.name if new.op.stale is not None else op.name
        raise GraphError(f'"{stale}" is stale: a cell was run again').located(**facts)
    if new.dtype is not old.dtype:
        raise DTypeError(
            f'expected {old.dtype.name} as an input of "{op.name}", got {new.dtype.name} of '
            f'"{new.name}"'
        ).located(**facts)


__all__ = ["replace_inputs"]
