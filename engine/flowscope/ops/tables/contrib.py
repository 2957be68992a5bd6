"""Lookup tables under TensorFlow 1's older names: `fs.contrib.lookup`."""

from flowscope.ops.tables.initializers import (
    KeyValueTensorInitializer as KeyValueTensorInitializer,
    TableInitializerBase as TableInitializerBase,
    TextFileIdTableInitializer as TextFileIdTableInitializer,
    TextFileIndex as TextFileIndex,
    TextFileInitializer as TextFileInitializer,
    TextFileStringTableInitializer as TextFileStringTableInitializer,
)
from flowscope.ops.tables.tables import (
    HashTable as HashTable,
    InitializableLookupTableBase as InitializableLookupTableBase,
    LookupInterface as LookupInterface,
    MutableDenseHashTable as MutableDenseHashTable,
    MutableHashTable as MutableHashTable,
)
from flowscope.ops.tables.vocabularies import (
    FastHashSpec as FastHashSpec,
    HasherSpec as HasherSpec,
    IdTableWithHashBuckets as IdTableWithHashBuckets,
    StrongHashSpec as StrongHashSpec,
    index_table_from_file as index_table_from_file,
    index_table_from_tensor as index_table_from_tensor,
    index_to_string as index_to_string,
    index_to_string_table_from_file as index_to_string_table_from_file,
    index_to_string_table_from_tensor as index_to_string_table_from_tensor,
    string_to_index as string_to_index,
    string_to_index_table_from_file as string_to_index_table_from_file,
    string_to_index_table_from_tensor as string_to_index_table_from_tensor,
)

__all__ = [
    "FastHashSpec",
    "HashTable",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "InitializableLookupTableBase",
    "KeyValueTensorInitializer",
    "LookupInterface",
    "MutableDenseHashTable",
    "MutableHashTable",
    "StrongHashSpec",
    "TableInitializerBase",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
    "string_to_index",
    "string_to_index_table_from_file",
    "string_to_index_table_from_tensor",
]
