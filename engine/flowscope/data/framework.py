"""Parts of TensorFlow 1's `contrib.framework`: `RecordInput`, records in random order without end.

    images = fs.contrib.framework.RecordInput("train-*", batch_size=32, buffer_size=10_000)
    records = images.get_yield_op()      # another batch in each step

It is a dataset with an iterator of its own, which reads files where it is placed.
"""

from __future__ import annotations

from typing import Any

from flowscope.data.arguments import as_number
from flowscope.data.dataset import Dataset
from flowscope.data.readers import TFRecordDataset
from flowscope.data.structure import Leaf, Structure
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.array.arrays import size
from flowscope.ops.array.joining import unstack
from flowscope.ops.array.moving import roll
from flowscope.ops.array.shaping import reshape
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.host import dataset_ops as ops
from flowscope.ops.host.files import MatchingFiles
from flowscope.ops.input.python_io import TFRecordOptions

__all__ = ["RecordInput"]

#: More files than there are.
_ALL = 1 << 40
#: What tells the draws of files from those of records.
_OF_FILES, _OF_RECORDS = 0, 1


class RecordInput:
    """Reads files of records again and again, and gives their records in random order.

    In each epoch the files are looked for anew, come in another order, and are read several at a
    time; records are drawn from a buffer. The next epoch begins when all records of one are out.
    The order follows from the seed alone. The next batch is read while steps use the one before.

    Args:
        file_pattern: Names of files, perhaps with wildcards; several are separated by commas.
        batch_size: How many records a batch has.
        buffer_size: How many records the buffer has from which they are drawn.
        parallelism: How many files are read at a time, on threads.
        shift_ratio: By what part of all files, 0 to below 1, the shuffled list of files is rotated.
        seed: What the order follows from.
        name: Name of the operation.
        batches: How many batches there are, as a list; None for one, not in a list.
        compression_type: "GZIP", "ZLIB", or None; or an `fs.python_io.TFRecordCompressionType`.

    Raises:
        InvalidArgumentError: if a number is out of its range, or the compression is not known.
        NotFoundError: when it runs, if there are no files; DataLossError if a record is damaged:
            its file's other records are passed over. OutOfRangeError if the files have no records.
    """

    def __init__(
        self,
        file_pattern: Any,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0,
        seed: int = 0,
        name: str | None = None,
        batches: int | None = None,
        compression_type: Any = None,
    ) -> None:
        if isinstance(file_pattern, bytes):
            file_pattern = file_pattern.decode()
        if not isinstance(file_pattern, str) or not file_pattern:
            raise expected_dtype("file_pattern as a string", repr(file_pattern))
        self._patterns = file_pattern.split(",")
        self._batch_size = _positive("batch_size", batch_size)
        self._buffer_size = _positive("buffer_size", buffer_size)
        self._parallelism = _positive("parallelism", parallelism)
        self._batches = None if batches is None else _positive("batches", batches)
        if not 0 <= shift_ratio < 1:
            raise expected("a shift_ratio from 0 to below 1", shift_ratio)
        self._shift_ratio = float(shift_ratio)
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise expected_dtype("seed as an integer", repr(seed))
        self._seed = int(seed)
        self._name = name or "RecordInput"
        self._compression = TFRecordOptions.get_compression_type_string(compression_type)

    def get_yield_op(self) -> Any:
        """Returns the records of a batch, other ones in each step.

        Each call makes a reader of its own.

        Returns:
            Strings of shape [batch_size]; with `batches` a list of as many such tensors.
        """
        with get_default_graph().name_scope(self._name) as scope:
            count = self._batch_size * (self._batches or 1)
            dataset = self._records().repeat().batch(count, drop_remainder=True).prefetch(1)
            records = dataset.make_one_shot_iterator().get_next()
            if self._batches is None:
                return identity(records, name=scope)
            return unstack(reshape(records, [self._batch_size, self._batches]), axis=1)

    def _records(self) -> Dataset:
        """The records of one epoch."""
        names = Dataset.from_tensors(self._patterns).flat_map(_matching)
        names = _shuffled(names, _ALL, (self._seed, _OF_FILES))
        if self._shift_ratio:
            names = names.batch(_ALL).flat_map(self._rotated)
        read = TFRecordDataset(names, self._compression, num_parallel_reads=self._parallelism)
        return _shuffled(read, self._buffer_size, (self._seed, _OF_RECORDS))

    def _rotated(self, names: Tensor) -> Dataset:
        shift = cast(cast(size(names), "float64") * self._shift_ratio, "int32")
        return Dataset.from_tensor_slices(roll(names, -shift, 0))


def _matching(patterns: Tensor) -> Dataset:
    return Dataset.from_tensor_slices(apply(MatchingFiles(True), patterns))


def _shuffled(dataset: Dataset, buffer_size: int, seed: tuple[int, int]) -> Dataset:
    """A dataset whose order follows from a seed alone, not from the graph's."""
    op = ops.ShuffleDataset(seed, True)
    count = as_number(buffer_size, "buffer_size")
    return Dataset(apply(op, dataset._variant, count), Structure(Leaf(string, ())))


def _positive(what: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise expected_dtype(f"{what} as an integer", repr(value))
    if value < 1:
        raise expected(f"a {what} of 1 or more", value)
    return int(value)
