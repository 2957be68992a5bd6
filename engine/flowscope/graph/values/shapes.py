"""Static shapes: tuples with None for an unknown dimension, None as a whole for an unknown rank.

Inside the engine a shape is such a tuple (`Dims`); `TensorShape` and `Dimension` are what users
see.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from flowscope.errors import DTypeError, InvalidArgumentError

Dims = tuple[int | None, ...] | None

#: The most dimensions that an array can have: NumPy's limit.
MAX_RANK = 64


class Dimension:
    """One dimension, known or unknown, with TensorFlow 1's arithmetic (unknown swallows)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = _dim(value)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both can be the same number."""
        other = _dim(other)
        return self.value is None or other is None or self.value == other

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless both can be the same number."""
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"dimensions {self} and {_dim(other)} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """Returns the more exact of both; raises InvalidArgumentError if they contradict."""
        return Dimension(merge_dim(self.value, _dim(other)))

    def __int__(self) -> int:
        return self.__index__()

    def __index__(self) -> int:
        if self.value is None:
            raise DTypeError("this dimension is unknown until the step runs: use fs.shape")
        return self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def _with(self, other: Any, f: Callable[[int, int], Any]) -> Any:
        try:
            other = _dim(other)
        except InvalidArgumentError:
            return NotImplemented
        return None if self.value is None or other is None else f(self.value, other)

    def _arithmetic(self, other: Any, f: Callable[[int, int], Any]) -> Any:
        result = self._with(other, f)
        return result if result is NotImplemented else Dimension(result)

    def __eq__(self, other: object) -> Any:
        return self._with(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._with(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._with(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._with(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._with(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._with(other, operator.ge)

    def __add__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._arithmetic(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.mul)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._arithmetic(other, lambda a, b: b // a)

    def __mod__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._arithmetic(other, lambda a, b: b % a)

    def __truediv__(self, other: Any) -> Any:
        raise DTypeError(f"{self!r} / {other!r}: use // to divide dimensions")

    __rtruediv__ = __truediv__

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self.value,)


def _dim(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, Dimension):
        return value.value
    try:
        number = operator.index(value)
    except TypeError:
        raise DTypeError(f"expected a dimension (an integer or None), got {value!r}") from None
    if number < 0:
        raise InvalidArgumentError(f"a dimension cannot be negative, got {number}")
    return number


def dimension_value(dimension: Any) -> int | None:
    """Returns the number in `dimension` (a Dimension, an int or None)."""
    return _dim(dimension)


def dimension_at_index(shape: Any, index: int) -> Dimension:
    """Returns the dimension at `index` of a `TensorShape`; an unknown one if its rank is."""
    dims = TensorShape(shape).dims
    return Dimension(None) if dims is None else dims[index]


def as_dims(shape: Any) -> Dims:
    """Returns `shape` (a TensorShape, a sequence, an integer for rank 1, None) as `Dims`."""
    if shape is None:
        return None
    if isinstance(shape, TensorShape):
        return shape._dims
    if isinstance(shape, TensorShapeProto):
        sizes = [None if d.size < 0 else d.size for d in shape.dim]
        return None if shape.unknown_rank else tuple(sizes)
    if isinstance(shape, str):
        raise DTypeError(f"expected a shape, got the string {shape!r}")
    try:
        return tuple(_dim(d) for d in shape)
    except TypeError:
        return (_dim(shape),)


def merge_dim(a: int | None, b: int | None) -> int | None:
    """Returns the more exact of two dimensions; raises InvalidArgumentError if they differ."""
    if a is None:
        return b
    if b is None or a == b:
        return a
    raise InvalidArgumentError(f"dimensions {a} and {b} differ")


def merge_dims(a: Dims, b: Dims) -> Dims:
    """The dimensions known from either; raises InvalidArgumentError if they contradict."""
    if a is None:
        return b
    if b is None:
        return a
    if len(a) != len(b) or any(
        x is not None and y is not None and x != y for x, y in zip(a, b, strict=True)
    ):
        raise InvalidArgumentError(f"shapes {text(a)} and {text(b)} do not fit together")
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def compatible(a: Dims, b: Dims) -> bool:
    """Whether one array can have both shapes."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(
        x is None or y is None or x == y for x, y in zip(a, b, strict=True)
    )


def _unknown_part(key: slice) -> TensorShape:
    """Returns a part of a shape of unknown rank: its own rank may be known."""
    first, last = key.start or 0, key.stop
    if last is None or first < 0 or last < 0 or key.step not in (None, 1):
        return TensorShape(None)
    return TensorShape([None] * max(0, last - first))


def broadcast(a: Dims, b: Dims) -> Dims:
    """Returns the shape of an element-wise result, by NumPy's rules.

    Raises:
        InvalidArgumentError: if the shapes cannot be broadcast together.
    """
    if a == b:
        return a
    if a is None or b is None:
        return None
    if len(a) < len(b):
        a, b = b, a
    out = list(a)
    for i in range(1, len(b) + 1):
        x, y = a[-i], b[-i]
        if x == 1:
            out[-i] = y
        elif y == 1 or x == y:
            continue
        elif x is None:
            out[-i] = y
        elif y is not None:
            raise InvalidArgumentError(
                f"shapes {text(a)} and {text(b)} cannot be broadcast together"
            )
    return tuple(out)


def is_known(dims: Dims) -> bool:
    """Whether rank and all dimensions are known."""
    return dims is not None and None not in dims


