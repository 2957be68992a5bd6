"""`fuse`: stages run as one, without a way through memory between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from flowscope.coconet.stage_graph import FusedStages, StageGraph, StageNode
from flowscope.coconet.stage_ops import (
    AllGatherStage,
    ReduceScatterStage,
    SendStage,
    SliceStage,
    TotalStage,
)
from flowscope.coconet.transformations.transformation import ScheduleTransformation
from flowscope.errors import InvalidArgumentError

#: Of each kind of group, in which order its kinds of stages follow each other.
KINDS = ("computation", "all_reduce", "send")


class FuseStages(ScheduleTransformation):
    """Stages become a group that runs as one."""

    name: ClassVar[str] = "fuse"
    condition: ClassVar[str] = (
        "The stages are computations, or a reduce_scatter with computations on slices and "
        "all_gathers, or computations with sends of their results; they hang together, no stage "
        "outside lies between two of them, and fused groups are given whole."
    )

    def apply(self, graph: StageGraph, *names: Any) -> StageGraph:
        given = {m for x in dict.fromkeys(names) for m in self._members(graph, x)}
        members = [s for s in graph.stages if s.name in given]
        if len(members) < 2:
            raise InvalidArgumentError("expected two stages at least")
        for s in members:
            if s.name in graph.chain_of:
                raise InvalidArgumentError(f"{s.name} is in an overlap")
            group = graph.group_of.get(s.name)
            if group is not None and not given >= set(group.members):
                missing = ", ".join([m for m in group.members if m not in given])
                raise InvalidArgumentError(
                    f"{s.name} is in the fused group {group.name}, of which {missing} is missing"
                )
        if any(set(g.members) == given for g in graph.fused):
            raise InvalidArgumentError("they are fused already")
        kind = _kind(graph, members)
        _check_together(graph, members)
        if between := graph.between(given):
            raise InvalidArgumentError(
                f"it makes a circle: {', '.join(sorted(between))} lies between"
            )
        fused = [g for g in graph.fused if not given & set(g.members)]
        name = graph.fresh(f"fused_{members[-1].name}")
        made = FusedStages(name, kind, tuple([s.name for s in members]))
        return graph.changed(fused=(*fused, made))

    @staticmethod
    def _members(graph: StageGraph, name: Any) -> tuple[str, ...]:
        if any(g.name == name for g in graph.fused):
            return graph.members(name)
        found = graph.named(name)
        if not isinstance(found, StageNode):
            raise InvalidArgumentError(f"{name} is an argument, no stage")
        return (found.name,)

    def candidates(self, graph: StageGraph) -> Iterator[tuple[Any, ...]]:
        free = [s for s in graph.stages if s.name not in graph.chain_of]
        yield from self._regions(graph, [s for s in free if _computes(s)])
        for s in free:
            if isinstance(s.op, ReduceScatterStage):
                yield tuple(self._around(graph, s, free))
            if isinstance(s.op, SendStage):
                yield tuple(self._leading_to(graph, s))
        for s in free:
            for user in graph.users[s.name]:
                if user.name not in graph.chain_of:
                    yield _whole_groups(graph, [s.name, user.name])

    def _regions(self, graph: StageGraph, stages: list[StageNode]) -> Iterator[tuple[Any, ...]]:
        """Sets of computations that hang together, each as large as it can be."""
        left = [s.name for s in stages]
        while left:
            found: tuple[str, ...] = (left[0],)
            for name in left[1:]:
                try:
                    self.apply(graph, *_whole_groups(graph, [*found, name]))
                    found = (*found, name)
                except InvalidArgumentError:
                    continue
            if len(found) > 1:
                yield _whole_groups(graph, found)
            left = [x for x in left if x not in found]

    def _around(self, graph: StageGraph, first: StageNode, free: list[StageNode]) -> list[str]:
        """A reduce-scatter, and as much as can be fused with it of what follows."""
        after = graph.following([first.name])
        found = [first.name]
        for s in free:
            is_slice = isinstance(s.op, SliceStage)
            if not (_computes(s) or isinstance(s.op, AllGatherStage)):
                continue
            if s.name in after or is_slice:
                found.append(s.name)
        while len(found) > 2:
            members = [s for s in graph.stages if s.name in found]
            lonely = [
                s.name
                for s in members
                if isinstance(s.op, SliceStage)
                and not any(u.name in found for u in graph.users[s.name])
            ]
            bad = {*graph.between(found), *lonely}
            if not bad:
                break
            dropped = graph.following(bad) | bad
            left = [x for x in found if x not in dropped or x == first.name]
            if len(left) == len(found):
                break
            found = left
        return list(_whole_groups(graph, found))

    @staticmethod
    def _leading_to(graph: StageGraph, last: StageNode) -> list[str]:
        """The computations before a send, without what collectives make."""
        found, todo = {last.name}, [last]
        while todo:
            for x in todo.pop().sources:
                source = graph.by_name[x]
                if isinstance(source, StageNode) and _computes(source) and x not in found:
                    if source.name not in graph.chain_of:
                        found.add(x)
                        todo.append(source)
        return [s.name for s in graph.stages if s.name in found]


def _whole_groups(graph: StageGraph, names: Any) -> tuple[str, ...]:
    """Names with those of the groups that they are in, in order."""
    found = {
        m
        for x in names
        for m in (graph.group_of[x].members if x in graph.group_of else graph.members(x))
    }
    return tuple([s.name for s in graph.stages if s.name in found])


def _computes(stage: StageNode) -> bool:
    return stage.op.is_elementwise or isinstance(stage.op, SliceStage | TotalStage)


def _kind(graph: StageGraph, members: list[StageNode]) -> str:
    """The kind of a group; raises if these are none."""
    scatters = [s for s in members if isinstance(s.op, ReduceScatterStage)]
    gathers = [s for s in members if isinstance(s.op, AllGatherStage)]
    sends = [s for s in members if isinstance(s.op, SendStage)]
    for s in members:
        if not (_computes(s) or s in scatters or s in gathers or s in sends):
            raise InvalidArgumentError(f"{s.name} is a {s.op.label}, which is not fused")
    if sends and (scatters or gathers):
        raise InvalidArgumentError(f"{sends[0].name} is a send, which is fused with computations")
    if sends:
        return "send"
    if not scatters and gathers:
        raise InvalidArgumentError(
            f"{gathers[0].name} is an all_gather, which is fused with the reduce_scatter before it"
        )
    if not scatters:
        return "computation"
    if len(scatters) > 1:
        raise InvalidArgumentError("there is more than one reduce_scatter")
    if not gathers:
        raise InvalidArgumentError(f"no all_gather is among them, but {scatters[0].name} is")
    names = {s.name for s in members}
    for s in members:
        if _computes(s) and not (s.type.layout.is_sliced or isinstance(s.op, TotalStage)):
            if s.type.rank:
                raise InvalidArgumentError(f"{s.name} is {s.type.layout}, it computes no slices")
        if any(x in names for x in s.sources if x in {g.name for g in gathers}):
            raise InvalidArgumentError(f"{s.name} takes what is gathered")
    return "all_reduce"


def _check_together(graph: StageGraph, members: list[StageNode]) -> None:
    """Raises if stages do not hang together, by results or operands that they share."""
    keys = {s.name: {s.name, *s.sources} for s in members}
    reached, todo = {members[0].name}, [members[0].name]
    while todo:
        own = keys[todo.pop()]
        for name, other in keys.items():
            if name not in reached and own & other:
                reached.add(name)
                todo.append(name)
    if lost := [s.name for s in members if s.name not in reached]:
        raise InvalidArgumentError(f"{', '.join(lost)} shares nothing with {members[0].name}")


__all__ = ["FuseStages"]
