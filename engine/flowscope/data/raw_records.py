"""`RecordInput` as TensorFlow's `raw_ops` name it."""

from __future__ import annotations

from flowscope.data import framework
from flowscope.graph.operation import Tensor

__all__ = ["RecordInput"]


def RecordInput(
    *,
    file_pattern: str,
    file_random_seed: int = 301,
    file_shuffle_shift_ratio: float = 0,
    file_buffer_size: int = 10000,
    file_parallelism: int = 16,
    batch_size: int = 32,
    compression_type: str = "",
    name: str | None = None,
) -> Tensor:
    """Records in random order, other ones in each step; see `fs.contrib.framework.RecordInput`.

    Args:
        file_pattern: Names of files, perhaps with wildcards; several are separated by commas.
        file_random_seed: What the order follows from.
        file_shuffle_shift_ratio: By what part of all files the shuffled list of them is rotated.
        file_buffer_size: How many records the buffer has from which they are drawn.
        file_parallelism: How many files are read at a time.
        batch_size: How many records a step gets.
        compression_type: "GZIP", "ZLIB", or "" for none.
        name: Name of the operation.

    Returns:
        Strings of shape [batch_size].
    """
    made = framework.RecordInput(
        file_pattern, batch_size, file_buffer_size, file_parallelism, file_shuffle_shift_ratio,
        file_random_seed, name, None, compression_type or None,
    )  # fmt: skip
    records: Tensor = made.get_yield_op()
    return records
