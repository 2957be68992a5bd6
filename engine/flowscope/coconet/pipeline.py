"""A program as a whole: its name, its arguments, its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flowscope.coconet.program import (
    ProgramArgument,
    ProgramStage,
    ProgramValue,
)
from flowscope.coconet.stage_graph import ArgumentNode, StageGraph, StageNode
from flowscope.coconet.stage_ops import AllGatherStage, UpdateStage
from flowscope.coconet.values import Number
from flowscope.errors import InvalidArgumentError


class StagePipeline:
    """A program: arguments, and the stages that its outputs follow from.

    Args:
        name: Its name.
        args: Tensors, scalars and variables, in the order in which they are given.
        outputs: Stages, or pairs of a name and a stage.

    Attributes:
        name: Its name.
        graph: The stages as plain data.

    Raises:
        InvalidArgumentError: if names are twice, an argument is missing or written twice, or an
            output is no stage.
    """

    def __init__(
        self, name: str, args: Sequence[ProgramArgument], outputs: Sequence[ProgramStage]
    ) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidArgumentError(f"expected a name that is an identifier, got {name!r}")
        self.name = name
        self._arguments = list(args)
        self._names: dict[int, str] = {}
        _check_arguments(self._arguments)
        for x in outputs:
            if not isinstance(x, ProgramStage):
                raise InvalidArgumentError(f"expected stages as outputs, got {x!r}")
        if not outputs:
            raise InvalidArgumentError("expected a stage as output at least, got none")
        self._stages = list(_in_order(outputs))
        self._name_all(outputs)
        self.graph = self._made_graph(outputs)

    def name_of(self, value: Any) -> Any:
        """The name of a value of the program; names are returned as they are.

        Raises:
            InvalidArgumentError: if the value is of another program.
        """
        if not isinstance(value, ProgramValue):
            return value
        if id(value) not in self._names:
            raise InvalidArgumentError(f"expected a value of {self.name}, got {value!r}")
        return self._names[id(value)]

    def _name_all(self, outputs: Sequence[ProgramStage]) -> None:
        taken: dict[str, ProgramValue] = {}
        for x in (*self._arguments, *[s for s in self._stages if s.name]):
            if x.name in taken:
                raise InvalidArgumentError(
                    f"expected names that differ, got {x.name} twice: {taken[x.name]!r} and {x!r}"
                )
            taken[x.name] = x
            self._names[id(x)] = x.name
        for stage in self._stages:
            if not stage.name:
                self._names[id(stage)] = _fresh(_suggested(stage), taken)
                taken[self._names[id(stage)]] = stage

    def _made_graph(self, outputs: Sequence[ProgramStage]) -> StageGraph:
        known = {id(x): x for x in self._arguments}
        written: dict[str, ProgramStage] = {}
        stages = []
        for s in self._stages:
            for x in s.operands:
                if isinstance(x, ProgramArgument) and id(x) not in known:
                    raise InvalidArgumentError(
                        f"expected {x.name} among the arguments of {self.name}, which use it"
                    )
            if isinstance(s.op, UpdateStage):
                if s.op.target in written:
                    raise InvalidArgumentError(
                        f"expected one update of {s.op.target}, got two: update the result of the "
                        "first one's expression"
                    )
                written[s.op.target] = s
            inputs = tuple([self._operand(x) for x in s.operands])
            stages.append(StageNode(self._names[id(s)], s.op, inputs, s.type, s.origin))
        arguments = [
            ArgumentNode(x.name, x.type, x.name in written, x.origin) for x in self._arguments
        ]
        names = [self._names[id(x)] for x in outputs]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"expected outputs that differ, got {', '.join(names)}")
        return StageGraph(tuple(arguments), tuple(stages), tuple([(name, name) for name in names]))

    def _operand(self, x: ProgramValue | Number) -> str | Number:
        return self._names[id(x)] if isinstance(x, ProgramValue) else x

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}: {len(self.graph.stages)} stages>"


def _check_arguments(arguments: Sequence[Any]) -> None:
    for x in arguments:
        if not isinstance(x, ProgramArgument):
            raise InvalidArgumentError(
                f"expected tensors, scalars and variables as arguments, got {x!r}"
            )


def _in_order(outputs: Sequence[ProgramStage]) -> Iterator[ProgramStage]:
    """The stages that outputs follow from, each after its operands."""
    seen: set[int] = set()
    todo: list[tuple[ProgramStage, bool]] = [(x, False) for x in reversed(outputs)]
    while todo:
        stage, is_ready = todo.pop()
        if is_ready:
            yield stage
        elif id(stage) not in seen:
            seen.add(id(stage))
            todo.append((stage, True))
            todo += [(x, False) for x in reversed(stage.operands) if isinstance(x, ProgramStage)]


def _suggested(stage: ProgramStage) -> str:
    """The name of the Python variable that takes a stage; else that of its function."""
    if isinstance(stage.op, UpdateStage):
        return f"new_{stage.op.target}"
    if isinstance(stage.op, AllGatherStage) and stage.op.updates:
        return f"whole_{stage.op.updates}"
    return stage.variable if stage.variable.isidentifier() else f"{stage.op.label}_1"


def _fresh(wanted: str, taken: dict[str, ProgramValue]) -> str:
    found, number = wanted, 2
    stem = wanted.removesuffix("_1")
    while found in taken:
        found, number = f"{stem}_{number}", number + 1
    return found


__all__ = ["StagePipeline"]
