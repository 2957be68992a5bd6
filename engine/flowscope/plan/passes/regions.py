"""Regions: the units that are scheduled as a whole.

Nodes that wait for the same asynchronous sources form one region. The feeds of a step are there
before it starts, so a program is one region, unless it waits for what other partitions send.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Recv, Send
from flowscope.plan.lowering import is_ambient
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
    fetches = program.fetches
    copied = [is_handed_out and _is_shared(v, fetches[:i]) for i, v in enumerate(fetches)]
    if any(isinstance(n.op, Recv | Send) for n in program.nodes):
        return _between_transfers(program, dict(zip(fetches, copied, strict=True)))
    return (whole_region(program, is_handed_out),)


def whole_region(program: Program, is_handed_out: bool = True) -> Region:
    """Returns one region of a whole program, in which a Recv waits in place."""
    fetches = program.fetches
    copied = [is_handed_out and _is_shared(v, fetches[:i]) for i, v in enumerate(fetches)]
    return Region(program.nodes, program.feeds, fetches, tuple(copied), handles_of(program))


def _between_transfers(program: Program, copied: Mapping[Value, bool]) -> tuple[Region, ...]:
    """Returns the regions of a program that waits for others: each ends before a Recv.

    What is received is an input of a region, and what is sent an output. Constants and handles are
    in every region that uses them.
    """
    handed = {*program.fetches, *[v for n in program.nodes if _sends(n) for v in n.inputs]}
    groups: list[list[Node]] = [[]]
    for node in program.nodes:
        if isinstance(node.op, Recv):
            groups.append([])
        elif not _sends(node) and (not is_ambient(node) or node.outputs[0] in handed):
            groups[-1].append(node)
    groups = [g for g in groups if g]
    taken: dict[Value, set[int]] = {v: {len(groups)} for v in program.fetches}
    at = {n: i for i, g in enumerate(groups) for n in g}
    for node in program.nodes:
        for v in node.inputs:
            taken.setdefault(v, set()).add(at.get(node, len(groups)))
    found = []
    for i, nodes in enumerate(groups):
        own = set(nodes)
        used = dict.fromkeys(v for n in nodes for v in n.inputs if v.node not in own)
        outputs = [v for n in nodes for v in n.outputs if taken.get(v, set()) - {i}]
        ambient = dict.fromkeys(v.node for v in used if v.node is not None and is_ambient(v.node))
        inputs = tuple([v for v in used if v.node not in ambient])
        handles = tuple([n for n in ambient if n.op.is_handle])
        shared = tuple([copied.get(v, False) for v in outputs])
        found.append(Region((*ambient, *nodes), inputs, tuple(outputs), shared, handles))
    return tuple(found)


def _sends(node: Node) -> bool:
    return isinstance(node.op, Send)


def handles_of(program: Program) -> tuple[Node, ...]:
    """Returns what stands for the variables and queues that a program uses, in its order."""
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
