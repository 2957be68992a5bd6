"""What symbolic sizes are in one use of a program, and how arrays are cut into parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowscope.coconet.layouts import Dim, SymbolicSize, shape_text
from flowscope.coconet.values import ValueType
from flowscope.errors import InvalidArgumentError


def bounds(length: int, index: int, parts: int) -> tuple[int, int]:
    """Where part `index` of `parts` begins and ends; lengths differ by one at most."""
    return length * index // parts, length * (index + 1) // parts


class BoundSizes:
    """Lengths of symbolic sizes, and the number of ranks of each group.

    Args:
        ranks: Per group name the number of its ranks.
        lengths: Per name of a size its length, where it is known.
    """

    def __init__(self, ranks: Mapping[str, int], lengths: Mapping[str, int] | None = None) -> None:
        self.ranks = dict(ranks)
        self.lengths = dict(lengths or {})

    def bind(self, name: str, dim: Dim, length: int) -> None:
        """Notes the length of a dimension; raises if it is another one already."""
        known = self.lengths.setdefault(dim.name, length) if isinstance(dim, SymbolicSize) else dim
        if known != length:
            what = f"{dim} = {known}" if isinstance(dim, SymbolicSize) else str(dim)
            raise InvalidArgumentError(f"expected {what} as a dimension of {name}, got {length}")

    def length(self, dim: Dim) -> int:
        """The length of a dimension; raises if nothing says it."""
        if isinstance(dim, int):
            return dim
        if dim.name not in self.lengths:
            raise InvalidArgumentError(f"expected a length for the size {dim}, got none")
        return self.lengths[dim.name]

    def shape(self, spec: ValueType) -> tuple[int, ...]:
        """The shape of the whole value."""
        return tuple([self.length(d) for d in spec.shape])

    def count(self, spec: ValueType) -> int:
        """The number of ranks that have a value; 1 for what all groups have."""
        return 1 if spec.group is None else self.ranks_of(spec.group.name)

    def ranks_of(self, group: str) -> int:
        """The number of ranks of a group."""
        if group not in self.ranks:
            raise InvalidArgumentError(f"expected the ranks of the group {group}, got none")
        return self.ranks[group]

    def part(self, spec: ValueType, rank: int) -> tuple[int, ...]:
        """The shape of what a rank has of a value."""
        shape = list(self.shape(spec))
        if spec.layout.dim is not None:
            begin, end = bounds(shape[spec.layout.dim], rank, self.count(spec))
            shape[spec.layout.dim] = end - begin
        return tuple(shape)

    def bind_parts(self, name: str, spec: ValueType, shapes: Sequence[tuple[int, ...]]) -> None:
        """Notes the sizes that follow from the shapes of what each rank has; raises if none fit."""
        for rank, shape in enumerate(shapes):
            if len(shape) != spec.rank:
                raise InvalidArgumentError(
                    f"expected {shape_text(spec.shape)} for {name}, got {list(shape)} of "
                    f"rank {rank}"
                )
        for at, dim in enumerate(spec.shape):
            lengths = [shape[at] for shape in shapes]
            if at == spec.layout.dim:
                self.bind(name, dim, sum(lengths))
            else:
                for length in lengths:
                    self.bind(name, dim, length)
        for rank, shape in enumerate(shapes):
            if tuple(shape) != self.part(spec, rank):
                raise InvalidArgumentError(
                    f"expected {list(self.part(spec, rank))} as the part of {name} that rank "
                    f"{rank} of {len(shapes)} has, got {list(shape)}"
                )


def cut(x: Any, dim: int, index: int, parts: int) -> Any:
    """A part of an array, or of anything that is indexed like one."""
    begin, end = bounds(x.shape[dim], index, parts)
    return x[(slice(None),) * dim + (slice(begin, end),)]


__all__ = ["BoundSizes", "bounds", "cut"]
