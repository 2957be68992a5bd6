"""Late receives: what comes from another device waits until little is left to do before its use.

A program in order brings values directly before their first use. The machine of tokens begins
whatever can begin: on a wide graph a device would hold all that ever comes to it. Here a transfer
waits for a node that stands before it, on the device that gets the value: as many uses ahead as
`AHEAD` it may come, and no more. Control edges of loops' back edges play no part, for a transfer
and what it waits for stand in one block.

Source: recv scheduling, Abadi et al. 2016 (white paper), section 5.2.
"""

from __future__ import annotations

from collections import defaultdict, deque

from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.program import Node, Program
from flowscope.plan.ir.rewriting import ProgramEdits

#: So many nodes of the receiving device may run between a transfer and its first use.
AHEAD = 4


def delay_receives(program: Program) -> Program:
    """Returns a program with transfers whose transfers to other devices wait, in blocks too."""
    edits = ProgramEdits()
    _delay(program, edits)
    return edits.applied(program)


def _delay(block: Program, edits: ProgramEdits) -> None:
    before: defaultdict[str, deque[Node]] = defaultdict(lambda: deque(maxlen=AHEAD))
    for node in block.nodes:
        for inner in node.blocks:
            _delay(inner, edits)
        if isinstance(node.op, Transfer) and node.op.send_device != node.op.recv_device:
            last = before[node.op.recv_device]
            if len(last) == AHEAD:
                edits.change(node, control=(*node.control, last[0]))
        elif not node.blocks and not is_ambient(node):
            before[node.device].append(node)


__all__ = ["AHEAD", "delay_receives"]
