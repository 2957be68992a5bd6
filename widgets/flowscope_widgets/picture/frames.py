"""Where lines start and end that lead into open frames of loops and branches, and those inside."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from flowscope.live.nesting import (
    DECIDED,
    End,
    decision_text,
    givers,
    is_back,
    is_frame,
    is_loop,
    returns,
    takers,
)
from flowscope.live.schema import Node

Kind = Literal["data", "control", "return"]


class Line(NamedTuple):
    """From an output (-1: none) of an operation to an operation."""

    source: int
    output: int
    target: int
    kind: Kind


def lines(by_id: Mapping[int, Node], opened: Collection[int]) -> Iterator[Line]:
    """Yields the lines between a graph's operations.

    Args:
        by_id: The operations.
        opened: Ids of the operations whose frames are open: their bodies' operations take and
            give what is theirs.
    """

    def given(end: End) -> list[End]:
        node = by_id.get(end[0])
        if node is None or not is_frame(node) or node.id not in opened:
            return [end]
        inner = givers(node, end[1])
        return [found for e in inner for found in ([e] if e[0] == node.id else given(e))]

    for node in by_id.values():
        is_open = is_frame(node) and node.id in opened
        for k, end in enumerate(node.inputs):
            kind: Kind = "return" if is_back(by_id.get(end[0]), node) else "data"
            for target in takers(node, k) if is_open else (node.id,):
                yield from (Line(*source, target, kind) for source in given(end))
        yield from (Line(source, -1, node.id, "control") for source in node.control)
        if not is_open:
            continue
        if node.predicate and is_loop(node):
            yield from (Line(*source, node.id, "data") for source in given(node.predicate))
        for result, parameter in returns(node):
            yield from (Line(*source, parameter, "return") for source in given(result))
    yield from _decisions(by_id, opened)


def kinds(nodes: Iterable[Node]) -> dict[int, str]:
    """Returns what belongs to loops and branches, in a word or two, by operation id."""
    found: dict[int, str] = {}
    for node in filter(is_frame, nodes):
        found[node.id] = decision_text(node)
        found.update((parameter, "variable") for _, parameter in returns(node))
        found.update((parameter, "from outside") for parameter, _ in node.enters)
    return found


def _decisions(by_id: Mapping[int, Node], opened: Collection[int]) -> Iterator[Line]:
    """From what decides to the first parameter of each body that then runs or does not."""
    firsts: dict[str, int] = {}
    for node in sorted(by_id.values(), key=lambda node: node.type != "Parameter"):
        firsts.setdefault(node.body, node.id)
    for node in filter(is_frame, by_id.values()):
        for name, role in zip(node.runs, node.roles, strict=False):
            if node.id in opened and role in DECIDED and name in firsts:
                yield Line(node.id, -1, firsts[name], "control")
