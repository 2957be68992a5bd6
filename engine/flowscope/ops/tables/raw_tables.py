"""Operations of tables as TensorFlow's `raw_ops` name them; a handle may be a table object, too.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, as_dtype, string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import TensorShape
from flowscope.ops.core.build import apply, apply_many, apply_none
from flowscope.ops.core.handles import add_handle, in_container
from flowscope.ops.tables import table_ops as ops
from flowscope.ops.tables.initializers import check_column
from flowscope.ops.tables.tables import LookupInterface, never_keys

__all__ = [
    "HashTable",
    "HashTableV2",
    "InitializeTable",
    "InitializeTableFromTextFile",
    "InitializeTableFromTextFileV2",
    "InitializeTableV2",
    "LookupTableExport",
    "LookupTableExportV2",
    "LookupTableFind",
    "LookupTableFindV2",
    "LookupTableImport",
    "LookupTableImportV2",
    "LookupTableInsert",
    "LookupTableInsertV2",
    "LookupTableRemoveV2",
    "LookupTableSize",
    "LookupTableSizeV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "MutableHashTable",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
]


class _Exported(NamedTuple):
    """All entries of a table."""

    keys: Tensor
    values: Tensor


class _Kinds(NamedTuple):
    """What the ops of a table have in common.

    Attributes:
        key_dtype, value_dtype: The dtypes.
        key_shape, value_shape: Of one key, and of one value.
    """

    key_dtype: DType
    value_dtype: DType
    key_shape: tuple[int, ...]
    value_shape: tuple[int, ...]


# -- handles --------------------------------------------------------------------------------------


def _made(
    kind: Any,
    types: tuple[Any, Any],
    container: str,
    shared_name: str,
    name: str,
    value_shape: Any = (),
    **facts: Any,
) -> Tensor:
    key_dtype, value_dtype = map(as_dtype, types)
    LookupInterface(key_dtype, value_dtype)  # it checks them
    shape = TensorShape(value_shape)
    if not shape.is_fully_defined():
        raise expected("a value_shape that is known", value_shape)
    with in_container(container):
        return add_handle(
            kind,
            name,
            shared_name or None,
            key_dtype=key_dtype,
            value_dtype=value_dtype,
            value_shape=tuple([d for d in shape.as_list() if d is not None]),
            **facts,
        )


def HashTableV2(
    *,
    key_dtype: Any,
    value_dtype: Any,
    container: str = "",
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    name: str | None = None,
) -> Tensor:
    """The handle of a table that is filled once, by `InitializeTableV2` or from a file.

    Args:
        key_dtype: Dtype of the keys: strings or integers.
        value_dtype: Dtype of the values.
        container: Container of the table; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        use_node_name_sharing: Whether a table without a `shared_name` has the operation's name in
            the container; it always has.
        name: Name of the operation.
    """
    types = key_dtype, value_dtype
    return _made(ops.HashTableHandle, types, container, shared_name, name or "HashTableV2")


def MutableHashTableV2(
    *,
    key_dtype: Any,
    value_dtype: Any,
    container: str = "",
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    name: str | None = None,
) -> Tensor:
    """The handle of a table that may change at any time; arguments are those of `HashTableV2`."""
    types = key_dtype, value_dtype
    called = name or "MutableHashTableV2"
    return _made(ops.MutableHashTableHandle, types, container, shared_name, called)


def MutableHashTableOfTensorsV2(
    *,
    key_dtype: Any,
    value_dtype: Any,
    container: str = "",
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    value_shape: Any = (),
    name: str | None = None,
) -> Tensor:
    """The handle of a table that may change at any time, whose values have a shape.

    Args:
        key_dtype: Dtype of the keys: strings or integers.
        value_dtype: Dtype of the values.
        container: Container of the table; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        use_node_name_sharing: As of `HashTableV2`.
        value_shape: Shape of a value, fully known.
        name: Name of the operation.
    """
    called = name or "MutableHashTableOfTensorsV2"
    kind, types = ops.MutableHashTableHandle, (key_dtype, value_dtype)
    return _made(kind, types, container, shared_name, called, value_shape)


def MutableDenseHashTableV2(
    *,
    empty_key: Any,
    deleted_key: Any,
    value_dtype: Any,
    container: str = "",
    shared_name: str = "",
    use_node_name_sharing: bool = False,
    value_shape: Any = (),
    initial_num_buckets: int = 131072,
    max_load_factor: float = 0.8,
    name: str | None = None,
) -> Tensor:
    """The handle of a table that may change at any time, and in which two keys never occur.

    Args:
        empty_key: A key that never occurs; its dtype and shape are those of a key.
        deleted_key: Another one.
        value_dtype: Dtype of the values.
        container: Container of the table; the one that is open by default.
        shared_name: Name in the container; the operation's by default.
        use_node_name_sharing: As of `HashTableV2`.
        value_shape: Shape of a value, fully known.
        initial_num_buckets: A power of two; the table grows in any case.
        max_load_factor: Above 0 and below 1; this table grows by a rule of its own.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if a number is out of its range, or the keys are not known or one.
    """
    if not 0 < max_load_factor < 1:
        raise expected("a max_load_factor above 0 and below 1", max_load_factor)
    key_dtype = convert_to_tensor(empty_key, None, "empty_key").dtype
    keys = never_keys(key_dtype, empty_key, deleted_key, initial_num_buckets)
    called, types = name or "MutableDenseHashTableV2", (key_dtype, value_dtype)
    kind = ops.MutableDenseHashTableHandle
    return _made(kind, types, container, shared_name, called, value_shape, **keys)


# -- what is done with them -----------------------------------------------------------------------


def _handle(table: Any) -> tuple[Tensor, ops.TableHandle]:
    handle = getattr(table, "resource_handle", table)
    made: Any = handle.op.definition if isinstance(handle, Tensor) else None
    if not isinstance(made, ops.TableHandle):
        raise expected_dtype("the handle of a table", repr(table))
    return handle, made


def _kinds(made: Any) -> _Kinds:
    return _Kinds(made.key_dtype, made.value_dtype, made.key_shape, made.value_shape)


def LookupTableFindV2(
    *, table_handle: Any, keys: Any, default_value: Any, name: str | None = None
) -> Tensor:
    """The values of keys, and the default value for those that are not in.

    Shapes: keys [..., *key], default_value [*value] -> [..., *value]
    """
    handle, made = _handle(table_handle)
    tensors = (
        convert_to_tensor(keys, made.key_dtype),
        convert_to_tensor(default_value, made.value_dtype),
    )
    op = ops.LookupTableFind(*_kinds(made))
    return apply(op, handle, *tensors, name=name or "LookupTableFindV2")


def LookupTableInsertV2(
    *, table_handle: Any, keys: Any, values: Any, name: str | None = None
) -> Operation:
    """An operation that gives keys values; of equal keys the last one counts.

    Shapes: keys [..., *key], values [..., *value]
    """
    handle, made = _handle(table_handle)
    op = ops.LookupTableInsert(*_kinds(made))
    return apply_none(op, handle, *_entries(made, keys, values), name=name or "LookupTableInsertV2")


def LookupTableImportV2(
    *, table_handle: Any, keys: Any, values: Any, name: str | None = None
) -> Operation:
    """An operation that puts entries in the place of all that a table has.

    Shapes: keys [n, *key], values [n, *value]
    """
    handle, made = _handle(table_handle)
    op = ops.LookupTableImport(*_kinds(made))
    return apply_none(op, handle, *_entries(made, keys, values), name=name or "LookupTableImportV2")


def _entries(made: Any, keys: Any, values: Any) -> tuple[Tensor, Tensor]:
    return convert_to_tensor(keys, made.key_dtype), convert_to_tensor(values, made.value_dtype)


def LookupTableRemoveV2(*, table_handle: Any, keys: Any, name: str | None = None) -> Operation:
    """An operation that takes keys out; those that are not in do not matter.

    Shapes: keys [..., *key]
    """
    handle, made = _handle(table_handle)
    op = ops.LookupTableRemove(made.key_dtype, made.key_shape)
    tensor = convert_to_tensor(keys, made.key_dtype)
    return apply_none(op, handle, tensor, name=name or "LookupTableRemoveV2")


def LookupTableSizeV2(*, table_handle: Any, name: str | None = None) -> Tensor:
    """The number of entries, an int64 scalar."""
    handle, _ = _handle(table_handle)
    return apply(ops.LookupTableSize(), handle, name=name or "LookupTableSizeV2")


def LookupTableExportV2(
    *, table_handle: Any, Tkeys: Any, Tvalues: Any, name: str | None = None
) -> _Exported:
    """All entries, in the order in which they came: `keys` [n, *key] and `values` [n, *value].

    Args:
        table_handle: The table.
        Tkeys, Tvalues: Dtypes of its keys and values.
        name: Name of the operation.

    Raises:
        DTypeError: if the table has other dtypes.
    """
    handle, made = _handle(table_handle)
    given = as_dtype(Tkeys), as_dtype(Tvalues)
    own = made.key_dtype, made.value_dtype
    if given != own:
        wanted = f"Tkeys and Tvalues {own[0]} and {own[1]}, the table's"
        raise expected_dtype(wanted, f"{given[0]} and {given[1]}")
    op = ops.LookupTableExport(*_kinds(made))
    return _Exported(*apply_many(op, handle, name=name or "LookupTableExportV2"))


def InitializeTableV2(
    *, table_handle: Any, keys: Any, values: Any, name: str | None = None
) -> Operation:
    """An operation that gives a static table its entries.

    Shapes: keys [n], values [n]
    """
    handle, made = _handle(table_handle)
    entries = _entries(made, keys, values)
    return apply_none(ops.InitializeTable(), handle, *entries, name=name or "InitializeTableV2")


def InitializeTableFromTextFileV2(
    *,
    table_handle: Any,
    filename: Any,
    key_index: int,
    value_index: int,
    vocab_size: int = -1,
    delimiter: str = "\t",
    offset: int = 0,
    name: str | None = None,
) -> Operation:
    """An operation that gives a static table its entries from the lines of a file.

    Args:
        table_handle: The table.
        filename: Name of the file, a string scalar.
        key_index: Column of the keys, from 0; -1: the line's number; -2: the whole line.
        value_index: Column of the values, likewise.
        vocab_size: Number of lines that are read; -1: all.
        delimiter: What separates columns.
        offset: Lines at the beginning that are passed over.
        name: Name of the operation.

    Raises:
        DTypeError: if a line's number is to be no int64, or a whole line no string.
        InvalidArgumentError: if a number is out of its range.
    """
    handle, made = _handle(table_handle)
    check_column("key", key_index, made.key_dtype)
    check_column("value", value_index, made.value_dtype)
    if vocab_size < 1 and vocab_size != -1:
        raise expected("a vocab_size above 0, or -1", vocab_size)
    if offset < 0:
        raise expected("an offset of 0 or more", offset)
    op = ops.InitializeTableFromTextFile(
        made.key_dtype, made.value_dtype, key_index, value_index, vocab_size, delimiter, offset
    )
    file = convert_to_tensor(filename, string)
    return apply_none(op, handle, file, name=name or "InitializeTableFromTextFileV2")


HashTable, MutableHashTable = HashTableV2, MutableHashTableV2
MutableDenseHashTable = MutableDenseHashTableV2
MutableHashTableOfTensors = MutableHashTableOfTensorsV2
LookupTableFind, LookupTableInsert = LookupTableFindV2, LookupTableInsertV2
LookupTableImport, LookupTableExport = LookupTableImportV2, LookupTableExportV2
LookupTableSize, InitializeTable = LookupTableSizeV2, InitializeTableV2
InitializeTableFromTextFile = InitializeTableFromTextFileV2
