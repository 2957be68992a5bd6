"""Forks: runs of pure nodes that another thread may compute before their turn comes.

A *section* is a run of neighbouring nodes without effects. It may begin as soon as the last of its
inputs is there, and its results are needed where it stands. Between the two the step's own thread
does other work; where both take long, two cores pay.

The property that makes this right: the order of the program stays. A section has no effect, draws
no random numbers, reads no variable that is written between its inputs and its turn, and its inputs
live until its turn anyway. So whoever computes it, and when, its results have the same bits; where
its turn comes the step takes them, or raises what the first of its nodes to fail has raised: what
stands before it in the program has run by then. If nobody has
begun it by then the step computes it itself: beside busy processes nothing is waited for that does
not run.

A section is chosen where the costs say that this pays: what is saved is the smaller of the work of
the section and of the work that stands between its inputs and it; that has to be several times a
hand-over. Work counts once: there is one other core to fill, and what two sections overlap with is
not the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.ops.core.send_recv import Transfer
from flowscope.ops.host.py_functions import is_function
from flowscope.plan.ir.memories import is_host
from flowscope.plan.ir.program import Node, Program, Value

#: What has to be saved at least; a hand-over takes about 50 us.
WORTH_S = 300e-6
#: What does less than this holds the interpreter for a good part of its time.
_LARGE_S = 50e-6
#: So many nodes have sections at most: their code is a function of its own.
_MOST_NODES = 64


@frozen
class ForkedSection:
    """A section, by the positions of its nodes.

    Attributes:
        ready: Before this node all its inputs are there.
        start, end: Its nodes: constants between them are no part of it.
    """

    ready: int
    start: int
    end: int


def find_forks(program: Program, seconds: Callable[[Node], float]) -> tuple[ForkedSection, ...]:
    """Returns the sections of a block that pay, in the order in which they stand; none overlap.

    Args:
        program: The block, in order.
        seconds: What one invocation of a node takes.
    """
    nodes = program.nodes
    moving = Transfer  # between CPUs it is an assignment; what else it does, the thread does not
    takes = [seconds(n) if type(n.op) is not moving and _works_on_host(n) else 0.0 for n in nodes]
    if sum(t for t in takes if t >= _LARGE_S) < 2 * WORTH_S:
        return ()
    finder = _Finder(nodes, takes)
    found: list[ForkedSection] = []
    start = 0
    while start < len(nodes):
        fork = finder.best(start)
        if fork is not None:
            finder.use(fork)
            found.append(fork)
        start = start + 1 if fork is None else fork.end
    return tuple(found)


class _Finder:
    def __init__(self, nodes: Sequence[Node], takes: Sequence[float]) -> None:
        self._nodes = nodes
        self._takes = takes
        self._at: dict[Value, int] = {v: i for i, n in enumerate(nodes) for v in n.outputs}
        #: Behind which node the results of each node of a section are there.
        self._end: dict[int, int] = {}
        #: How many nodes before each one write state.
        self._writes = [0, *itertools.accumulate(int(n.writes_state) for n in nodes)]
        #: What of each node's work no section overlaps with yet.
        self._left = [t if t >= _LARGE_S else 0.0 for t in takes]

    def best(self, start: int) -> ForkedSection | None:
        """Returns the section that begins at a node and saves most; None if none saves enough."""
        if not self._may_move(start):
            return None
        ready, most, work = 0, 0.0, 0.0
        best: ForkedSection | None = None
        read = end = start
        while end < len(self._nodes) and end - start < _MOST_NODES:
            node = self._nodes[end]
            if not isinstance(node.op, Const):
                if not self._may_move(end):
                    break
                ready = max(ready, self._ready(node, start))
                read = end if node.op.reads_state else read
                if ready >= start or self._writes[ready] < self._writes[read]:
                    break
                is_large = self._takes[end] >= _LARGE_S
                work += self._takes[end] if is_large else 0.0
                saved = min(work, sum(self._left[ready:start]))
                if saved > most or (saved == most and best and not is_large):
                    best, most = ForkedSection(ready, start, end + 1), saved
            end += 1
        return best if most >= WORTH_S else None

    def use(self, fork: ForkedSection) -> None:
        """Notes what a section overlaps with: the work that stands nearest before it."""
        work = sum(t for t in self._takes[fork.start : fork.end] if t >= _LARGE_S)
        for i in range(fork.start - 1, fork.ready - 1, -1):
            used = min(work, self._left[i])
            self._left[i] -= used
            work -= used
        for i in range(fork.start, fork.end):
            self._left[i] = 0.0  # no work of the step's own thread
            self._end[i] = fork.end

    def _may_move(self, i: int) -> bool:
        node = self._nodes[i]
        op = node.op
        if node.blocks or op.is_handle or isinstance(op, Const) or is_function(op):
            return False
        if not _works_on_host(node):
            return False
        is_quiet = not (op.is_random or op.is_blocking or op.has_effect or op.writes_state)
        return is_quiet and bool(node.outputs) and not node.control

    def _ready(self, node: Node, start: int) -> int:
        """Returns the position before which all inputs are there that the section does not make."""
        found = 0
        for v in node.inputs:
            at = self._at.get(v)
            if at is not None and at < start and not isinstance(self._nodes[at].op, Const):
                found = max(found, self._end.get(at, at + 1))
        return found


def _works_on_host(node: Node) -> bool:
    """Whether the step's thread computes it: what an accelerator does, it does beside that.

    Constants are there before the step.
    """
    if isinstance(node.op, Const):
        return False
    is_brought = isinstance(node.op, Transfer) and not is_host(node.op.send_device)
    return is_host(node.device) and not is_brought


__all__ = ["WORTH_S", "ForkedSection", "find_forks"]
