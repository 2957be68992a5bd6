"""Datasets of files: of the lines of texts, and of records."""

from __future__ import annotations

from typing import Any

from flowscope.data.arguments import as_number
from flowscope.data.dataset import Dataset
from flowscope.data.structure import Leaf, Structure
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.dtypes import string
from flowscope.graph.values.expected import expected
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.build import apply
from flowscope.ops.host import dataset_ops as ops

_STRINGS = Structure(Leaf(string, ()))


class TextLineDataset(Dataset):
    """A dataset of the lines of text files, as strings without their ends.

    Args:
        filenames: A file name, or a vector of them.
        compression_type: "" (or None), "ZLIB" or "GZIP".
        buffer_size: So many bytes are read at once; None for some.

    Raises:
        NotFoundError: when it runs, if there is no such file; DataLossError if it is damaged.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None
    ) -> None:
        inputs = [
            convert_to_tensor(filenames, string, name="filenames"),
            _compression(compression_type),
            as_number(0 if buffer_size is None else buffer_size, "buffer_size"),
        ]
        super().__init__(apply(ops.TextLineDataset(), *inputs), _STRINGS)


class TFRecordDataset(Dataset):
    """A dataset of the records of files in TensorFlow's format of records, as strings.

    Args:
        filenames: A file name, a vector of them, or a dataset of them.
        compression_type: "" (or None), "ZLIB" or "GZIP".
        buffer_size: None: other sizes are refused.
        num_parallel_reads: So many files are read at a time, on threads, a record of each in turn;
            None: one after the other.

    Raises:
        UnimplementedError: for a `buffer_size`.
        NotFoundError: when it runs, if there is no such file; DataLossError if a record is damaged:
            the file's other records are passed over.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: int | None = None,
    ) -> None:
        refuse("data.TFRecordDataset", buffer_size=buffer_size)
        kind = _compression(compression_type)
        names = filenames
        if not isinstance(filenames, Dataset):
            names = Dataset.from_tensor_slices(_vector(filenames))

        def read(name: Any) -> Dataset:
            return Dataset(apply(ops.TFRecordDataset(), name, kind), _STRINGS)

        if num_parallel_reads is None:
            found = names.flat_map(read)
        else:
            found = names.interleave(read, num_parallel_reads, 1, num_parallel_reads)
        super().__init__(found._variant, _STRINGS)


class FixedLengthRecordDataset(Dataset):
    """A dataset of the records of one length in binary files, as strings.

    Args:
        filenames: A file name, or a vector of them.
        record_bytes: Bytes of a record.
        header_bytes: Bytes before the first one; None for 0.
        footer_bytes: Bytes behind the last one; None for 0.
        buffer_size: So many bytes are read at once; None for some.
        compression_type: "" (or None), "ZLIB" or "GZIP".

    Raises:
        NotFoundError: when it runs, if there is no such file; InvalidArgumentError if its records
            are no whole number.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
    ) -> None:
        sizes = {"header_bytes": header_bytes, "record_bytes": record_bytes,
                 "footer_bytes": footer_bytes, "buffer_size": buffer_size}  # fmt: skip
        inputs = [
            convert_to_tensor(filenames, string, name="filenames"),
            *[as_number(0 if v is None else v, name) for name, v in sizes.items()],
            _compression(compression_type),
        ]
        super().__init__(apply(ops.FixedLengthRecordDataset(), *inputs), _STRINGS)


def _vector(filenames: Any) -> Tensor:
    """File names as a vector, of one too."""
    names = convert_to_tensor(filenames, string, name="filenames")
    return reshape(names, [-1])


def _compression(value: Any) -> Tensor:
    known = ("", "ZLIB", "GZIP")
    if value is not None and not isinstance(value, Tensor) and value not in known:
        raise expected('compression_type as "", "ZLIB" or "GZIP"', repr(value))
    return convert_to_tensor("" if value is None else value, string, name="compression_type")


__all__ = ["FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]
