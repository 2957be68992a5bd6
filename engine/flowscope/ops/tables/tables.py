"""Lookup tables: keys of any shape to values, in one operation per batch.

    words = fs.constant(["emerson", "lake", "palmer"])
    table = fs.contrib.lookup.index_table_from_tensor(words, num_oov_buckets=1)
    ids = table.lookup(fs.constant(["lake", "and", "palmer"]))      # [1, 3, 2]
    session.run(fs.tables_initializer())

A static table is filled once, by its initializer; a mutable one changes at any time, and is saved
with the variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.serialization.meta import CollectionKind, register_kind
from flowscope.graph.values.dtypes import DType, as_dtype, string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.build import apply, apply_many, apply_none, on_values
from flowscope.ops.core.handles import add_handle
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.tables import table_ops as ops
from flowscope.ops.tables.initializers import TableInitializerBase

__all__ = [
    "HashTable",
    "InitializableLookupTableBase",
    "LookupInterface",
    "MutableDenseHashTable",
    "MutableHashTable",
    "StaticHashTable",
]


class LookupInterface:
    """What all tables have in common.

    Args:
        key_dtype: Dtype of the keys: strings or integers.
        value_dtype: Dtype of the values.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        if self._key_dtype is not string and not self._key_dtype.is_integer:
            raise expected_dtype("strings or integers as keys", self._key_dtype)

    @property
    def key_dtype(self) -> DType:
        """Dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """Dtype of the values."""
        return self._value_dtype

    @property
    def name(self) -> str:
        """Name of the table."""
        raise NotImplementedError

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the values of keys."""
        raise NotImplementedError

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of entries, an int64 scalar."""
        raise NotImplementedError

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)


class _Table(LookupInterface):
    """A table that has a handle.

    Attributes:
        resource_handle: The handle.
        graph: The graph.
    """

    resource_handle: Tensor

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype, "default_value")
        self._key_shape: tuple[int, ...] = ()
        self._value_shape: tuple[int, ...] = self._fixed_shape(self._default_value)

    @staticmethod
    def _fixed_shape(value: Tensor) -> tuple[int, ...]:
        if not value.shape.is_fully_defined():
            raise expected("a value of known shape", value.shape)
        return tuple([d for d in value.shape.as_list() if d is not None])

    def _made(self, op: Any, name: str, shared_name: str | None, **more: Any) -> Tensor:
        return add_handle(
            op,
            name,
            shared_name,
            key_dtype=self._key_dtype,
            value_dtype=self._value_dtype,
            key_shape=self._key_shape,
            value_shape=self._value_shape,
            **more,
        )

    @property
    def _kinds(self) -> tuple[Any, ...]:
        return self._key_dtype, self._value_dtype, self._key_shape, self._value_shape

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.resource_handle.graph

    @property
    def name(self) -> str:
        """Name of the operation that makes the handle, without scopes."""
        return self.resource_handle.op.name.rpartition("/")[2]

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not in."""
        return self._default_value

    def __repr__(self) -> str:
        kinds = f"{self._key_dtype} to {self._value_dtype}"
        return f"<fs {type(self).__name__} '{self.resource_handle.op.name}', {kinds}>"

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the values of keys, and the default value for those that are not in.

        Args:
            keys: A tensor, or a SparseTensor, of the table's key dtype.
            name: Name of the operation.

        Shapes: keys [..., *key] -> [..., *value]; a SparseTensor for a SparseTensor

        Raises:
            DTypeError: if the keys have another dtype.
            FailedPreconditionError: when it runs, if a static table is not initialised.
        """
        full = name or f"{self.name}_Lookup"
        op = ops.LookupTableFind(*self._kinds)
        return on_values(
            keys if hasattr(keys, "with_values") else convert_to_tensor(keys, self._hint(keys)),
            lambda t: apply(op, self.resource_handle, t, self._default_value, name=full),
        )

    def _hint(self, keys: Any) -> DType | None:
        """The dtype that a Python value takes on."""
        return None if isinstance(keys, Tensor | np.ndarray) else self._key_dtype

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of entries, an int64 scalar."""
        return apply(ops.LookupTableSize(), self.resource_handle, name=name or f"{self.name}_Size")

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and all values, in the order in which they were first put in.

        Args:
            name: Name of the operation.

        Shapes: keys [n, *key], values [n, *value]
        """
        op = ops.LookupTableExport(*self._kinds)
        keys, values = apply_many(op, self.resource_handle, name=name or f"{self.name}_Export")
        return keys, values


class InitializableLookupTableBase(_Table):
    """A table that is filled once, by an initializer, and does not change any more.

    Args:
        default_value: The value of keys that are not in, a scalar.
        initializer: What fills it, such as a `KeyValueTensorInitializer`.
    """

    def __init__(self, default_value: Any, initializer: TableInitializerBase) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value)
        if self._value_shape:
            raise expected("a scalar as default_value", f"shape {list(self._value_shape)}")
        self.resource_handle = self._made(ops.HashTableHandle, *self._names())
        self._init = initializer.initialize(self)

    def _names(self) -> tuple[str, str | None]:
        """The operation's name, and that in the container."""
        return "hash_table", None

    @property
    def initializer(self) -> Operation:
        """The operation that fills it; `fs.tables_initializer()` runs those of all tables."""
        return self._init

    @property
    def init(self) -> Operation:
        """The operation that fills it, by its older name."""
        return self._init


