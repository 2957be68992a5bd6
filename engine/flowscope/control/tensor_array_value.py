"""The value of a tensor array: a persistent array, whose newest version is changed in place.

A write returns a new version and leaves the old one as it was. All versions share one dict: the
newest holds it, and each older one says by what it differs from the next. Whoever reads an old
version takes the dict over first, or makes one of its own where that is no more work: versions that
are read in turns part. A version that nobody holds is gone, so a loop that writes costs one dict.

Source: Baker 1991, "Shallow binding makes functional arrays fast".
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.lazy import frozen
from flowscope.graph.op import Array, ArrayModule
from flowscope.graph.values.shapes import Dims, compatible, is_known, text
from flowscope.graph.values.string_values import zeros

_MISSING: Any = object()
_CLEARED: Any = type("Cleared", (), {"__slots__": ()})()


@frozen
class Form:
    """What all versions of an array share.

    Attributes:
        name: What messages call it.
        dtype: Element type, NumPy's.
        dims: What was said of the elements' shape.
        can_grow: Whether an index behind the last makes it larger.
        is_uniform: Whether all elements have the shape of the first.
        clears: Whether a value can be read once only.
        cleared: The indices that have been read, where that is so.
    """

    name: str
    dtype: Any
    dims: Dims = None
    can_grow: bool = False
    is_uniform: bool = True
    clears: bool = False
    cleared: set[int] = field(default_factory=set, compare=False)


class Items:
    """One version: values by index, some of which may not be there.

    Attributes:
        size: Number of indices.
        form: What all versions share.
    """

    # A version that another one came after has no `_data`, but `_next`, `_key` and `_old`.
    __slots__ = ("_data", "_dims", "_key", "_next", "_old", "form", "size")

    def __init__(self, size: int, form: Form, data: dict[int, Any], dims: Dims = None) -> None:
        self.size = size
        self.form = form
        self._data: dict[int, Any] | None = data
        self._dims = dims

    @classmethod
    def empty(cls, size: int, form: Form) -> Items:
        """Returns an array without values."""
        return cls(size, form, {}, form.dims)

    def get(self, index: int) -> Any:
        """Returns the value at an index; None if there is none."""
        return self._values().get(index)

    def indices(self) -> list[int]:
        """Returns the indices that have values."""
        return sorted(self._values())

    def read(self, xp: ArrayModule, index: int) -> Array:
        """Returns the value at an index; zeros where none was written, if their shape is known.

        Raises:
            InvalidArgumentError: if there is no such index, the value was cleared, or it was not
                written and its shape is not known.
        """
        found = (self._data or self._values()).get(index)
        if found is not None and not self.form.clears:
            return found
        if index in self.form.cleared:
            raise self._error(
                f"cannot read index {index} twice: it was cleared after it was read; "
                "clear_after_read=False keeps values"
            )
        if found is None:
            return self._unwritten(xp, index)
        self.form.cleared.add(index)
        self._values()[index] = _CLEARED
        return found

    def read_many(self, xp: ArrayModule, indices: list[int]) -> list[Array]:
        """Returns the values at several indices; see `read`."""
        if self.form.clears:
            return [self.read(xp, i) for i in indices]
        values = self._values()
        found = [values.get(i) for i in indices]
        return [self._unwritten(xp, i) if v is None else v
                for i, v in zip(indices, found, strict=True)]  # fmt: skip

    def zeros_at(self, xp: ArrayModule, index: int) -> Array:
        """Returns zeros like the value at an index, whether or not it has been read.

        Raises:
            InvalidArgumentError: if there is no such index, or its shape is not known.
        """
        found = self._values().get(index)
        if found is None or found is _CLEARED:
            return self._unwritten(xp, index)
        return zeros(xp, found.shape, self.form.dtype)

    def _unwritten(self, xp: ArrayModule, index: int) -> Array:
        if not 0 <= index < self.size:
            raise self._error(f"expected an index from 0 below the size, got {index}")
        dims = self.dims
        if not is_known(dims):
            raise self._error(
                f"index {index} has not been written, and the elements' shape is not known: "
                "element_shape=... would make it zeros"
            )
        return zeros(xp, dims, self.form.dtype)[()]

    @property
    def dims(self) -> Dims:
        """What is known of the elements' shape."""
        return self._dims

    def write(self, index: int, value: Any) -> Items:
        """Returns the version with a value at an index that has none.

        Raises:
            InvalidArgumentError: if there is no such index, it has been written, or the value's
                shape is not that of the elements.
        """
        if index in (self._data or self._values()):
            raise self._error(f"index {index} was written before: each may be written once")
        new = self.put(index, value)
        if getattr(value, "shape", ()) != self._dims:
            new._dims = self._fitting(index, value)
        return new

    def _fitting(self, index: int, value: Any) -> Dims:
        """Returns the elements' shape as it is known with one value more."""
        dims, got = self._dims, np.shape(value)
        if not compatible(got, dims):
            raise self._error(
                f"expected values of shape {text(dims)}, got {text(got)} at index {index}"
            )
        return got if self.form.is_uniform else dims

    def write_many(self, indices: list[int], values: list[Any]) -> Items:
        """Returns the version with values at indices that have none; see `write`."""
        old = self._values()
        new = dict(zip(indices, values, strict=True))
        is_good = len(new) == len(indices) and old.keys().isdisjoint(new)
        is_much = len(old) <= 4 * len(new) > 0
        if not (is_much and is_good and self._has(min(new)) and self._has(max(new))):
            array = self
            for i, v in zip(indices, values, strict=True):
                array = array.write(i, v)
            return array
        dims = self._fitting(indices[0], values[0])
        return Items(max(self.size, max(new) + 1), self.form, old | new, dims)

    def _has(self, index: int) -> bool:
        return index >= 0 and (index < self.size or self.form.can_grow)

    def put(self, index: int, value: Any) -> Items:
        """Returns the version with another value at an index.

        Raises:
            InvalidArgumentError: if there is no such index.
        """
        size = self.size
        if not 0 <= index < size:
            if index < 0 or not self.form.can_grow:
                would = "; dynamic_size=True would make it larger" if index >= 0 else ""
                raise self._error(f"expected an index from 0 below the size, got {index}{would}")
            size = index + 1
        data = self._data
        if data is None:
            data = self._values()
        new = Items(size, self.form, data, self._dims)
        self._data, self._next = None, new
        self._key, self._old = index, data.get(index, _MISSING)
        data[index] = value
        return new

    def drop(self, index: int) -> Items:
        """Returns the version without a value at an index."""
        data = self._values()
        if index not in data:
            return self
        new = Items(self.size, self.form, data, self._dims)
        self._data, self._next = None, new
        self._key, self._old = index, data.pop(index)
        return new

    def _error(self, message: str) -> InvalidArgumentError:
        return InvalidArgumentError(f'array "{self.form.name}" of size {self.size}: {message}')

    def add(self, index: int, value: Any) -> Items:
        """Returns the version with a value added to what is there."""
        old = self.get(index)
        return self.put(index, value if old is None else old + value)

    def zeros(self) -> Items:
        """Zeros of the same size, which hold no values."""
        form = self.form
        return Items(self.size, Form(form.name, form.dtype, can_grow=True, is_uniform=False), {})

    def __add__(self, other: Items) -> Items:
        few, many = self, other
        if len(few._values()) > len(many._values()):
            few, many = many, few
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
            at = at._next
        if 2 * len(path) > len(at._data):
            self._data = _older(at._data, path)
            del self._next, self._old
            return
        for older in reversed(path):
            assert at._data is not None
            data, key = at._data, older._key
            at._key, at._old, at._data, at._next = key, data.get(key, _MISSING), None, older
            if older._old is _MISSING:
                data.pop(key, None)
            else:
                data[key] = older._old
            older._data = data
            del older._next, older._old
            at = older

    def __repr__(self) -> str:
        return (
            f'<array "{self.form.name}" of size {self.size}, {len(self.indices())} values written>'
        )


def _older(data: dict[int, Any], path: list[Items]) -> dict[int, Any]:
    """Returns the values of the first version of a path that leads to the one that holds `data`."""
    found = dict(data)
    for older in reversed(path):
        if older._old is _MISSING:
            found.pop(older._key, None)
        else:
            found[older._key] = older._old
    return found