def size_of(dims: Dims) -> int | None:
    """Number of elements, None if not known."""
    if dims is None:
        return None
    n = 1
    for d in dims:
        if d is None:
            return None
        n *= d
    return n


def text(dims: Dims) -> str:
    """E.g. "[2,?]", and "[...]" for an unknown rank."""
    if dims is None:
        return "[...]"
    return "[" + ",".join("?" if d is None else str(d) for d in dims) + "]"


class TensorShapeProto:
    """A static shape with the fields that TensorFlow's message of this name has.

    Attributes:
        dim: The dimensions, each with its `size` (-1 for an unknown one) and a `name`.
        unknown_rank: Whether the rank is unknown.
    """

    class Dim(NamedTuple):
        """One dimension."""

        size: int
        name: str = ""

    def __init__(
        self, dim: Sequence[TensorShapeProto.Dim] = (), unknown_rank: bool = False
    ) -> None:
        self.dim = list(dim)
        self.unknown_rank = unknown_rank


class TensorShape:
    """The static shape of a tensor, as users see it; equal to the matching tuple or list.

    Args:
        dims: A sequence of integers and None, an integer, another TensorShape, or None for unknown.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any = None) -> None:
        self._dims = as_dims(dims)

    @property
    def ndims(self) -> int | None:
        """The rank, None if unknown."""
        return None if self._dims is None else len(self._dims)

    rank = ndims

    @property
    def dims(self) -> list[Dimension] | None:
        """The dimensions, None if the rank is unknown."""
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    def as_list(self) -> list[int | None]:
        """Returns the dimensions as a list; raises ValueError if the rank is unknown."""
        if self._dims is None:
            raise InvalidArgumentError("as_list() needs a known rank")
        return list(self._dims)

    def num_elements(self) -> int | None:
        """Returns the number of elements, None if not known."""
        return size_of(self._dims)

    def is_fully_defined(self) -> bool:
        """Whether rank and all dimensions are known."""
        return is_known(self._dims)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one array can have both shapes."""
        return compatible(self._dims, as_dims(other))

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every array of this shape also has shape `other`."""
        theirs = as_dims(other)
        if theirs is None:
            return True
        if self._dims is None or len(self._dims) != len(theirs):
            return False
        return all(t is None or t == m for m, t in zip(self._dims, theirs, strict=True))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Returns the shape that keeps what both agree on."""
        theirs = as_dims(other)
        if self._dims is None or theirs is None or len(self._dims) != len(theirs):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self._dims, theirs, strict=True)])

    def most_specific_common_supertype(self, others: Any) -> TensorShape:
        """Returns the shape that keeps what it and all `others` agree on."""
        found = self
        for other in others:
            found = found.most_specific_compatible_shape(other)
        return found

    def as_proto(self) -> TensorShapeProto:
        """Returns the shape as a message's fields."""
        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        return TensorShapeProto([TensorShapeProto.Dim(-1 if d is None else d) for d in self._dims])

    def merge_with(self, other: Any) -> TensorShape:
        """The shape known from both; raises ValueError if they contradict."""
        return TensorShape(merge_dims(self._dims, as_dims(other)))

    def concatenate(self, other: Any) -> TensorShape:
        """Returns the dimensions of both, one after the other."""
        theirs = as_dims(other)
        known = self._dims is not None and theirs is not None
        return TensorShape((*self._dims, *theirs) if known else None)  # type: ignore[misc]

    def with_rank(self, rank: int) -> TensorShape:
        """Returns this shape with the given rank; raises ValueError if it has another."""
        return self.merge_with((None,) * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Returns this shape; raises ValueError if its rank is lower than `rank`."""
        if self._dims is not None and len(self._dims) < rank:
            raise InvalidArgumentError(f"expected rank {rank} at least, got {self}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Returns this shape; raises ValueError if its rank is higher than `rank`."""
        if self._dims is not None and len(self._dims) > rank:
            raise InvalidArgumentError(f"expected rank {rank} at most, got {self}")
        return self

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless one array can have both shapes."""
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"shapes {self} and {TensorShape(other)} are not compatible")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError unless the rank can be `rank`."""
        if self.ndims not in (None, rank):
            raise InvalidArgumentError(f"expected rank {rank}, got shape {self}")

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError unless both can have the same rank."""
        theirs = TensorShape(other)
        if None not in (self.ndims, theirs.ndims) and self.ndims != theirs.ndims:
            raise InvalidArgumentError(f"shapes {self} and {theirs} differ in rank")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless everything is known."""
        if not self.is_fully_defined():
            raise InvalidArgumentError(f"shape {self} is not fully defined")

    def __len__(self) -> int:
        if self._dims is None:
            raise InvalidArgumentError("an unknown rank has no length")
        return len(self._dims)

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise InvalidArgumentError("cannot iterate over a shape of unknown rank")
        return iter([Dimension(d) for d in self._dims])

    def __getitem__(self, key: Any) -> Any:
        if self._dims is None:
            return _unknown_part(key) if isinstance(key, slice) else Dimension(None)
        if isinstance(key, slice):
            return TensorShape(self._dims[key])
        return Dimension(self._dims[key])

    def __bool__(self) -> bool:
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        if other is not None and not isinstance(other, TensorShape | Sequence | int):
            return NotImplemented
        try:
            return self._dims == as_dims(other)
        except InvalidArgumentError:
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        inner = ", ".join("?" if d is None else str(d) for d in self._dims)
        return f"({inner},)" if len(self._dims) == 1 else f"({inner})"
