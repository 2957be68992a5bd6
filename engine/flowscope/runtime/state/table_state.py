"""Lookup tables as state: keys, their values, and who may change them.

All that a table has is read and changed with its lock, in one call per batch of keys.
"""

from __future__ import annotations

import math
import threading
from typing import Any, ClassVar

import numpy as np

from flowscope.errors import FailedPreconditionError, InvalidArgumentError
from flowscope.ops.tables.table_ops import (
    HashTableHandle,
    MutableDenseHashTableHandle,
    TableHandle,
)
from flowscope.runtime.state.key_index import KeyIndex


class TableState:
    """A table that may change at any time.

    Attributes:
        name: Its name in its container.
        key_dtype, value_dtype: Of keys and values.
        key_shape, value_shape: Of one key and of one value.
        writes: How often it was written.
        may_be_refilled: Whether an initializer that has changed gives a static table other entries:
            one of a notebook cell that was run again.
    """

    family = "table"
    kind = "MutableHashTable"
    #: What has to be the same where two handles name one table.
    identity: ClassVar[tuple[str, ...]] = (
        "kind", "key_dtype", "value_dtype", "key_shape", "value_shape",
    )  # fmt: skip

    def __init__(self, handle: TableHandle) -> None:
        self.name = handle.shared_name
        self.key_dtype, self.value_dtype = handle.key_dtype, handle.value_dtype
        self.key_shape, self.value_shape = handle.key_shape, handle.value_shape
        self.writes = 0
        self.may_be_refilled = False
        self._lock = threading.Lock()
        self._index = KeyIndex(self.key_dtype.np_dtype, self.key_shape)
        self._values = np.empty((0, *self.value_shape), self.value_dtype.np_dtype)

    # -- what is asked of it ----------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of entries."""
        return self._index.count

    @property
    def nbytes(self) -> int:
        """Bytes of its keys and values."""
        keys, values = self.export()
        return int(keys.nbytes + values.nbytes)

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}" ({self.size} entries)'

    def lookup(self, keys: Any, default: Any) -> Any:
        """The values of keys, and the default for keys that are not in.

        Shapes: keys [..., *key_shape], default [*value_shape] -> [..., *value_shape]
        """
        flat, leading = self._flat(keys)
        with self._lock:
            self._check_readable()
            rows = self._index.find(flat)
            if self.size:
                values = self._values[rows]  # of row -1 for what is missing
                missing = rows < 0
                if missing.any():
                    values[missing] = default
            else:
                values = np.empty((len(rows), *self.value_shape), self.value_dtype.np_dtype)
                values[...] = default
        return values.reshape((*leading, *self.value_shape))

    def export(self) -> tuple[Any, Any]:
        """Copies of all keys and values, by insertion."""
        with self._lock:
            self._check_readable()
            rows = self._index.alive
            return self._index.keys(), self._values[rows]

    # -- what is done to it -----------------------------------------------------------------------

    def insert(self, keys: Any, values: Any) -> None:
        """Gives keys values; of equal keys the last one counts.

        Shapes: keys [..., *key_shape], values [..., *value_shape]
        """
        flat, leading = self._flat(keys)
        rows = self._check_values(values, leading)
        with self._lock:
            self._put(flat, rows)

    def remove(self, keys: Any) -> None:
        """Takes keys out; those that are not in do not matter."""
        flat, _ = self._flat(keys)
        with self._lock:
            self._index.discard(flat)
            self.writes += 1

    def replace(self, keys: Any, values: Any) -> None:
        """Puts these entries in the place of all."""
        flat, leading = self._flat(keys)
        rows = self._check_values(values, leading)
        with self._lock:
            self._index.clear()
            self._put(flat, rows)

    def clear(self) -> None:
        """Makes it new: empty."""
        with self._lock:
            self._index.clear()
            self.writes += 1

    def _put(self, keys: Any, values: Any) -> None:
        """Gives keys values; the lock is held."""
        rows, moved = self._index.add(keys)
        if moved is not None:
            self._values[: len(moved)] = self._values[moved]
        if self._index.capacity > len(self._values):
            grown = np.empty((self._index.capacity, *self.value_shape), self._values.dtype)
            grown[: len(self._values)] = self._values
            self._values = grown
        # NumPy assigns in order: of equal rows the last one stays.
        self._values[rows] = values
        self.writes += 1

    def _check_readable(self) -> None:
        """Raises if nothing may be looked up."""

    def _flat(self, keys: Any) -> tuple[Any, tuple[int, ...]]:
        """Keys as [n, *key_shape], and the shape in which they stood."""
        rank = keys.ndim - len(self.key_shape)
        if rank < 0 or keys.shape[rank:] != self.key_shape:
            raise InvalidArgumentError(
                f"expected keys of shape [..., {_dims(self.key_shape)}], got {list(keys.shape)}"
            )
        flat = keys.reshape((math.prod(keys.shape[:rank]), *self.key_shape))
        self._check_keys(flat)
        return flat, keys.shape[:rank]

    def _check_keys(self, keys: Any) -> None:
        """Raises InvalidArgumentError for keys that the table cannot have."""

    def _check_values(self, values: Any, leading: tuple[int, ...]) -> Any:
        wanted = (*leading, *self.value_shape)
        if values.shape != wanted:
            raise InvalidArgumentError(
                f"expected values of shape {list(wanted)}, one per key, got {list(values.shape)}"
            )
        return values.reshape((math.prod(leading), *self.value_shape))


