"""What fills static tables: tensors of keys and values, or the lines of text files."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, as_dtype, int64, string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.build import apply_none
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.tables import table_ops as ops

__all__ = [
    "KeyValueTensorInitializer",
    "TableInitializerBase",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
]


class TextFileIndex:
    """Columns of text files that are none: the whole line, and the line's number from 0."""

    WHOLE_LINE = ops.WHOLE_LINE
    LINE_NUMBER = ops.LINE_NUMBER


class TableInitializerBase:
    """What the initializers of static tables have in common.

    Args:
        key_dtype: Dtype of the keys.
        value_dtype: Dtype of the values.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        """Dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """Dtype of the values."""
        return self._value_dtype

    @property
    def _shared_name(self) -> str:
        """A name by which tables with the same entries are one; "" for none."""
        return ""

    def initialize(self, table: Any) -> Operation:
        """Returns an operation that fills a table, and adds it to the table initializers.

        Args:
            table: A static table.

        Raises:
            DTypeError: if the table has other dtypes.
        """
        for what in ("key_dtype", "value_dtype"):
            if getattr(table, what) is not getattr(self, what):
                raise expected_dtype(
                    f"a table with {what} {getattr(self, what)}", getattr(table, what)
                )
        graph = table.resource_handle.op.graph
        with graph.as_default(), graph.enter_block(graph.root):
            done = self._added(table.resource_handle)
        graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, done)
        return done

    def _added(self, handle: Tensor) -> Operation:
        raise NotImplementedError


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with keys and values.

    Args:
        keys: A vector.
        values: A vector of the same length.
        key_dtype: Dtype of the keys, where they are Python values.
        value_dtype: Dtype of the values, where they are Python values.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if their lengths differ.
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        self._name = name or "key_value_init"
        self._keys = convert_to_tensor(keys, key_dtype and as_dtype(key_dtype), "keys")
        self._values = convert_to_tensor(values, value_dtype and as_dtype(value_dtype), "values")
        super().__init__(self._keys.dtype, self._values.dtype)
        lengths = self._keys.shape, self._values.shape
        if not lengths[0].is_compatible_with(lengths[1]):
            raise expected(f"a value for each of the keys {lengths[0]}", lengths[1])

    def _added(self, handle: Tensor) -> Operation:
        return apply_none(ops.InitializeTable(), handle, self._keys, self._values, name=self._name)


def check_column(what: str, index: int, dtype: DType) -> None:
    """Raises if a column of a text file cannot give keys, or values, of a dtype."""
    if index < TextFileIndex.WHOLE_LINE:
        raise expected(f"a {what}_index of -2 or more", index)
    if index == TextFileIndex.LINE_NUMBER and dtype is not int64:
        raise expected_dtype(f"int64 as {what}_dtype of a line's number", dtype)
    if index == TextFileIndex.WHOLE_LINE and dtype is not string and not dtype.is_integer:
        raise expected_dtype(f"string or integers as {what}_dtype of whole lines", dtype)


class TextFileInitializer(TableInitializerBase):
    """Fills a table from the lines of a text file, on the machine where the table lies.

    Args:
        filename: Name of the file, a string or a string scalar.
        key_dtype: Dtype of the keys; int64 for `TextFileIndex.LINE_NUMBER`.
        key_index: Column of the keys, from 0; or `TextFileIndex.WHOLE_LINE` or `LINE_NUMBER`.
        value_dtype: Dtype of the values, likewise.
        value_index: Column of the values, likewise.
        vocab_size: Number of lines that are read; all by default.
        delimiter: What separates columns.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the name is empty, or a column or the size is no such number; when
            it runs, if the file has fewer lines than `vocab_size`, or a line does not fit.
        DTypeError: if a dtype does not fit its column.
        NotFoundError: when it runs, if there is no such file.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._name = name or "text_file_init"
        self._filename = filename
        if not isinstance(filename, Tensor) and not filename:
            raise expected("the name of a file", repr(filename))
        if vocab_size is not None and vocab_size < 1:
            raise expected("a vocab_size of 1 or more", vocab_size)
        if not delimiter:
            raise expected("a delimiter", repr(delimiter))
        check_column("key", key_index, self.key_dtype)
        check_column("value", value_index, self.value_dtype)
        self._op = ops.InitializeTableFromTextFile(
            self.key_dtype,
            self.value_dtype,
            key_index,
            value_index,
            -1 if vocab_size is None else vocab_size,
            delimiter,
        )

    @property
    def _shared_name(self) -> str:
        op = self._op
        if isinstance(self._filename, Tensor):
            return ""
        return f"hash_table_{self._filename}_{op.vocab_size}_{op.key_index}_{op.value_index}"

    def _added(self, handle: Tensor) -> Operation:
        filename = convert_to_tensor(self._filename, string, "asset_filepath")
        handle.graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return apply_none(self._op, handle, filename, name=self._name)


class TextFileStringTableInitializer(TextFileInitializer):
    """Fills a table of numbers with words: by default the words are lines, the keys their numbers.

    Args:
        filename: See `TextFileInitializer`, as for all that follow.
        key_column_index: Column of the keys.
        value_column_index: Column of the values.
        vocab_size: Number of lines that are read.
        delimiter: What separates columns.
        name: Name of the operation.
    """

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename, int64, key_column_index, string, value_column_index, vocab_size, delimiter,
            name,
        )  # fmt: skip


class TextFileIdTableInitializer(TextFileInitializer):
    """Fills a table of words with numbers: by default the words are lines, the values their
    numbers.

    Args:
        filename: See `TextFileInitializer`, as for all that follow.
        key_column_index: Column of the keys.
        value_column_index: Column of the values.
        vocab_size: Number of lines that are read.
        delimiter: What separates columns.
        name: Name of the operation.
        key_dtype: Dtype of the keys.
    """

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: Any = string,
    ) -> None:
        super().__init__(
            filename, key_dtype, key_column_index, int64, value_column_index, vocab_size, delimiter,
            name,
        )  # fmt: skip
