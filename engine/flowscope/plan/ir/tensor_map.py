"""The map: what became of each tensor of the graph in a plan.

A value of a program and its copies in the programs behind it have one identity
(`Value.identity`). Passes put values into the place of others by an `Edits` alone, which notes the
pairs of identities in the program that it makes (`Program.same`). So the map follows a tensor from
the program that was made of the graph, through what was put into its place, to the last program. It
is made when somebody asks: a plan that nobody asks holds a few pairs and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from flowscope.graph.constant import Const
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.plan.ir.program import Program, TensorKey, Value

#: "value": a value of its own; "same": that of another tensor; "constant": known before the step;
#: "fed": given to the run; "absent": it has no value in this plan.
Kind = Literal["value", "same", "constant", "fed", "absent"]


@frozen
class TensorAt:
    """What became of a tensor in a plan.

    Attributes:
        kind: "value": `value` is its own; "same": it was merged or passed over, and `value` is that
            of another tensor; "constant": `value` is a constant; "fed": it is given to the run;
            "absent": it has no value in this plan, and `why` says so.
        path: The calls and bodies that it is in, from the outermost.
        value: The value of the plan's program; None where it is absent.
        why: One sentence for people.
    """

    kind: Kind
    path: tuple[str, ...]
    value: Value | None
    why: str

    @property
    def constant(self) -> Any:
        """The value of a constant; None of anything else."""
        node = None if self.value is None else self.value.node
        return node.op.value.array if node is not None and isinstance(node.op, Const) else None


class TensorMap:
    """Where the tensors of a graph are in a plan.

    Args:
        program: The plan's program.
        source: The program that was made of the graph, before the first pass.
        feeds: What is fed, in the order of the program's feeds.
        operations: The operations that the plan was made from, by id.
    """

    def __init__(
        self,
        program: Program,
        source: Program,
        feeds: Sequence[Tensor],
        operations: Mapping[int, Operation],
    ) -> None:
        self._operations = operations
        self._same: dict[object, object] = {}
        for block in _blocks(program):
            self._same.update(block.same)
        self._now: dict[object, Value] = {}
        for value in _values(program):
            self._now.setdefault(value.identity, value)
        self._feeds = {v.identity: t for v, t in zip(program.feeds, feeds, strict=False)}
        self._sources: dict[tuple[int, int], dict[tuple[str, ...], object]] = {}
        for i, tensor in enumerate(feeds):
            self._note((tensor.op.id, tensor.value_index, ()), source.feeds[i])
        for node in source.walk():
            for value in node.outputs if node.origins else ():
                self._note((node.origins[0].id, value.index, node.path), value)
        for key, value in source.tensors:
            self._note(key, value)
        self._tensors: dict[object, list[TensorKey]] | None = None

    def _note(self, key: TensorKey, value: Value) -> None:
        paths = self._sources.setdefault(key[:2], {})
        paths.setdefault(key[2], value.identity)

    def locate(self, tensor: Tensor) -> tuple[TensorAt, ...]:
        """The locations of a tensor, one per call of the function that it is in."""
        found = self._sources.get((tensor.op.id, tensor.value_index))
        if not found:
            return (TensorAt("absent", (), None, self._why_absent(tensor)),)
        return tuple([self._at(path, identity) for path, identity in found.items()])

    def tensors_of(self, identity: object) -> list[TensorKey]:
        """Returns the tensors whose value is the one with an identity."""
        if self._tensors is None:
            self._tensors = {}
            for (op, index), paths in self._sources.items():
                for path, made in paths.items():
                    now = self._followed(made)
                    self._tensors.setdefault(now, []).append((op, index, path))
        return self._tensors.get(identity, [])

    def is_constant(self, identity: object) -> bool:
        """Whether a value is known before the step."""
        value = self._now.get(identity)
        return value is not None and value.node is not None and isinstance(value.node.op, Const)

    def _followed(self, identity: object) -> object:
        """Returns the identity of what is used in the place of a value in the end."""
        same = self._same
        while identity in same:
            identity = same[identity]
        return identity

    def _at(self, path: tuple[str, ...], identity: object) -> TensorAt:
        followed = self._followed(identity)
        value = self._now.get(followed)
        if value is None:
            why = "nothing that is left needs it, or what needs it is computed in another way"
            return TensorAt("absent", path, None, why)
        if value.node is not None and isinstance(value.node.op, Const):
            return TensorAt("constant", path, value, "it is known before the step")
        if identity in self._feeds:
            return TensorAt("fed", path, value, "it is fed")
        if followed is identity:
            return TensorAt("value", path, value, "it is computed here")
        fed = self._feeds.get(followed)
        label = value.label if fed is None else fed.name
        return TensorAt("same", path, value, f'it is the same as "{label}"')

    def _why_absent(self, tensor: Tensor) -> str:
        if tensor.op.id in self._operations:
            return "nothing that is run needs this output"
        return "no fetch or target of this plan needs it"


def _blocks(program: Program) -> Iterator[Program]:
    yield program
    for node in program.walk():
        yield from node.blocks


def _values(program: Program) -> Iterator[Value]:
    """Yields all values: feeds and parameters, then what nodes give."""
    for block in _blocks(program):
        yield from block.feeds
    for node in program.walk():
        yield from node.outputs


__all__ = ["Kind", "TensorAt", "TensorMap"]
