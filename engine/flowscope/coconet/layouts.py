"""How the values of a tensor lie over the ranks of a group: layouts, groups, symbolic sizes."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen


@frozen
class Layout:
    """How a tensor's values lie over the ranks of its group.

    Attributes:
        name: "Local": each rank has values of its own, all of the whole shape. "Replicated": all
            ranks have the same values. "Sliced": rank i of n has part i of one dimension.
        dim: The dimension of which ranks have parts; None where the layout is not "Sliced".
    """

    name: str
    dim: int | None = None

    @property
    def is_sliced(self) -> bool:
        """Whether each rank has a part."""
        return self.dim is not None

    def __str__(self) -> str:
        return self.name if self.dim is None else f"{self.name}({self.dim})"


Local = Layout("Local")
Replicated = Layout("Replicated")


def Sliced(dim: int) -> Layout:  # it stands beside Local and Replicated
    """The layout in which rank i of n has entries d * i // n to d * (i + 1) // n of a dimension.

    Args:
        dim: The dimension, from 0.

    Raises:
        InvalidArgumentError: if it is no whole number of at least 0.
    """
    if isinstance(dim, bool) or not isinstance(dim, int) or dim < 0:
        raise InvalidArgumentError(f"expected a dimension of at least 0, got {dim!r}")
    return Layout("Sliced", dim)


@frozen
class RankGroup:
    """Ranks that communicate with each other. How many there are is said when a schedule is built.

    Attributes:
        name: Its name; groups of one name are one group.
    """

    name: str = "world"

    def __str__(self) -> str:
        return self.name


@frozen
class SymbolicSize:
    """A dimension whose length is known when a schedule is built. Sizes of one name are equal.

    Attributes:
        name: Its name.
    """

    name: str

    def __str__(self) -> str:
        return self.name


#: A dimension: a length, or a name for one.
Dim = int | SymbolicSize


def checked_shape(shape: Any) -> tuple[Dim, ...]:
    """Returns a shape as a tuple; raises if an entry is neither a length nor a size."""
    if isinstance(shape, int | SymbolicSize) and not isinstance(shape, bool):
        shape = (shape,)
    for d in shape:
        if isinstance(d, bool) or not isinstance(d, int | SymbolicSize) or (d == -1):
            raise InvalidArgumentError(
                f"expected lengths and symbolic sizes as a shape, got {d!r} in {shape!r}"
            )
    return tuple(shape)


def shape_text(shape: tuple[Dim, ...]) -> str:
    """E.g. "[N,4]"."""
    return "[" + ",".join(map(str, shape)) + "]"


__all__ = ["Dim", "Layout", "Local", "RankGroup", "Replicated", "Sliced", "SymbolicSize"]