class HashTable(InitializableLookupTableBase):
    """A table that is filled once, by its initializer, and does not change any more.

    Args:
        initializer: What fills it, such as a `KeyValueTensorInitializer`.
        default_value: The value of keys that are not in, a scalar.
        shared_name: Name of the table in its container (see `fs.container`); the handle's by
            default.
        name: Name of the handle.

    Raises:
        DTypeError: if the keys are neither strings nor integers.
    """

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self._given = name or "hash_table", shared_name
        super().__init__(default_value, initializer)

    def _names(self) -> tuple[str, str | None]:
        return self._given


class StaticHashTable(InitializableLookupTableBase):
    """A table that is filled once, by its initializer, and does not change any more.

    Args:
        initializer: What fills it, such as a `KeyValueTensorInitializer`.
        default_value: The value of keys that are not in, a scalar.
        name: Name of the handle.

    Raises:
        DTypeError: if the keys are neither strings nor integers.
    """

    def __init__(
        self, initializer: TableInitializerBase, default_value: Any, name: str | None = None
    ) -> None:
        self._given = name or "hash_table", initializer._shared_name or None
        super().__init__(default_value, initializer)

    def _names(self) -> tuple[str, str | None]:
        return self._given


class MutableTable(_Table):
    """A table that changes at any time."""

    def _keep(self, checkpoint: bool) -> None:
        if checkpoint:
            self.graph.add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self)

    def _of_handle(self, handle: Tensor, default_value: Tensor) -> None:
        """Takes operations that exist already."""
        op: Any = handle.op.definition
        self.resource_handle, self._default_value = handle, default_value
        self._key_dtype, self._value_dtype = op.key_dtype, op.value_dtype
        self._key_shape, self._value_shape = op.key_shape, op.value_shape

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Returns an operation that gives keys values; of equal keys the last one counts.

        Args:
            keys: Keys of any shape.
            values: A value for each.
            name: Name of the operation.

        Shapes: keys [..., *key], values [..., *value]

        Raises:
            DTypeError: if keys or values have another dtype than the table's.
        """
        tensors = (
            convert_to_tensor(keys, self._hint(keys)),
            convert_to_tensor(
                values, None if isinstance(values, Tensor | np.ndarray) else self._value_dtype
            ),
        )
        op = ops.LookupTableInsert(*self._kinds)
        return apply_none(op, self.resource_handle, *tensors, name=name or f"{self.name}_Insert")

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Returns an operation that takes keys out; those that are not in do not matter.

        Args:
            keys: Keys of any shape.
            name: Name of the operation.

        Shapes: keys [..., *key]

        Raises:
            DTypeError: if the keys have another dtype than the table's.
        """
        op = ops.LookupTableRemove(self._key_dtype, self._key_shape)
        tensor = convert_to_tensor(keys, self._hint(keys))
        return apply_none(op, self.resource_handle, tensor, name=name or f"{self.name}_Remove")

    @property
    def entry_specs(self) -> list[tuple[DType, tuple[int | None, ...]]]:
        """Dtypes and shapes of all keys, and of all values."""
        keys, values = (None, *self._key_shape), (None, *self._value_shape)
        return [(self._key_dtype, keys), (self._value_dtype, values)]

    def restored(self, keys: Tensor, values: Tensor) -> Operation:
        """Returns an operation that puts entries of a checkpoint in the place of all."""
        op = ops.LookupTableImport(*self._kinds)
        return apply_none(op, self.resource_handle, keys, values, name=f"{self.name}_Import")


