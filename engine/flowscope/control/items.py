"""The value of a tensor array: a persistent array, whose newest version is changed in place.

A write returns a new version and leaves the old one as it was. All versions share one dict: the
newest holds it, and each older one says by what it differs from the next. Whoever reads an old
version takes the dict over first. A version that nobody holds is gone, so a loop that writes costs
one dict.

Source: Baker 1991, "Shallow binding makes functional arrays fast".
"""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError

_MISSING: Any = object()


class Items:
    """One version: values by index, some of which may not be there.

    Attributes:
        size: Number of indices.
        can_grow: Whether an index behind the last makes it larger.
    """

    __slots__ = ("_data", "_key", "_next", "_old", "can_grow", "size")

    def __init__(self, size: int, can_grow: bool, data: dict[int, Any] | None = None) -> None:
        self.size = size
        self.can_grow = can_grow
        self._data: dict[int, Any] | None = {} if data is None else data
        self._next: Items | None = None
        self._key = 0
        self._old: Any = None

    def get(self, index: int) -> Any:
        """Returns the value at an index; None if there is none."""
        return self._values().get(index)

    def indices(self) -> list[int]:
        """Returns the indices that have values."""
        return sorted(self._values())

    def put(self, index: int, value: Any) -> Items:
        """Returns the version with another value at an index.

        Raises:
            InvalidArgumentError: if there is no such index.
        """
        if index < 0 or (index >= self.size and not self.can_grow):
            grow = "" if self.can_grow else "; TensorArray(dynamic_size=True) would grow"
            raise InvalidArgumentError(
                f"expected an index from 0 below the size {self.size}, got {index}{grow}"
            )
        data = self._values()
        new = Items(max(self.size, index + 1), self.can_grow, data)
        self._data, self._next = None, new
        self._key, self._old = index, data.get(index, _MISSING)
        data[index] = value
        return new

    def add(self, index: int, value: Any) -> Items:
        """Returns the version with a value added to what is there."""
        old = self.get(index)
        return self.put(index, value if old is None else old + value)

    def zeros(self) -> Items:
        """Returns what stands for zeros of the same size: no values."""
        return Items(self.size, True)

    def __add__(self, other: Items) -> Items:
        few, many = sorted((self, other), key=lambda one: len(one._values()))
        for index, value in list(few._values().items()):
            many = many.add(index, value)
        return many

    def _values(self) -> dict[int, Any]:
        """Returns the values, which this version holds from now on."""
        if self._data is None:
            self._take_over()
        assert self._data is not None
        return self._data

    def _take_over(self) -> None:
        path: list[Items] = []
        at = self
        while at._data is None:
            path.append(at)
            assert at._next is not None
            at = at._next
        for older in reversed(path):
            assert at._data is not None
            data, key = at._data, older._key
            at._key, at._old, at._data, at._next = key, data.get(key, _MISSING), None, older
            if older._old is _MISSING:
                data.pop(key, None)
            else:
                data[key] = older._old
            older._data, older._next, older._old = data, None, None
            at = older
