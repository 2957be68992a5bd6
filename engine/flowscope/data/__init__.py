"""Input as datasets: elements, and iterators through them. Users enter by `fs.data`.

In: arrays, files, generators, and functions of elements. Out: tensors, of which each step takes the
next. Called by users.
"""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.data import experimental
from flowscope.data.dataset import Dataset
from flowscope.data.iterator import (
    Iterator,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from flowscope.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from flowscope.data.structure import get_output_classes, get_output_shapes, get_output_types

__all__ = [
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