class MutableHashTable(MutableTable):
    """A table that changes at any time.

    Args:
        key_dtype: Dtype of the keys: strings or integers.
        value_dtype: Dtype of the values.
        default_value: The value of keys that are not in; its shape is that of a value.
        name: Name of the handle.
        checkpoint: Whether savers of all variables save the table.
        shared_name: Name of the table in its container (see `fs.container`); the handle's by
            default.

    Raises:
        DTypeError: if the keys are neither strings nor integers.
        InvalidArgumentError: when it is first used, if the container has a table of this name that
            differs.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        shared_name: str | None = None,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value)
        self.resource_handle = self._made(ops.MutableHashTableHandle, name, shared_name)
        self._keep(checkpoint)


class MutableDenseHashTable(MutableTable):
    """A table that changes at any time, and whose keys may be vectors.

    `export` gives the entries alone, without the buckets that are empty.

    Args:
        key_dtype: Dtype of the keys: strings or integers.
        value_dtype: Dtype of the values.
        default_value: The value of keys that are not in; its shape is that of a value.
        empty_key: A key that never occurs; its shape is that of a key.
        deleted_key: Another one.
        initial_num_buckets: A power of two; the table grows in any case.
        name: Name of the handle.
        checkpoint: Whether savers of all variables save the table.
        shared_name: Name of the table in its container (see `fs.container`); the handle's by
            default.

    Raises:
        DTypeError: if the keys are neither strings nor integers.
        InvalidArgumentError: if the two keys are one, or not known before a step, or
            `initial_num_buckets` is no power of two; when it runs, if one of them is used; when it
            is first used, if the container has a table of this name that differs.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        shared_name: str | None = None,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value)
        buckets = 1 if initial_num_buckets is None else initial_num_buckets
        keys = never_keys(self._key_dtype, empty_key, deleted_key, buckets)
        self._key_shape = keys.pop("key_shape")
        self.resource_handle = self._made(
            ops.MutableDenseHashTableHandle, name, shared_name, **keys
        )
        self._keep(checkpoint)


def never_keys(dtype: DType, empty_key: Any, deleted_key: Any, buckets: int) -> dict[str, Any]:
    """The facts of a dense table that follow from the two keys that never occur.

    Raises:
        InvalidArgumentError: if they are one, or not known, or the buckets are no power of two.
    """
    if buckets < 1 or buckets & (buckets - 1):
        raise expected("a power of two as initial_num_buckets", buckets)
    empty, deleted = (
        _known_key(what, key, dtype)
        for what, key in (("empty_key", empty_key), ("deleted_key", deleted_key))
    )
    if np.shape(empty) != np.shape(deleted):
        raise expected("empty_key and deleted_key of one shape", np.shape(deleted))
    never = [tuple(np.reshape(key, -1).tolist()) for key in (empty, deleted)]
    if never[0] == never[1]:
        raise InvalidArgumentError(
            f"expected an empty_key and a deleted_key that differ, got {never[0]} for both"
        )
    return {"key_shape": np.shape(empty), "empty_key": never[0], "deleted_key": never[1]}


def _known_key(what: str, key: Any, dtype: DType) -> Any:
    """The value of a key that is known before a step, as an array."""
    tensor = convert_to_tensor(key, dtype, what)
    value = get_static_value(tensor)
    if value is None:
        raise InvalidArgumentError(f"expected {what} as a value that is known, got {tensor}")
    return np.array(value, dtype.np_dtype)


def _write(table: MutableTable) -> dict[str, Any]:
    return {
        "handle": table.resource_handle.name,
        "default_value": table.default_value.name,
    }


def _reader(kind: type[MutableTable]) -> Callable[..., MutableTable]:
    def read(facts: dict[str, Any], find: Callable[[str], Any]) -> MutableTable:
        names = [facts.get(k) for k in ("handle", "default_value")]
        handle, default = (find(n) if isinstance(n, str) else None for n in names)
        is_table = isinstance(handle, Tensor) and isinstance(handle.op.definition, ops.TableHandle)
        if handle is None or not is_table or not isinstance(default, Tensor):
            raise expected("the handle and the default value of a mutable table", repr(facts))
        table = kind.__new__(kind)
        table._of_handle(handle, default)
        return table

    return read


for _name, _kind in (("table", MutableHashTable), ("dense_table", MutableDenseHashTable)):
    register_kind(CollectionKind(_name, _kind, _write, _reader(_kind)))
