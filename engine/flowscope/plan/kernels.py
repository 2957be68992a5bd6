"""The function that computes a node alone, bit-equal to what generated code does in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowscope.graph.op import is_special
from flowscope.plan.codegen.function import device_type, node_kernel, scalar_template
from flowscope.plan.program import Node


def kernel_function(node: Node) -> Callable[..., Any]:
    """Returns the function (xp, *inputs) of a node; (xp, generator, *inputs) of a random one.

    Templates for numbers may differ from the kernel in the sign of a zero, so they are used here
    where generated code uses them.
    """
    device = device_type(node)
    template = scalar_template(node)
    if template is not None and not is_special(node.op, device):
        return _function(template, len(node.inputs))
    return node_kernel(node)


@functools.cache
def _function(template: str, count: int) -> Callable[..., Any]:
    """Returns a template as a function (xp, *inputs)."""
    names = [f"a{i}" for i in range(count)]
    function: Callable[..., Any] = eval(f"lambda xp, {', '.join(names)}: {template.format(*names)}")
    return function


__all__ = ["kernel_function"]
