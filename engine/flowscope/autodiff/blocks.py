"""Backward passes through blocks: from inside a body to what it uses from outside.

In a body, ys depend on xs outside by way of the parameters that stand for tensors outside. So one
pass leads from the ys to these parameters, and another one, in the block around, from there to the
xs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from flowscope.autodiff.aggregation import Cotangent, summed
from flowscope.autodiff.sweep import Sweep, ancestors, beside
from flowscope.control.trampoline import Work
from flowscope.graph.block import Block
from flowscope.graph.operation import Operation, Tensor


class Sweeps:
    """The backward passes of one call of `gradients`.

    Args:
        xs: Where they end.
        stopped: Tensors through which nothing flows.
        colocate: Whether a gradient shares its operation's device.
        gate: Whether an operation's cotangents wait for each other.
    """

    def __init__(
        self, xs: Sequence[Tensor], stopped: set[Tensor], colocate: bool, gate: bool
    ) -> None:
        self._xs = list(xs)
        self._stopped = stopped
        self._colocate = colocate
        self._gate = gate

    def beside(self, op: Operation) -> AbstractContextManager[None]:
        """Returns the scope that colocates what is made for an operation, if it shall be."""
        return beside(op, self._colocate)

    def run(self, ys: list[tuple[Tensor, Cotangent]]) -> Work[list[Cotangent | None]]:
        """Returns the cotangents of the xs, from those of ys."""
        arrived: dict[Tensor, list[Cotangent]] = {x: [] for x in self._xs}
        while ys:
            block = _innermost([y.op.block for y, _ in ys])
            here = [(y, g) for y, g in ys if y.op.block is block]
            ys = [(y, g) for y, g in ys if y.op.block is not block]
            ys += yield from self._through(block, here, arrived)
        found = []
        for x in self._xs:
            parts = arrived[x]
            if len(parts) > 1:
                arrived[x] = parts = [summed(parts)]
            found.append(parts[0] if parts else None)
        return found

    def _through(
        self,
        block: Block,
        ys: list[tuple[Tensor, Cotangent]],
        arrived: dict[Tensor, list[Cotangent]],
    ) -> Work[list[tuple[Tensor, Cotangent]]]:
        """Runs the pass in one block; returns the cotangents of tensors outside."""
        own = [x for x in arrived if x.op.block is block]
        pairs = [] if len(own) == len(arrived) else self._leading_out(block)
        stopped = self._stopped | {p for p, outer in pairs if outer in self._stopped}
        tensors = [y for y, _ in ys]
        ends = [*own, *[p for p, _ in pairs]]
        sweep = Sweep(ends, tensors, stopped, self._colocate, self._gate)
        for y, g in ys:
            sweep.send(y, g)
        yield from sweep.run()
        for x in own:
            total = sweep.total(x)
            arrived[x] += [] if total is None else [total]
        found = [(outer, sweep.total(p)) for p, outer in pairs]
        return [(outer, g) for outer, g in found if g is not None]

    def _leading_out(self, block: Block) -> list[tuple[Tensor, Tensor]]:
        """Returns the parameters that stand for tensors outside which may depend on an x."""
        ends = {x.op for x in self._xs}
        return [
            (p, outer)
            for p, outer in block.captured()
            if any(op in ends or op.definition.is_parameter for op in ancestors([outer]))
        ]


def _innermost(blocks: Sequence[Block]) -> Block:
    """Returns the block that all others enclose, or one of them."""
    found = blocks[0]
    for block in blocks:
        if found.encloses(block):
            found = block
    return found
