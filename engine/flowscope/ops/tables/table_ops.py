"""Lookup tables as ops: handles, and what looks up, changes, fills and exports.

A lookup reads the table and an insertion writes it, so within a step they run in program order, as
reads and writes of variables do. A whole batch of keys is one call of the state behind the handle
(see `flowscope.runtime.state.table_state`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.graph.values.string_values import boxed
from flowscope.ops.host.files import reading

#: A column of a text file: the line's number, or the whole line.
LINE_NUMBER, WHOLE_LINE = -1, -2


class TableHandle(Op, abstract=True, is_stateful=True, is_handle=True, family="table"):
    """Base of the handles of tables, which live in a container."""

    key_dtype: DType
    value_dtype: DType
    container: str
    shared_name: str
    #: Of one key, and of one value.
    key_shape: tuple[int, ...]
    value_shape: tuple[int, ...]

    def infer(self) -> Spec:
        """A resource."""
        return Spec(dtypes.resource, ())


@frozen
class HashTableHandle(TableHandle, is_stateful=True, is_handle=True):
    """The handle of a table that is initialised once, and does not change any more."""

    key_dtype: DType
    value_dtype: DType
    container: str
    shared_name: str
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()


@frozen
class MutableHashTableHandle(TableHandle, is_stateful=True, is_handle=True):
    """The handle of a table that may change at any time."""

    key_dtype: DType
    value_dtype: DType
    container: str
    shared_name: str
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()


@frozen
class MutableDenseHashTableHandle(TableHandle, is_stateful=True, is_handle=True):
    """The handle of a table that may change at any time, and in which two keys never occur.

    Attributes: `empty_key` and `deleted_key` are the elements of these keys.
    """

    key_dtype: DType
    value_dtype: DType
    container: str
    shared_name: str
    empty_key: tuple[int | bytes, ...]
    deleted_key: tuple[int | bytes, ...]
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()


class _TableOp(Op, abstract=True, is_stateful=True, is_differentiable=False, devices=("CPU",)):
    """Base of all ops of tables."""


class _Reads(_TableOp, abstract=True, reads_state=True, accepts_empty=True):
    """Base of ops that leave a table as it is."""


class _Writes(_TableOp, abstract=True, writes_state=True):
    """Base of ops that change a table."""


def _check_handle(handle: Spec) -> None:
    if handle.dtype is not dtypes.resource or handle.variable is not None:
        raise expected_dtype("a table", handle)


def _leading(keys: Spec, dtype: DType, key_shape: tuple[int, ...]) -> Dims:
    """The shape in which keys stand."""
    if keys.dtype is not dtype:
        raise expected_dtype(f"keys of dtype {dtype}, the table's", keys.dtype)
    if keys.shape is None:
        return None
    at = len(keys.shape) - len(key_shape)
    if at < 0 or not compatible(keys.shape[at:], key_shape):
        raise expected(f"keys of shape [..., {text(key_shape)[1:]}", keys.shape)
    return keys.shape[:at]


@frozen
class LookupTableFind(_Reads, calls=20):
    """The values of keys; the default for those that are not in.

    Shapes: handle [], keys [..., *key_shape], default [*value_shape] -> [..., *value_shape]
    Raises: FailedPreconditionError if a static table is not initialised.
    """

    key_dtype: DType
    value_dtype: DType
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()

    def infer(self, handle: Spec, keys: Spec, default: Spec) -> Spec:
        _check_handle(handle)
        leading = _leading(keys, self.key_dtype, self.key_shape)
        if default.dtype is not self.value_dtype:
            raise expected_dtype(f"a default of dtype {self.value_dtype}", default.dtype)
        if not compatible(self.value_shape, default.shape):
            raise expected(f"a default of shape {text(self.value_shape)}", default.shape)
        return Spec(self.value_dtype, None if leading is None else (*leading, *self.value_shape))

    def kernel(self, xp: ArrayModule, state: Any, keys: Array, default: Array) -> Array:
        return state.lookup(xp.asarray(boxed(keys)), default)[()]


class _Puts(_Writes, abstract=True):
    key_dtype: DType
    value_dtype: DType
    key_shape: tuple[int, ...]
    value_shape: tuple[int, ...]

    def infer(self, handle: Spec, keys: Spec, values: Spec) -> tuple[Spec, ...]:
        """Nothing comes out."""
        _check_handle(handle)
        leading = _leading(keys, self.key_dtype, self.key_shape)
        if values.dtype is not self.value_dtype:
            raise expected_dtype(f"values of dtype {self.value_dtype}, the table's", values.dtype)
        wanted = None if leading is None else (*leading, *self.value_shape)
        if not compatible(wanted, values.shape):
            raise expected(f"values of shape {text(wanted)}, one per key", values.shape)
        return ()


@frozen
class LookupTableInsert(_Puts, calls=30):
    """Gives keys values in a table; of equal keys the last one counts.

    Shapes: handle [], keys [..., *key_shape], values [..., *value_shape]
    """

    key_dtype: DType
    value_dtype: DType
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()

    def kernel(self, xp: ArrayModule, state: Any, keys: Array, values: Array) -> None:
        state.insert(xp.asarray(boxed(keys)), xp.asarray(boxed(values)))


@frozen
class LookupTableImport(_Puts, makes_anew=True, calls=30):
    """Puts entries in the place of all that a table has.

    Shapes: handle [], keys [n, *key_shape], values [n, *value_shape]
    """

    key_dtype: DType
    value_dtype: DType
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()

    def kernel(self, xp: ArrayModule, state: Any, keys: Array, values: Array) -> None:
        state.replace(keys, values)


@frozen
class LookupTableRemove(_Writes, calls=20):
    """Takes keys out of a table; those that are not in do not matter.

    Shapes: handle [], keys [..., *key_shape]
    """

    key_dtype: DType
    key_shape: tuple[int, ...] = ()

    def infer(self, handle: Spec, keys: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        _leading(keys, self.key_dtype, self.key_shape)
        return ()

    def kernel(self, xp: ArrayModule, state: Any, keys: Array) -> None:
        state.remove(xp.asarray(boxed(keys)))


class LookupTableSize(_Reads):
    """The number of entries of a table."""

    def infer(self, handle: Spec) -> Spec:
        _check_handle(handle)
        return Spec(dtypes.int64, ())

    def kernel(self, xp: ArrayModule, state: Any) -> Array:
        return np.int64(state.size)


@frozen
class LookupTableExport(_Reads):
    """All keys and values of a table, by insertion.

    Shapes: handle [] -> keys [n, *key_shape], values [n, *value_shape]
    """

    key_dtype: DType
    value_dtype: DType
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()

    def infer(self, handle: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        keys = Spec(self.key_dtype, (None, *self.key_shape))
        return keys, Spec(self.value_dtype, (None, *self.value_shape))

    def kernel(self, xp: ArrayModule, state: Any) -> tuple[Array, Array]:
        found: tuple[Array, Array] = state.export()
        return found


class InitializeTable(_Writes, makes_anew=True, calls=40):
    """Gives a static table its entries; if it has them already, the same ones.

    Shapes: handle [], keys [n], values [n]
    Raises: FailedPreconditionError if a key stands twice, with two values, or if the table is
        initialised already, with other entries.
    """

    def infer(self, handle: Spec, keys: Spec, values: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        if not compatible(keys.shape, values.shape):
            raise expected(f"a value for each of the keys {text(keys.shape)}", values.shape)
        return ()

    def kernel(self, xp: ArrayModule, state: Any, keys: Array, values: Array) -> None:
        state.initialize(xp.asarray(boxed(keys)), xp.asarray(boxed(values)))


@frozen
class InitializeTableFromTextFile(_Writes, makes_anew=True, calls=40):
    """Gives a static table its entries from the lines of a file, on the machine where it lies.

    Attributes:
        key_index, value_index: Columns; -1: the line's number from 0; -2: the whole line.
        vocab_size: Lines that are read; -1: all.
        delimiter: What separates columns.
        offset: Lines at the beginning that are passed over, and not counted.
    Shapes: handle [], filename []
    Raises: NotFoundError if there is no such file; InvalidArgumentError if a line lacks a column,
        a number is none, or lines are missing; FailedPreconditionError as of InitializeTable.
    """

    key_dtype: DType
    value_dtype: DType
    key_index: int
    value_index: int
    vocab_size: int = -1
    delimiter: str = "\t"
    offset: int = 0

    def infer(self, handle: Spec, filename: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        if filename.dtype is not dtypes.string or not compatible((), filename.shape):
            raise expected_dtype("the name of a file, a string scalar", filename)
        return ()

    def kernel(self, xp: ArrayModule, state: Any, filename: Array) -> None:
        keys: list[Any] = []
        values: list[Any] = []
        for number, line in enumerate(self._lines(filename)):
            parts = line.split(self.delimiter.encode())
            keys.append(self._cell(self.key_index, self.key_dtype, number, line, parts))
            values.append(self._cell(self.value_index, self.value_dtype, number, line, parts))
        if len(keys) < self.vocab_size:
            raise expected(f"{self.vocab_size} lines in {filename!r}, its vocab_size", len(keys))
        state.initialize(_column(keys, self.key_dtype), _column(values, self.value_dtype))

    def _lines(self, filename: Array) -> Iterator[bytes]:
        with reading(filename) as file:
            for number, line in enumerate(itertools.islice(file, self.offset, None)):
                if 0 <= self.vocab_size <= number:
                    return
                yield line.removesuffix(b"\n").removesuffix(b"\r")

    def _cell(self, at: int, dtype: DType, number: int, line: bytes, parts: list[bytes]) -> Any:
        if at == LINE_NUMBER:
            return number
        if at >= len(parts):
            raise InvalidArgumentError(
                f"expected a column {at} in line {number}, separated by {self.delimiter!r}, got "
                f"{len(parts)} columns: {line[:60]!r}"
            )
        cell = line if at == WHOLE_LINE else parts[at]
        if dtype is dtypes.string:
            return cell
        try:
            return float(cell) if dtype.kind == "f" else int(cell)
        except ValueError:
            where = "line" if at == WHOLE_LINE else f"column {at} of line"
            raise expected(f"{dtype} in {where} {number}", repr(cell[:60])) from None


def _column(values: list[Any], dtype: DType) -> Array:
    """Values as an array of a dtype; raises InvalidArgumentError if one is out of its range."""
    out = np.empty(len(values), dtype.np_dtype)
    try:
        out[:] = values
    except OverflowError as e:
        raise expected(f"numbers that fit {dtype}", str(e)) from None
    return out


__all__ = [
    "LINE_NUMBER",
    "WHOLE_LINE",
    "HashTableHandle",
    "InitializeTable",
    "InitializeTableFromTextFile",
    "LookupTableExport",
    "LookupTableFind",
    "LookupTableImport",
    "LookupTableInsert",
    "LookupTableRemove",
    "LookupTableSize",
    "MutableDenseHashTableHandle",
    "MutableHashTableHandle",
    "TableHandle",
]