class StaticTableState(TableState):
    """A table that is initialised once, and does not change any more.

    Attributes:
        is_initialized: Whether it was.
    """

    kind = "HashTable"

    def __init__(self, handle: TableHandle) -> None:
        super().__init__(handle)
        self.is_initialized = False

    def initialize(self, keys: Any, values: Any) -> None:
        """Gives it its entries. A second time they have to be the same, unless a cell was re-run.

        Raises:
            FailedPreconditionError: if a key stands twice, with two values, or if it has other
                entries already.
        """
        flat, leading = self._flat(keys)
        rows = self._check_values(values, leading)
        fresh = KeyIndex(self.key_dtype.np_dtype, self.key_shape)
        found, _ = fresh.add(flat)
        table = np.empty((fresh.rows, *self.value_shape), self.value_dtype.np_dtype)
        table[found] = rows
        differing = np.flatnonzero((table[found] != rows).astype(np.bool_))
        if differing.size:
            i = int(differing[0])
            raise FailedPreconditionError(
                f"the key {flat[i]!r} stands twice, with the values {rows[i]!r} and "
                f"{table[found[i]]!r}"
            )
        with self._lock:
            is_same = self.is_initialized and self._has(fresh.keys(), table)
            if self.is_initialized and not is_same and not self.may_be_refilled:
                raise FailedPreconditionError(
                    f'{self.kind} "{self.name}" is initialized already, with other entries: a '
                    "static table does not change; use fs.contrib.lookup.MutableHashTable for one "
                    "that does"
                )
            if not is_same:
                self._index.clear()
                self._put(flat, rows)
                self.is_initialized = True

    def clear(self) -> None:
        """Makes it new: empty, and to be initialised."""
        self.is_initialized = False
        super().clear()

    def _has(self, keys: Any, values: Any) -> bool:
        """Whether these are its entries; the lock is held."""
        rows = self._index.find(keys)
        if len(keys) != self.size or (rows < 0).any():
            return False
        return bool((self._values[rows] == values).all()) if rows.size else True

    def _check_readable(self) -> None:
        if not self.is_initialized:
            raise FailedPreconditionError(
                f'{self.kind} "{self.name}" is not initialized: run fs.tables_initializer(), or '
                "the table's own initializer"
            )


class DenseTableState(TableState):
    """A table that may change at any time, and never has two keys: `empty` and `deleted`."""

    kind = "MutableDenseHashTable"
    identity: ClassVar[tuple[str, ...]] = (*TableState.identity, "empty_key", "deleted_key")

    def __init__(self, handle: MutableDenseHashTableHandle) -> None:
        super().__init__(handle)
        self.empty_key, self.deleted_key = handle.empty_key, handle.deleted_key

    def _check_keys(self, keys: Any) -> None:
        for what in ("empty_key", "deleted_key"):
            never = np.array(getattr(self, what), keys.dtype).reshape(self.key_shape)
            same = (keys == never).astype(np.bool_)
            if same.all(axis=tuple(range(1, same.ndim))).any():
                raise InvalidArgumentError(
                    f"{what} must not be used as a key, got {never.tolist()!r}: give the table "
                    "another one, that never occurs"
                )


def _dims(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))


def table_of(handle: TableHandle) -> TableState:
    """A new table of the kind that a handle is of."""
    if isinstance(handle, MutableDenseHashTableHandle):
        return DenseTableState(handle)
    return StaticTableState(handle) if isinstance(handle, HashTableHandle) else TableState(handle)


__all__ = ["DenseTableState", "StaticTableState", "TableState", "table_of"]
