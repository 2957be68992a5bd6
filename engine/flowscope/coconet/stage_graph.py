"""A program as plain data: stages by name, in an order in which each follows its operands.

Transformations make new graphs of stages; nothing here is changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowscope.coconet.stage_ops import (
    AllGatherStage,
    ReduceScatterStage,
    SendStage,
    StageOp,
    UpdateStage,
)
from flowscope.coconet.values import Number, ValueType
from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.origins.origin import Origin

#: An operand of a stage: the name of an argument or a stage, or a number.
OperandName = str | Number


@frozen
class ArgumentNode:
    """What is given to a program when it is built.

    Attributes:
        name: Its name.
        type: Its type; a Sliced layout says that each rank keeps a part.
        is_state: Whether `update` writes it.
        origin: The user's line.
    """

    name: str
    type: ValueType
    is_state: bool
    origin: Origin


@frozen
class StageNode:
    """One stage.

    Attributes:
        name: Its name.
        op: What it computes.
        inputs: Names and numbers.
        type: What follows from the types of the inputs.
        origin: The user's line; that of the stage that it was made of.
    """

    name: str
    op: StageOp
    inputs: tuple[OperandName, ...]
    type: ValueType
    origin: Origin

    @property
    def sources(self) -> tuple[str, ...]:
        """The inputs that are names."""
        return tuple([x for x in self.inputs if isinstance(x, str)])

    @property
    def text(self) -> str:
        """How it reads in a schedule."""
        return self.op.text([str(x) for x in self.inputs])


@frozen
class FusedStages:
    """Stages that run as one.

    Attributes:
        name: The name of the group.
        kind: "computation", "all_reduce" or "send".
        members: Names of the stages, in order.
    """

    name: str
    kind: str
    members: tuple[str, ...]


@frozen
class StageGraph:
    """Arguments, stages, outputs, and which stages run as one or overlap.

    Attributes:
        arguments: What is given.
        stages: In an order in which each follows its operands.
        outputs: Pairs: the name that the pipeline gives an output, the value that it is now.
        fused: Groups of stages that run as one.
        overlaps: Chains of stages and fused groups that run in chunks: each takes chunks while the
            one before it still makes some.
    """

    arguments: tuple[ArgumentNode, ...]
    stages: tuple[StageNode, ...]
    outputs: tuple[tuple[str, str], ...]
    fused: tuple[FusedStages, ...] = ()
    overlaps: tuple[tuple[str, ...], ...] = ()

    @functools.cached_property
    def by_name(self) -> Mapping[str, Any]:
        """Arguments and stages by their names."""
        values: list[Any] = [*self.arguments, *self.stages]
        return {x.name: x for x in values}

    @functools.cached_property
    def users(self) -> Mapping[str, tuple[StageNode, ...]]:
        """Per name the stages that take it."""
        found: dict[str, list[StageNode]] = {x: [] for x in self.by_name}
        for stage in self.stages:
            for source in dict.fromkeys(stage.sources):
                found[source].append(stage)
        return {name: tuple(users) for name, users in found.items()}

    @functools.cached_property
    def output_names(self) -> frozenset[str]:
        """The values that are outputs."""
        return frozenset(name for _, name in self.outputs)

    @functools.cached_property
    def group_of(self) -> Mapping[str, FusedStages]:
        """The fused group of each stage that is in one."""
        return {name: group for group in self.fused for name in group.members}

    @functools.cached_property
    def chain_of(self) -> Mapping[str, tuple[str, ...]]:
        """The overlap of each stage and each group that is in one."""
        found = {}
        for chain in self.overlaps:
            for name in chain:
                for member in self.members(name):
                    found[member] = chain
                found[name] = chain
        return found

    def members(self, name: str) -> tuple[str, ...]:
        """The stages of a fused group; a stage itself."""
        for group in self.fused:
            if group.name == name:
                return group.members
        return (name,)

    def type_of(self, name: OperandName) -> ValueType | None:
        """The type of an operand; None for a number."""
        return self.by_name[name].type if isinstance(name, str) else None

    def is_used_outside(self, name: str, members: Collection[str]) -> bool:
        """Whether a value is an output, or an operand of another stage than the members."""
        return name in self.output_names or any(u.name not in members for u in self.users[name])

    def writes_state(self, stage: StageNode) -> bool:
        """Whether a stage gives an argument its value, so that it stays without users."""
        if isinstance(stage.op, UpdateStage):
            return bool(self.by_name[stage.op.target].type.layout == stage.type.layout)
        return isinstance(stage.op, AllGatherStage) and bool(stage.op.updates)

    def fresh(self, wanted: str) -> str:
        """A name that no argument, stage or group has yet."""
        taken = {*self.by_name, *[g.name for g in self.fused]}
        found, number = wanted, 1
        while found in taken:
            found, number = f"{wanted}_{number}", number + 1
        return found

    def named(self, name: Any) -> Any:
        """The argument or stage of a name.

        Raises:
            InvalidArgumentError: if there is none; it lists names that are like it.
        """
        import difflib

        found = self.by_name.get(name) if isinstance(name, str) else None
        if found is None:
            near = difflib.get_close_matches(str(name), self.by_name, 3, 0.4) or self.by_name
            raise InvalidArgumentError(
                f"expected a stage or an argument of the schedule, got {name!r}; there are "
                f"{', '.join(near)}"
            )
        return found

    def following(self, names: Iterable[str]) -> set[str]:
        """Names of the stages that follow from stages, without those unless they follow too."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            for user in self.users[todo.pop()]:
                if user.name not in found:
                    found.add(user.name)
                    todo.append(user.name)
        return found

    def between(self, members: Collection[str]) -> set[str]:
        """Names of stages outside of a set that follow from it and lead to it."""
        after, found = self.following(members) - set(members), set()
        for name in after:
            if not self.following([name]).isdisjoint(members):
                found.add(name)
        return found

    def changed(self, **fields: Any) -> StageGraph:
        """The same with other fields, sorted so that stages follow their operands."""
        graph = replace(self, **fields)
        return replace(graph, stages=tuple(_sorted(graph)))

    @functools.cached_property
    def key(self) -> Any:
        """Two graphs of one pipeline with equal keys compute the same in the same way."""
        stages = frozenset((s.name, s.text, s.type.layout) for s in self.stages)
        layouts = tuple(a.type.layout for a in self.arguments)
        return stages, layouts, frozenset(self.fused), frozenset(self.overlaps), self.outputs


