"""Words to numbers and back: tables of vocabularies, with buckets for the words that are not in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, as_dtype, int64, string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.array.arrays import range as range_of, size
from flowscope.ops.array.selection import where
from flowscope.ops.core.build import on_values
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import no_op
from flowscope.ops.math.elementwise import add, not_equal
from flowscope.ops.strings.elementwise import as_string
from flowscope.ops.strings.hash_buckets import (
    string_to_hash_bucket_fast,
    string_to_hash_bucket_strong,
)
from flowscope.ops.tables.initializers import (
    KeyValueTensorInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)
from flowscope.ops.tables.tables import HashTable, LookupInterface, StaticHashTable

__all__ = [
    "FastHashSpec",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "StaticVocabularyTable",
    "StrongHashSpec",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
    "string_to_index",
    "string_to_index_table_from_file",
    "string_to_index_table_from_tensor",
]


class HasherSpec(NamedTuple):
    """A hash function: its name, "fasthash" or "stronghash", and its key.

    Attributes:
        hasher: The name.
        key: Two integers for "stronghash", None for "fasthash".
    """

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A hash function with a key, for words that somebody may have chosen to share a bucket.

    Args:
        key: Two integers of 0 or more.

    Raises:
        InvalidArgumentError: if the key is no such pair.
    """

    __slots__ = ()

    def __new__(cls, key: Sequence[int]) -> StrongHashSpec:
        if len(key) != 2 or any(isinstance(k, bool) or not _is_word(k) for k in key):
            raise expected("two integers of 0 or more as the key", repr(key))
        return super().__new__(cls, "stronghash", key)


def _is_word(number: Any) -> bool:
    return hasattr(number, "__index__") and 0 <= int(number) < 2**64


class _WithBuckets(LookupInterface):
    """A table of words, and buckets for the words that are not in.

    Args:
        table: The table; None: all words go to buckets.
        count: Number of buckets.
        spec: The hash function.
        key_dtype: Dtype of the keys of lookups.
        name: Name scope of lookups.
    """

    def __init__(self, table: Any, count: int, spec: HasherSpec, key_dtype: Any, name: str) -> None:
        super().__init__(key_dtype, int64)
        self._table, self._count, self._buckets_of = table, count, _hasher(spec)
        self._name = name

    @property
    def name(self) -> str:
        """Name of the table."""
        return self._name

    @property
    def resource_handle(self) -> Tensor | None:
        """The handle of the table of words; None where there is none."""
        return None if self._table is None else self._table.resource_handle

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        return no_op(name="init") if self._table is None else self._table.initializer

    @property
    def init(self) -> Operation:
        """The operation that fills the table, by its older name."""
        return self.initializer

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of words and buckets together, an int64 scalar."""
        with get_default_graph().name_scope(name or f"{self._name}_Size"):
            count = convert_to_tensor(self._count, int64)
            return count if self._table is None else add(self._table.size(), count)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the numbers of words; a word that is not in has that of its bucket.

        Args:
            keys: A tensor or a SparseTensor of words.
            name: Name scope of the operations.

        Shapes: [...] -> int64 [...]; a SparseTensor for a SparseTensor

        Raises:
            DTypeError: if the keys have another dtype than the table's.
        """
        given = keys if hasattr(keys, "with_values") else convert_to_tensor(keys)
        if given.dtype is not self._key_dtype:
            raise expected_dtype(f"keys of dtype {self._key_dtype}, the table's", given.dtype)
        with given.graph.name_scope(name or f"{self._name}_Lookup"):
            return on_values(given, self._numbers)

    def _numbers(self, keys: Tensor) -> Tensor:
        inner = self._table
        if inner is not None and inner.key_dtype is int64:
            keys = cast(keys, int64)
        if not self._count:
            return inner.lookup(keys)  # type: ignore[no-any-return]
        words = keys if keys.dtype is string else as_string(keys)
        buckets = self._buckets_of(words, self._count)
        if inner is None:
            return buckets
        numbers = inner.lookup(keys)
        is_in = not_equal(numbers, inner.default_value)
        return where(is_in, numbers, add(buckets, inner.size()))


def _hasher(spec: HasherSpec) -> Callable[[Tensor, int], Tensor]:
    if not isinstance(spec, HasherSpec):
        raise expected_dtype("a HasherSpec", repr(spec))
    if spec.hasher == "fasthash":
        return string_to_hash_bucket_fast
    if spec.hasher == "stronghash":
        key = list(spec.key)
        return lambda words, count: string_to_hash_bucket_strong(words, count, key)
    raise expected('"fasthash" or "stronghash"', repr(spec.hasher))


