"""A schedule as operations of the default graph: `Schedule.build`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import flowscope as fs
from flowscope.coconet.chunks import ChainLowering
from flowscope.coconet.fused_groups import GroupLowering
from flowscope.coconet.lowering import Lowering
from flowscope.coconet.pipeline import StagePipeline
from flowscope.coconet.sizes import BoundSizes
from flowscope.coconet.stage_graph import ArgumentNode, StageGraph, units
from flowscope.errors import InvalidArgumentError

#: Chunks into which an overlap cuts each rank's part.
CHUNKS = 2


class BuiltSchedule:
    """The tensors of a schedule that was built.

    Attributes:
        outputs: The outputs by their names: a tensor for each rank of the group.
        states: The new values of arguments that are updated, by the names of these.
        update: The operation that gives variables their new values, all or none; it does nothing
            where none was given.
    """

    def __init__(
        self, outputs: Mapping[str, list[Any]], states: Mapping[str, list[Any]], update: Any
    ) -> None:
        self.outputs = dict(outputs)
        self.states = dict(states)
        self.update = update

    def __getitem__(self, name: Any) -> list[Any]:
        key = name if isinstance(name, str) else name.name
        if key not in self.outputs:
            raise InvalidArgumentError(
                f"expected an output, one of {', '.join(self.outputs)}, got {key!r}"
            )
        return self.outputs[key]

    def __repr__(self) -> str:
        return f"<BuiltSchedule: {', '.join(self.outputs)}>"


def build(
    pipeline: StagePipeline,
    graph: StageGraph,
    values: Mapping[Any, Any],
    devices: Any,
    chunks: int,
    name: str | None,
) -> BuiltSchedule:
    """Adds the operations of a graph of stages; see `Schedule.build`."""
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 1:
        raise InvalidArgumentError(f"expected a number of chunks of at least 1, got {chunks!r}")
    given = _given(pipeline, graph, values)
    places = _places(graph, given, devices)
    sizes = BoundSizes({group: len(ranks) for group, ranks in places.items()})
    with fs.name_scope(name or pipeline.name):
        tensors = {a.name: _tensors(a, given[a.name], places) for a in graph.arguments}
        for a in graph.arguments:
            shapes = [tuple(x.shape.as_list()) for x in tensors[a.name]]
            sizes.bind_parts(a.name, a.type, shapes)
        lowering = Lowering(graph, sizes, places, tensors)
        for unit in units(graph):
            first = unit[0].name
            if first in graph.chain_of:
                ChainLowering(lowering, unit, chunks).add()
            elif first in graph.group_of:
                GroupLowering(lowering, unit).add()
            else:
                lowering.add(unit[0])
        outputs = {key: lowering.values[now] for key, now in graph.outputs}
        update = fs.group(*_assignments(lowering, given), name="update")
    return BuiltSchedule(outputs, lowering.states, update)


def _given(
    pipeline: StagePipeline, graph: StageGraph, values: Mapping[Any, Any]
) -> dict[str, list[Any]]:
    """Per argument what it is given, for each rank."""
    named = {pipeline.name_of(k): v for k, v in values.items()}
    arguments = {a.name: a for a in graph.arguments}
    if missing := [x for x in arguments if x not in named]:
        raise InvalidArgumentError(f"expected values of {', '.join(missing)}, got none")
    if extra := [x for x in named if x not in arguments]:
        raise InvalidArgumentError(
            f"expected values of {', '.join(arguments)}, got one of {', '.join(map(str, extra))}"
        )
    found = {}
    for name, a in arguments.items():
        value = named[name]
        if a.type.group is None:
            found[name] = [value]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            found[name] = list(value)
        else:
            raise InvalidArgumentError(
                f"expected a list with a tensor for each rank as {name}, got {value!r}"
            )
    return found


def _places(
    graph: StageGraph, given: Mapping[str, list[Any]], devices: Any
) -> dict[str, list[Any]]:
    """Per group the device of each rank."""
    found: dict[str, list[Any]] = {}
    types = [x.type for x in graph.by_name.values()]
    groups = list(dict.fromkeys([t.group.name for t in types if t.group is not None]))
    if isinstance(devices, Mapping):
        found = {str(group): list(ranks) for group, ranks in devices.items()}
    elif isinstance(devices, Iterable) and not isinstance(devices, str):
        ranks = list(devices)
        found |= {group: list(ranks) for group in groups}
    elif devices is not None:
        raise InvalidArgumentError(f"expected a device for each rank, got {devices!r}")
    for a in graph.arguments:
        group = a.type.group
        if group is not None:
            known = found.setdefault(group.name, [None] * len(given[a.name]))
            if len(known) != len(given[a.name]):
                raise InvalidArgumentError(
                    f"expected {len(known)} tensors as {a.name}, one for each rank, got "
                    f"{len(given[a.name])}"
                )
    counts = {g: len(found[g]) for g in groups if g in found}
    if len(set(counts.values())) > 1:
        raise InvalidArgumentError(f"expected groups of as many ranks, got {counts}")
    for group in groups:
        found.setdefault(group, [None] * next(iter(counts.values()), 1))
    return found


def _tensors(
    argument: ArgumentNode, given: Sequence[Any], places: Mapping[str, Sequence[Any]]
) -> list[Any]:
    """The tensors of an argument, read where the ranks are."""
    group = argument.type.group
    where = [None] if group is None else places[group.name]
    found = []
    for place, x in zip(where, given, strict=True):
        with nullcontext() if place is None else fs.device(place):
            if isinstance(x, fs.Variable):
                tensor = x.value()
            else:
                tensor = fs.convert_to_tensor(x, argument.type.dtype)
        if tensor.shape.ndims is None or None in tensor.shape.as_list():
            raise InvalidArgumentError(
                f"expected a tensor of a known shape as {argument.name}, got {tensor}"
            )
        found.append(tensor)
    return found


def _assignments(lowering: Lowering, given: Mapping[str, list[Any]]) -> list[Any]:
    """The operations that give variables their new values."""
    found = []
    for name, news in lowering.states.items():
        for variable, new in zip(given[name], news, strict=True):
            if isinstance(variable, fs.Variable):
                with fs.colocate_with(variable.op):
                    found.append(variable.assign(new, read_value=False))
    return found


__all__ = ["BuiltSchedule", "build"]
