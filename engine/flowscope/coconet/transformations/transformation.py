"""What a transformation of a schedule is: a condition, and a function from stages to stages."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from flowscope.coconet.stage_graph import FusedStages, StageGraph, StageNode
from flowscope.coconet.stage_ops import StageOp
from flowscope.errors import InvalidArgumentError


class ScheduleTransformation:
    """Base of transformations; they have no state.

    Attributes:
        name: The name of the method of a schedule that applies it.
        condition: When it is legal, as a sentence.
    """

    name: ClassVar[str]
    condition: ClassVar[str]

    def apply(self, graph: StageGraph, *arguments: Any) -> StageGraph:
        """Returns the transformed stages.

        Raises:
            InvalidArgumentError: if it is not legal; the message says why.
        """
        raise NotImplementedError

    def candidates(self, graph: StageGraph) -> Iterator[tuple[Any, ...]]:
        """Arguments with which it may be legal."""
        raise NotImplementedError

    def legal(self, graph: StageGraph) -> Iterator[tuple[tuple[Any, ...], StageGraph]]:
        """Arguments with which it is legal, and what it makes."""
        seen = set()
        for arguments in self.candidates(graph):
            if arguments in seen:
                continue
            seen.add(arguments)
            try:
                made = self.apply(graph, *arguments)
            except InvalidArgumentError:
                continue
            yield arguments, made


def stage_of(graph: StageGraph, name: Any, kind: type[StageOp], what: str) -> StageNode:
    """The stage of a name, which has to be of a kind."""
    found = graph.named(name)
    if not isinstance(found, StageNode) or not isinstance(found.op, kind):
        is_what = found.text if isinstance(found, StageNode) else "an argument"
        raise InvalidArgumentError(f"{name} is no {what}, it is {is_what}")
    return found


def check_free(graph: StageGraph, names: Collection[str]) -> None:
    """Raises if one of the stages is in a fused group or in an overlap."""
    for name in names:
        if name in graph.chain_of:
            chain = ", ".join(graph.chain_of[name])
            raise InvalidArgumentError(f"{name} is in the overlap of {chain}")
        if name in graph.group_of:
            raise InvalidArgumentError(f"{name} is in the fused group {graph.group_of[name].name}")


def without(graph: StageGraph, names: Collection[str]) -> tuple[FusedStages, ...]:
    """The fused groups without some stages; what has less than two stages then is none."""
    found = []
    for group in graph.fused:
        left = tuple([m for m in group.members if m not in names])
        if len(left) > 1:
            found.append(replace(group, members=left))
    return tuple(found)


__all__ = ["ScheduleTransformation"]