class IdTableWithHashBuckets(_WithBuckets):
    """A table of words with numbers, and buckets behind them for the words that are not in.

    Args:
        table: A table to int64; None: all words go to buckets.
        num_oov_buckets: Number of buckets.
        hasher_spec: The hash function, `FastHashSpec` or a `StrongHashSpec`.
        name: Name scope of lookups.
        key_dtype: Dtype of the keys of lookups: string or integer; the table's by default, and
            strings without one.

    Raises:
        InvalidArgumentError: if there is neither a table nor a bucket.
        DTypeError: if the table does not give int64, or the dtypes do not fit together.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if num_oov_buckets < 0 or (table is None and not num_oov_buckets):
            raise expected("num_oov_buckets of 1 or more without a table", num_oov_buckets)
        wanted = _looked_up(table, key_dtype)
        called = name or (table.name if table is not None else "hash_bucket")
        super().__init__(table, num_oov_buckets, hasher_spec, wanted, called)


class StaticVocabularyTable(_WithBuckets):
    """A vocabulary, and buckets behind its numbers for the words that are not in.

    Args:
        initializer: What fills the vocabulary, with int64 values; None: all words go to buckets.
        num_oov_buckets: Number of buckets, 1 or more.
        lookup_key_dtype: Dtype of the keys of lookups: string or integer; the initializer's by
            default, and strings without one.
        name: Name scope of lookups.

    Raises:
        InvalidArgumentError: if there is no bucket.
        DTypeError: if the initializer's values are not int64, or dtypes do not fit together.
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets < 1:
            raise expected("num_oov_buckets of 1 or more", num_oov_buckets)
        table = None
        if initializer is not None:
            if initializer.value_dtype is not int64:
                raise expected_dtype("an initializer with int64 values", initializer.value_dtype)
            table = StaticHashTable(initializer, -1)
        wanted = _looked_up(table, lookup_key_dtype)
        called = name or (table.name if table is not None else "hash_bucket")
        super().__init__(table, num_oov_buckets, FastHashSpec, wanted, called)


def _looked_up(table: Any, key_dtype: Any) -> DType:
    """The dtype of the keys of lookups in a table of words, or in none."""
    if table is None:
        return string if key_dtype is None else as_dtype(key_dtype)
    if table.value_dtype is not int64:
        raise expected_dtype("a table with int64 values", table.value_dtype)
    wanted: DType = table.key_dtype if key_dtype is None else as_dtype(key_dtype)
    if wanted.is_integer != table.key_dtype.is_integer:
        raise expected_dtype(f"a key_dtype like the table's {table.key_dtype}", wanted)
    return wanted


# -- words to numbers -----------------------------------------------------------------------------


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: Any = string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """Returns a table of the words of a file: by default each line is one, and its number the id.

    Args:
        vocabulary_file: Name of the file.
        num_oov_buckets: Number of buckets for words that are not in, behind the ids of the file.
        vocab_size: Number of lines that are read; all by default.
        default_value: The id of words that are not in, where there are no buckets.
        hasher_spec: The hash function of the buckets.
        key_dtype: Dtype of the keys of lookups: string or integer.
        name: Name of the table.
        key_column_index: Column of the words; see `TextFileInitializer`.
        value_column_index: Column of the ids.
        delimiter: What separates columns.

    Raises:
        InvalidArgumentError: if there is no file's name, or a number is out of its range.
        DTypeError: if the keys are neither strings nor integers.
        NotFoundError: when its initializer runs, if there is no such file.
    """
    kind = _checked(num_oov_buckets, key_dtype)
    if not isinstance(vocabulary_file, Tensor) and not vocabulary_file:
        raise expected("the name of a vocabulary_file", repr(vocabulary_file))
    with get_default_graph().name_scope(name or "string_to_index"):
        init = TextFileIdTableInitializer(
            vocabulary_file,
            key_column_index,
            value_column_index,
            vocab_size,
            delimiter,
            "table_init",
            int64 if kind.is_integer else kind,
        )
        return _indexed(init, num_oov_buckets, default_value, hasher_spec, kind)


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: Any = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = string,
    name: str | None = None,
) -> Any:
    """Returns a table of words, each of which has its position as its id.

    Args:
        mapping: The words, a vector; each stands once.
        num_oov_buckets: Number of buckets for words that are not in, behind the other ids.
        default_value: The id of words that are not in, where there are no buckets.
        hasher_spec: The hash function of the buckets.
        dtype: Dtype of the keys of lookups: string or integer.
        name: Name of the table.

    Raises:
        InvalidArgumentError: if there are no words, or num_oov_buckets is negative.
        DTypeError: if the words have another dtype.
        FailedPreconditionError: when its initializer runs, if a word stands twice.
    """
    kind = _checked(num_oov_buckets, dtype)
    if mapping is None:
        raise expected("the words of the table as mapping", "None")
    with get_default_graph().name_scope(name or "string_to_index"):
        words = convert_to_tensor(mapping, None if _is_tensor(mapping) else kind)
        if words.dtype.is_integer != kind.is_integer or words.dtype.kind == "f":
            raise expected_dtype(f"words that can be cast to {kind}", words.dtype)
        keys = cast(words, int64) if kind.is_integer else words
        init = KeyValueTensorInitializer(keys, _numbers_of(keys), name="table_init")
        return _indexed(init, num_oov_buckets, default_value, hasher_spec, kind)


