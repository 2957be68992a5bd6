"""Regions: the units that are scheduled as a whole.

Nodes that wait for the same asynchronous sources form one region. The feeds of a step are there
before it starts and no op waits for anything yet, so a program is one region.
"""

from __future__ import annotations

from flowscope.graph.lazy import frozen
from flowscope.plan.program import Node, Program, Value


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


def regions(program: Program, is_handed_out: bool = True) -> tuple[Region, ...]:
    """Returns the regions of an ordered program.

    Args:
        program: The program.
        is_handed_out: Whether its fetches go to the user, as they come out of the region.
    """
    handles, fetches = handles_of(program), program.fetches
    shared = tuple([is_handed_out and _is_shared(v, fetches[:i]) for i, v in enumerate(fetches)])
    return (Region(program.nodes, program.feeds, program.fetches, shared, handles),)


def handles_of(program: Program) -> tuple[Node, ...]:
    """Returns what stands for the variables and queues that a program uses, in its order."""
    return tuple([n for n in program.nodes if n.op.is_handle])


def _is_shared(value: Value, before: tuple[Value, ...]) -> bool:
    if value.node is None or value in before:
        return True
    op = value.node.op
    return bool(
        value.node.blocks or op.views or op.reads_state or op.writes_state or op.type == "Const"
    )