def _sorted(graph: StageGraph) -> list[StageNode]:
    """The stages in an order near the given one; those that run in one go side by side.

    Raises:
        InvalidArgumentError: if what runs in one go would have to wait for itself.
    """
    place = {s.name: i for i, s in enumerate(graph.stages)}
    unit_of: dict[str, int] = {}
    members: list[list[StageNode]] = []
    for stage in graph.stages:
        if stage.name not in unit_of:
            unit = _unit(graph, stage.name)
            unit_of.update(dict.fromkeys(unit, len(members)))
            members.append([])
        members[unit_of[stage.name]].append(stage)
    needs = [
        {unit_of[x] for s in unit for x in s.sources if x in unit_of} - {i}
        for i, unit in enumerate(members)
    ]
    found = []
    for i in _topological(needs, f"{len(members)} parts of the schedule"):
        inside = {s.name: k for k, s in enumerate(members[i])}
        own = [{inside[x] for x in s.sources if x in inside} for s in members[i]]
        found += [members[i][k] for k in _topological(own, "stages")]
    assert len(found) == len(place)
    return found


def _topological(needs: Sequence[set[int]], what: str) -> list[int]:
    """Numbers in an order in which each comes after those that it needs, smaller ones first."""
    left, done, found = list(range(len(needs))), set[int](), list[int]()
    while left:
        ready = next((i for i in left if needs[i] <= done), None)
        if ready is None:
            raise InvalidArgumentError(f"it makes a circle: {what} would wait for each other")
        left.remove(ready)
        done.add(ready)
        found.append(ready)
    return found


def _unit(graph: StageGraph, name: str) -> tuple[str, ...]:
    """The stages that run in one go with a stage: those of its chain, or of its group."""
    if name in graph.chain_of:
        return tuple([m for x in graph.chain_of[name] for m in graph.members(x)])
    return graph.group_of[name].members if name in graph.group_of else (name,)


def units(graph: StageGraph) -> list[tuple[StageNode, ...]]:
    """The stages by what runs in one go, in order: chains, groups, and stages by themselves."""
    found: list[tuple[StageNode, ...]] = []
    seen: set[str] = set()
    for stage in graph.stages:
        if stage.name not in seen:
            names = set(_unit(graph, stage.name))
            seen |= names
            found.append(tuple([s for s in graph.stages if s.name in names]))
    return found


def inferred(
    graph: StageGraph, stages: Iterable[StageNode], arguments: Iterable[ArgumentNode] | None = None
) -> tuple[StageNode, ...]:
    """Stages, in order, with the types that follow from their operands.

    Args:
        graph: Where the types of operands stand that are no stages of these.
        stages: The stages.
        arguments: The arguments, where they are others than the graph's.

    Raises:
        InvalidArgumentError: if the operands of one do not go together.
    """
    types = {a.name: a.type for a in (graph.arguments if arguments is None else arguments)}
    found = []
    for s in stages:
        spec = s.op.infer(*[types[x] if isinstance(x, str) else None for x in s.inputs])
        types[s.name] = spec
        found.append(replace(s, type=spec))
    return tuple(found)


def renamed(stage: StageNode, names: Callable[[str], str]) -> StageNode:
    """A stage whose operands have other names."""
    return replace(
        stage, inputs=tuple([names(x) if isinstance(x, str) else x for x in stage.inputs])
    )


def is_collective(stage: StageNode) -> bool:
    """Whether ranks exchange values in a stage."""
    return stage.op.communicates


__all__ = [
    "AllGatherStage",
    "ArgumentNode",
    "FusedStages",
    "ReduceScatterStage",
    "SendStage",
    "StageGraph",
    "StageNode",
]
