"""What the readings of stamped code mean: spans, frames, iterations, and whose time it was.

A reading closes the interval since the one before, which belongs to one node: an operation's own
work, or what a loop or a branch does around its blocks. So the intervals of a run are a partition
of its time.

The table of a program becomes a graph of *slots*, one per place in the code that leaves a reading.
From each slot the sign of the next reading says which slot comes next, so readings are decoded by
an automaton; only where the sign decides is a step of it taken in Python, what lies between two
such places comes in one piece, and all else is done by NumPy. A run may be decoded in pieces: a
`Cursor` keeps what lies between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowscope.graph.lazy import frozen
from flowscope.plan.ir.program import Node
from flowscope.plan.ir.structured import LoopNode

Array = Any

#: What a reading stands for: the end of an operation, the begin of a branch, a loop's question to
#: its count, the begin of an iteration, the end of a loop or a branch.
LEAF, BRANCH, TEST, NEXT, CLOSE = range(5)
_NOWHERE = (-1, -1)


@frozen
class StampTable:
    """Which nodes of a block leave a reading, in order.

    Attributes:
        nodes: The nodes.
        blocks: The tables of the blocks of those that have some.
    """

    nodes: tuple[Node, ...]
    blocks: Mapping[Node, tuple[StampTable, ...]]


@frozen
class ReadingBlock:
    """The slots of a loop or a branch: those from `first` to before `end`.

    Attributes:
        node: Position of the node in the table.
        first, end: Its slots.
        close: The one that ends it.
        next: The one that begins an iteration; -1 of a branch.
        tests: First and end of the slots of a loop's condition.
    """

    node: int
    first: int
    end: int
    close: int
    next: int = -1
    tests: tuple[int, int] = _NOWHERE


@frozen
class Open:
    """A loop or a branch that runs.

    Attributes:
        begin: When it began.
        count: How many iterations of the loop have begun.
        frame: The frame that the loop is.
        around: The frame around and the iteration there.
    """

    begin: int
    count: int
    frame: int
    around: tuple[int, int]


class Cursor:
    """How far a run was decoded.

    Attributes:
        last: The time of the latest reading.
        entry: Slot of the next reading if that is positive, and if it is negative.
        open: The loops and branches that run, by the slots that end them.
        frames: How many frames there have been.
    """

    def __init__(self, start: int, entry: tuple[int, int]) -> None:
        self.last = start
        self.entry = entry
        self.open: dict[int, Open] = {}
        self.frames = 0

    def copy(self) -> Cursor:
        """Returns one that goes on by itself."""
        made = Cursor(self.last, self.entry)
        made.open, made.frames = dict(self.open), self.frames
        return made


@frozen
class Reading:
    """Decoded readings, one row each.

    Attributes:
        slots: Which places of the code left them.
        begin, end: The intervals that they close.
        starts: Of a loop or branch that ends here its begin, else as `begin`.
        frame, iteration: The frame that it lies in, and the iteration there; -1 for none.
        frames: New frames: rows of (number, position of the loop, frame around, iteration there).
    """

    slots: Array
    begin: Array
    end: Array
    starts: Array
    frame: Array
    iteration: Array
    frames: Array


class SlotTable:
    """The slots of stamped code.

    Args:
        table: Which nodes of each block leave a reading.

    Attributes:
        nodes: The nodes.
        parents: Per node the position of the loop or branch that it stands in, -1 for none.
        owner: Per slot the position of the node whose time its interval is.
        kind: Per slot what it stands for.
        blocks: Loops and branches, outer ones before those inside.
        entry: The slots that a run may begin with.
        has_loops: Whether there are loops.
    """

    def __init__(self, table: StampTable) -> None:
        self.nodes: list[Node] = []
        self.parents: list[int] = []
        self._owners: list[int] = []
        self._kinds: list[int] = []
        #: Per slot the next one if the next reading is positive, and if it is negative.
        self._next: list[tuple[int, int]] = []
        blocks: list[ReadingBlock] = []
        self.entry = self._block(table, -1, _NOWHERE, blocks)
        self.owner = np.array(self._owners, np.int32)
        self.kind = np.array(self._kinds, np.int8)
        self.blocks = sorted(blocks, key=lambda b: (b.first, -b.end))
        self.has_loops = any(b.next >= 0 for b in blocks)
        self._join()

    # -- made once ------------------------------------------------------------------------------

    def _slot(self, owner: int, kind: int, follow: tuple[int, int] = _NOWHERE) -> int:
        self._owners.append(owner)
        self._kinds.append(kind)
        self._next.append(follow)
        return len(self._owners) - 1

    def _block(
        self, table: StampTable, parent: int, follow: tuple[int, int], blocks: list[ReadingBlock]
    ) -> tuple[int, int]:
        """Makes the slots of a block; returns those that it may begin with."""
        first = len(self.nodes)
        self.nodes += table.nodes
        self.parents += [parent] * len(table.nodes)
        for index in reversed(range(first, first + len(table.nodes))):
            inner = table.blocks.get(self.nodes[index])
            if inner is None:
                follow = (self._slot(index, LEAF, follow),) * 2
            elif isinstance(self.nodes[index], LoopNode):
                follow = self._loop(index, inner, follow, blocks)
            else:
                follow = self._branch(index, inner, follow, blocks)
        return follow

    def _branch(
        self,
        index: int,
        inner: Sequence[StampTable],
        follow: tuple[int, int],
        blocks: list[ReadingBlock],
    ) -> tuple[int, int]:
        close = self._slot(index, CLOSE, follow)
        marks = [self._slot(index, BRANCH) for _ in inner]
        for slot, block in zip(marks, inner, strict=True):
            self._next[slot] = self._block(block, index, (close, close), blocks)
        blocks.append(ReadingBlock(index, close, len(self._owners), close))
        then, orelse = marks
        return orelse, then

    def _loop(
        self,
        index: int,
        inner: Sequence[StampTable],
        follow: tuple[int, int],
        blocks: list[ReadingBlock],
    ) -> tuple[int, int]:
        node = self.nodes[index]
        assert isinstance(node, LoopNode)
        close = self._slot(index, CLOSE, follow)
        following = self._slot(index, NEXT)
        entry = close, following
        *tests, body = inner
        before = len(self._owners)
        if tests:
            entry = self._block(tests[0], index, entry, blocks)
            if node.count is not None:
                entry = close, self._slot(index, TEST, entry)
        own_tests = before, len(self._owners)
        self._next[following] = self._block(body, index, entry, blocks)
        blocks.append(ReadingBlock(index, close, len(self._owners), close, following, own_tests))
        return entry

    def _join(self) -> None:
        """Finds what follows from each slot without a decision, in one piece."""
        decided = [e for e in self._next if e[0] != e[1]]
        starts = {s for e in (self.entry, *decided) for s in e}
        self._pieces: dict[int, tuple[int, int, int, int]] = {}
        self._flat: list[int] = []
        self._flat_slots = np.empty(0, np.int32)
        for slot in starts - {-1}:
            self._piece(slot)

    def _piece(self, slot: int) -> tuple[int, int, int, int]:
        """Returns where a slot's piece lies, its length, and which slots may follow."""
        found = self._pieces.get(slot)
        if found is None:
            first, at = len(self._flat), slot
            while True:
                self._flat.append(at)
                positive, negative = self._next[at]
                if positive != negative or positive < 0:
                    break
                at = positive
            found = self._pieces[slot] = first, len(self._flat) - first, positive, negative
        return found

    # -- decoding -------------------------------------------------------------------------------

    def cursor(self, start: int) -> Cursor:
        """Returns where a run begins.

        Args:
            start: The time.
        """
        return Cursor(start, self.entry)

    def read(self, cursor: Cursor, stamps: Array) -> Reading:
        """The decoded readings; moves the cursor behind them.

        Args:
            cursor: What came before.
            stamps: The readings, int64.
        """
        slots = self._slots(cursor, stamps)
        end = np.abs(stamps[: len(slots)])
        begin = np.empty_like(end)
        begin[:1], begin[1:] = cursor.last, end[:-1]
        starts = begin.copy()
        frame, iteration = np.full((2, len(slots)), -1, np.int32)
        found = Reading(slots, begin, end, starts, frame, iteration, np.empty((0, 4), np.int32))
        frames = [f for b in self.blocks if len(f := self._within(b, cursor, found))]
        if len(end):
            cursor.last = int(end[-1])
        return replace(found, frames=np.concatenate(frames)) if frames else found

    def _slots(self, cursor: Cursor, stamps: Array) -> Array:
        signs = (stamps < 0).tobytes()
        i, n, (positive, negative) = 0, len(stamps), cursor.entry
        get = self._pieces.get
        firsts: list[int] = []
        lengths: list[int] = []
        while i < n:
            slot = negative if signs[i] else positive
            if slot < 0:
                break
            first, length, positive, negative = get(slot) or self._piece(slot)
            firsts.append(first)
            lengths.append(length)
            i += length
        counts = np.array(lengths, np.int64)
        before = np.cumsum(counts) - counts
        at = np.arange(min(i, n)) + np.repeat(np.array(firsts, np.int64) - before, counts)[:n]
        if len(self._flat_slots) < len(self._flat):
            self._flat_slots = np.array(self._flat, np.int32)
        slots = self._flat_slots[at]
        if len(slots):
            cursor.entry = self._next[slots[-1]]
        return slots

    def _within(self, block: ReadingBlock, cursor: Cursor, found: Reading) -> Array:
        """Fills in what a loop or a branch says of the readings in it; returns its new frames."""
        at = np.flatnonzero((found.slots >= block.first) & (found.slots < block.end))
        if not len(at):
            return ()
        slots, before = found.slots[at], cursor.open.pop(block.close, None)
        closes = slots == block.close
        entries = np.flatnonzero(np.r_[before is None, closes[:-1]])
        opened = [] if before is None else [before]
        begin = np.r_[[o.begin for o in opened], found.begin[at[entries]]].astype(np.int64)
        entered = np.stack([found.frame[at[entries]], found.iteration[at[entries]]], 1)
        around = np.r_[[o.around for o in opened] or np.empty((0, 2), int), entered]
        numbers = np.r_[[o.frame for o in opened], cursor.frames + np.arange(len(entries))]
        which = np.zeros(len(at), np.int64)
        which[entries] = 1
        which = np.cumsum(which) - (before is None)
        found.starts[at[closes]] = begin[which[closes]]
        counts = np.zeros(len(at), np.int64)
        if block.next >= 0:
            counts = self._iterations(block, found, at, entries, which, numbers, before)
            cursor.frames += len(entries)
        if not closes[-1]:
            k = int(which[-1])
            place = int(around[k][0]), int(around[k][1])
            cursor.open[block.close] = Open(int(begin[k]), int(counts[-1]), int(numbers[k]), place)
        if block.next < 0:
            return ()
        rows = around[len(opened) :]
        return np.c_[numbers[len(opened) :], np.full(len(rows), block.node), rows].astype(np.int32)

    def _iterations(
        self,
        block: ReadingBlock,
        found: Reading,
        at: Array,
        entries: Array,
        which: Array,
        numbers: Array,
        before: Open | None,
    ) -> Array:
        """Fills in frames and iterations of a loop; returns how many have begun at each reading."""
        slots = found.slots[at]
        begun = np.cumsum(slots == block.next) + (0 if before is None else before.count)
        base = begun[entries] - (slots[entries] == block.next)
        counts = begun - np.r_[[] if before is None else [0], base].astype(np.int64)[which]
        inside = slots != block.close
        is_test = (slots >= block.tests[0]) & (slots < block.tests[1])
        found.frame[at[inside]] = numbers[which[inside]]
        found.iteration[at[inside]] = (counts - ~is_test)[inside]
        return counts

    def parts(self, reading: Reading) -> Array:
        """Returns which rows are spans: of operations, and of loops and branches as a whole."""
        kind = self.kind[reading.slots]
        return (kind == LEAF) | (kind == CLOSE)


__all__ = ["CLOSE", "LEAF", "Cursor", "Open", "Reading", "ReadingBlock", "SlotTable", "StampTable"]
