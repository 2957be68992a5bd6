"""Invocations: one contract for one run of one node, however its program is run.

Its inputs go into a kernel, its outputs come out; a probe is told, and an error says which node it
was, with which inputs, in which iterations. Op mode, the executor's machine and the continuation of
code that had to wait run a node by an `Invoker`. Generated code has its kernels inline and its
probe written into it (`flowscope.plan.codegen.variants`), and finds the invocation that failed by
its lines (`flowscope.plan.codegen.code`): both tell it as an `Invocation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.graph.lazy import frozen
from flowscope.plan.ir.kernels import counter
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node

#: Makes the random generator of an invocation: (op seed, path of calls, iterations ...).
Draw = Callable[..., Any]
#: Is told after each invocation: (node, numbers of the iterations around, outputs).
Probe = Callable[[Node, tuple[int, ...], Sequence[Any]], None]


@frozen
class Invocation:
    """One run of a node that has failed: its inputs, and the iterations of the loops around."""

    node: Node
    inputs: tuple[Any, ...]
    iterations: tuple[tuple[str, int], ...]

    def inside(self, around: tuple[tuple[str, int], ...]) -> Invocation:
        """Returns the same, in what ran in further loops around."""
        return Invocation(self.node, self.inputs, (*around, *self.iterations))


class Invoker:
    """Runs one node; it is made once, and called for each invocation.

    Args:
        node: The node; it has no blocks.
        modules: The array modules of the program.

    Attributes:
        node: As above.
        kernel: What computes it: see `kernel_function`.
        xp: The array module that it is given.
    """

    __slots__ = ("_count", "_counter", "kernel", "node", "xp")

    def __init__(self, node: Node, modules: Modules) -> None:
        self.node = node
        self.kernel = modules.function(node)
        self.xp = modules.of(node)
        self._count = len(node.outputs)
        self._counter = counter(node) if node.op.is_random else None

    def __call__(
        self,
        draw: Draw | None,
        iterations: tuple[int, ...],
        inputs: Sequence[Any],
        probe: Probe | None = None,
    ) -> Sequence[Any]:
        """Returns the node's outputs, one value for each.

        Args:
            draw: Makes the generators of random nodes; None where there are none.
            iterations: Numbers of the iterations of the loops around, from the outermost.
            inputs: The values of its inputs.
            probe: Is told of the invocation.
        """
        if self._counter is None:
            result = self.kernel(self.xp, *inputs)
        else:
            assert draw is not None
            counts = self._counter
            if iterations:
                counts = (*counts, 0)[:2] + iterations
            result = self.kernel(self.xp, draw(*counts), *inputs)
        outputs = (result,) if self._count == 1 else result if self._count else ()
        if probe is not None:
            probe(self.node, iterations, outputs)
        return outputs

    def failed(
        self, inputs: Sequence[Any], error: Exception, around: tuple[tuple[str, int], ...]
    ) -> InvocationError:
        """Returns the error of an invocation whose kernel has raised one.

        Args:
            inputs: What it was given.
            error: What the kernel has raised.
            around: The loops around, from the outermost, with the numbers of their iterations.
        """
        return InvocationError(Invocation(self.node, tuple(inputs), around), error)


class InvocationError(Exception):
    """An operation's kernel failed; the session turns it into an OpError.

    Attributes:
        invocation: What ran.
        kernel_error: What the kernel has raised.
    """

    def __init__(self, invocation: Invocation, kernel_error: Exception) -> None:
        super().__init__(invocation.node.name)
        self.invocation = invocation
        self.kernel_error = kernel_error


__all__ = ["Draw", "Invocation", "InvocationError", "Invoker", "Probe"]