def _checked(num_oov_buckets: int, dtype: Any) -> DType:
    if num_oov_buckets < 0:
        raise expected("num_oov_buckets of 0 or more", num_oov_buckets)
    kind = as_dtype(dtype)
    if kind is not string and not kind.is_integer:
        raise expected_dtype("strings or integers as keys", kind)
    return kind


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _numbers_of(words: Tensor) -> Tensor:
    return cast(range_of(size(words, out_type=int64)), int64)


def _indexed(init: Any, buckets: int, default_value: Any, spec: HasherSpec, kind: DType) -> Any:
    table = HashTable(init, default_value, init._shared_name or None)
    if not buckets and table.key_dtype is kind:
        return table
    return IdTableWithHashBuckets(table, buckets, spec, key_dtype=kind)


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """Returns a table of the lines of a file; an older name of `index_table_from_file`.

    Args:
        vocabulary_file: See `index_table_from_file`, as for all that follow.
        num_oov_buckets: Number of buckets.
        vocab_size: Number of lines that are read.
        default_value: The id of words that are not in.
        hasher_spec: The hash function of the buckets.
        name: Name of the table.
    """
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: Any = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """Returns a table of words; an older name of `index_table_from_tensor`.

    Args:
        mapping: See `index_table_from_tensor`, as for all that follow.
        num_oov_buckets: Number of buckets.
        default_value: The id of words that are not in.
        hasher_spec: The hash function of the buckets.
        name: Name of the table.
    """
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name)


def string_to_index(
    tensor: Any, mapping: Any, default_value: Any = -1, name: str | None = None
) -> Any:
    """Returns the positions of words in a list of words.

    Args:
        tensor: The words to look up, a tensor or a SparseTensor.
        mapping: The list, a vector of strings.
        default_value: The id of words that are not in.
        name: Name of the table.

    Shapes: [...] -> int64 [...]
    """
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


# -- numbers to words -----------------------------------------------------------------------------


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> HashTable:
    """Returns a table from numbers to the words of a file: by default to the lines, by number.

    Args:
        vocabulary_file: Name of the file.
        vocab_size: Number of lines that are read; all by default.
        default_value: The word of numbers that are not in.
        name: Name of the table.
        key_column_index: Column of the numbers; see `TextFileInitializer`.
        value_column_index: Column of the words.
        delimiter: What separates columns.

    Raises:
        InvalidArgumentError: if there is no file's name, or a number is out of its range.
        NotFoundError: when its initializer runs, if there is no such file.
    """
    with get_default_graph().name_scope(name or "index_to_string"):
        init = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter,
            "table_init",
        )  # fmt: skip
        return HashTable(init, default_value, init._shared_name or None)


def index_to_string_table_from_tensor(
    mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> HashTable:
    """Returns a table from numbers to words: from each position in a list to the word there.

    Args:
        mapping: The list, a vector of strings.
        default_value: The word of numbers that are not in.
        name: Name of the table.

    Raises:
        InvalidArgumentError: if there is no list.
    """
    if mapping is None:
        raise expected("the words of the table as mapping", "None")
    with get_default_graph().name_scope(name or "index_to_string"):
        words = convert_to_tensor(mapping, string)
        init = KeyValueTensorInitializer(_numbers_of(words), words, name="table_init")
        return HashTable(init, default_value)


def index_to_string(
    tensor: Any, mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> Any:
    """Returns the words at positions in a list of words.

    Args:
        tensor: The positions, int64, a tensor or a SparseTensor.
        mapping: The list, a vector of strings.
        default_value: The word of positions that are not in.
        name: Name of the table.

    Shapes: [...] -> [...]
    """
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)
