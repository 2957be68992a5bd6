"""How a node is run alone, bit-equal to what generated code does in its place.

Op mode, the executor and the continuation of code that had to wait run nodes by one contract, an
`Invoker`: what is to happen around an invocation is said here once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.graph.op import is_special
from flowscope.plan.codegen.function import counter, device_type, node_kernel, scalar_template
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


class Invoker:
    """Runs one node; it is made once, and called for each invocation.

    Args:
        node: The node; it has no blocks.

    Attributes:
        node: As above.
        kernel: What computes it: see `kernel_function`.
    """

    __slots__ = ("_count", "_counter", "kernel", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.kernel = kernel_function(node)
        self._count = len(node.outputs)
        self._counter = counter(node) if node.op.is_random else None

    def __call__(
        self, xp: Any, draw: Draw | None, iterations: tuple[int, ...], inputs: Sequence[Any]
    ) -> Sequence[Any]:
        """Returns the node's outputs, one value for each.

        Args:
            xp: The array module of the device.
            draw: Makes the generators of random nodes; None where there are none.
            iterations: Numbers of the iterations of the loops around, from the outermost.
            inputs: The values of its inputs.
        """
        if self._counter is None:
            result = self.kernel(xp, *inputs)
        else:
            assert draw is not None
            counts = self._counter
            if iterations:
                counts = (*counts, 0)[:2] + iterations
            result = self.kernel(xp, draw(*counts), *inputs)
        if self._count == 1:
            return (result,)
        return result if self._count else ()

    def failed(
        self, inputs: Sequence[Any], error: Exception, around: tuple[tuple[str, int], ...]
    ) -> InvocationError:
        """Returns the error of an invocation whose kernel has raised one.

        Args:
            inputs: What it was given.
            error: What the kernel has raised.
            around: The loops around, from the outermost, with the numbers of their iterations.
        """
        return InvocationError(self.node, tuple(inputs), error, around)


#: Makes the random generator of an invocation: (op seed, path of calls, iterations ...).
Draw = Callable[..., Any]


class InvocationError(Exception):
    """An operation's kernel failed with `kernel_error`; the session turns it into an OpError.

    `iterations` are the loops around, from the outermost, with the numbers of their iterations.
    """

    def __init__(
        self,
        node: Node,
        inputs: tuple[Any, ...],
        kernel_error: Exception,
        iterations: tuple[tuple[str, int], ...] = (),
    ) -> None:
        super().__init__(node.name)
        self.iterations = iterations
        self.kernel_error = kernel_error
        self.node = node
        self.inputs = inputs


@functools.cache
def _function(template: str, count: int) -> Callable[..., Any]:
    """Returns a template as a function (xp, *inputs)."""
    names = [f"a{i}" for i in range(count)]
    function: Callable[..., Any] = eval(f"lambda xp, {', '.join(names)}: {template.format(*names)}")
    return function


__all__ = ["Draw", "InvocationError", "Invoker", "kernel_function"]
