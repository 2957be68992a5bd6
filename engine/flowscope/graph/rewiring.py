"""Rewiring: inputs of operations that are there are replaced by tensors that were made later."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from flowscope.errors import DTypeError, GraphError, InvalidArgumentError
from flowscope.graph.operation import Operation, Tensor, is_back_edge, where


def replace_inputs(replacements: Sequence[tuple[Operation, int, Tensor]]) -> None:
    """Replaces inputs of operations of one block; where an error is raised, none.

    What depends on the operations gets its place in program order anew, behind all that is there,
    as if it was built now: so program order still has inputs before what takes them. What was
    inferred of the operations' outputs stays: the caller sees to it that it still holds.

    Args:
        replacements: (operation, which input, the new tensor).

    Raises:
        GraphError: if a tensor is stale, or stands in another graph or block than the operation.
        DTypeError: if a tensor has another dtype than the input.
        InvalidArgumentError: if operations would depend on themselves.
    """
    if not replacements:
        return
    first = replacements[0][0]
    for op, index, tensor in replacements:
        _check(op, op.inputs[index], tensor, first)
    before = [(op, op.inputs) for op, _, _ in replacements]
    for op, index, tensor in replacements:
        op.inputs = (*op.inputs[:index], tensor, *op.inputs[index + 1 :])
    moved, done = _dependents([op for op, _, _ in replacements])
    if len(done) < len(moved):
        for op, inputs in reversed(before):
            op.inputs = inputs
        stuck = next(op for op, _, _ in replacements if op not in set(done))
        raise InvalidArgumentError(f'"{stuck.name}" would depend on itself').located(
            op=stuck, op_type=None, **where(stuck)
        )
    graph = first.graph
    for op in done:
        op.order = graph._next_order
        graph._next_order += 1
        if op.definition.writes_state:
            graph._writes.update(dict.fromkeys(op.inputs, op.order))
    for listed in {id(x): x for x in (graph._operations, first.block.operations)}.values():
        listed[:] = [op for op in listed if op not in moved]
        listed += done
    for op, _, _ in replacements:
        graph.edited(op)


def _dependents(roots: Sequence[Operation]) -> tuple[set[Operation], list[Operation]]:
    """Returns the operations of a block with all that depend on them, as a set and in an order.

    The order is the one nearest to program order in which each comes behind what it needs. What is
    in a circle is missing in it.
    """
    after: dict[Operation, list[Operation]] = {}
    for op in roots[0].block.operations:
        for earlier in _needed(op):
            after.setdefault(earlier, []).append(op)
    found, stack = set(roots), list(roots)
    while stack:
        later = [op for op in after.get(stack.pop(), ()) if op not in found]
        found.update(later)
        stack += later
    missing = {op: len([e for e in _needed(op) if e in found]) for op in found}
    ready = [(op.order, op.id, op) for op, count in missing.items() if not count]
    heapq.heapify(ready)
    done = []
    while ready:
        op = heapq.heappop(ready)[2]
        done.append(op)
        for later_op in after.get(op, ()):
            missing[later_op] -= 1
            if not missing[later_op]:
                heapq.heappush(ready, (later_op.order, later_op.id, later_op))
    return found, done


def _needed(op: Operation) -> set[Operation]:
    """What an operation comes after."""
    return {t.op for t in op.inputs if not is_back_edge(t, op)} | set(op.control_inputs)


def _check(op: Operation, old: Tensor, new: Tensor, first: Operation) -> None:
    facts = {"op": op, "op_type": None, **where(op)}
    if any(o.graph is not first.graph or o.block is not first.block for o in (op, new.op)):
        raise GraphError(
            f'"{new.name}" and "{op.name}" do not stand in the block of "{first.name}"'
        ).located(**facts)
    if op.stale is not None or new.op.stale is not None:
        stale = new.name if new.op.stale is not None else op.name
        raise GraphError(f'"{stale}" is stale: a cell was run again').located(**facts)
    if new.dtype is not old.dtype:
        raise DTypeError(
            f'expected {old.dtype.name} as an input of "{op.name}", got {new.dtype.name} of '
            f'"{new.name}"'
        ).located(**facts)


__all__ = ["replace_inputs"]
