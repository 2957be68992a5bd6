"""Where the lists lie that loops keep: with who makes what they keep, as far as that is possible.

What is tied already - by a branch that packs the lists of two loops, by a sum of lists, a product
that takes two, an operation that asks for a device - may have no device in common with who makes
the kept values. Then the list lies where the others are, and the loop's body gets a copy of the
value that is at home there: the value crosses in every iteration, before it is kept. Who was built
first keeps its list, as with all that share a device. What nobody makes, as a feed or a constant,
is copied too.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flowscope.graph.devices import DeviceSpec
from flowscope.ops.core.flow import Identity
from flowscope.plan.ir.lowering import is_ambient
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import ProgramEdits
from flowscope.plan.ir.structured import LoopNode
from flowscope.plan.placement.choices import Choices, is_binding
from flowscope.plan.placement.makers import Makers
from flowscope.plan.placement.ties import Ties, is_held, tied


class _Kept(NamedTuple):
    """A value that a loop keeps: its number among the kept ones, and who makes it."""

    loop: LoopNode
    at: int
    maker: Node | None

    @property
    def list(self) -> Value:
        return self.loop.kept[self.at]

    @property
    def value(self) -> Value:
        return self.loop.kept_values[self.at]


def tied_with_kept(program: Program, devices: Sequence[DeviceSpec]) -> tuple[Program, Makers, Ties]:
    """Returns the ties of a program's nodes, those of lists with who makes what they keep too.

    Args:
        program: The program.
        devices: The devices of the session.

    Returns:
        The program, in which loops keep copies where that is necessary; who makes its values; the
        ties of its nodes.
    """
    found: Program | None = None
    while found is not program:
        program = program if found is None else found
        makers, ties = Makers(program), tied(program)
        found = _tie_kept(program, makers, ties, Choices(devices, ties))
    return program, makers, ties


def _tie_kept(program: Program, makers: Makers, ties: Ties, choices: Choices) -> Program:
    """Ties lists to who makes what they keep; returns another program if it takes copies."""
    found = sorted(_kept(program, makers), key=_age)
    if not found:
        return program
    rooms = _Rooms(program, ties, choices)
    copied = [k for k in found if not rooms.share(k)]
    if copied:
        return _with_copies(program, copied)
    for kept in found:
        if kept.maker is not None:
            ties.tie(kept.list, kept.maker, "give and keep one value")
    return program


def _kept(program: Program, makers: Makers) -> Iterator[_Kept]:
    for node in program.walk():
        if isinstance(node, LoopNode):
            for i, value in enumerate(node.kept_values):
                if not is_held(value):
                    yield _Kept(node, i, makers.maker(value))


def _age(kept: _Kept) -> int:
    maker = kept.maker
    return maker.origins[0].id if maker is not None and maker.origins else -1


class _Rooms:
    """The devices that groups of tied nodes have in common: those that all wishes that bind allow.

    Args:
        program: The program.
        ties: What is tied.
        choices: The devices of nodes.
    """

    def __init__(self, program: Program, ties: Ties, choices: Choices) -> None:
        self._ties = ties
        self._choices = choices
        self._joined = Ties()
        self._is_free = len(choices.devices) < 2
        self._rooms: dict[object, frozenset[str]] = {}
        if not self._is_free:
            for group in ties.components([n for n in program.walk() if not n.blocks]):
                self._rooms[ties.root(group[0])] = self._room(group)

    def _room(self, group: Sequence[Node]) -> frozenset[str]:
        found: frozenset[str] | None = None
        for node in group:
            able, allowed = self._choices.of_node(node)
            some = frozenset(map(self._choices.name, allowed if is_binding(node) else able))
            found = some if found is None else found & some
        return found or frozenset()

    def share(self, kept: _Kept) -> bool:
        """Whether a list and who makes its elements can share a device; then they do."""
        if self._is_free:
            return True
        joined, ties = self._joined, self._ties
        home = joined.root(ties.root(kept.list))
        if kept.maker is None or is_ambient(kept.maker):
            return home not in self._rooms
        maker = joined.root(ties.root(kept.maker))
        a, b = self._rooms.get(home), self._rooms[maker]
        both = b if a is None else a & b
        if not both and a and b:
            return False
        joined.tie(home, maker)
        self._rooms[joined.root(home)] = both
        return True


def _with_copies(program: Program, copied: Sequence[_Kept]) -> Program:
    """Returns the program in which loops keep copies of some values."""
    edits = ProgramEdits()
    by_loop: defaultdict[LoopNode, list[_Kept]] = defaultdict(list)
    for kept in copied:
        by_loop[kept.loop].append(kept)
    for loop, some in by_loop.items():
        copies = {k.at + loop.variables: _copy(k) for k in some}
        fetches = tuple(
            [copies[i].outputs[0] if i in copies else v for i, v in enumerate(loop.body.fetches)]
        )
        body = dataclasses.replace(loop.body, fetches=fetches)
        edits.append_to(body, copies.values())
        edits.change(loop, blocks=(*loop.conditions, body))
    return edits.applied(program)


def _copy(kept: _Kept) -> Node:
    """Returns a node that gives what a loop keeps, and asks for no device."""
    loop, value = kept.loop, kept.value
    name = f"{loop.name}/kept_{kept.at}"
    made = Node(Identity(), name, loop.order, (value,), [value.spec], "", loop.origins, loop.path)
    made.outputs[0].stand_for(value)
    return made


__all__ = ["tied_with_kept"]
