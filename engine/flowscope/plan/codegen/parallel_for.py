"""Parallel for: large element-wise operations, whose parts several threads take.

NumPy works on one thread. From about half a million elements on, a second one pays for the
hand-over; and parts that fit into a processor's cache pay for those operations that consist of
several of NumPy's.

Bits do not depend on the parts: NumPy computes an element of contiguous memory in the same way
wherever it lies. (In memory with gaps it may take other functions, so arrays have to be in C order.
Parts are runs of rows.) Whether an array is that large, and in that order, may be known only when
the operation runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.graph.values.expression import into_buffer, python_text
from flowscope.graph.values.shapes import size_of
from flowscope.plan.ir.program import Node

#: Elements from which on it pays (measured: 30 % slower at 300 000, 40 to 55 % quicker at 10^6).
LARGE = 1 << 19
#: Elements of one part.
PART = 1 << 17

#: Runs a function of 0 .. count - 1 on several threads; returns when all have ended.
ParallelFor = Callable[[int, Callable[[int], None]], None]


def is_parallelizable(node: Node) -> bool:
    """Whether an operation is element-wise, and large or of unknown size."""
    op = node.op
    if op.memory_order != "K" or op.expression is None or len(node.outputs) != 1:
        return False
    out = node.outputs[0].spec
    if not out.shape or (None not in out.shape and (size_of(out.shape) or 0) < LARGE):
        return False
    if out.dtype.kind not in "fiucb" or into_buffer(op.expression) is None:
        return False
    return bool(_full(node)) and all(v.spec.rank is not None for v in node.inputs)


def first_full(node: Node) -> int:
    """Returns the first input that has the output's shape."""
    return _full(node)[0]


def parallel_kernel(node: Node, parallel_for: ParallelFor) -> Callable[..., Any]:
    """Returns the kernel of a shareable operation: (*inputs, out) -> array.

    `out` is None or the array to write to; that may be an input.
    """
    expression = node.op.expression
    into = None if expression is None else into_buffer(expression)
    assert expression is not None and into is not None
    names = [f"x{j}" for j in range(len(node.inputs))]
    head = f"lambda {', '.join(names)}, out: "
    plain = eval(head + python_text(expression, names), {"xp": np})
    part = eval(head + python_text(into, names), {"xp": np})
    dtype = node.outputs[0].spec.dtype.as_numpy_dtype

    def kernel(*inputs: Any) -> Any:
        *arrays, out = inputs
        shape = _shape(arrays)
        size = 0 if shape is None else math.prod(shape)
        if size < LARGE or not all(x.flags.c_contiguous for x in arrays):
            return (plain if out is None else part)(*arrays, out)
        assert shape is not None
        made = np.empty(shape, dtype) if out is None else out
        rows = -(-PART * shape[0] // size)
        is_sliced = [x.ndim == len(shape) and x.shape[0] == shape[0] for x in arrays]

        def run(i: int) -> None:
            at = slice(i * rows, (i + 1) * rows)
            taken = [x[at] if s else x for x, s in zip(arrays, is_sliced, strict=True)]
            part(*taken, made[at])

        parallel_for(-(-shape[0] // rows), run)
        return made

    return kernel


def _full(node: Node) -> list[int]:
    shape = node.outputs[0].spec.shape
    return [j for j, v in enumerate(node.inputs) if v.spec.shape == shape]


def _shape(arrays: list[Any]) -> tuple[int, ...] | None:
    """Returns the shape that arrays are broadcast to; None where they do not fit."""
    first = arrays[0].shape
    if all(x.shape in (first, ()) for x in arrays[1:]):
        return first  # type: ignore[no-any-return]
    try:
        return np.broadcast_shapes(*[x.shape for x in arrays])
    except ValueError:
        return None


__all__ = ["LARGE", "ParallelFor", "first_full", "is_parallelizable", "parallel_kernel"]
