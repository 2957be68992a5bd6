"""Kernels: what computes a node, for its device and its dtypes, and as an expression.

All ways to run a node take its kernel from here, so they give the same bits.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

from flowscope.graph.op import is_special, kernel_of
from flowscope.graph.values.expression import FIRST, Expression, python_text
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.memories import host_of, is_host
from flowscope.plan.ir.program import Node


def kernel_function(node: Node) -> Callable[..., Any]:
    """Returns the function (xp, *inputs) of a node; (xp, generator, *inputs) of a random one.

    Expressions for numbers may differ from the kernel in the sign of a zero, so they are used here
    where generated code uses them.
    """
    if is_assignment(node):
        return _function(FIRST, 1)
    device = device_type(node)
    expression = scalar_expression(node)
    if expression is not None and not is_special(node.op, device):
        return _function(expression, len(node.inputs))
    return node_kernel(node)


def inlined_expression(node: Node) -> Expression | None:
    """The expression that code inlines for a node; None where it calls the kernel.

    An element-wise one is NumPy's arithmetic, which takes `bytes` for text of its own kind.
    """
    op = node.op
    if is_assignment(node):
        return FIRST
    if op.memory_order == "K":
        for v in node.inputs:
            if v.spec.dtype.kind == "s":
                return None
    return scalar_expression(node) or op.expression


def is_assignment(node: Node) -> bool:
    """Whether a node is a transfer of a value that stays in the memory of one host."""
    op = node.op
    if not isinstance(op, Transfer) or op.is_lossy:
        return False
    if host_of(op.send_device) != host_of(op.recv_device):
        return False
    (value,) = node.inputs
    made = () if value.node is None else value.node.op.outputs_on_host(len(value.node.outputs))
    is_there = is_host(op.send_device) or value.index in made
    return is_there and (op.to_host or is_host(op.recv_device))


def scalar_expression(node: Node) -> Expression | None:
    """The expression for numbers, where the node's inputs are known to be numbers; else None."""
    expression = node.op.scalar_expression
    if expression is None or device_type(node) != "CPU":
        return None
    is_scalar = all(v.spec.shape == () and v.spec.dtype.is_numeric for v in node.inputs)
    return expression if is_scalar else None


def counter(node: Node) -> tuple[int, ...]:
    """The key of a random node's draws: its op seed, and a hash of its path of calls."""
    seed: int = node.op.seed  # type: ignore[attr-defined]
    return (seed, zlib.crc32("/".join(node.path).encode())) if node.path else (seed,)


def own(value: Any) -> Any:
    """Returns a value that shares memory with no other: a copy of an array, where that lies."""
    copy = getattr(value, "copy", None)
    if copy is None:
        return value
    device = getattr(value, "device", "cpu")
    if isinstance(device, str):
        return copy()
    with device.active() if hasattr(device, "active") else device:  # CuPy copies to what is current
        return copy()


def node_kernel(node: Node) -> Callable[..., Any]:
    """Returns the kernel (xp, *inputs) of a node for its device and its dtypes."""
    specs = [v.spec for v in node.inputs], [v.spec for v in node.outputs]
    return kernel_of(node.op, device_type(node), *specs)


def device_type(node: Node) -> str:
    """Returns the type of the device that the node was placed on, e.g. "CPU"."""
    return _type_of(node.device)


@functools.cache
def _type_of(device: str) -> str:
    return device.rpartition("/device:")[2].partition(":")[0] or "CPU"


@functools.cache
def _function(expression: Expression, count: int) -> Callable[..., Any]:
    """An expression as a function (xp, *inputs)."""
    names = [f"a{i}" for i in range(count)]
    text = f"lambda xp, {', '.join(names)}: {python_text(expression, names)}"
    function: Callable[..., Any] = eval(text)
    return function


__all__ = [
    "counter",
    "device_type",
    "inlined_expression",
    "is_assignment",
    "kernel_function",
    "node_kernel",
    "own",
    "scalar_expression",
]
