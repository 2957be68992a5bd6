"""Regions: the units that are scheduled as a whole.

The feeds of a step are there before it starts, so a program is one region. Where something in it
waits, the executor runs smaller ones: see `plan.executables.region_formation`.
"""

from __future__ import annotations

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Recv
from flowscope.plan.ir.program import Node, Program, Value


@frozen
class Region:
    """A run of nodes without waiting, its inputs and its outputs."""

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    #: Per output: whether it may share memory with state, a constant, a feed or another output, so
    #: that the user must be given a copy.
    shared: tuple[bool, ...]
    #: Handles of the variables and queues that it uses, in the order in which they are passed.
    handles: tuple[Node, ...]

    @property
    def handle_values(self) -> tuple[Value, ...]:
        """The handles' values: what stands for the variables inside the region."""
        return tuple(h.outputs[0] for h in self.handles)


def whole_region(program: Program, is_handed_out: bool = True) -> Region:
    """Returns one region of a whole program, in which a Recv waits in place."""
    fetches = program.fetches
    copied = [is_handed_out and _is_shared(v, fetches[:i]) for i, v in enumerate(fetches)]
    return Region(program.nodes, program.feeds, fetches, tuple(copied), handles_of(program))


def handles_of(program: Program) -> tuple[Node, ...]:
    """The handles of the variables and queues that a program uses, in its order."""
    return tuple([n for n in program.nodes if n.op.is_handle])


def _is_shared(value: Value, before: tuple[Value, ...]) -> bool:
    if value.node is None or value in before:
        return True
    op = value.node.op
    return bool(
        value.node.blocks
        or op.views
        or op.reads_state
        or op.writes_state
        or isinstance(op, Const | Recv)
    )
