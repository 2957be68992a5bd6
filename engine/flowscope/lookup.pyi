"""Lookup tables, under TensorFlow's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.tables import (
    experimental as experimental,
)
from flowscope.ops.tables.initializers import (
    KeyValueTensorInitializer as KeyValueTensorInitializer,
    TextFileIndex as TextFileIndex,
    TextFileInitializer as TextFileInitializer,
)
from flowscope.ops.tables.tables import (
    StaticHashTable as StaticHashTable,
)
from flowscope.ops.tables.vocabularies import (
    StaticVocabularyTable as StaticVocabularyTable,
)

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]
